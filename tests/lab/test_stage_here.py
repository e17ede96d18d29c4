"""sharefs stage PATH on one node: who may read the copy, what lies over the directory, and who stages beside whom."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from sharefslab import Cluster, Host, wait_until
from sharefslab.product import CONFIG_PATH, SHARE, config_text, document, done, export_and_mount, mount_lines, sharefs, state_of
from staging import DATASET, STAGED, bound, messages, sums

# The node hears soon of what is changed on the server.
CONFIG = config_text(extra=", options: [actimeo=1]") + f"stage: {{store: {SHARE}/images, paths: [{DATASET}]}}\n"


@pytest.fixture(scope="module")
def mounted(lab_ready: None) -> Iterator[Cluster]:
    with Cluster(hosts=("server", "node1"), memory="1500M") as cluster:
        export_and_mount(cluster, CONFIG)
        cluster["node1"].run(f"mkdir -p {DATASET} && echo 1 >{DATASET}/one && echo 2 >{DATASET}/two", user="alice", check=True)
        yield cluster


@pytest.fixture
def cluster(mounted: Cluster) -> Iterator[Cluster]:
    yield mounted
    node = mounted["node1"]
    sharefs(node, "stage", "--drop", DATASET, "--yes")
    node.run("rm -rf /local/cache/staged", check=False)
    node.run(f"rm -rf {SHARE}/images", user="alice")


def test_nothing_but_what_is_staged_is_served(cluster: Cluster) -> None:
    one = cluster["node1"]
    for path in ("/etc/shadow", f"{STAGED}/../../../../../../../etc/shadow", "/local/cache/staged/x.sqfs"):
        served = sharefs(one, "nodes", "serve", path, "0", "--bytes", "10")
        assert served.returncode != 0 and "root:" not in served.out, served


def test_a_copy_over_a_directory_goes_and_comes_with_the_share(cluster: Cluster) -> None:
    node = cluster["node1"]
    done(node, "stage", DATASET, "--yes", timeout=300)
    assert bound(node)
    done(node, "umount", "--all", "--yes")
    assert not mount_lines(node) and "squashfs" not in node.read_text("/proc/self/mountinfo")
    assert sharefs(node, "mount", "--all", "--check").returncode == 3
    done(node, "mount", "--all", "--yes")
    assert bound(node)
    assert sharefs(node, "mount", "--all", "--check").returncode == 0

    # the share alone is mounted again: the copy follows, by recover, and by what watch runs
    node.run(f"umount -l {SHARE}", check=True)
    done(node, "recover", "--all", "--yes")
    assert mount_lines(node) and bound(node)
    node.run(f"umount -l {SHARE}", check=True)
    done(node, "conda", "stage", "--mount", "--yes")
    done(node, "mount", "share", "--yes")
    assert mount_lines(node) and not bound(node)
    done(node, "conda", "stage", "--mount", "--yes")
    assert bound(node)

    # the share is stale, and the copy lies over its directory
    cluster.remake_filesystem("server")
    done(cluster.server, "export", "--all", "--yes")  # its access, too
    cluster.server.run("cd /srv/share; mkdir -p datasets/c4 && echo 1 >datasets/c4/one && echo 2 >datasets/c4/two", user="alice", check=True)
    wait_until(lambda: state_of(node) == "stale", what="the client notices that its handle is stale")
    assert "--lazy" in sharefs(node, "umount", "--all", "--yes").err
    done(node, "recover", "--all", "--yes", timeout=240)
    assert state_of(node) == "healthy" and bound(node)

    # its image by another loop device: what lay there before goes
    copy = document(sharefs(node, "stage", "--list", "--json"))["staged"][0]["copy"]
    node.run(f"umount {copy}", check=True)
    dropped = done(node, "stage", "--drop", DATASET, "--dry-run")
    assert f"unmount {DATASET}" in messages(dropped), dropped
    done(node, "mount", "--all", "--yes")
    assert bound(node) and sharefs(node, "mount", "--all", "--check").returncode == 0
    said = sharefs(node, "stage", DATASET, "--yes", user="alice")  # root's copy is for all
    assert said.ok and f"{copy} is there" in messages(said), said

    # sharefs.yaml names it no more
    node.write_file(CONFIG_PATH, CONFIG.replace(f"[{DATASET}]", "[]"), mode=0o644)
    try:
        done(node, "umount", "--all", "--yes")
        assert not mount_lines(node)
        done(node, "mount", "--all", "--yes")
        assert mount_lines(node) and not bound(node)
    finally:
        node.write_file(CONFIG_PATH, CONFIG, mode=0o644)


def staged_at(node: Host, path: str) -> str:
    """Where root's copy of it lies, once that is staged."""
    done(node, "stage", "--drop", path, "--yes")
    said = done(node, "stage", path, "--yes", timeout=200)
    copies = [one["copy"] for one in document(done(node, "stage", "--list", "--json"))["staged"] if one["path"] == path]
    assert len(copies) == 1, said
    return copies[0]


def may_read(node: Host, user: str, path: str) -> bool:
    return node.run(["cat", path], user=user).ok


def test_a_copy_opens_nothing_to_anybody(cluster: Cluster) -> None:
    """Root is nobody on the share (root_squash), and copies as alice reads it."""
    node, server = cluster["node1"], cluster.server
    node.run(f"mkdir -p {SHARE}/open/sub && cd {SHARE}/open && echo 1 >group && echo 2 >named && echo 3 >sub/below && chmod 600 group && chmod 660 named", user="alice", check=True)
    # Who may read the image file reads all that is in it.
    copy = staged_at(node, f"{SHARE}/open")
    assert may_read(node, "alice", f"{copy}/group") and not may_read(node, "bob", f"{copy}/group")
    assert not node.run(f"cat {SHARE}/images/open-*.sqfs", user="bob").ok
    # An ACL that the client sees as a mode: the group's bits are its mask.
    server.run("cd /srv/share/open && chmod 640 group && setfacl -m u:nobody:r,g::- named && setfacl -m u:nobody:rx,g::- sub", check=True)
    modes = f"cd {SHARE}/open && stat -c %a group named sub"
    wait_until(lambda: node.run(modes, user="alice").out.split() == ["640", "640", "2750"], what="the node has heard of it")
    copy = staged_at(node, f"{SHARE}/open")
    assert may_read(node, "bob", f"{copy}/group")
    assert not may_read(node, "bob", f"{copy}/named") and not may_read(node, "bob", f"{copy}/sub/below")
    # What gets no image is copied by root all the same, and narrowed in the same way.
    node.run(f"cd {SHARE}/open && echo 4 >another && chmod 650 another", user="bob", check=True)
    copy = staged_at(node, f"{SHARE}/open")
    assert may_read(node, "bob", f"{copy}/group") and may_read(node, "alice", f"{copy}/sub/below")
    assert not may_read(node, "bob", f"{copy}/named") and not may_read(node, "bob", f"{copy}/sub/below")
    # Few large files, in a directory that is its owner's only; the ACL of the one above.
    node.run(f"mkdir -m 700 {SHARE}/open/large && truncate -s 70M {SHARE}/open/large/one && chmod 644 {SHARE}/open/large/one", user="alice", check=True)
    copy = staged_at(node, f"{SHARE}/open/large")
    assert may_read(node, "alice", f"{copy}/one") and not may_read(node, "bob", f"{copy}/one")
    node.run(f"chmod 755 {SHARE}/open/large", user="alice", check=True)
    server.run("cd /srv/share && chmod 750 open && setfacl -m u:nobody:rx,g::- open", check=True)
    wait_until(lambda: not may_read(node, "bob", f"{SHARE}/open/large/one"), what="the node has heard of the ACL")
    refused = sharefs(node, "stage", f"{SHARE}/open/large", "--yes")
    assert refused.returncode == 1 and "a copy that root makes would let others in" in refused.err, refused
    for path in (f"{SHARE}/open", f"{SHARE}/open/large"):
        done(node, "stage", "--drop", path, "--yes")
    server.run("setfacl -b /srv/share/open", check=True)
    node.run(f"rm -rf {SHARE}/open", user="alice", check=True)


_ODD = """
import os, sys
os.mkdir(sys.argv[1])
for name in (b"bytes \\xff", b"line\\nbreak", b"quote ' \\" $(x)", b"n" * 255):
    open(os.path.join(os.fsencode(sys.argv[1]), name), "wb").write(name)
"""


def test_odd_names_are_staged_and_a_line_break_in_that_of_the_directory_refused(cluster: Cluster) -> None:
    node, path, broken = cluster["node1"], f"{SHARE}/odd ' $(x)", f"{SHARE}/line\nbreak"
    for one in (path, broken):
        node.run(["/usr/bin/python3", "-c", _ODD, one], user="alice", check=True)
    copy = staged_at(node, path)
    assert sums(node, shlex.quote(copy)) == sums(node, shlex.quote(path))
    refused = sharefs(node, "stage", broken, "--yes")
    assert refused.returncode == 1 and "has a line break in its name" in refused.err, refused
    assert [one["path"] for one in document(done(node, "stage", "--list", "--json"))["staged"]] == [path]
    done(node, "stage", "--drop", path, "--yes")
    node.run(["rm", "-rf", path, broken], user="alice", check=True)


def test_users_stage_beside_each_other_and_root(cluster: Cluster) -> None:
    node, code = cluster["node1"], f"{SHARE}/code"
    node.run(f"mkdir -p {code} && for i in 1 2 3; do echo $i >{code}/$i.py; done", user="alice", check=True)
    for user in ("alice", "bob"):
        said = done(node, "stage", code, "--yes", user=user, timeout=120)
        assert "packed" not in messages(said), said  # an image that this user could not mount
        (listed,) = document(done(node, "stage", "--list", "--json", user=user))["staged"]
        assert listed["copy"].startswith(f"/local/cache/{user}/staged/") and sums(node, listed["copy"], user) == sums(node, code), listed
        assert node.run(f"stat -c %a /local/cache/{user}", check=True).out == "700\n"
    done(node, "stage", code, "--yes", timeout=120)
    (listed,) = document(done(node, "stage", "--list", "--json"))["staged"]
    assert listed["state"] == "mounted" and listed["copy"].startswith("/local/cache/staged/0/"), listed
    node.run("rm -rf /local/cache/alice", check=True)
    assert f"{listed['copy']} is there" in messages(done(node, "stage", code, "--yes", user="alice")), "root's is for all"
    both = document(done(node, "stage", "--list", "--json", user="bob"))["staged"]
    assert sorted(one["state"] for one in both) == ["files", "mounted"], both
    assert f"`sudo sharefs stage --drop {code}` removes it" in messages(done(node, "stage", "--drop", code, "--yes", user="alice"))

    done(node, "stage", "--drop", code, "--yes")
    node.run("rm -rf /local/cache/staged", check=True)
    node.run("mkdir /local/cache/staged", user="bob", check=True)  # the name that root wants
    refused = sharefs(node, "stage", code, "--yes")
    assert refused.returncode == 1 and "`sudo mv /local/cache/staged /local/cache/staged.old`" in refused.err, refused
    done(node, "stage", code, "--yes", user="alice")
    for user in ("alice", "bob"):
        done(node, "stage", "--drop", code, "--yes", user=user)
    node.run(f"rm -rf {code}", user="alice", check=True)
