"""`sharefs init` on a cluster that was set up by hand: applied, its file changes no export and no mount."""

from __future__ import annotations

from sharefslab import Cluster
from sharefslab.product import CONFIG_PATH, SHARE, done, mount_lines, sharefs

EXPORTS = """\
# by hand
/srv/share 10.77.0.2(rw,sync,no_subtree_check) 10.77.0.3(ro,no_subtree_check)
"""
FSTAB = "10.77.0.1:/srv/share /data/later nfs ro,soft,noexec,vers=4.1,actimeo=30,_netdev,nofail 0 0\n"
RC_LOCAL = f"#!/bin/sh\nmount -t nfs -o rw,bg,soft,nolock,vers=3 10.77.0.1:/srv/share {SHARE}\nexit 0\n"


def chosen(line: str) -> set[str]:
    """Those that a person chooses."""
    words = set(line.split(" ")[3].split(","))
    return {word for word in words if not word.startswith("mountp") and word != "nconnect=1"}


def test_a_cluster_that_was_set_up_by_hand(lab: Cluster) -> None:
    server, node1, node2 = lab.server, lab["node1"], lab["node2"]
    lab.start_nfs_server(exports=EXPORTS)
    before = server.run("sort /var/lib/nfs/etab", check=True).out
    assert "10.77.0.3" in before
    node1.write_file("/etc/rc.local", RC_LOCAL, mode=0o755)
    for node in lab.nodes:
        node.run("install -d -m 1777 /var/cache/sharefs", check=True)  # by the package
    for node, options in (node1, "rw,soft,nolock,vers=3"), (node2, "ro,hard,vers=4.2,noac,timeo=300"):
        node.write_file("/etc/fstab", FSTAB)
        node.run(f"mkdir -p /data/later {SHARE} && mount -t nfs -o {options} 10.77.0.1:/srv/share {SHARE}", check=True)

    done(server, "init", "--yes")
    assert "10.77.0.3" in server.read_text(CONFIG_PATH)
    for text in (EXPORTS, "# nothing more\n"):  # the lines are taken out by hand when sharefs exports the same
        server.write_file("/etc/exports", text)
        done(server, "export", "--all", "--yes")
        assert server.run("sort /var/lib/nfs/etab", check=True).out == before
    assert sharefs(server, "export", "--all", "--check").returncode == 0

    for node in (node1, node2):
        lines = mount_lines(node)
        done(node, "init", "--yes")
        node.run("mount /data/later", check=True)  # as fstab says it; sharefs.yaml knows nothing else of it
        lines += mount_lines(node, "/data/later")
        assert sharefs(node, "mount", "--all", "--check").returncode == 0, node.read_text(CONFIG_PATH)
        assert sharefs(node, "status").ok, node.read_text(CONFIG_PATH)
        done(node, "umount", "--all", "--yes")
        done(node, "mount", "--all", "--yes")
        assert [chosen(*mount_lines(node, target)) for target in (SHARE, "/data/later")] == [*map(chosen, lines)]
    text = node1.read_text(CONFIG_PATH)
    assert "boot: none  # /etc/rc.local:2 does it" in text
