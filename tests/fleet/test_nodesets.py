"""Expressions for `--on` beside the real nodeset and cluset of ClusterShell, which read the groups that sharefs writes."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from network import SHAREFS

CONFIG = """version: 1
servers:
  io1: {address: 192.168.16.1}
  io2: {address: 192.168.16.2}
nodes:
  list: ["n[0-30]", "n[00-09]", "n[000-012,098-103]", "r[1-3]c[1-4]", "r[1-3]c[1-2]-ib", "x[1-2]-[01-12].site", login, log-2,
         "7dgx", "[1-4]", "a[1-2]b[08-11]c", "m_[1-3]"]
  groups:
    - {name: odd, nodes: ["n[1-29/2]"]}
    - {name: low, nodes: ["n[0-4]", "n[3-9]"]}
    - {name: rack1, nodes: ["r1c*"]}
    - {name: rack2, nodes: ["r2c*"]}
    - {name: rack3, nodes: ["r3c*"]}
    - {name: wire, nodes: ["*-ib"]}
    - {name: rest, nodes: ["n[0-9]!@odd"]}
    - {name: rest-of-low, nodes: ["@low!@rest"]}
    - {name: both, nodes: ["@low&@odd"]}
"""

# Both take these, and mean the same.
EQUAL = """
n7
login
log-2
7dgx
[1-4]
[1,3]
1,2,[3-4]
n[0-3]
n[00-03]
n[000-003]
n[0-3],n[00-03],n[000-003]
n[3,00,000]
n[1,01,001]
n[08-09]
n[098-103]
n[8-12]
n[0-30/10]
n[0-30/7]
n[1-2/5]
n[1-5/1]
n[1-5/02]
n[01-09/3]
n[098-103/2]
n[1-3,2-5]
n[5,1,3,1]
n[1-3/2,10-20/5]
n[2-2]
n[7-7/3]
n[ 1-3 ]
n[ 1 - 3 , 7 ]
n1 , n2
 n1,n2 
n1,n1,n1
n[1-3],n2,n[3-4]
n0[1-3]
n00[1-3]
n01[0-2]
n[1-2]0
n1[0-9]
n[1-2]5
r[1-3]c[1-4]
r[1-2]c[1,3]
r2c[1-4/3]
r[1-3/2]c2
r[1-3]c1-ib
r[1-3]c[1-2]-ib
r[1-3]c[1-2],r[1-3]c[1-2]-ib
x[1-2]-[01-03].site
x1-[08-12/2].site
x[1-2]-12.site
a[1-2]b[08-11]c
a2b[09-10]c
m_[1-3]
m_1,m_[2-3]
n[0-9]!n3
n[0-9]!n[2-4]
n[0-9]!n[0-9]
n[0-9]!login
n[0-9]!n[00-09]
n[0-9] ! n[2-4]
n[0-9]!n[2-4],n3
n[0-9]!n[2-4]!n[6-7]
n[0-9]&n[5-15]
n[0-9]&login
n[0-9]&n[5-15]&n7
n[0-9]&n[5-15],login
login,n[0-9]&n[5-15]
n[0-9]^n[5-15]
n[0-9]^n[0-9]
n[0-3]^n[2-5]^n[4-7]
n[0-3]^n[2-5]!n5
n[0-3]^n[2-5]&n[0-5]
n[0-9/3]&n[0-9/2]
r[1-3]c[1-4]!r2c[1-4]
r[1-3]c[1-4]!r[1-3]c1
r[1-3]c[1-4]&r[2-3]c[3-4]
r[1-2]c[1-2]^r[2-3]c[1-2]
r[1-3]c[1-4]!r[1-2]c[1-2],login
x[1-2]-[01-12].site&x2-[05-12/3].site
x[1-2]-[01-12].site!x1-[01-11].site
a[1-2]b[08-11]c^a[1-2]b[10-11]c
@odd
@low
@odd,@low
@low!@odd
@low&@odd
@low^@odd
@low!n[0-2]
n[0-30]!@odd
n[0-30]!@odd!@low
n[0-30]&@odd!n[1-9]
@odd&n[0-9],login
@rest
@rest-of-low
@both
@rack[1-3]
@rack[1,3]
@rack[1-3/2]!r1c4
@rack[1-3]!@wire
@wire
@all
@all!@clients
@servers
@clients&@servers
@*
@*!@rack[1-2]
@all!n*
n*
n?
n??
n???
n*!n?
*c1
*c[1-2]
r*c[3-4]
r?c?
r?c*!*-ib
*-ib
x*.site
x?-0[1-3].site
log*
l*n,io?
*!n*!r*
?
*dgx
n[0-2]?
n*&@odd
@odd!n2?
*&r1*
""".strip("\n").split("\n")  # fmt: skip

# nodeset refuses these, too; of each a part of what sharefs says.
REFUSED_BY_BOTH = {
    "n[1-04]": "ends have different widths", "n[01-4]": "ends have different widths", "n[08-010]": "ends have different widths",
    "n[00-0]": "ends have different widths", "n[5-1]": "goes backwards", "n[a-c]": "the range `a-c`", "n[]": "the range ``",
    "n[1-3": "without its `]`", "n1]": "`]` in a name", "n[[1-2]]": "the range `[1-2`", "n[1-2]]": "`]` in a name",
    "n[1--2]": "the range", "n[1-2,]": "the range ``", "n[,1]": "the range ``", "n[1/2]": "the range `1/2`",
    "n[1-3/]": "the range", "n[1-3/0]": "the range", "n[1-3/x]": "the range", "n[1 2]": "the range `1 2`",
    "n1,": "ends where a name should be", ",n1": "`,` where a name", "n1,,n2": "`,` where a name", "n1!": "ends where",
    "n1&,n2": "`,` where a name", "!n1": "`!` where a name", "^": "`^` where a name",
}  # fmt: skip

# nodeset makes names of these that no machine has, or nothing at all; sharefs says what is wrong.
REFUSED_HERE = {
    "n[1-99999]": "more than 10000 nodes", "n[1-9999999999999]": "the range", "a[1-200]b[1-200]": "more than 10000 nodes",
    "n[0-00]": "ends have different widths", "n[-1-2]": "the range `-1-2`", "n[+1]": "the range `+1`", "n{1,2}": "`{` in a name",
    "(n1,n2)": "`(` where a name", "n1;n2": "`;` in a name", "n%d": "`%` in a name", "n1:22": "`:` in a name",
    "al@n1": "`@` in a name", "a/b": "`/` in a name", ".n": "begins with `-` or `.`", "n31": "no node is called `n31`",
    "@od": "did you mean `odd`", "@rack[1-4]": "no group is called `rack4`", "z*": "fits no node", "n1!z*": "fits no node",
    "login[1-2]": "no node is called `login1`",
}  # fmt: skip

# nodeset refuses these, or takes them for one name. Slurm and pdsh have the first; words of a command line are the second.
TAKEN_HERE = {"r[1-2]c[1-2],n[1-2][3-4]": 8, "n1 n2": 2, "n1\tn2  n3": 3}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("nodesets")
    made.joinpath("sharefs.yaml").write_text(CONFIG)
    groups = made / "groups.d"
    groups.mkdir()
    written = listed(made, "all", "--format", "clustershell")
    assert written.returncode == 0, written.stderr
    groups.joinpath("sharefs.yaml").write_text(written.stdout)
    made.joinpath("groups.conf").write_text(f"[Main]\ndefault: sharefs\nautodir: {groups}\n")
    return made


def listed(place: Path, pattern: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [SHAREFS, "--config", str(place / "sharefs.yaml"), "nodes", "list", *words]
    return subprocess.run([*command, "--", pattern], capture_output=True, text=True, check=False)


def names_of(place: Path, pattern: str) -> list[str]:
    ran = listed(place, pattern, "--format", "names")
    if ran.returncode == 2 and " names no node\n" in ran.stderr:
        return []
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split("\n")[:-1]


def asked(place: Path, program: str, pattern: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "CLUSTERSHELL_CFGDIR": str(place), "LC_ALL": "C.UTF-8"}
    words = [program, "--expand", "--separator=\\n", "--", pattern]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment, cwd=place)


@pytest.mark.parametrize("program", ["nodeset", "cluset"])
def test_expressions_mean_the_same(place: Path, program: str) -> None:
    # The two are one program under two names; starting it is what costs the time.
    patterns = EQUAL if program == "nodeset" else EQUAL[:: 5]
    with ThreadPoolExecutor(2) as pool:
        theirs = list(pool.map(lambda pattern: asked(place, program, pattern), patterns))
    for pattern, answer in zip(patterns, theirs):
        assert answer.returncode == 0, (pattern, answer.stderr)
        ours = names_of(place, pattern)
        assert len(set(ours)) == len(ours), pattern
        assert sorted(ours) == sorted(answer.stdout.split()), pattern
    assert len(EQUAL) > 100


@pytest.mark.parametrize("pattern", REFUSED_BY_BOTH)
def test_what_nodeset_refuses_is_refused(place: Path, pattern: str) -> None:
    assert asked(place, "nodeset", pattern).returncode != 0
    said = listed(place, pattern)
    assert said.returncode == 2 and REFUSED_BY_BOTH[pattern] in said.stderr and "hint: " in said.stderr, said.stderr


@pytest.mark.parametrize("pattern", REFUSED_HERE)
def test_what_no_machine_is_called_is_refused(place: Path, pattern: str) -> None:
    said = listed(place, pattern)
    assert said.returncode == 2 and REFUSED_HERE[pattern] in said.stderr and "hint: " in said.stderr, said.stderr


@pytest.mark.parametrize("pattern", TAKEN_HERE)
def test_what_only_sharefs_takes(place: Path, pattern: str) -> None:
    theirs = asked(place, "nodeset", pattern)
    assert theirs.returncode != 0 or len(theirs.stdout.splitlines()) == 1
    assert len(names_of(place, pattern)) == TAKEN_HERE[pattern]


def test_a_long_list_of_single_names_is_soon_read(place: Path) -> None:
    """As a batch system hands them over: every name by itself, irregular, and most of them taken away again."""
    names = [f"gpu-{number}-rack-{number % 40}-x{number % 9}" for number in range(9000)]
    place.joinpath("many.yaml").write_text("version: 1\nnodes:\n  list:\n" + "".join(f"  - {name}\n" for name in names) +
                                           "  groups:\n    - {name: most, nodes: [" + ", ".join(names[:8990]) + "]}\n")  # fmt: skip
    command = [SHAREFS, "--config", str(place / "many.yaml"), "nodes", "list", "--format", "names", "--", "all!@most"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.split() == names[8990:]
