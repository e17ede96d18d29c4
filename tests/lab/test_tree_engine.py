"""Copies of trees to and from the kernel's NFS server by calls of our own (Engine::nfs of src/tree): as faithful as
through the mount, as nobody else, and finished after whatever cut them off. The program is unit_tree with its hidden case "bench"."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sharefslab import Cluster, Host
from sharefslab.attack import exchanging
from sharefslab.host import Completed, Job
from sharefslab.paths import PROJECT_ROOT, program_under_test
from sharefslab.environment import PROGRAM, make_environment
from sharefslab.product import config_text, document, export_and_mount, sharefs
from sharefslab.wait import wait_until

SHARE = "/mnt/share"  # the export /srv/share
MOUNT = "mkdir -p {at} && mount -t nfs -o {options} server:{what} {at}"

# Every kind of entry, and those that calls are not made for: large, sparse, unreadable, with an ACL, several names.
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

    def given(self, target: str, engine: str, extra: dict[str, str]) -> dict[str, str]:
        values = {"FROM": "/dev/shm/from", "TO": target, "ENGINE": engine, **extra}
        return {name if name.startswith("SHAREFS_") else f"SHAREFS_BENCH_{name}": text for name, text in values.items()}

    def start(self, target: str, engine: str = "nfs", user: str | None = None, **extra: str) -> Job:
        return self.node.start([self.program, "bench"], env=self.given(target, engine, extra), user=user)

    def copy(self, target: str, engine: str = "nfs", user: str | None = None, **extra: str) -> Completed:
        return self.start(target, engine, user, **extra).wait(400)

    def listing(self, path: str) -> str:
        return self.node.run(LISTING.format(path), check=True).out


def mounted(lab: Cluster, exports: str, options: str = "vers=3,nolock", what: str = "/srv/share") -> Copying:
    if exports:
        lab.start_nfs_server(exports=exports, threads=8)
        lab.server.run("chmod 1777 /srv/share", check=True)
    lab["node1"].run(MOUNT.format(at=SHARE, options=options, what=what), check=True)
    return Copying(lab)


def exports_with(options: str) -> str:
    return f"/srv/share *(rw,sync,no_subtree_check,{options})\n"


def by_nfs(said: Completed, pattern: str = r"^nfs, (\d+) of") -> int:
    """How many files were made by calls."""
    assert said.ok, said
    found = re.search(pattern, said.out, re.M)
    assert found, said
    return int(found[1])


def read_by_nfs(said: Completed) -> int:
    return by_nfs(said, r"^nfs, .* (\d+) read: ")


pytestmark = pytest.mark.lab_hosts("server", "node1")


@pytest.fixture
def copying(lab: Cluster) -> Iterator[Copying]:
    copying = mounted(lab, exports_with("no_root_squash"))
    copying.node.run(MAKE_TREE, cwd="/dev/shm", check=True)
    yield copying


def test_a_tree_of_all_kinds_is_as_through_the_mount(copying: Copying) -> None:
    threads = copying.copy(f"{SHARE}/threads", "threads")
    assert threads.ok, threads
    copied = copying.copy(f"{SHARE}/nfs", COMPARE="yes")
    assert by_nfs(copied) >= 45, copied
    expected = copying.listing("/dev/shm/from")
    assert copying.listing(f"{SHARE}/threads") == expected
    assert copying.listing(f"{SHARE}/nfs") == expected
    # What the server has, whatever this node remembers
    assert copying.lab.server.run(LISTING.format("/srv/share/nfs"), check=True).out == expected
    # Nothing to be done; and without reading again
    again = copying.copy(f"{SHARE}/nfs")
    assert again.ok and "nfs, 0 of 0, " in again.out, again
    assert by_nfs(copying.copy(f"{SHARE}/unread", VERIFY="no")) >= 45
    assert copying.lab.server.run("diff -r --no-dereference /srv/share/unread /srv/share/nfs", check=True).out == ""
    assert copying.listing(f"{SHARE}/unread") == expected


def test_as_a_user_whom_root_becomes_and_as_one_who_is_not_root(copying: Copying) -> None:
    """The export is `secure`: root has the port, whoever it works as; alice alone has none."""
    copying.node.run("rm -rf bin/closed bin/secret && chmod -R a+rX . && chown -R 2001:2001 .", cwd="/dev/shm/from", check=True)
    copying.node.run(f"install -d -o 2001 -g 2001 -m 700 {SHARE}/hers", check=True)
    assert by_nfs(copying.copy(f"{SHARE}/hers/as", AS="2001", COMPARE="yes")) >= 45
    owners = copying.lab.server.run("find /srv/share/hers/as -printf '%U:%G\\n' | sort -u", check=True).out
    assert owners == "2001:2001\n"
    refused = copying.copy(f"{SHARE}/hers/alone", user="alice")
    assert refused.returncode == 1 and "cannot be copied by NFS calls" in refused.out and "secure" in refused.out
    assert copying.node.run(f"ls {SHARE}/hers", check=True).out == "as\n"
    auto = copying.copy(f"{SHARE}/hers/alone", "auto", user="alice", COMPARE="yes")
    assert auto.ok and "threads, 0 of " in auto.out and "secure" in auto.out, auto
    # bob has no right to be there, by calls or otherwise
    assert copying.copy(f"{SHARE}/hers/bob", AS="2002").returncode == 1
    assert copying.node.run(f"ls {SHARE}/hers", check=True).out == "alone\nas\n"


@pytest.mark.parametrize("options", ["root_squash", "all_squash,anonuid=2002,anongid=2002"])
def test_a_server_that_takes_root_for_somebody_else(lab: Cluster, options: str) -> None:
    copying = mounted(lab, exports_with(options))
    copying.node.run(MAKE_TREE, cwd="/dev/shm", check=True)
    threads = copying.copy(f"{SHARE}/threads", "threads")
    copied = copying.copy(f"{SHARE}/nfs")
    assert threads.ok and by_nfs(copied) >= 1, (threads, copied)
    listing = LISTING.format  # as the server's root, who may look everywhere
    there = [lab.server.run(listing(f"/srv/share/{name}"), check=True).out for name in ("threads", "nfs")]
    assert there[0] == there[1]
    lab.server.run("install -d -o 2001 -m 0700 /srv/share/hers", check=True)
    assert copying.copy(f"{SHARE}/hers/tree").returncode == 1
    assert lab.server.run("ls /srv/share/hers", check=True).out == ""


def test_which_mounts_it_is_for_and_what_auto_chooses(copying: Copying) -> None:
    node = copying.node
    node.run(MOUNT.format(at="/mnt/four", options="vers=4.2", what="/srv/share"), check=True)
    assert by_nfs(copying.copy("/mnt/four/by_nfs", COMPARE="yes")) >= 45
    assert copying.listing("/mnt/four/by_nfs") == copying.listing("/dev/shm/from")
    copying.lab.server.run("rpc.nfsd 0 && rpc.nfsd -N 3 8", check=True)
    refused = copying.copy("/mnt/four/tree")
    assert refused.returncode == 1 and "does not offer NFS version 3" in refused.out, refused
    assert node.run("ls -A /mnt/four", check=True).out == "by_nfs\n"
    auto = copying.copy("/mnt/four/tree", "auto", COMPARE="yes")
    assert auto.ok and "threads, 0 of " in auto.out and "does not offer NFS version 3" in auto.out, auto
    copying.lab.server.run("rpc.nfsd 0 && rpc.nfsd -V 3 8", check=True)
    copying.lab.latency("server", 5)
    far = copying.copy(f"{SHARE}/far", "auto", COMPARE="yes")
    assert by_nfs(far) >= 45 and "10.77.0.1 answers in " in far.out, far


def test_sigkill_anywhere_and_the_next_run_finishes(copying: Copying) -> None:
    node, target = copying.node, f"{SHARE}/nfs"
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


def in_the_middle(copying: Copying, job: Job, path: str) -> None:
    files = f"find {path} -type f -size +0 2>/dev/null | grep -q ."
    wait_until(lambda: copying.lab.server.run(files).ok or not job.running(), what="the copy has begun")
    assert job.running(), job.wait()


@pytest.mark.parametrize("fault", ["stopped", "cut off"])
def test_a_server_that_goes_and_comes_back(copying: Copying, fault: str) -> None:
    lab, server = copying.lab, copying.lab.server
    slow_tree(copying)
    job = copying.start(f"{SHARE}/nfs", LIMIT=SLOW)
    in_the_middle(copying, job, "/srv/share/nfs")
    if fault == "stopped":
        server.run("rpc.nfsd 0", check=True)
        server.run("rpc.nfsd 8", check=True)
    else:
        lab.drop_traffic("server")
        assert job.running()
        lab.restore_traffic("server")
    said = job.wait(400)
    assert by_nfs(said) >= 1, said
    if fault == "stopped":  # the rest by the mount, which connects again
        assert "had no more answer, and the rest was copied through the mount" in said.out, said
    assert copying.listing(f"{SHARE}/nfs") == copying.listing("/dev/shm/from")


def test_what_another_one_changes_before_it_is_seen_through_the_mount_is_named(copying: Copying) -> None:
    """A file that was written and read again by calls; its directory is not finished yet."""
    server, target = copying.lab.server, "/srv/share/nfs"
    slow_tree(copying)
    job = copying.start(f"{SHARE}/nfs", LIMIT=SLOW)
    # Its time is its original's once it is finished.
    done = f"find {target} -type f ! -newer /srv/share/older"
    server.run("touch /srv/share/older", check=True)
    wait_until(lambda: server.run(f"{done} | grep -q .").ok or not job.running(), what="a file is finished")
    path = server.run(f"{done} | head -n 1", check=True).out.strip()
    server.run(f"printf other >{path}", check=True)
    said = job.wait(400)
    name = path.removeprefix(target)
    assert said.returncode == 1 and f"{SHARE}/nfs{name}: is not what was written there" in said.out, said
    assert copying.copy(f"{SHARE}/nfs").ok
    assert copying.listing(f"{SHARE}/nfs") == copying.listing("/dev/shm/from")


def test_a_user_who_exchanges_the_destination_wins_nothing(copying: Copying) -> None:
    """alice may rename what lies in her directory, also root's copy. Files go to the directory that root has made, by
    its handle, never to what has its name now."""
    lab, server = copying.lab, copying.lab.server
    slow_tree(copying)
    compiled = lab.share / "exchange"
    source = PROJECT_ROOT / "tests/lab/exchange.c"
    os.system(f"gcc -O2 -static -o {compiled} {source}")  # noqa: S605
    server.run("install -d -o 2001 -g 2001 -m 777 /srv/share/hers && mkdir /srv/share/victim", check=True)
    for decoy in ("mkdir -m 777 decoy", "ln -s ../victim decoy"):
        server.run(f"rm -rf tree decoy && {decoy}", user="alice", cwd="/srv/share/hers", check=True)
        job = copying.start(f"{SHARE}/hers/tree", LIMIT=SLOW)
        in_the_middle(copying, job, "/srv/share/hers/tree/")
        made = server.run("stat -c %i tree", cwd="/srv/share/hers", check=True).out.strip()
        with exchanging(server, "alice", "tree", "decoy", cwd="/srv/share/hers"):
            said = job.wait(400)
        assert by_nfs(said) > 10, said
        count = "find -inum {} -type d -exec sh -c 'find \"$1\" -type f | wc -l' x {{}} ';'"
        assert server.run(count.format(made), cwd="/srv/share/hers", check=True).out == "60\n"
        others = server.run(f"find hers victim -type d ! -inum {made} -user root", cwd="/srv/share", check=True).out
        inside = server.run(f"find . -inum {made} -prune -o -type f -print", cwd="/srv/share", check=True).out
        assert inside == "", (others, inside)
        assert server.run("ls -A /srv/share/victim", check=True).out == ""
        server.run("rm -rf /srv/share/hers/*", check=True)


ATTRIBUTES = "cd {} && for what in getfacl 'getfattr -d'; do find . ! -type l -print0 | sort -z | xargs -0 $what; done"


@pytest.mark.parametrize("version", ["3", "4.2"])
def test_a_tree_is_read_by_calls_as_through_the_mount(lab: Cluster, version: str) -> None:
    """With ACLs (version 3 shows them) and extended attributes (4.2 does), of which the calls keep none."""
    options = "vers=3,nolock" if version == "3" else "vers=4.2"
    copying = mounted(lab, exports_with("no_root_squash"), options)
    node, server = copying.node, lab.server
    server.run(MAKE_TREE, cwd="/srv/share", check=True)
    server.run(
        "setfattr -n user.note -v x lib/file7 && setfacl -m u:2002:r lib/file8 && setfacl -m m::- bin/program &&"
        " echo run >bin/run && chmod 0711 bin/run",
        cwd="/srv/share/from",
        check=True,
    )
    asked, said = {}, {}
    for engine in ("threads", "nfs"):
        node.run(f"umount {SHARE}", check=True)
        node.run(MOUNT.format(at=SHARE, options=options, what="/srv/share"), check=True)
        before = server.run("awk '/^rpc/ { print $2 }' /proc/net/rpc/nfsd", check=True).out
        said[engine] = copying.copy(f"/local/{engine}", engine, FROM=f"{SHARE}/from")
        after = server.run("awk '/^rpc/ { print $2 }' /proc/net/rpc/nfsd", check=True).out
        asked[engine] = int(after) - int(before)
    assert said["threads"].ok and 45 <= read_by_nfs(said["nfs"]) <= 58, said
    assert asked["nfs"] < asked["threads"] * 3 / 4, asked
    expected = copying.listing(f"{SHARE}/from")
    assert copying.listing("/local/nfs") == copying.listing("/local/threads") == expected
    node.run(f"diff -r --no-dereference {SHARE}/from /local/nfs", check=True)
    # What is there is compared with what calls read; and from one NFS to the other
    again = copying.copy("/local/nfs", FROM=f"{SHARE}/from")
    assert "nfs, 0 of 0, " in again.out and read_by_nfs(again) >= 45, again
    both = copying.copy(f"{SHARE}/both", FROM=f"{SHARE}/from", COMPARE="yes")
    assert by_nfs(both) >= 45 and read_by_nfs(both) >= 45, both
    assert copying.listing(f"{SHARE}/both") == expected
    kept = [node.run(ATTRIBUTES.format(f"{SHARE}/{tree}"), check=True).out for tree in ("from", "both")]
    assert kept[0] == kept[1]
    assert ("user:bob:r--" in kept[1]) == (version == "3") and ("user.note" in kept[1]) == (version == "4.2"), kept


def test_what_the_server_does_not_let_the_calls_read(lab: Cluster) -> None:
    """Root is nobody there, by calls and by threads; root that works as alice is alice."""
    copying = mounted(lab, exports_with("root_squash"))
    lab.server.run(
        "mkdir from from/open from/closed && for i in 1 2 3; do echo $i | tee from/open/$i >from/closed/$i; done &&"
        " echo her >from/open/her && chmod 0600 from/open/her && echo run >from/open/run && chmod 0711 from/open/run &&"
        " chmod 0700 from/closed && chown -R 2001:2001 from",
        cwd="/srv/share",
        check=True,
    )
    said = [copying.copy(f"/dev/shm/{engine}", engine, FROM=f"{SHARE}/from") for engine in ("threads", "nfs")]
    assert said[0].returncode == said[1].returncode == 1 and "Permission denied" in said[1].out, said
    names = [copying.node.run("find . | sort", cwd=f"/dev/shm/{at}", check=True).out for at in ("threads", "nfs")]
    assert names[0] == names[1] == ".\n./open\n./open/1\n./open/2\n./open/3\n", names
    copying.node.run("install -d -o 2001 /dev/shm/hers", check=True)
    assert read_by_nfs(copying.copy("/dev/shm/hers/as", AS="2001", FROM=f"{SHARE}/from")) == 7
    copying.node.run(f"diff -r {SHARE}/from /dev/shm/hers/as", user="alice", check=True)
    alone = copying.copy("/dev/shm/hers/alone", "auto", user="alice", FROM=f"{SHARE}/from", COMPARE="yes")
    assert alone.ok and "threads, 0 of 8" in alone.out and "secure" in alone.out, alone


def test_what_changed_since_it_was_seen_is_named_and_read_again(lab: Cluster) -> None:
    """By its ctime alone: size and time of change are as this node remembers them."""
    copying = mounted(lab, exports_with("no_root_squash"), "vers=3,nolock,actimeo=600")
    lab.server.run(MAKE_TREE, cwd="/srv/share", check=True)
    before = copying.listing(f"{SHARE}/from")
    other = "cp -p lib/file9 /tmp/old && printf X | dd of=lib/file9 conv=notrunc && touch -r /tmp/old lib/file9"
    lab.server.run(other, cwd="/srv/share/from", check=True)
    said = copying.copy("/dev/shm/to", FROM=f"{SHARE}/from")
    assert read_by_nfs(said) >= 45 and "again: lib/file9\n" in said.out, said
    assert copying.listing("/dev/shm/to") == before
    expected = lab.server.run("md5sum <lib/file9", cwd="/srv/share/from", check=True).out
    assert copying.node.run("md5sum <lib/file9", cwd="/dev/shm/to", check=True).out == expected


def test_a_server_that_goes_while_it_is_read(lab: Cluster) -> None:
    copying = mounted(lab, exports_with("no_root_squash"))
    slow_tree(copying)
    copying.node.run(f"cp -a /dev/shm/from {SHARE}/from", check=True)
    job = copying.start("/dev/shm/to", FROM=f"{SHARE}/from", LIMIT=SLOW)
    begun = "find /dev/shm/to -type f -size +0 2>/dev/null | grep -q ."
    wait_until(lambda: copying.node.run(begun).ok or not job.running(), what="the copy has begun")
    lab.server.run("rpc.nfsd 0 && rpc.nfsd 8", check=True)
    said = job.wait(400)
    assert 1 <= read_by_nfs(said) < 60 and "had no more answer, and the rest was copied through the mount" in said.out, said
    assert copying.listing("/dev/shm/to") == copying.listing("/dev/shm/from")


@pytest.mark.parametrize("version", ["3", "4.2", "4.2 only"])
def test_conda_share_says_by_which_engine_and_why(lab: Cluster, version: str) -> None:
    """Root is nobody on the share, and works as alice; the port is root's all the same."""
    options = '"vers=3", "nolock"' if version == "3" else '"vers=4.2"'
    text = config_text(extra=f", options: [{options}]").replace("10.77.0.2, 10.77.0.3", "10.77.0.2")
    export_and_mount(lab, text)
    node, home = lab["node1"], "/home/alice/miniconda3/envs/llm_train"
    node.run("mkdir -m 2775 /data/share/conda", user="alice", check=True)
    node.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs", user="alice", check=True)
    make_environment(node, home, user="alice")
    share = ["conda", "share", "llm_train", "--yes"]
    assert sharefs(node, *share, "--engine", "fast").returncode == 2
    if version != "4.2 only":
        said = sharefs(node, *share, "--json", "--engine", "nfs", timeout=400).check()
        copy = document(said)["copy"]
        assert copy["engine"] == "nfs" and copy["by_nfs"] > 100 and "10.77.0.1 answers in " in copy["reason"], copy
    else:
        lab.server.run("rpc.nfsd 0 && rpc.nfsd -N 3 8", check=True)
        refused = sharefs(node, *share, "--engine", "nfs", timeout=400)
        assert refused.returncode == 1 and "does not offer NFS version 3" in refused.err, refused
        assert "hint: `--engine auto`" in refused.err, refused
        assert not node.run(f"readlink {home}", user="alice").ok
        assert node.run("ls /data/share/conda/.generations/llm_train", user="alice", check=True).out == "uses\n"
        said = sharefs(node, *share, "--engine", "auto", timeout=400).check()
        assert "copied through the mount (engine `threads`): " in said.err and "not offer NFS version 3" in said.err, said
    ran = node.run([f"{home}/bin/python", "-S", "-c", PROGRAM], user="alice", check=True)
    assert ran.out == f'[42, "{home}"]\n'
    assert not node.run("find /data/share/conda/.generations/llm_train/0001 -name '.sharefs-copy-*' | grep .").ok
