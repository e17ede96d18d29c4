"""Options for each client, lines of /etc/exports that sharefs.yaml has too, and exports that stand in no file."""

from __future__ import annotations

from sharefslab import Cluster, Host
from sharefslab.nfs import exported_clients
from sharefslab.product import config_text, configure, done, etc_digest, sharefs

EXPORTS = "/etc/exports"
ETAB = "/var/lib/nfs/etab"
OLD = """# what the administrator wrote in 2019
/srv/share\t10.77.0.2(rw,sync,no_subtree_check) \\
    10.77.0.3(ro,no_subtree_check)   # both nodes

/local -ro,fsid=99,no_subtree_check 10.77.0.3  # stays
"""
PER_CLIENT = config_text().replace("[10.77.0.2, 10.77.0.3]", "[10.77.0.2, {hosts: [10.77.0.3], options: [ro]}]")


def mount(node: Host, version: str, at: str = "/mnt/a", directory: str = "/srv/share") -> None:
    node.run(f"mkdir -p {at} && mount -t nfs -o vers={version},soft,timeo=50 server:{directory} {at}", check=True)


def etab(server: Host) -> list[str]:
    return sorted(server.read_text(ETAB).splitlines())


def test_each_client_has_the_rights_that_are_written(lab: Cluster) -> None:
    assert PER_CLIENT != config_text()
    configure(lab, PER_CLIENT)
    done(lab.server, "export", "--all", "--yes")
    for version in ("3", "4.2"):
        for name, writes in (("node1", True), ("node2", False)):
            node = lab[name]
            at = f"/mnt/v{version}"
            mount(node, version + (",nolock" if version == "3" else ""), at)
            written = node.run(["touch", f"{at}/{name}-{version}"], user="alice")
            assert written.ok == writes
            assert writes or "Read-only" in written.err
    assert sharefs(lab.server, "export", "--all", "--check").returncode == 0


def started_by_hand(lab: Cluster, exports: str = OLD) -> None:
    configure(lab, PER_CLIENT)
    lab.start_nfs_server(exports="")
    lab.server.write_file(EXPORTS, exports, mode=0o640)
    lab.server.run("chmod 1777 /srv/share && exportfs -ra", check=True)


def test_lines_of_the_administrator_go_by_hand_and_no_export_changes(lab: Cluster) -> None:
    started_by_hand(lab)
    server, node = lab.server, lab["node1"]
    exported = etab(server)
    mount(node, "4.2")
    said = done(server, "export", "--all", "--yes")
    assert said.err.count("SF115") == 2 and "take the line out" in said.err
    assert server.read_text(EXPORTS) == OLD and etab(server) == exported
    server.write_file(EXPORTS, "\n".join(OLD.splitlines()[3:]) + "\n", mode=0o640)
    said = done(server, "export", "--all", "--yes")
    assert "SF115" not in said.err and etab(server) == exported
    server.run("exportfs -ra", check=True)  # also as a boot would read it
    assert etab(server) == exported
    assert node.run(["touch", "/mnt/a/still"], user="alice").ok
    assert sharefs(server, "export", "--all", "--check").returncode == 0


def test_what_init_writes_exports_what_was_exported(lab: Cluster) -> None:
    server = lab.server
    server.run("mkdir /srv/share/sub", check=True)
    started_by_hand(lab, OLD + "/srv/share/sub @nodes(sync)\n")
    server.run("rm /etc/sharefs/sharefs.yaml", check=True)
    exported = etab(server)
    done(server, "init", "--yes")
    done(server, "export", "--all", "--yes")
    assert etab(server) == exported
    server.write_file(EXPORTS, "# nothing\n")
    done(server, "export", "--all", "--yes")
    assert etab(server) == exported
    assert sharefs(server, "export", "--all", "--check").returncode == 0


def test_other_rights_are_said_and_nothing_changes(lab: Cluster) -> None:
    started_by_hand(lab, OLD.replace("10.77.0.3(ro,", "10.77.0.3(ro,no_root_squash,"))
    before, exported = etc_digest(lab.server), etab(lab.server)
    refused = sharefs(lab.server, "export", "--all", "--yes")
    assert refused.returncode == 1 and "no_root_squash instead of root_squash" in refused.err
    assert etc_digest(lab.server) == before and etab(lab.server) == exported


SPITEFUL = r"""#!/bin/sh
/local/exportfs "$@"; code=$?
[ -e /local/spite ] && [ "$(id -u)" = 0 ] && sed -i 's/no_root_squash//; s/10.77.0.3(ro/10.77.0.3(rw/; s/sec=sys,ro/sec=sys,rw/' /var/lib/nfs/etab
exit $code
"""


def test_what_exportfs_makes_otherwise_is_taken_back(lab: Cluster) -> None:
    started_by_hand(lab, "")
    server = lab.server
    before = etc_digest(server)
    server.write_file("/local/spiteful", SPITEFUL, mode=0o755)
    server.run("cp /usr/sbin/exportfs /local/exportfs && touch /local/spite", check=True)
    server.run("mount --bind /local/spiteful /usr/sbin/exportfs", check=True)
    failed = sharefs(server, "export", "--all", "--yes")
    assert failed.returncode == 1 and "everything was taken back" in failed.err
    assert etc_digest(server) == before


def test_an_ad_hoc_export_stops_the_reload(lab: Cluster) -> None:
    started_by_hand(lab, "")
    server = lab.server
    server.run("exportfs -o ro,fsid=98,no_subtree_check 10.77.0.3:/local", check=True)
    before = etc_digest(server)
    refused = sharefs(server, "export", "--all", "--yes")
    assert refused.returncode == 1 and "--drop-adhoc" in refused.err and "/local" in refused.err
    assert exported_clients(server, "/local") == ["10.77.0.3"] and etc_digest(server) == before
    done(server, "export", "--all", "--drop-adhoc", "--yes")
    assert exported_clients(server, "/local") == []
    assert sorted(exported_clients(server, "/srv/share")) == ["10.77.0.2", "10.77.0.3"]


def test_access_is_given_to_what_is_there(lab: Cluster) -> None:
    configure(lab, config_text().replace('mode: "2770"', "sticky: true"))
    server, node = lab.server, lab["node1"]
    server.run(
        "cd /srv/share && mkdir -p env/bin && echo secret >env/token && chmod 700 env && chmod 600 env/token"
        " && chown -R alice:alice env && echo root >/srv/share/of-root && chmod 600 of-root && ln of-root env/linked"
        " && ln -s /etc env/etc && mkdir env/mounted && mount -t tmpfs none env/mounted && touch env/mounted/other",
        check=True,
    )
    outside = server.run("stat -c '%a %u %g' /etc /srv/share/env/mounted/other").out
    said = done(server, "export", "--all", "--recursive", "--yes")
    assert "of-root: a file with several names" in said.err and "env/mounted: a mount" in said.err
    assert server.run("stat -c '%a %u %g' /etc /srv/share/env/mounted/other").out == outside
    assert server.run("stat -c '%a %u:%g' /srv/share/env/linked", check=True).out == "600 0:0\n"
    assert sharefs(server, "export", "--all", "--recursive", "--check").returncode == 0
    done(node, "mount", "--all", "--yes")
    assert node.run(["cat", "/data/share/env/token"], user="bob").out == "secret\n"
    assert node.run("echo more >>/data/share/env/token && touch /data/share/env/bin/new", user="bob").ok
    assert node.run("stat -c %G /data/share/env/bin/new", user="bob").out == "ml\n"
    assert not node.run(["mv", "/data/share/env", "/data/share/mine"], user="bob").ok  # sticky
    node.run("umount /data/share", check=True)
    done(server, "undo", "--yes")
    assert server.run("stat -c '%a %G' /srv/share/env/token", check=True).out == "660 ml\n"
