"""`sharefs export check` makes of the lines of an exports file what the real exportfs makes of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from differential.compare import disagreement
from differential.host import MAIN, checked

PROJECT = Path(__file__).resolve().parent.parent.parent
CORPUS = {path.name: path.read_bytes() for path in sorted((PROJECT / "tests/fuzz/corpus/exports").iterdir())}


@pytest.mark.parametrize("name", [name for name in CORPUS if name != "etab"])
def test_corpus(name: str) -> None:
    assert disagreement({MAIN: CORPUS[name]}) == ""


AS_PEOPLE_WRITE_THEM = """\
/mnt 192.168.16.11/22(insecure,rw,sync,no_root_squash,no_subtree_check)
/mnt/share 10.77.0.0/24(rw,sync,no_subtree_check) 10.77.0.2(ro)
/mnt/share *(ro,sync,all_squash,anonuid=1000,anongid=1000)
/srv/nfs4 10.77.0.0/24(rw,fsid=0,crossmnt,no_subtree_check)
/srv/nfs4/homes gss/krb5i(rw,sync,no_subtree_check)
/mnt/share node1(rw) node1.lab(rw) NODE1(ro)
/mnt/share @trusted(rw,no_root_squash) *.lab(ro) node?(rw)
/mnt/share -sync,rw node1 10.77.0.4 both.lab(ro)
/mnt/share\t\tnode1(rw,sync)\t10.77.0.4(rw,sync)\t# two nodes
"/mnt/sp ace" node1(rw)
/mnt/sp\\040ace 10.77.0.0/24(rw)
/mnt/data node1(rw,sec=sys:krb5:krb5i:krb5p)
/mnt/data *(sec=krb5p,rw,sec=krb5i,ro,sec=sys,ro,all_squash)
/mnt/data fd00:77::/64(rw) fd00:77::5(ro) dual.lab(rw)
/mnt/data 10.77.0.0/255.255.255.0(rw,async)
/mnt/data node1(rw,fsid=6f2a3b4c-1111-2222-3333-444455556666)
/mnt/mounted 10.77.0.0/24(rw,mountpoint,fsid=17) node1(ro,mp=/mnt/mounted,fsid=17)
/mnt/data 10.77.0.0/24(ro,refer=/data@10.77.0.3)
/mnt/data node1(rw,no_acl,nordirplus,no_wdelay,insecure_locks,nohide,crossmnt,pnfs,security_label)
/mnt/share node1 (rw)
/mnt/share node1(rw, sync)
/mnt/share node1(rw sync)
/mnt/share node1(rw),10.77.0.4(rw)
/mnt/share node1,both.lab(rw)
/mnt/share nosuch.lab(rw) node1(ro)
/mnt/share node1(rw)#comment
/mnt/share node1(anonuid=nobody)
/mnt/share node1(RW)
/mnt/share (ro)
/mnt/share
/mnt/share 10.77.0.1-10.77.0.9(rw)
/mnt/share 10.77.0.*(rw)
/mnt/share [fd00:77::5](rw)
/mnt/share node1(rw) \\
   10.77.0.4(ro)
/mnt/share/part 10.77.0.0/24(rw) *(ro)
/mnt/gone node1(rw)
/mnt/share node1(rw,snyc)
/mnt/data node1(ro)
"""


@pytest.mark.parametrize("line", re.split(r"(?<!\\)\n", AS_PEOPLE_WRITE_THEM)[:-1])
def test_lines_as_people_write_them(line: str) -> None:
    assert disagreement({MAIN: (line + "\n").encode()}) == ""


def test_lines_as_people_write_them_together() -> None:
    assert disagreement({MAIN: AS_PEOPLE_WRITE_THEM.encode()}) == ""


# By entry: what is said of it, and nothing else. exportfs reads escapes everywhere.
CONTROL_CHARACTERS = {
    r"/mnt/share *\012x(rw)": "SF141",
    r"/mnt/share @a\012b(rw)": "SF141",
    r"/mnt/share @a\011b(rw)": "SF141",
    r"/mnt/share node1(rw,mp=/a\012b)": "SF141",
    r"/mnt/share -mountpoint=/a\012b node1": "SF141",
    '/mnt/share "*a\nb(rw)"': "SF141",
    r"/mnt/share node\0121(rw)": "SF109",
    r"/mnt/share node\0001(rw)": "SF109",
    r"/mnt/share @a\033b(rw)": "SF109",
    r"/mnt/share *\001(rw)": "SF109",
    "/mnt/share node\x7f1(rw)": "SF109",
    r"/mnt/share node1(rw,x\012y)": "SF107",
    r"/mnt/share node1(rw,sec=sys\012)": "SF108",
    r"/mnt/sh\012are node1(rw)": None,  # a directory may have such a name
}


@pytest.mark.parametrize("line", CONTROL_CHARACTERS)
def test_control_characters(line: str) -> None:
    files = {MAIN: f"{line}\n/mnt/data 10.77.0.4(rw)\n".encode(), "/etc/exports.d/a.exports": b"/srv node1(rw)\n"}
    assert disagreement(files) == ""
    told = [one for one in checked()["diagnoses"] if one["severity"] == "error" and one["code"] != "SF111"]
    code = CONTROL_CHARACTERS[line]
    assert [one["code"] for one in told] == ([code] if code else [])
    assert all(re.fullmatch(r"/etc/exports:1:[0-9]+", one["subject"]) for one in told)


def long_path(length: int, component: int = 100) -> str:
    return ("/" + "/".join(["x" * component] * (length // (component + 1) + 2)))[:length].rstrip("/")


# Each in a line of its own, behind /mnt/share.
MORE_CLIENTS = [
    *(f"fe80::1%{zone}" for zone in ("lo:1", "lo:", "lo,rw", "lo", "eth9", "1", "2", "99999", "", "%", "lo0", "LO")), "::1%lo", "fd00::5%lo", "fd00::5%1",
    "FE80::1%lo", "fe80::0:1%lo", "10.77.0.2%lo", "node1%lo", "fe80::1%lo/64", "fe80::%lo", "ff02::1%lo", "::", "0.0.0.0", "0",
    "::ffff:10.77.0.2", "10.77.0.2.", "node1.", "node1..lab", ".", "-", "--", "node1:", ":", "a_b", "ä", "node1;x", "@", "@@", "**", "?",
    "[", "]", "[a", "x" * 255, "x" * 256, "x" * 300, "x." * 140, "gss/", "gss/krb5i", "GSS/krb5", "gss/other", "10.77.0.0/24/24",
    "10.77.0.0/255.255.255.255", "10.77.0.0/0.0.0.255", "fd00::/ffff::", "fd00::/129", "fd00::/-1", "fd00::/0", "/24", "/", "node1/",
    "localhost", "LOCALHOST", "server", "10.077.0.2", "012.77.0.2", "0xa.77.2", "1.2.3.4.5", "1e3", "٣",
]
MORE_OPTIONS = [
    "mp", "mountpoint", "mp=", "mountpoint=", "mp=/", "mp=/mnt/mounted", "mountpoint=/gone", "mp=relative", "mp,mp=/mnt", "mp=/mnt,mp",
    "mp=/mnt,mountpoint=/srv", "MP", "mpx", "mountpointx=/", "nomp", "mp =/mnt", "mp=/a\\040b", "mp=/a=b", "fsid=0,mp",
    "fsid=4294967296", "fsid=-1", "fsid= 5", "fsid=5 ", "fsid=0x", "fsid=", "fsid=ROOT", "fsid=6F2A3B4C:1111:2222", "anonuid=4294967295",
    "anonuid=4294967296", "anonuid=0x10", "anonuid=1.5", "anonuid=-", "sec=", "sec=:", "sec=sys:", "sec=:sys", "sec=sys:sys", "sec=SYS",
    "sec=sys,sec=sys", "sec=none,ro,sec=sys,rw", "sec=null", "sec=krb5,rw", "refer=", "refer=/a@b", "refer=/a@b:/c@d+e", "refer=x",
    "replicas=", "replicas=/a@b", "refer=/a@b,replicas=/c@d", "nohide=1", "rw=1", "no_subtree_check=", "xprtsec=tls", "reexport=none",
    "pnfs", "no_pnfs", "security_label", "nordirplus", "rdirplus", "no_auth_nlm", "insecure_locks", "crossmnt,nocrossmnt", "wdelay,async",
    "all_squash,no_all_squash", "subtree_check,no_subtree_check", "bg", "soft", "defaults", "noexec", "sync;rw", "rw.ro", "rw\\054ro",
]
MORE_PATHS = [
    *(f"/mnt/{'x' * size}" for size in (254, 255, 256, 257, 500)),
    *(long_path(size) for size in (1000, 1018, 1019, 1020, 1021, 1022, 1023, 1024, 1025, 1026, 2000, 4095, 4096, 5000)),
    *(long_path(size, 300) for size in (400, 1000, 1023)), "/mnt/share/" + "../share/" * 60, "/mnt/" + "./" * 400, "/" * 900,
    "\\000", "\\000x", "//", "///mnt", "/mnt/..", "/..", "/mnt/share/.", "/mnt/share//", "/proc", "/dev/null", "/etc", "/etc//exports.d", "/var/lib",
    "/mnt/share\\", "/mnt/\\", "/mnt/ä", "/mnt/\\303\\244", "-", "-rw", "*", "node1", "/mnt/share,", "'/mnt/share'", "/mnt/file/", "/mnt/link/",
    ".", "./", "..", "mnt/share", "./mnt/../mnt/share/", "mnt/link", "proc/fs/..", "gone/share",
]


def lines_of_tables() -> list[str]:
    return [
        *(f"/mnt/share {client}(rw)\n/mnt/data node1(rw)\n" for client in MORE_CLIENTS),
        *(f"/mnt/share {client}\n/mnt/data {client}(ro) node1(rw)\n" for client in MORE_CLIENTS),
        *(f"/mnt/share node1(rw,{option})\n/mnt/data node1(rw)\n" for option in MORE_OPTIONS),
        *(f"/mnt/share -{option} node1\n/mnt/data node1(rw)\n" for option in MORE_OPTIONS),
        *(f"{path} node1(rw)\n/mnt/data node1(rw)\n" for path in MORE_PATHS),
        *(f"{path}\n/mnt/data node1(rw)\n" for path in MORE_PATHS),
    ]


@pytest.mark.parametrize("number", range(len(lines_of_tables())))
def test_tables(number: int) -> None:
    assert disagreement({MAIN: lines_of_tables()[number].encode()}) == ""


ODD_ONES = {
    "an option of a newer exportfs behind comments": "# a\n/mnt/share node1(rw) # b\n\n/srv -ro \\\n node1(rw,xprtsec=tls)\n/mnt/data node1(rw)\n",
    "an option of a newer exportfs in defaults, and its client on another line": "/mnt/share -ro,xprtsec=tls \\\n node1\n/mnt/data node1\n",
    "an option of a newer exportfs in defaults without a client": "/mnt/share node1 \\\n -xprtsec=tls \n/mnt/data node1\n",
    "an option of a newer exportfs before an error": "/mnt/share -xprtsec=tls \\\n @nodes\n/mnt/data node1(rw) *(ro)\n/srv node1(rx)\n",
    "a security flavour in capitals is a network, and none": "/mnt/share GSS/krb5(rw) gss/krb5(ro)\n/mnt/data node1(rw)\n",
    "a relative path and the same directory": "mnt/share node1(rw)\n/mnt/share node1(ro)\n",
    "ranges and what only looks like an address": "/mnt/share 10.77.0.1-10.77.0.9(rw) 10.77.0.300(rw) 1.2.3.4.5(ro)\n/mnt/data node1(rw)\n",
    "a wrong option behind comments": "# a\n# b \\\n/mnt/share node1(rw) #\n/srv node1(rw,snyc)\n/mnt/data node1(rw)\n",
    "4 flavours of one word": "/mnt/share *(rw,sec=sys,insecure,no_root_squash,sec=krb5,secure,root_squash)\n",
    "4 flags of a later word": "/mnt/share -sec=krb5 node1 -rw,insecure 10.77.0.4 *.lab(sec=sys)\n",
    "4 an option of the defaults for one flavour": "/mnt/share -rw,sec=krb5,ro node1(sec=sys,no_root_squash,insecure)\n",
    "5 an interface that is there": "/mnt/share fe80::1%lo(rw) fe80::1(ro)\n",
    "5 an interface that is not": "/mnt/share fe80::1%eth9(rw) node1(ro)\n",
    "5 a plus before the prefix": "/mnt/share 10.77.0.0/+24(rw) fd00::/+64(rw) 10.77.0.0/-8(ro) 10.78.0.0/00000024(rw)\n",
    "5 a NUL byte between words": "/mnt/share \0node1(rw)\0 10.77.0.4(rw)\0*.lab(ro)\n/mnt\0/data node1(rw)\n",
    "5 a NUL byte in quotes": '/mnt/share "node1(rw\0)" 10.77.0.4(rw)\n/mnt/data node1(rw)\n',
    "5 a blank in a value": '/mnt/share "node1(rw,mp=/a b)" 10.77.0.4(rw)\n/mnt/data node1(rw)\n',
    "5 a quote in a value": "/mnt/share node1(rw,mp=/a\\042b) 10.77.0.4(rw)\n/mnt/data node1(rw)\n",
    "5 a parenthesis in a value": "/mnt/share -mp=/a)b 10.77.0.4\n/mnt/data node1(rw)\n",
    "5 a value that fills the line of etab": f"/mnt/share node1(rw,mp=/{'x' * 400})\n/mnt/data node1(rw)\n",
    "5 places with blanks are escaped": "/mnt/share node1(rw,refer=/a\\040b@node1)\n/mnt/data node1(rw)\n",
}


@pytest.mark.parametrize("name", ODD_ONES)
def test_odd_ones(name: str) -> None:
    assert disagreement({MAIN: ODD_ONES[name].encode()}) == ""
