"""sharefs mount, umount and status on real kernel NFS, with the server alive and dead."""

from __future__ import annotations

import pytest

from sharefslab import Cluster
from sharefslab.product import (
    SHARE,
    config_text,
    configure,
    document,
    done,
    export_and_mount,
    hold_share,
    in_time,
    mount_lines,
    sharefs,
    states_of,
)

# A command must come back within its own deadline; the rest is for a busy machine, and far below "hangs".
PATIENCE = 90.0


def test_two_clients_see_each_others_files(mounted_lab: Cluster) -> None:
    node1, node2 = mounted_lab["node1"], mounted_lab["node2"]
    node1.run(f"echo from-node1 >{SHARE}/one", user="alice", check=True)
    node2.run(f"echo from-node2 >{SHARE}/two", user="bob", check=True)
    assert node2.run(["cat", f"{SHARE}/one"], user="alice").out == "from-node1\n"
    assert node1.run(["cat", f"{SHARE}/two"], user="alice").out == "from-node2\n"
    assert mounted_lab.server.read_text("/srv/share/one") == "from-node1\n"


def test_mount_twice_changes_nothing(mounted_lab: Cluster) -> None:
    node = mounted_lab["node1"]
    before = mount_lines(node)
    assert len(before) == 1
    assert sharefs(node, "mount", "--all", "--check").returncode == 0
    again = document(done(node, "mount", "--all", "--yes", "--json"))
    assert again["plan"]["steps"] == []
    assert mount_lines(node) == before


def test_a_server_that_is_a_client_too_binds_its_own_directory(mounted_lab: Cluster) -> None:
    """One sharefs.yaml with `exports:` and `mounts:` for all hosts; a server that mounts itself over NFS hangs all."""
    server = mounted_lab.server
    server.run("echo here >/srv/share/file", check=True)
    assert "missing" in sharefs(server, "status").out
    said = done(server, "mount", "--all", "--yes")
    assert f"bind /srv/share to {SHARE}" in said.out + said.err
    assert server.run(["cat", f"{SHARE}/file"], user="alice").out == "here\n"
    assert not any(" nfs" in line for line in mount_lines(server))
    status = sharefs(server, "status")
    assert status.ok and " here" in status.out, status.out
    assert document(done(server, "mount", "--all", "--yes", "--json"))["plan"]["steps"] == []
    done(server, "recover", "--all", "--yes")
    done(server, "umount", "--all", "--yes")
    assert server.run(f"ls {SHARE}").out == ""
    done(server, "undo", "--yes")
    assert server.run(["cat", f"{SHARE}/file"], user="alice").out == "here\n"
    assert mounted_lab["node1"].run(["cat", f"{SHARE}/file"], user="alice").out == "here\n"
    done(server, "umount", "--all", "--yes")


def test_at_the_same_path_the_server_has_nothing_to_mount(lab: Cluster) -> None:
    text = config_text().replace(SHARE, "/srv/share")
    export_and_mount(lab, text)
    server = lab.server
    for command in (["status"], ["mount", "--all", "--yes"], ["umount", "--all", "--yes"], ["recover", "--all", "--yes"]):
        said = done(server, *command)
        assert "umount" not in said.out + said.err
    assert server.run("test -d /srv/share").ok
    node = lab["node1"]
    assert "10.77.0.1:/srv/share /srv/share " in node.run("cat /proc/mounts").out


def test_a_server_that_mounted_itself_by_hand_is_warned(lab: Cluster) -> None:
    export_and_mount(lab, config_text().replace("[10.77.0.2,", "[10.77.0.1, 10.77.0.2,"))
    lab.server.run("mkdir -p /mnt/own && mount -t nfs -o vers=4.2,soft 10.77.0.1:/srv/share /mnt/own", check=True)
    assert "[SF233]" in sharefs(lab.server, "status").err
    done(lab.server, "umount", "/mnt/own", "--yes")
    assert "[SF233]" not in sharefs(lab.server, "status").err


def test_safe_profile_is_hard_with_a_pinned_version(mounted_lab: Cluster) -> None:
    options = mount_lines(mounted_lab["node1"])[0].split(" ")[3].split(",")
    assert "hard" in options and "vers=4.2" in options
    # what users put on the share gives nobody privileges
    assert "nosuid" in options and "nodev" in options


def test_recipe_profile_gives_exactly_the_manual_options(lab: Cluster) -> None:
    export_and_mount(lab, config_text(profile="recipe"))
    options = mount_lines(lab["node1"])[0].split(" ")[3].split(",")
    assert "soft" in options and "rw" in options
    assert "nosuid" not in options and "nodev" not in options
    dry = sharefs(lab["node2"], "umount", "share", "--yes")
    assert dry.ok
    shown = sharefs(lab["node2"], "mount", "share", "--dry-run")
    assert "rw,bg,soft,nolock" in shown.out


def test_verify_says_that_root_is_squashed(mounted_lab: Cluster) -> None:
    refused = sharefs(mounted_lab["node1"], "mount", "--all", "--verify", "--yes", "--timeout", "30")
    assert "root_squash" in refused.err + refused.out


def test_another_mount_at_the_target_is_reported_and_left(mounted_lab: Cluster) -> None:
    node = mounted_lab["node1"]
    done(node, "umount", "share", "--yes")
    node.run(f"mount -t nfs -o vers=3,nolock,soft 10.77.0.1:/srv/share {SHARE}", check=True)
    before = mount_lines(node)
    said = sharefs(node, "mount", "--all", "--yes")
    assert "soft" in said.err + said.out and "hard" in said.err + said.out
    assert mount_lines(node) == before
    node.run(["umount", SHARE], check=True)
    done(node, "mount", "--all", "--yes")


def test_umount_and_its_undo(mounted_lab: Cluster) -> None:
    node = mounted_lab["node1"]
    done(node, "umount", "share", "--yes")
    assert mount_lines(node) == []
    assert sharefs(node, "umount", "share", "--check").returncode == 0
    done(node, "undo", "--yes")
    assert len(mount_lines(node)) == 1


def test_a_busy_mount_names_its_holders(mounted_lab: Cluster) -> None:
    node = mounted_lab["node1"]
    holder = hold_share(node)
    refused = sharefs(node, "umount", "share", "--yes")
    assert refused.returncode == 1 and "sleep" in refused.err + refused.out
    assert len(mount_lines(node)) == 1
    holder.kill()
    holder.wait()
    done(node, "umount", "share", "--yes")
    done(node, "mount", "--all", "--yes")


def test_status_is_healthy(mounted_lab: Cluster) -> None:
    table = in_time(lambda: done(mounted_lab["node1"], "status", "--timeout", "10"))
    assert "share" in table.out and SHARE in table.out and "healthy" in table.out
    assert states_of(mounted_lab["node1"]) == ["healthy"]
    # without any sharefs.yaml, and not as root
    mounted_lab["node1"].run("rm /etc/sharefs/sharefs.yaml", check=True)
    assert SHARE in done(mounted_lab["node1"], "status", user="alice").out


@pytest.mark.parametrize("fault", ["kill", "drop_traffic"])
def test_with_a_dead_server_everything_comes_back(lab: Cluster, fault: str) -> None:
    export_and_mount(lab)
    node = lab["node1"]
    getattr(lab, fault)("server")

    status = sharefs(node, "status", "--timeout", "2", timeout=PATIENCE)
    assert status.returncode == 1 and "hung" in status.out
    probe = sharefs(node, "probe", "10.77.0.1", "--timeout", "2", timeout=PATIENCE)
    assert probe.returncode == 1
    mount = sharefs(node, "mount", "--all", "--yes", timeout=PATIENCE)
    assert mount.returncode != 0
    assert not node.run("pgrep mount.nfs").ok  # never started for a dead server
    recover = sharefs(node, "recover", "--all", "--yes", timeout=PATIENCE)
    assert recover.returncode != 0
    assert len(mount_lines(node)) == 1  # a hung mount waits for its server
    umount = sharefs(node, "umount", "share", "--yes", timeout=PATIENCE)
    assert umount.returncode in (0, 1)
    forced = sharefs(node, "umount", "share", "--force", "--lazy", "--yes", timeout=PATIENCE)
    assert forced.ok and mount_lines(node) == []
    # a mount from nothing: refused by the preflight, in time
    fresh = sharefs(node, "mount", "--all", "--yes", timeout=PATIENCE)
    assert fresh.returncode == 1 and mount_lines(node) == []


def test_after_the_servers_reboot_all_is_well_again(lab: Cluster) -> None:
    export_and_mount(lab)
    node = lab["node1"]
    node.run(f"echo precious >{SHARE}/kept", user="alice", check=True)
    lab.kill("server")
    assert sharefs(node, "status", "--timeout", "2", timeout=PATIENCE).returncode == 1
    lab.reboot("server")
    done(lab.server, "export", "--all", "--yes")  # the file is there; the server is started again
    status = sharefs(node, "status", "--timeout", "240", timeout=400)
    assert status.ok
    assert node.run(f"cat {SHARE}/kept", user="alice", timeout=400).out == "precious\n"


def test_a_relative_path_in_a_directory_that_is_gone(mounted_lab: Cluster) -> None:
    node = mounted_lab["node1"]
    gone = "mkdir -p /tmp/gone && cd /tmp/gone && rmdir /tmp/gone && "
    refused = node.run(gone + "sharefs umount data/share --yes")
    assert refused.returncode == 2 and "working directory is gone" in refused.err
    assert len(mount_lines(node)) == 1


def test_undo_of_an_umount_asks_the_server_first(mounted_lab: Cluster) -> None:
    node = mounted_lab["node1"]
    done(node, "umount", "share", "--yes")
    mounted_lab.drop_traffic("server")
    refused = sharefs(node, "undo", "--yes", timeout=PATIENCE)
    assert refused.returncode == 1 and "does not answer" in refused.err + refused.out
    assert not node.run("pgrep mount.nfs").ok
    assert mount_lines(node) == []
    mounted_lab.restore_traffic("server")
    done(node, "undo", "--yes")


def test_verify_writes_reads_and_deletes_and_sees_an_export_that_became_read_only(lab: Cluster) -> None:
    export_and_mount(lab, config_text(export_options="rw, sync, no_subtree_check, no_root_squash"))
    said = done(lab["node1"], "mount", "--all", "--verify", "--yes", "--timeout", "30")
    assert "share" in said.out + said.err
    assert lab.server.run("ls -A /srv/share").out == ""
    assert done(lab["node1"], "status", "--verify", "--timeout", "30").ok
    lab.server.run("sed -i s/rw/ro/ /etc/exports.d/sharefs.exports && exportfs -ra", check=True)
    found = sharefs(lab["node1"], "status", "--verify", "--timeout", "30")
    assert found.returncode == 1 and "SF216" in found.err
    assert lab.server.run("ls -A /srv/share").out == ""


def test_a_full_export(mounted_lab: Cluster) -> None:
    # Blocks without content, which would not go into the guest's memory; root may take some of those kept for it, too.
    mounted_lab.server.run("fallocate -l $(($(stat -f -c '%a * %S' /srv/share) + 1048576)) /srv/share/all", check=True)
    found = sharefs(mounted_lab["node1"], "status", "--timeout", "20")
    mounted_lab.server.run("rm /srv/share/all", check=True)
    assert found.returncode == 1 and "full" in found.out and "SF230" in found.err


def test_a_soft_mount_whose_server_is_away_is_hung(lab: Cluster) -> None:
    export_and_mount(lab, config_text(extra=', options: [soft, "timeo=10", "retrans=1", "vers=4.2"]'))
    lab.drop_traffic("server")
    status = sharefs(lab["node1"], "status", "--timeout", "20")
    assert status.returncode == 1 and "hung" in status.out and "kernel log" not in status.err


def test_few_descriptors_make_no_mount_wrong(mounted_lab: Cluster) -> None:
    status = in_time(lambda: mounted_lab["node1"].run("ulimit -n 16; sharefs status"))
    assert "failed" not in status.out and "terminate" not in status.err
    assert "healthy" in status.out or "unknown" in status.out


def test_rights_of_a_mount_in_use(mounted_lab: Cluster) -> None:
    """`--remount` changes ro, nosuid, nodev and noexec while a process works there, and undo takes it back."""
    node = mounted_lab["node1"]
    node.run(f"cp /bin/true {SHARE}/program; chmod 755 {SHARE}/program", user="alice", check=True)
    worker = hold_share(node, user="alice")
    configure(mounted_lab, config_text(extra=", options: [ro, noexec]"))
    refused = sharefs(node, "mount", "--all", "--yes")
    assert not refused.ok and "--remount` changes it in place" in refused.err
    done(node, "mount", "--all", "--remount", "--yes")
    assert sharefs(node, "status").ok
    assert "Read-only" in node.run(f"touch {SHARE}/x", user="alice").err
    assert "Permission denied" in node.run(f"{SHARE}/program", user="alice").err
    assert "nothing to do" in done(node, "mount", "--all", "--remount", "--yes").err
    done(node, "undo", "--yes")
    assert node.run(f"touch {SHARE}/x && {SHARE}/program", user="alice").ok
    configure(mounted_lab, config_text(extra=", options: [soft]"))  # what nobody can change in place: who must stop is named
    refused = sharefs(node, "mount", "--all", "--remount", "--yes")
    assert not refused.ok and "hard instead of soft" in refused.err and f"(sleep): cwd {SHARE}" in refused.err
    assert worker.running()
    worker.kill()
    worker.wait()
    assert len(mount_lines(node)) == 1


def test_a_mount_that_began_read_only_is_made_writable(lab: Cluster) -> None:
    export_and_mount(lab, config_text(extra=", options: [ro]"))
    node = lab["node1"]
    assert "Read-only" in node.run(f"touch {SHARE}/x", user="alice").err
    configure(lab, config_text())
    done(node, "mount", "--all", "--remount", "--yes")
    assert node.run(f"touch {SHARE}/x", user="alice").ok
    assert sharefs(node, "status").ok
