"""Random exports files: mostly what people write, with some of everything that exports(5) and its reader allow."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass

PATHS = [
    "/mnt/share", "/mnt/data", "/mnt/share/part", "/mnt/link", "/srv", "/mnt/mounted",
]
ODD_PATHS = [
    "/mnt/share/", "/mnt//share", "/mnt/./data", "/mnt/gone", "/mnt/gone/", "/mnt//gone/x", "/mnt/file", "mnt/share",
    "/mnt/loop", "/mnt/loop/x", "/mnt/link/part", "/mnt/link/gone", r"/mnt/sp\040ace", '"/mnt/sp ace"', "/mnt/#x",
    "/", r"/mnt/\163hare", '/mnt/"sh"are', "/mnt/share/../data", "/mnt(rw)", "/mnt/link/../data",
]
CLIENTS = [
    "10.77.0.2", "10.77.0.0/24", "node1", "both.lab", "*", "*.lab", "@nodes", "10.77.0.4", "dual.lab",
]
ODD_CLIENTS = [
    "NODE1", "node1.lab", "10.77.0.9/24", "10.77.0.0/+24", "10.77.0.0/024", "10.77.0.0/24x", "10.77.0.0/33",
    "10.77.0.0/0", "10.77.0.0/", "10.77.0.0/-8", "10.77.0.0/255.255.255.0", "10.77.0.0/255.0.255.0", "10.77",
    "10.77.0.300", "fe80::1", "FE80:0::1", "fe80::1%lo", "fe80::1%eth9", "[fe80::1]", "fd00:77::5", "fd00::/64",
    "gss/krb5", "nowhere.lab", "node1,node2", "10.77.0.*", "node[1-3].lab", "*.LAB", "chain.lab", "10.77.0.5",
    "10.77.0.3", "", "@NODES", "node?", r"no\144e1", '"node1"', "0x0a4d0002", "10.77.0.0/0x18", "localhost",
]
FLAGS = [
    "ro", "rw", "sync", "async", "root_squash", "no_root_squash", "all_squash", "no_all_squash", "secure", "insecure",
    "subtree_check", "no_subtree_check",
]
ODD_FLAGS = [
    "wdelay", "no_wdelay", "hide", "nohide", "crossmnt", "nocrossmnt", "secure_locks", "insecure_locks", "auth_nlm",
    "no_auth_nlm", "acl", "no_acl", "nordirplus", "security_label", "pnfs", "no_pnfs",
]
VALUES = [
    "fsid=0", "fsid=root", "fsid=7", "fsid=0x10", "fsid=-1", "fsid=6f2a3b4c-1111-2222-3333-444455556666", "anonuid=0",
    "anonuid=-2", "anongid=1000", "anonuid=65534", "sec=sys", "sec=krb5:krb5i", "sec=krb5p:sys", "sec=none",
    "sec=unix", "mp", "mountpoint", "mp=/mnt", "mountpoint=/mnt/mounted", "refer=/x@node1", "replicas=/y@node1",
    "sec=null:sys", "fsid=010", "anonuid=+5", "anongid= 5",
]
WRONG = [
    "snyc", "RW", "", "rw ", "anonuid=nobody", "fsid=abc", "sec=", "sec=sys:", "sec=spkm3", "hard", "vers=4",
    "anonuid=", "fsid", "no_rot_squash", "Async",
]


def _options(rng: random.Random, odd: float) -> str:
    words = []
    for _ in range(rng.choice([0, 1, 2, 2, 3, 3, 4, 6])):
        draw = rng.random()
        words.append(rng.choice(WRONG if draw < odd * 0.06 else VALUES if draw < 0.2 else ODD_FLAGS if draw < 0.3 else FLAGS))
    if rng.random() < 0.12:  # several flavours
        words += rng.sample(["sec=sys", "sec=krb5", "sec=krb5i:krb5p"], 2)[:1] + [rng.choice(FLAGS)]
        words += ["sec=" + rng.choice(["sys", "krb5", "none"])] + [rng.choice(FLAGS) for _ in range(rng.randrange(3))]
    text = ",".join(words)
    if rng.random() < odd * 0.02:
        text = text.replace(",", rng.choice([", ", " ", " ,"]), 1)
    return text + ("," if rng.random() < 0.02 else "")


def _client(rng: random.Random, odd: float) -> str:
    name = rng.choice(ODD_CLIENTS if rng.random() < 0.2 + odd * 0.2 else CLIENTS)
    draw = rng.random()
    if draw < 0.1:
        return name
    text = f"{name}({_options(rng, odd)})"
    if draw < 0.1 + odd * 0.06:
        spoiled = rng.randrange(8)
        text = [f"{name} ({_options(rng, odd)})", text + "#x", text + ",", text[:-1], text.replace("(", "\\050"), f'"{text}"',
                text + "x", text.replace(")", "\\051")][spoiled]
    return text


def _defaults(rng: random.Random, odd: float) -> str:
    return "-" + _options(rng, odd)


def _line(rng: random.Random, odd: float) -> str:
    words = [rng.choice(ODD_PATHS if rng.random() < 0.1 + odd * 0.25 else PATHS)]
    if rng.random() < 0.2:
        words.append(_defaults(rng, odd))
    for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3]) if rng.random() < 0.9 else 5):
        words.append(_client(rng, odd))
        if rng.random() < 0.08:
            words.append(_defaults(rng, odd))
    blank = lambda: rng.choice([" ", " ", " ", "\t", "  ", " \\\n  "]) if rng.random() < 0.3 else " "  # noqa: E731
    text = words[0] + "".join(blank() + word for word in words[1:])
    if rng.random() < 0.1:
        text += " # " + rng.choice(["note", "a (rw)", 'quote "'])
    if rng.random() < odd * 0.05:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(['"', '""', "\0", "\r", "\\000", "\v", "\\", "(", ")", "#", "\t", "\\\n"]) + text[at:]
    return text


def exports_file(number: int) -> bytes:
    """File `number`, always the same. Every second one is tame."""
    rng = random.Random(number)
    odd = 0.0 if number % 2 else 1.0
    lines: Sequence[str] = [_line(rng, odd) for _ in range(rng.choice([1, 1, 2, 3, 5, 8]))]
    end = "\r\n" if rng.random() < 0.03 else "\n"
    return (end.join(lines) + (end if rng.random() < 0.9 else "")).encode()


# ---- whole hosts: several files, what else may lie beside them, and names of their own ----


@dataclass(frozen=True)
class Lying:
    """What lies at a path."""

    kind: str  # file, directory, link, pipe
    content: bytes = b""  # of a link: where it leads
    mode: int = 0o644


def _path_of(length: int, component: int = 200) -> str:
    """A path of this length that is not there, of names of at most so many bytes."""
    return ("/mnt" + ("/" + "y" * component) * (length // component + 1))[:length].rstrip("/")


HOST_PATHS = [
    "/mnt/share", "/mnt/share", "/mnt/share/part", "/mnt/data", "/mnt/mounted", "/mnt", "/mnt/link", "/mnt/link/part",
    "/mnt/share/part/../part", "/mnt/loop/x", "/mnt/gone/deep", "/mnt/file", '"/mnt/sp ace"', r"/mnt/sp\040ace", r"\057mnt/data",
    '"/mnt/data"', '/mnt/"data"', r"/mnt/d\141t\141/", "mnt/data", "./mnt", "/mnt/\u00e4", r"/mnt/\303\244", r"/mnt/a\134b", r"/mnt/q\042q",
    "/mnt/(x)", "/mnt/#x", r"/mnt/\#x", "/mnt/a,b", "/mnt/a=b", "/mnt/@x", "/mnt/*", "/mnt/-x", "//mnt///share//", "/mnt/share/.",
    "/mnt/" + "n" * 255, "/mnt/" + "n" * 256, "/mnt/" + "n" * 255 + "/m", "/mnt/gone/" + "n" * 256, "/mnt/link/" + "n" * 256,
    *(_path_of(length) for length in (1000, 1020, 1022, 1023, 1024, 1025, 1026, 3000)), _path_of(1023, 300), "/mnt/share/" + "./" * 300,
]
HOST_CLIENTS = [
    "alpha", "beta", "gamma", "delta", "ALPHA", "alpha.lab", "beta.lab", "Gamma.Lab", "10.9.0.1", "10.9.0.2", "10.9.0.3", "fd00:9::1",
    "10.9.0.0/24", "10.9.0.1/24", "fd00:9::/64", "fd00:9::1/64", "fd00:9::1/128", "10.9.0.1/32", "*", "", "*.lab", "al*", "[ab]*.lab", "?eta",
    "@trusted", "@Trusted", "@", "@a.b", '"@tru sted"', "gss/krb5", "gss/krb5p", "nosuch", "nosuch.lab", "fe80::1%lo", "FE80::0001%lo",
    "fe80::1%1", "fe80::2%lo", "fe80::1%eth7", "fe80::1%7", "fe80::1%", "fd00:9::1%lo", "::1%lo", "10.9.0.1%lo", "fe80::/10", "fe80::1%lo/64",
    '"alpha"', r"al\160ha", 'al"ph"a', "alpha,beta", "al_pha", "al-pha", "alpha.", ".alpha", "a" * 64, "a" * 256, "a" * 480, "a" * 505,
    "10.9", "010.9.0.1", "0x0a090001", "10.9.0.1-3", "10.9.0.0/255.255.255.0", "10.9.0.0/0.0.0.255", "10.9.0.0/24/8", "::ffff:10.9.0.1",
    "10.9.0.0/", "10.9.0.0/33", "fd00::/129", "*alpha*", "**", "[", "host\\", "-alpha", "\u00e4lpha", "localhost",
]
HOST_OPTIONS = [
    "mp", "mountpoint", "mp=/mnt/mounted", "mountpoint=/mnt/share", "mp=/gone", "mp=rel", "mp=", "mp=/a,b", r"mp=/a\040b", '"mp=/a b"',
    "fsid=0", "fsid=root", "fsid=1", "fsid=0x1F", "fsid=99999999999", "fsid=-3", "fsid=6f2a3b4c11112222333344445555666f",
    "fsid=6f2a3b4c-1111-2222-3333-44445555666", "fsid=num", "refer=/a@alpha", "refer=/a@alpha+beta:/b@gamma", "refer=/a", "replicas=/a@beta",
    "refer=/a@alpha,replicas=/b@beta", "refer=" + "/r@h:" * 20 + "/r@h", "sec=sys", "sec=krb5p:krb5i:krb5:sys", "sec=sys,rw,sec=krb5,ro",
    "sec=none,ro,all_squash,sec=krb5i,rw,no_root_squash", "sec=krb5:", "sec=bad", "sec=unix:null", "anonuid=99,anongid=-1", "anonuid=1e3",
    "anongid=4294967299", "squash_uids=0-99", "squash_gids=5", "no_subtree_check,subtree_check", "async,sync", "insecure,secure",
    "crossmnt,nohide", "nordirplus,no_acl,acl", "pnfs,no_pnfs", "security_label", "xprtsec=none", "xprtsec=tls:mtls", "reexport=auto-fsidnum",
    "sign_fh", "mp=/" + "m" * 200, "mp=/" + "m" * 480, "rw,", ",rw", "rw,,ro", "rw ,ro", "rw, ro", "rw;ro", "Rw", "no_such_option",
]
HOST_NAMES = ["m.exports", "10.exports", "9.exports", "09.exports", "1a.exports", "sp ace.exports", ".dot.exports", ".exports", "x.exports~",
              "x.export", "X.EXPORTS", "exports", "-.exports", "\u00e4.exports", "z" * 247 + ".exports", "a.exports.exports", "new\nline.exports"]
NAMED = ["alpha", "beta", "gamma", "delta", "alpha.lab", "beta.lab", "gamma.lab", "ALPHA", "Beta"]
ADDRESSES = ["10.9.0.1", "10.9.0.2", "10.9.0.3", "10.9.0.4", "fd00:9::1", "fd00:9::2", "127.0.0.1", "::1"]


def _host_line(rng: random.Random) -> str:
    words = [rng.choice(HOST_PATHS if rng.random() < 0.6 else HOST_PATHS[:6])]
    usual = ["rw", "ro", "sync", "no_subtree_check", "async", "no_root_squash", "insecure", "all_squash"]

    def options(most: int) -> str:
        words = [rng.choice(HOST_OPTIONS if rng.random() < 0.3 else usual) for _ in range(rng.randrange(most + 1))]
        return ",".join(words)

    if rng.random() < 0.25:
        words.append("-" + options(3))
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 5])):
        client = rng.choice(HOST_CLIENTS if rng.random() < 0.6 else HOST_CLIENTS[:20])
        words.append(client if rng.random() < 0.15 else f"{client}({options(4)})")
        if rng.random() < 0.06:
            words.append("-" + options(2))
    blanks = [" ", "\t", "   ", " \\\n", "\\\n\t ", " \\\n \\\n  "] if rng.random() < 0.2 else [" "]
    text = words[0] + "".join(rng.choice(blanks) + word for word in words[1:])
    if rng.random() < 0.15:
        text += rng.choice([" # note", "\t#(ro)", " #\\", "# tight", ' # a "quote', " \\", "\r", "\f", " \v", "\\", '""', '"'])
    return text


def _host_file(rng: random.Random) -> bytes:
    end = rng.choice(["\n"] * 8 + ["\r\n", "\n\n", "\n# between\n", "\n  "])
    text = end.join(_host_line(rng) for _ in range(rng.choice([0, 1, 1, 2, 3, 6])))
    text = rng.choice([""] * 10 + ["\ufeff", "\n\n", "# head\n", " \t\n", "\\\n", "\0"]) + text
    return (text + (end if rng.random() < 0.75 else "")).encode()


def odd_host(number: int) -> tuple[str, dict[str, Lying]]:
    """Host `number`, always the same: the text of /etc/hosts, and what lies at /etc/exports and below /etc/exports.d."""
    rng = random.Random(f"host {number}")
    hosts = ["127.0.0.1 localhost"]
    for _ in range(rng.randrange(2, 9)):
        hosts.append(" ".join([rng.choice(ADDRESSES), *rng.sample(NAMED, rng.randrange(1, 4))]))
    lying: dict[str, Lying] = {}
    if rng.random() < 0.9:
        lying["/etc/exports"] = Lying("file", _host_file(rng), 0o644 if rng.random() < 0.95 else 0)
    for name in rng.sample(HOST_NAMES, rng.choice([0, 0, 1, 2, 3, 5])):
        draw = rng.random()
        kind = "file" if draw < 0.8 else rng.choice(["directory", "link", "pipe"])
        content = rng.choice([b"/etc/exports", b"nothing", b"/mnt/share", b"m.exports", b"/mnt/file"]) if kind == "link" else _host_file(rng)
        lying[f"/etc/exports.d/{name}"] = Lying(kind, content, 0o644 if rng.random() < 0.9 else 0)
    return "\n".join(hosts) + "\n", lying


def configuration(number: int, server: str) -> str:
    """sharefs.yaml number `number`, in which this server exports something. Every second one is tame."""
    rng = random.Random(f"configuration {number}")
    exports = []
    for path in rng.sample([path for path in HOST_PATHS if path.startswith("/mnt") and len(path) < 1000], rng.randrange(1, 4)):
        clients = rng.sample(HOST_CLIENTS[:28] if number % 2 else HOST_CLIENTS, rng.randrange(1, 4))
        options = ["rw", *rng.sample(["sync", "async", "no_root_squash", "no_subtree_check", "fsid=7"], rng.randrange(3))]
        if not number % 2:
            options.append(rng.choice(HOST_OPTIONS))
        exports.append({"path": path, "clients": [client for client in dict.fromkeys(clients) if client], "options": options})
    return json.dumps({"version": 1, "servers": {server: {"address": "127.0.0.1", "exports": exports}}})
