"""Servers that are not as the lab's own: without NFS 4.2, at another port, with other paths for NFS 4 than for NFS 3. What
mount(8) mounts there sharefs mounts, too, and finds healthy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sharefslab import Cluster
from sharefslab.host import Completed, Host
from sharefslab.product import configure, done, mount_lines, sharefs

CONFIG = """\
version: 1
servers:
  storage: {{address: server}}
mounts:
  share: {{from: "storage:{path}", at: /data/share{extra}}}
"""
OPTIONS = "(rw,sync,no_root_squash,no_subtree_check{extra})"


def start(cluster: Cluster, nfsd: str = "4", extra: str = "") -> None:
    cluster.server.write_file("/etc/exports", f"/srv/share *{OPTIONS.format(extra=extra)}\n")
    cluster.server.run(f"rpc.nfsd 0; exportfs -ra && exportfs -f && rpc.nfsd {nfsd}", check=True)


@pytest.fixture(scope="module")
def other_cluster(lab_ready: None) -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.start_nfs_server()
        cluster.start_lock_daemons("node1")
        yield cluster


@pytest.fixture
def node(other_cluster: Cluster) -> Iterator[Host]:
    yield other_cluster["node1"]
    done(other_cluster["node1"], "umount", "--all", "--yes")
    start(other_cluster, "-V 4.2 4")


def well(cluster: Cluster, path: str = "/srv/share", extra: str = "") -> str:
    """The options of the mount that sharefs makes, and that all of its commands find well."""
    node = cluster["node1"]
    configure(cluster, CONFIG.format(path=path, extra=extra))
    done(node, "mount", "--all", "--yes")
    for command in ("status", "doctor"):
        said = sharefs(node, command)
        assert said.ok and "SF2" not in said.out + said.err, said
    assert "all mounts are well" in (said := done(node, "recover", "--all", "--yes")).out + said.err
    (line,) = mount_lines(node)
    return line


def refused(cluster: Cluster, extra: str) -> Completed:
    configure(cluster, CONFIG.format(path="/srv/share", extra=extra))
    said = sharefs(cluster["node1"], "mount", "--all", "--yes")
    assert said.returncode == 1, said
    return said


def test_without_nfs_4_2(other_cluster: Cluster, node: Host) -> None:
    start(other_cluster, "-N 4.2 4")
    assert "vers=4.1," in well(other_cluster)
    done(node, "umount", "--all", "--yes")
    said = refused(other_cluster, ", options: [vers=4.2]")
    assert "[SF204]" in said.err and "`vers=4.1`" in said.err, said


def test_a_path_that_only_nfs_3_has(other_cluster: Cluster, node: Host) -> None:
    """With fsid=0 the paths of NFS 4 begin at the export; NFS-Ganesha has others by `Pseudo`."""
    start(other_cluster, extra=",fsid=0")
    assert "vers=3," in well(other_cluster)
    done(node, "umount", "--all", "--yes")
    said = refused(other_cluster, ", options: [vers=4.2]")
    assert "[SF202]" in said.err and "for NFS 3 only" in said.err, said


def test_a_path_that_only_nfs_4_has(other_cluster: Cluster, node: Host) -> None:
    start(other_cluster, extra=",fsid=0")
    other_cluster.server.run("mkdir -p /srv/share/data", check=True)
    assert sharefs(node, "probe", "server:/data").ok
    assert "vers=4.2," in well(other_cluster, "/data")


def test_another_port(other_cluster: Cluster, node: Host) -> None:
    start(other_cluster, "--port 20490 4")
    assert "port=20490," in well(other_cluster, extra=", options: [port=20490]")
    assert sharefs(node, "probe", "--port", "20490", "server:/srv/share").ok
    assert not sharefs(node, "probe", "server:/srv/share").ok


def test_both_ports_are_given(other_cluster: Cluster, node: Host) -> None:
    """mount.nfs needs no portmapper then, as behind a firewall that opens these two ports only."""
    start(other_cluster)
    server = other_cluster.server
    server.run("pkill -x rpc.mountd; rpc.mountd --port 20048 && pkill -x rpcbind", check=True)
    try:
        assert "vers=3," in well(other_cluster, extra=", options: [vers=3, port=2049, mountport=20048, nolock]")
        assert "NFS 3   can be mounted" in done(node, "probe", "--mountport", "20048", "server:/srv/share").out
    finally:
        server.run("rpcbind && pkill -x rpc.mountd; rpc.mountd", check=True)


def test_a_referral_to_another_server(other_cluster: Cluster, node: Host) -> None:
    """A mount of it waits for that server, so a healthy answer of this one is not all that is to say."""
    start(other_cluster)
    server = other_cluster.server
    server.run("mkdir -p /srv/away && mount --bind /srv/away /srv/away", check=True)
    try:
        server.run("exportfs -o ro,fsid=6,no_subtree_check,refer=/srv/x@10.77.0.99 '*:/srv/away' && exportfs -f", check=True)
        said = sharefs(node, "probe", "server:/srv/away")
        assert said.ok and "may mount; NFS 4 refers to another server (referral)" in said.out, said
    finally:
        server.run("exportfs -u '*:/srv/away' && exportfs -f && umount -l /srv/away", check=True)


def test_a_file_system_below_the_share_that_is_stale(other_cluster: Cluster, node: Host) -> None:
    """The kernel mounts it by itself, again after it was recovered: a mount of sharefs there would hold the share."""
    server = other_cluster.server
    start(other_cluster, extra=",crossmnt")
    server.run("mkdir -p /srv/share/sub && mount -t tmpfs sub /srv/share/sub && exportfs -o rw,fsid=7 '*:/srv/share/sub'", check=True)
    well(other_cluster)
    node.run("ls /data/share/sub/", check=True)
    assert mount_lines(node, "/data/share/sub")
    # nfsd may still hold the file system.
    server.run("exportfs -u '*:/srv/share/sub' && umount -l /srv/share/sub && exportfs -f", check=True)
    assert "SF211" in sharefs(node, "status").err
    done(node, "recover", "--all", "--yes")
    assert sharefs(node, "status").ok
    node.run("ls /data/share/sub/", check=True)
