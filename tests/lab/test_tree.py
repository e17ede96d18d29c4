"""Copies of trees to and from the kernel's NFS server: faithful, as nobody else, and finished after whatever cut them
off. The program is unit_tree with its hidden case "bench"."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sharefslab import Cluster, Host
from sharefslab.attack import exchanging
from sharefslab.host import Completed, Job
from sharefslab.paths import PROJECT_ROOT, program_under_test
from sharefslab.wait import wait_until

SHARE = "/mnt/share"  # the export /srv/share
MOUNT = f"mkdir -p {SHARE} && mount -t nfs -o {{options}} server:/srv/share {SHARE}"

# Every kind of entry: large, sparse, unreadable, with an ACL, several names.
MAKE_TREE = """
set -e
mkdir -p from/empty from/bin 'from/with space' from/lib/deep/er
cd from
for i in $(seq 40); do head -c $((i * 997)) /dev/urandom >lib/file$i; done
for i in $(seq 5); do echo $i >lib/deep/er/$i; done
: >lib/nothing
head -c 300000 /dev/urandom >large
head -c 5000000 /dev/zero >zeros
truncate -s 3M lib/sparse && echo x >>lib/sparse
echo program >bin/program && chmod 0755 bin/program
echo secret >bin/secret && chmod 0600 bin/secret
echo closed >bin/closed && chmod 0 bin/closed
echo read >bin/read && chmod 0444 bin/read
echo tail >'with space/a name
of two lines'
ln lib/file1 bin/same && ln lib/file1 lib/deep/same && ln lib/file2 lib/same
ln -s ../lib/file2 bin/link && ln -s /nowhere bin/broken
setfacl -m u:2002:r bin/read 2>/dev/null || true
touch -d '2001-02-03 04:05:06.123456789' lib/file3 && touch -h -d '1999-01-01' bin/link
chown -R 2001:3000 lib/deep 2>/dev/null || true
chmod 0711 lib/deep && chmod 0750 bin
"""
LISTING = (
    "cd {} && find . \\( -type d -printf '%p %y %m %U %G %T@\\n' \\)"
    " -o -printf '%p %y %m %U %G %s %n %l %T@\\n' | LC_ALL=C sort"
)


def unit_tree() -> str:
    """As a host sees it."""
    program = program_under_test()
    places = [Path(os.environ["SHAREFS_UNIT_TREE"])] if "SHAREFS_UNIT_TREE" in os.environ else []
    places += [program.parent / "tests/unit_tree"] if program else []
    places += sorted(PROJECT_ROOT.glob("build/*/tests/unit_tree"), key=lambda path: -path.stat().st_mtime)
    found = next(place for place in places if place.is_file())
    return f"/project/{found.resolve().relative_to(PROJECT_ROOT)}"


class Copying:
    """Copies of /dev/shm/from on a node."""

    def __init__(self, lab: Cluster) -> None:
        self.lab, self.node, self.program = lab, lab["node1"], unit_tree()

    def start(self, target: str, user: str | None = None, **extra: str) -> Job:
        values = {"FROM": "/dev/shm/from", "TO": target, **extra}
        given = {name if name.startswith("SHAREFS_") else f"SHAREFS_BENCH_{name}": text for name, text in values.items()}
        return self.node.start([self.program, "bench"], env=given, user=user)

    def copy(self, target: str, user: str | None = None, **extra: str) -> Completed:
        return self.start(target, user, **extra).wait(400)

    def listing(self, path: str) -> str:
        return self.node.run(LISTING.format(path), check=True).out


def mounted(lab: Cluster, exports: str, options: str = "vers=3,nolock") -> Copying:
    lab.start_nfs_server(exports=f"/srv/share *(rw,sync,no_subtree_check,{exports})\n", threads=8)
    lab.server.run("chmod 1777 /srv/share", check=True)
    lab["node1"].run(MOUNT.format(options=options), check=True)
    return Copying(lab)


pytestmark = pytest.mark.lab_hosts("server", "node1")


@pytest.fixture
def copying(lab: Cluster) -> Iterator[Copying]:
    copying = mounted(lab, "no_root_squash")
    copying.node.run(MAKE_TREE, cwd="/dev/shm", check=True)
    yield copying


ATTRIBUTES = "cd {} && for what in getfacl 'getfattr -d'; do find . ! -type l -print0 | sort -z | xargs -0 $what; done"


@pytest.mark.parametrize("version", ["3", "4.2"])
def test_a_tree_of_all_kinds_to_nfs_and_from_there(lab: Cluster, version: str) -> None:
    """With ACLs (version 3 shows them) and extended attributes (4.2 does)."""
    options = "vers=3,nolock" if version == "3" else "vers=4.2"
    copying = mounted(lab, "no_root_squash", options)
    node, server = copying.node, lab.server
    server.run(MAKE_TREE, cwd="/srv/share", check=True)
    server.run(
        "setfattr -n user.note -v x lib/file7 && setfacl -m u:2002:r lib/file8 && setfacl -m m::- bin/program &&"
        " echo run >bin/run && chmod 0711 bin/run",
        cwd="/srv/share/from",
        check=True,
    )
    expected = copying.listing(f"{SHARE}/from")
    for place in ("/local", SHARE):
        said = copying.copy(f"{place}/to", FROM=f"{SHARE}/from", COMPARE="yes")
        assert said.ok and " copied, 0 kept\n" in said.out, said
        assert copying.listing(f"{place}/to") == expected
        again = copying.copy(f"{place}/to", FROM=f"{SHARE}/from")
        assert again.ok and "0 copied, " in again.out, again
    # What the server has, whatever this node remembers
    assert server.run(LISTING.format("/srv/share/to"), check=True).out == expected
    kept = [node.run(ATTRIBUTES.format(f"{SHARE}/{tree}"), check=True).out for tree in ("from", "to")]
    assert kept[0] == kept[1]
    assert ("user:bob:r--" in kept[1]) == (version == "3") and ("user.note" in kept[1]) == (version == "4.2"), kept
    assert copying.copy(f"{SHARE}/unread", FROM=f"{SHARE}/from", VERIFY="no").ok
    assert copying.listing(f"{SHARE}/unread") == expected


def test_as_a_user_whom_root_becomes_and_as_one_who_is_not_root(copying: Copying) -> None:
    copying.node.run("rm -rf bin/closed bin/secret && chmod -R a+rX . && chown -R 2001:2001 .", cwd="/dev/shm/from", check=True)
    copying.node.run(f"install -d -o 2001 -g 2001 -m 700 {SHARE}/hers", check=True)
    assert copying.copy(f"{SHARE}/hers/as", AS="2001", COMPARE="yes").ok
    assert copying.copy(f"{SHARE}/hers/alone", user="alice", COMPARE="yes").ok
    for tree in ("as", "alone"):
        owners = f"find /srv/share/hers/{tree} -printf '%U:%G\\n' | sort -u"
        assert copying.lab.server.run(owners, check=True).out == "2001:2001\n"
    # bob has no right to be there
    assert copying.copy(f"{SHARE}/hers/bob", AS="2002").returncode == 1
    assert copying.node.run(f"ls {SHARE}/hers", check=True).out == "alone\nas\n"


@pytest.mark.parametrize("squash", ["root_squash", "all_squash,anonuid=2002,anongid=2002"])
def test_a_server_that_takes_root_for_somebody_else(lab: Cluster, squash: str) -> None:
    copying = mounted(lab, squash)
    copying.node.run(MAKE_TREE, cwd="/dev/shm", check=True)
    assert copying.copy(f"{SHARE}/to").ok
    sums = "find . -type f -print0 | sort -z | xargs -0 md5sum; find . -type l -printf '%p %l\\n' | sort"
    there = lab.server.run(sums, cwd="/srv/share/to", check=True).out
    assert there == copying.node.run(sums, cwd="/dev/shm/from", check=True).out
    owner = "2002:2002" if squash.startswith("all") else "65534:65534"
    assert lab.server.run("find /srv/share/to -printf '%U:%G\\n' | sort -u", check=True).out == f"{owner}\n"
    lab.server.run("install -d -o 2001 -m 0700 /srv/share/hers", check=True)
    assert copying.copy(f"{SHARE}/hers/tree").returncode == 1
    assert lab.server.run("ls /srv/share/hers", check=True).out == ""


def test_what_the_server_does_not_let_root_read(lab: Cluster) -> None:
    """Root is nobody there; root that works as alice is alice."""
    copying = mounted(lab, "root_squash")
    lab.server.run(
        "mkdir from from/open from/closed && for i in 1 2 3; do echo $i | tee from/open/$i >from/closed/$i; done &&"
        " echo her >from/open/her && chmod 0600 from/open/her && echo run >from/open/run && chmod 0711 from/open/run &&"
        " chmod 0700 from/closed && chown -R 2001:2001 from",
        cwd="/srv/share",
        check=True,
    )
    said = copying.copy("/dev/shm/to", FROM=f"{SHARE}/from")
    assert said.returncode == 1 and "Permission denied" in said.out, said
    names = copying.node.run("find . | sort", cwd="/dev/shm/to", check=True).out
    assert names == ".\n./open\n./open/1\n./open/2\n./open/3\n", names
    copying.node.run("install -d -o 2001 /dev/shm/hers", check=True)
    assert copying.copy("/dev/shm/hers/as", AS="2001", FROM=f"{SHARE}/from").ok
    copying.node.run(f"diff -r {SHARE}/from /dev/shm/hers/as", user="alice", check=True)


def test_sigkill_anywhere_and_the_next_run_finishes(copying: Copying) -> None:
    node, target = copying.node, f"{SHARE}/to"
    expected = copying.listing("/dev/shm/from")
    killed = 0
    for step in ("0", "3+", "6", "8", "9+", "12", "15", "20", "30+", "60", "120"):
        said = copying.copy(target, SHAREFS_TEST_KILL_AT_TREE=step)
        killed += not said.ok
        if not said.ok and node.exists(target):  # what is not finished is closed to others
            assert node.run(f"stat -c %a {target}", check=True).out == "700\n", step
        finished = copying.copy(target)
        assert finished.ok, (step, finished)
        assert copying.listing(target) == expected, step
        node.run(f"rm -rf {target}", check=True)
    assert killed >= 8


def slow_tree(copying: Copying) -> None:
    copying.node.run(
        "rm -rf from; mkdir from; cd from; for d in $(seq 6); do mkdir $d; for i in $(seq 10); do"
        " head -c 20000 /dev/urandom >$d/$i; done; done",
        cwd="/dev/shm",
        check=True,
    )


SLOW = "80000"  # bytes a second: the tree takes fifteen seconds, which cost nothing but time


def in_the_middle(job: Job, host: Host, path: str) -> None:
    files = f"find {path} -type f -size +0 2>/dev/null | grep -q ."
    wait_until(lambda: host.run(files).ok or not job.running(), what="the copy has begun")
    assert job.running(), job.wait()


@pytest.mark.parametrize("fault", ["stopped", "cut off"])
@pytest.mark.parametrize("way", ["to", "from"])
def test_a_server_that_goes_and_comes_back(copying: Copying, way: str, fault: str) -> None:
    """A hard mount waits, and the copy with it."""
    lab, server = copying.lab, copying.lab.server
    slow_tree(copying)
    source, target = ("/dev/shm/from", f"{SHARE}/to") if way == "to" else (f"{SHARE}/from", "/dev/shm/to")
    if way == "from":
        copying.node.run(f"cp -a /dev/shm/from {source}", check=True)
    job = copying.start(target, FROM=source, LIMIT=SLOW)
    in_the_middle(job, server if way == "to" else copying.node, "/srv/share/to" if way == "to" else target)
    if fault == "stopped":
        server.run("rpc.nfsd 0", check=True)
        server.run("rpc.nfsd 8", check=True)
    else:
        lab.drop_traffic("server")
        assert job.running()
        lab.restore_traffic("server")
    said = job.wait(400)
    assert said.ok and "60 copied, " in said.out, said
    assert copying.listing(target) == copying.listing("/dev/shm/from")


def test_a_user_who_exchanges_the_destination_wins_nothing(copying: Copying) -> None:
    """alice may rename what lies in her directory, also root's copy. Files go to the directory that root has made,
    never to what has its name now."""
    lab, server = copying.lab, copying.lab.server
    slow_tree(copying)
    compiled = lab.share / "exchange"
    source = PROJECT_ROOT / "tests/lab/exchange.c"
    os.system(f"gcc -O2 -static -o {compiled} {source}")  # noqa: S605
    server.run("install -d -o 2001 -g 2001 -m 777 /srv/share/hers && mkdir /srv/share/victim", check=True)
    for decoy in ("mkdir -m 777 decoy", "ln -s ../victim decoy"):
        server.run(f"rm -rf tree decoy && {decoy}", user="alice", cwd="/srv/share/hers", check=True)
        job = copying.start(f"{SHARE}/hers/tree", LIMIT=SLOW)
        in_the_middle(job, server, "/srv/share/hers/tree/")
        made = server.run("stat -c %i tree", cwd="/srv/share/hers", check=True).out.strip()
        with exchanging(server, "alice", "tree", "decoy", cwd="/srv/share/hers"):
            said = job.wait(400)
        assert said.ok, said
        count = "find -inum {} -type d -exec sh -c 'find \"$1\" -type f | wc -l' x {{}} ';'"
        assert server.run(count.format(made), cwd="/srv/share/hers", check=True).out == "60\n"
        others = server.run(f"find hers victim -type d ! -inum {made} -user root", cwd="/srv/share", check=True).out
        inside = server.run(f"find . -inum {made} -prune -o -type f -print", cwd="/srv/share", check=True).out
        assert inside == "", (others, inside)
        assert server.run("ls -A /srv/share/victim", check=True).out == ""
        server.run("rm -rf /srv/share/hers/*", check=True)
