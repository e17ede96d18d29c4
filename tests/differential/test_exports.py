"""`sharefs export check` makes of exports files what the real exportfs makes of them, and its hints cure what they are
printed for. exportfs runs in namespaces of its own (see differential.host): nothing here touches the machine's exports.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from differential.etab import lines_of_check, lines_of_etab  # noqa: E402
from differential.follow import followed  # noqa: E402
from differential.grammar import configuration, exports_file, odd_host  # noqa: E402
from differential.host import ETAB, ETC, NOWHERE, Taken, checked, isolate, lay, remove, write_exports  # noqa: E402

PROJECT = Path(__file__).resolve().parent.parent.parent
CORPUS = {path.name: path.read_bytes() for path in sorted((PROJECT / "tests/fuzz/corpus/exports").iterdir())}
MAIN = "/etc/exports"
RANDOM_FILES = 2000
ODD_HOSTS = 600
CONFIGURATIONS = 200
OWN_FILE = Path("/etc/exports.d/sharefs.exports")
WORKERS = 2


@pytest.fixture(scope="session", autouse=True)
def host() -> None:
    isolate()


def disagreement(files: Mapping[str, bytes]) -> str:
    """What exportfs makes of the files beside what `export check` says; "" for the same."""
    write_exports(files)
    return f"{dict(files)}\n{found}" if (found := difference()) else ""


_COMPLAINT = re.compile(r"^exportfs: (/etc/exports[^\n]*?): ?[0-9]+: ([^\n]*)", re.MULTILINE)
_NOT_OPENED = re.compile(r"^exportfs: can't open (/etc/exports[^\n]*) for reading", re.MULTILINE)
_NO_DIRECTORY = re.compile(r"^exportfs: Failed to stat (/[^\n]*): ", re.MULTILINE)


def is_heard(complaint: re.Match[str], errors: list[str]) -> bool:
    """An error in this file, on a line that has the option at which exportfs stops. (It does not count all lines itself.)"""
    lines = Path(complaint[1]).read_bytes().decode(errors="replace").split("\n")
    places = [int(one[len(complaint[1]) + 1 :].split(":")[0]) for one in errors if one.startswith(complaint[1] + ":")]
    option = re.search('"(.*)"', complaint[2])
    written = option and any(option[1] in line for line in lines)  # it may be quoted or escaped
    return any(not written or option[1] in lines[place - 1] for place in places)


def unheard_complaints(said: str, document: dict[str, Any]) -> list[str]:
    """Lines at which exportfs stops, files that it cannot open and directories that it does not find, of which `export
    check` says nothing."""
    found = document["diagnoses"]
    errors = [one["subject"] for one in found if one["severity"] == "error"]
    about = {one["subject"] for one in found}
    missing = " ".join(one["message"] for one in found if one["code"] in ("SF123", "SF138"))
    return [
        *(match[0] for match in _COMPLAINT.finditer(said) if not is_heard(match, errors)),
        *(match[0] for match in _NOT_OPENED.finditer(said) if match[1] not in about and os.path.lexists(match[1])),
        *(match[0] for match in _NO_DIRECTORY.finditer(said) if f"`{match[1]}`" not in missing),
    ]


def difference() -> str:
    """As disagreement(), for what lies there now."""
    taken = Taken()
    document = checked()
    theirs, ours = lines_of_etab(taken.etab), lines_of_check(document)
    said = ""
    unasked = [one for one in document["diagnoses"] if one["code"] == "SF158"]
    if taken.exit_code < 0:  # what it would have made of the files nobody knows
        return "" if [one["severity"] for one in unasked] == ["error"] else f"nothing is said of its crash: {taken.said}"
    if theirs != ours:
        only_theirs = [line for line in theirs if line not in ours]
        only_ours = [line for line in ours if line not in theirs]
        said += f"etab has {only_theirs}\nexport check says {only_ours}\n"
    # exportfs reads etab as mountd does: each line that it does not give back is one that no client gets. Of a client with
    # a blank it makes another one.
    listed = subprocess.run(["exportfs", "-s"], capture_output=True, timeout=60, check=False, cwd=NOWHERE).stdout
    readable = not any(one["code"] == "SF141" for one in document["diagnoses"])
    merged = any(one["code"] == "SF144" for one in document["diagnoses"])  # by the names that etab has for two hosts
    given_back = all(where and f" {client}(".encode() in listed for where, client, _ in theirs)  # one space behind the longest paths
    if not merged and readable != (given_back and len(listed.splitlines()) >= len(theirs)):
        said += f"etab is {'not ' if readable else ''}readable\n"
    if unasked:
        said += "exportfs was not asked\n"
    if unheard := unheard_complaints(taken.said, document):
        said += f"nothing is said of {unheard}\n"
    return f"{said}exportfs said: {taken.said}" if said else ""


def diagnoses_of(text: str | Mapping[str, bytes]) -> list[dict[str, Any]]:
    write_exports({MAIN: text.encode()} if isinstance(text, str) else text)
    # that the directory is a part of its file system is seen only where there is an export of it
    return [one for one in checked()["diagnoses"] if one["code"] != "SF136"]


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


# By file, "" is /etc/exports. What the numbers of the names are: the list of known differences in the project's issue.
SEVERAL_FILES: dict[str, dict[str, str]] = {
    "the first file wins": {"": "/mnt/share node1(rw)\n", "a": "/mnt/share node1(ro)\n"},
    "in versionsort order": {"10": "/mnt/share node1(rw)\n", "9": "/mnt/share node1(ro)\n"},
    "no main file": {"a": "/mnt/share node1(rw)\n"},
    "only a main file": {"": "/mnt/share node1(rw)\n"},
    "nothing": {},
    "empty files": {"": "", "a": "\n", "b": "# nothing"},
    "an error ends its file only": {"": "/mnt/share node1(rx)\n/mnt/data node1(rw)\n", "a": "/mnt/data node1(ro)\n"},
    "an error in a later file": {"": "/mnt/share node1(rw)\n", "a": "/mnt/data *(rw\n/srv *(rw)\n", "b": "/srv *(ro)\n"},
    "a quote ends with its file": {"a": '/mnt/share "node1(rw)\n', "b": "/mnt/share node1(rw)\n"},
    "a line ends with its file": {"a": "/mnt/share \\", "b": "node1(rw)\n"},
    "defaults end with their file": {"a": "/mnt/share -rw", "b": "/mnt/data node1\n"},
    "one host, two names": {"a": "/mnt/share node1(rw)\n", "b": "/mnt/share node1.lab(ro)\n"},
    "one host, name and address": {"a": "/mnt/share 10.77.0.2(rw)\n", "b": "/mnt/share node1(ro)\n"},
    "one host, another case": {"a": "/mnt/share NODE1(rw)\n", "b": "/mnt/share node1(ro)\n"},
    "one network, another case": {"a": "/mnt/share *.LAB(rw)\n", "b": "/mnt/share *.lab(ro)\n/mnt/data *.lab(rw)\n"},
    "one network, two spellings": {"a": "/mnt/share 10.77.0.0/24(rw)\n", "b": "/mnt/share 10.77.0.1/24(ro)\n"},
    "1 an address of a name in another file": {"a": "/mnt/data both.lab(rw)\n", "b": "/mnt/share 10.77.0.4(rw)\n"},
    "1 a name of an address in another file": {"a": "/mnt/share 10.77.0.4(rw)\n", "b": "/mnt/data both.lab(rw)\n"},
    "1 names that share an address": {"a": "/mnt/data chain.lab(rw)\n", "b": "/mnt/share dual.lab(rw) 10.77.0.6(ro)\n"},
    "1 a chain of names": {"": "/mnt/data 10.77.0.6(rw)\n", "a": "/mnt/data chain.lab(ro)\n", "b": "/srv dual.lab(rw)\n"},
    "3 one directory by a link": {"a": "/mnt/link node1(rw)\n", "b": "/mnt/share node1(ro)\n"},
    "4 flavours in two words": {"a": "/mnt/share -sec=sys:krb5 node1 -rw,no_root_squash 10.77.0.4\n"},
    "5 one missing directory in two spellings": {"a": "/mnt/gone node1(rw)\n", "b": "/mnt/gone/ node1(ro)\n"},
    "5 a loop of links in two spellings": {"a": "/mnt/loop node1(rw)\n", "b": "/mnt//loop node1(ro)\n"},
    "everyone, with and without a star": {"a": "/mnt/share\n", "b": "/mnt/share *(rw)\n"},
    "one directory in many spellings": {"a": "/mnt/share/ node1(rw)\n", "b": "/mnt//./share node1(ro)\n"},
}


@pytest.mark.parametrize("name", SEVERAL_FILES)
def test_several_files(name: str) -> None:
    files = {f"/etc/exports.d/{key}.exports" if key else MAIN: text.encode() for key, text in SEVERAL_FILES[name].items()}
    assert disagreement(files) == ""


def test_5_what_is_no_file_is_passed_over() -> None:
    write_exports({MAIN: b"/mnt/share node1(rw)\n"})
    (ETC / "exports.d/folder.exports").mkdir()
    os.mkfifo(ETC / "exports.d/pipe.exports")
    (ETC / "exports.d/linked.exports").symlink_to("folder.exports")
    (ETC / "exports.d/gone.exports").symlink_to("nothing")
    (ETC / "exports.d/z.exports").write_text("/mnt/data node1(rw)\n")
    taken, document = Taken(), checked()
    assert lines_of_etab(taken.etab) == lines_of_check(document)
    assert len(lines_of_etab(taken.etab)) == 2
    assert sorted(one["subject"] for one in document["diagnoses"] if one["code"] == "SF126") == [
        f"/etc/exports.d/{name}.exports" for name in ("folder", "gone", "linked", "pipe")
    ]


def test_5_complete_is_what_exportfs_reads() -> None:
    """xprtsec= is unknown to nfs-utils 2.6.2 and ends the file; where it is known, nothing ends."""
    files = {MAIN: b"/mnt/share node1(rw)\n/mnt/data node1(rw,xprtsec=tls)\n/srv node1(rw)\n"}
    assert disagreement(files) == ""
    complete = [file["complete"] for file in checked()["files"]]
    assert complete == [len(lines_of_check(checked())) == 3]


# What may lie at /etc/exports.d/odd.exports, beside /etc/exports and a file that is read after it.
ODD_ENTRIES = {
    "a directory": lambda path: path.mkdir(),
    "a link to a directory": lambda path: path.symlink_to("/etc"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to /dev/null": lambda path: path.symlink_to("/dev/null"),
    "a link to a file": lambda path: path.symlink_to("/mnt/elsewhere"),
    "a link to a file without rights": lambda path: path.symlink_to("/mnt/closed"),
    "a pipe": os.mkfifo,
    "a file without rights": lambda path: (path.write_text("/srv node1(ro)\n"), path.chmod(0)),
    "an empty file": lambda path: path.touch(),
    "a file of another user": lambda path: (path.write_text("/srv node1(ro)\n"), os.chown(path, 1000, 1000)),
    "a file with other names": lambda path: (path.write_text("/srv node1(ro)\n"), os.link(path, path.with_name("o.exports"))),
}


@pytest.mark.parametrize("name", ODD_ENTRIES)
def test_entries_of_exports_d(name: str) -> None:
    Path("/mnt/elsewhere").write_text("/srv *(ro)\n")
    Path("/mnt/closed").write_text("/srv *(ro)\n")
    Path("/mnt/closed").chmod(0)
    write_exports({MAIN: b"/mnt/share node1(rw)\n", "/etc/exports.d/z.exports": b"/mnt/data node1(rw)\n"})
    ODD_ENTRIES[name](ETC / "exports.d/odd.exports")
    assert difference() == ""


# What may lie at /etc/exports.d, and at /etc/exports.
ODD_PLACES = {
    "a file": lambda path: path.write_text("/srv node1(ro)\n"),
    "a link to a directory": lambda path: path.symlink_to("/mnt/share"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a directory without rights": lambda path: path.mkdir(0),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("name", ODD_PLACES)
@pytest.mark.parametrize("place", ["exports", "exports.d"])
def test_odd_places(place: str, name: str) -> None:
    files = {MAIN: b"/mnt/share node1(rw)\n"} if place == "exports.d" else {"/etc/exports.d/z.exports": b"/srv node1(rw)\n"}
    write_exports(files)
    try:
        if place == "exports.d":
            (ETC / place).rmdir()
        ODD_PLACES[name](ETC / place)
        assert difference() == ""
    finally:
        remove(ETC / place)
        (ETC / "exports.d").mkdir(exist_ok=True)


@pytest.mark.parametrize("place", [MAIN, "/etc/exports.d/odd.exports"])
def test_exportfs_is_not_asked_where_it_would_wait(place: str) -> None:
    write_exports({"/etc/exports.d/z.exports": b"/srv node1(rw)\n"})
    os.mkfifo(ETC / "pipe")
    Path(place).symlink_to(ETC / "pipe")
    try:
        found = [(one["code"], one["severity"], one["subject"]) for one in checked()["diagnoses"] if one["severity"] == "error"]
        assert found == [("SF158", "error", "exportfs"), ("SF126", "error", place)]
    finally:
        remove(ETC / "pipe")
        remove(Path(place))


@pytest.mark.parametrize("client", ["fe80::1%eth7", "fe80::1%eth7:1", "fe80::1%7", "node9", "{{ client }}"])
def test_files_that_are_named_are_not_judged_by_this_host(client: str) -> None:
    """Each name resolves, and each interface is there; what can be no name of a host is dropped all the same."""
    Path("/mnt/named").write_text(f"/mnt/share {client}(rw) *(ro)\n")
    done = subprocess.run([os.environ["SHAREFS_BIN"], "export", "check", "--json", "/mnt/named"], capture_output=True, timeout=60, check=False)
    document = json.loads(done.stdout)
    lost = [one["client"] for file in document["files"] for one in file["exports"] if not one["exported"]]
    assert lost == (["{{", "}}"] if "{" in client else [])
    assert {one["code"] for one in document["diagnoses"] if one["severity"] == "error"} == ({"SF122"} if lost else set())


# By line of /etc/hosts: hosts with several names, and names of several hosts.
SEVERAL_NAMES = """\
10.77.0.2 a b
10.77.0.3 c b
10.77.0.2 d
10.77.0.3 E e.lab
fd00:77::2 a f
fd00:77::9 F
10.77.0.9 g
10.77.0.9 h
::1 i
127.0.0.1 i
10.77.0.10 j k
10.77.0.11 J l
"""


@pytest.mark.parametrize("first", "abcdeEfFghijkl")
def test_hosts_with_several_names(first: str) -> None:
    hosts = (ETC / "hosts").read_text()
    (ETC / "hosts").write_text(SEVERAL_NAMES)
    try:
        for second in "abcdeEfFghijkl":
            assert disagreement({MAIN: f"/mnt/share {first}(rw) {second}(ro)\n/mnt/data {second}(rw)\n".encode()}) == ""
    finally:
        (ETC / "hosts").write_text(hosts)


def test_an_ordinary_user_gets_the_same_answer() -> None:
    """In a user namespace, in which exportfs has no right at all."""
    write_exports({MAIN: AS_PEOPLE_WRITE_THEM.encode(), "/etc/exports.d/a.exports": b"/srv node1(ro)\n"})
    expected = lines_of_etab(Taken().etab)
    program = Path("/mnt/sharefs")
    program.touch()
    subprocess.run(["mount", "--bind", os.environ["SHAREFS_BIN"], program], check=True)
    try:
        done = subprocess.run(["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", program, "export", "check", "--json"],
                              capture_output=True, timeout=60, check=False, cwd="/")
    finally:
        subprocess.run(["umount", "-l", program], check=True)
    document = json.loads(done.stdout)
    assert not [one for one in document["diagnoses"] if one["code"] == "SF158"]
    assert lines_of_check(document) == expected


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


def some_random_files(first: int) -> list[str]:
    """Files from number `first` on, by ones, twos and threes: in one run all of them count together."""
    wrong = []
    number = first
    while number < RANDOM_FILES:
        group = {MAIN: exports_file(number)}
        number += WORKERS
        for name in ("a", "b")[: number // WORKERS % 3]:
            if number < RANDOM_FILES:
                group[f"/etc/exports.d/{name}.exports"] = exports_file(number)
                number += WORKERS
        if found := disagreement(group):
            wrong.append(found)
    return wrong


def test_random_files() -> None:
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("fork"), initializer=isolate) as pool:
        wrong = [found for part in pool.map(some_random_files, range(WORKERS)) for found in part]
    assert wrong == [], f"{len(wrong)} files, the first:\n" + "\n".join(wrong[:3])


def some_odd_hosts(first: int) -> list[str]:
    wrong = []
    for number in range(first, ODD_HOSTS, WORKERS):
        hosts, lying = odd_host(number)
        (ETC / "hosts").write_text(hosts)
        lay(lying)
        if found := difference():
            wrong.append(f"host {number}:\n{hosts}{lying}\n{found}")
    return wrong


def test_odd_hosts() -> None:
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("fork"), initializer=isolate) as pool:
        wrong = [found for part in pool.map(some_odd_hosts, range(WORKERS)) for found in part]
    assert wrong == [], f"{len(wrong)} hosts, the first:\n" + "\n".join(wrong[:3])


def planned() -> dict[str, Any]:
    """The document of `export --all`, which changes nothing."""
    done = subprocess.run([os.environ["SHAREFS_BIN"], "--config", ETC / "sharefs.yaml", "export", "--all", "--dry-run", "--json"],
                          capture_output=True, timeout=60, check=False, cwd="/")
    assert done.returncode in (0, 1, 2), done.stderr
    return json.loads(done.stdout)


def text_of_plan(document: dict[str, Any]) -> str | None:
    """What the plan writes to the file of sharefs; None if it stays as it is."""
    files = [step["action"] for step in document["plan"]["steps"] if step["action"].get("path") == str(OWN_FILE)]
    return files[0]["after"] if files else None


def wrong_plans(first: int) -> tuple[int, list[str]]:
    """How many plans there were, and those that exportfs does not take as they are meant."""
    wrong, plans = [], 0
    for number in range(first, CONFIGURATIONS, WORKERS):
        hosts, lying = odd_host(number)
        (ETC / "hosts").write_text(hosts)
        lay({path: one for path, one in lying.items() if path != str(OWN_FILE)})
        ETAB.write_bytes(b"")
        (ETC / "sharefs.yaml").write_text(configuration(number, os.uname().nodename))
        document = planned()
        if document["plan"] is None or not document["ok"]:
            continue  # it is refused, and says why
        plans += 1
        OWN_FILE.write_text(text_of_plan(document) or "")
        said = difference()
        now = checked()
        own = [entry for file in now["files"] if file["file"] == str(OWN_FILE) for entry in [*file["exports"], *file["lost"]]]
        # one host by two names, with the same rights
        twice = {one["subject"] for one in now["diagnoses"] if one["code"] == "SF115" and one["severity"] == "warning"}
        said += "".join(f"not exported: {entry}\n" for entry in own if not entry.get("exported") and entry["origin"] not in twice)
        if len(own) != len(document["exports"]):
            said += f"{len(document['exports'])} were wanted\n"
        if text_of_plan(planned()) is not None:
            said += "a second plan changes the file again\n"
        if said:
            wrong.append(f"configuration {number}:\n{(ETC / 'sharefs.yaml').read_text()}\n{OWN_FILE.read_text()}\n{hosts}{lying}\n{said}")
    return plans, wrong


def test_plans_of_export() -> None:
    """What a plan writes is exported, all of it, and the next plan finds nothing to write."""
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("fork"), initializer=isolate) as pool:
        results = list(pool.map(wrong_plans, range(WORKERS)))
    wrong = [found for _, part in results for found in part]
    assert wrong == [], f"{len(wrong)} plans, the first:\n" + "\n".join(wrong[:3])
    assert sum(plans for plans, _ in results) >= CONFIGURATIONS // 10  # the others are refused, for what already lies on the host


# One fault in each; following its hint leaves nothing that was not there before.
FAULTS = {
    "/srv node1 (rw)": "SF101",
    "/srv": "SF102",
    "/srv 10.77.0.9/24(rw)": "SF103",
    "/srv 10.77.0.0/0(rw)": "SF104",
    "/srv 10.77(rw)": "SF105",
    "/srv node1(rw sync)": "SF106",
    "/srv node1(rw  sync no_wdelay)": "SF106",
    "/srv node1(rw ,sync)": "SF106",
    "/srv node1(rw, sync)": "SF106",
    "/srv node1(rw,\tsync ,no_wdelay )": "SF106",
    "/srv node1(rw 10.77.0.4(ro)": "SF106",
    "/srv node1(rw": "SF106",
    "/srv node1(rw)#note": "SF106",
    "/srv node1(rw),10.77.0.4(ro)": "SF106",
    "/srv node1(rw)10.77.0.4(ro)": "SF106",
    "/srv node1(rw,snyc)": "SF107",
    "/srv node1(rw,Async)": "SF107",
    "/srv node1(rw,,async)": "SF107",
    '/srv "node1(rw ,async)"': "SF107",
    "/srv 10.77.0.2,10.77.0.4(rw)": "SF112",
    "/srv [fd00:77::5](rw)": "SF113",
    "/srv 10.77.0.*(rw)": "SF114",
    "/srv node1(rw) node1(rw)": "SF115",
    "/srv node1(rw) node1.lab(ro)": "SF115",
    "/srv *(rw,no_root_squash)": "SF119",
    "/srv *(rw,no_root_squash,insecure)": "SF120",
    "/srv *(rw,sec=sys,insecure,no_root_squash,sec=krb5,secure,root_squash)": "SF120",
    "/mnt/share node1(rw)": "SF124",
    "/mnt/link node1(rw,fsid=1)": "SF142",
    "/mnt/data both.lab(rw,fsid=1)\n/mnt/share 10.77.0.4(rw,fsid=2)": "SF144",
    "/mnt/share 10.77.0.4(rw,fsid=2)\n/mnt/data both.lab(rw,fsid=1)": "SF144",
}


@pytest.mark.parametrize("text", FAULTS)
def test_5_hints_cure_one_fault(text: str) -> None:
    before = diagnoses_of(text + "\n")
    mine = [one for one in before if one["code"] == FAULTS[text]]
    assert len(mine) == 1
    after_text = followed(text + "\n", mine[0])
    assert after_text is not None
    after = diagnoses_of(after_text)
    assert [one["code"] for one in after] == [one["code"] for one in before if one is not mine[0]], after_text
    assert disagreement({MAIN: after_text.encode()}) == ""


def hints_that_lead_nowhere(first: int) -> list[str]:
    """Random files, with all hints followed one after the other."""
    wrong = []
    for number in range(first, 80, WORKERS):
        begin = text = exports_file(number).decode().replace("\r", "").replace("\0", "")
        for _ in range(60):
            # what to do about these needs eyes in such files: comments behind them, quotes, continued lines
            todo = [(one, followed(text, one)) for one in diagnoses_of(text) if one["code"] not in ("SF102", "SF115")]
            change = next((after for one, after in todo if after is not None), None)
            if change is None:
                break
            text = change
        else:
            wrong.append(f"{begin}became\n{text}with\n{[(one['code'], one['subject'], one['hint']) for one, after in todo if after]}")
    return wrong


def test_5_following_all_hints_comes_to_an_end() -> None:
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("fork"), initializer=isolate) as pool:
        wrong = [found for part in pool.map(hints_that_lead_nowhere, range(WORKERS)) for found in part]
    assert wrong == [], f"{len(wrong)} files, the first:\n" + "\n".join(wrong[:3])
