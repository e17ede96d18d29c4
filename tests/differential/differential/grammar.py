"""Random exports files: mostly what people write, with some of everything that exports(5) and its reader allow."""

from __future__ import annotations

import random
from collections.abc import Sequence

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
