"""The page of manual steps that sharefs replaces, from the empty server to the reboot, by what README and --help say. The
numbers are the page's steps; conda and launches have files of their own."""

from __future__ import annotations

import pytest

from sharefslab import BaseCluster, KernelCluster, systemd, wait_until
from sharefslab.product import SHARE, config_text, configure, done, hold_share, mount_lines, sharefs, state_of

SERVER = "10.77.0.1"


def serve(cluster: BaseCluster) -> None:
    if isinstance(cluster, KernelCluster):
        cluster.start_nfs_server(exports=None)
    done(cluster.server, "export", "--all", "--yes")


@pytest.mark.parametrize("kind", ["lab", "boot_lab"])
def test_the_page(request: pytest.FixtureRequest, kind: str) -> None:
    cluster: BaseCluster = request.getfixturevalue(kind)
    server, node = cluster.server, cluster["node1"]
    text = config_text(extra=", boot: auto, options: [actimeo=1], shares: [{path: outputs, access: {group: ml}}]")
    configure(cluster, text.replace('mode: "2770"', "sticky: true"))

    # 4: that is no host, and what stands there is not taken over unseen
    said = server.run("echo '/mnt 192.168.16.11/22(rw)' | sharefs export check -")
    assert "1,024" in said.out
    # 3, 5: directory, rights, export, server
    serve(cluster)
    assert server.run("stat -c '%a %G' /srv/share").out == "3770 ml\n"
    assert sharefs(server, "export", "--all", "--check").returncode == 0
    # 6: without root
    assert "/srv/share" in done(node, "probe", SERVER, user="alice").out
    assert "may mount" in done(node, "probe", f"{SERVER}:/srv/share").out
    # 15: on the server, which bind-mounts the same path; root of a node is nobody
    done(server, "mount", "--all", "--yes")
    # 7, 13
    done(node, "mount", "--all", "--yes")
    node.run(f"umask 022; mkdir {SHARE}/outputs/run && echo a >{SHARE}/outputs/run/log", user="alice", check=True)
    node.run(f"echo b >>{SHARE}/outputs/run/log && rm -r {SHARE}/outputs/run", user="bob", check=True)
    assert state_of(node) == "healthy"
    node.run(f"echo hello >{SHARE}/file", user="alice", check=True)
    # 8: the same owner on both sides
    assert server.run("stat -c '%U %G' /srv/share/file").out == "alice ml\n"
    assert node.run(f"stat -c '%U %G' {SHARE}/file", user="bob").out == "alice ml\n"
    assert not node.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", f"{SHARE}/file"]).ok
    server.run("rm /srv/share/file", check=True)
    # 9
    holder = hold_share(node, user="alice")
    busy = sharefs(node, "umount", "share", "--yes")
    assert busy.returncode == 1 and "sleep" in busy.err
    done(node, "umount", "share", "--lazy", "--yes")
    node.kill(holder)
    assert mount_lines(node) == []
    done(node, "mount", "share", "--yes")
    # 10
    if kind == "boot_lab":
        cluster.reboot(node)
        systemd.wait_for_mount(node, SHARE)
    else:
        cluster.reboot(node, rc_local=True)
        wait_until(lambda: mount_lines(node), what="rc.local has mounted")
    assert state_of(node) == "healthy"
    # 11: "Stale file handle"
    done(server, "umount", "--all", "--yes")
    cluster.remake_filesystem("server")
    wait_until(lambda: state_of(node) == "stale", what="the node notices that its handle is stale")
    done(node, "recover", "--all", "--yes", timeout=240)
    assert state_of(node) == "healthy"
    # 12: "backgrounding": which stage fails, and what helps
    cluster.drop_traffic("server")
    wait_until(lambda: state_of(node, 2) == "hung", what="the node notices that its server is away")
    told = sharefs(node, "status", "--timeout", "2s")
    assert told.returncode == 1 and "hint" in told.err
    assert not sharefs(node, "probe", SERVER, "--timeout", "2s").ok
    cluster.restore_traffic("server")
    wait_until(lambda: state_of(node) == "healthy", 400, what="the server is back")
    done(node, "umount", "--all", "--forget", "--yes")
    assert mount_lines(node) == []
