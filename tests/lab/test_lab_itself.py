"""The lab's own tests: what the tests of sharefs rely on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from sharefslab import BaseCluster, Cluster, CommandTimeout, Host, KernelCluster, LabError, paths, wait_until

DEADLINE = 300.0
ANSWER = 4.0  # a healthy mount answers within this time, however busy the machine is


def mount(node: Host, version: str, options: str = "actimeo=1") -> str:
    """Mounts the server's share on a node. Returns the mount point."""
    directory = f"/mnt/v{version}"
    script = f"mkdir -p {directory} && mount -t nfs -o vers={version},{options} server:/srv/share {directory}"
    node.run(script, check=True)
    return directory


def serve_and_mount(cluster: BaseCluster) -> list[str]:
    """A server made by hand, and on node1 one mount of each version."""
    cluster.start_nfs_server()
    cluster.start_lock_daemons("node1")
    return [mount(cluster["node1"], version) for version in ("3", "4.2")]


def all_hang(node: Host, paths: Sequence[str]) -> bool:
    """Whether looking at each path hangs. The children that look are killed after their deadline."""
    jobs = [node.start(["stat", "-f", path]) for path in paths]
    time.sleep(ANSWER)
    hanging = [job.running() for job in jobs]
    for job in jobs:
        job.kill()
        job.wait(DEADLINE)
    return all(hanging)


def answers(node: Host, path: str) -> bool:
    """Whether the path can be looked at within the deadline, hanging or failing as it may before that."""
    return node.run(["stat", "-f", path], timeout=DEADLINE).ok


def error_of(node: Host, path: str) -> str:
    """The error of listing the path; empty if there is none."""
    return node.run(["ls", path], timeout=DEADLINE).err


def wait_for_error(node: Host, path: str, *texts: str) -> None:
    """Waits until listing the path fails with one of these texts."""
    wait_until(lambda: any(text in error_of(node, path) for text in texts), DEADLINE, what=f"{path}: {texts}")


def wait_for_health(node: Host, path: str) -> None:
    wait_until(lambda: not error_of(node, path), DEADLINE, what=f"{path} heals")


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


class TestCommands:
    def test_exit_code_and_both_outputs(self, shared_lab: Cluster) -> None:
        completed = shared_lab["node1"].run("hostname; echo problem >&2; exit 7")
        assert (completed.returncode, completed.out, completed.err) == (7, "node1\n", "problem\n")

    def test_a_sequence_is_not_seen_by_a_shell(self, shared_lab: Cluster) -> None:
        assert shared_lab["node1"].run(["printf", "%s|", "a b", "$HOME", "", "*"]).out == "a b|$HOME||*|"

    def test_input_and_output_are_bytes(self, shared_lab: Cluster) -> None:
        every_byte = bytes(range(256)) * 5000
        assert shared_lab["node1"].run(["cat"], input=every_byte).stdout == every_byte

    def test_files(self, shared_lab: Cluster) -> None:
        node = shared_lab["node1"]
        node.write_file("/local/deep/file", b"\0\xff", mode=0o640, owner="alice:ml")
        assert node.read_file("/local/deep/file") == b"\0\xff"
        assert node.run(["stat", "-c", "%a %U %G", "/local/deep/file"]).out == "640 alice ml\n"
        assert node.exists("/local/deep") and not node.exists("/local/nothing")

    def test_user_environment_and_directory(self, shared_lab: Cluster) -> None:
        completed = shared_lab["node1"].run(
            'echo "$(id -un) $(id -Gn) $HOME $GREETING $PWD"', user="alice", env={"GREETING": "hi"}, cwd="/tmp"
        )
        assert completed.out == "alice alice ml /home/alice hi /tmp\n"

    def test_a_command_that_cannot_start(self, shared_lab: Cluster) -> None:
        assert shared_lab["node1"].run(["no-such-command"]).returncode == 127

    def test_a_late_command_is_killed(self, shared_lab: Cluster) -> None:
        with pytest.raises(CommandTimeout) as caught:
            shared_lab["node1"].run("echo early; sleep 1000", timeout=10)
        assert not caught.value.stuck
        assert caught.value.completed.stdout == b"early\n"
        wait_until(lambda: not shared_lab["node1"].run(["pgrep", "sleep"]).ok, what="its children are gone, too")

    def test_background_job(self, shared_lab: Cluster) -> None:
        job = shared_lab["node1"].start("echo started; sleep 1000")
        wait_until(lambda: job.stdout() == b"started\n")
        assert job.running()
        shared_lab["node1"].kill(job, signal.SIGTERM)
        assert job.wait().returncode == -signal.SIGTERM


class TestHosts:
    def test_see_each_other(self, shared_lab: Cluster) -> None:
        for host in shared_lab:
            for peer in shared_lab:
                assert host.run(["busybox", "ping", "-c1", "-W30", peer.name]).ok

    def test_nothing_is_served_or_mounted(self, shared_lab: Cluster) -> None:
        assert shared_lab.server.run("pgrep -l 'rpc|nfs'").out == ""
        assert shared_lab.server.read_file("/etc/exports") == b""
        assert not shared_lab["node1"].run("grep nfs /proc/mounts").ok

    def test_each_has_files_of_its_own(self, shared_lab: Cluster) -> None:
        shared_lab["node1"].write_file("/etc/only-here", "x")
        assert not shared_lab["node2"].exists("/etc/only-here")

    def test_project_is_visible_and_read_only(self, shared_lab: Cluster) -> None:
        assert shared_lab["node1"].exists("/project/tests/lab/conftest.py")
        assert "Read-only" in shared_lab["node1"].run(["touch", "/project/x"]).err

    @pytest.mark.lab_hosts("server", "node1", "node2", "node3")
    def test_more_of_them(self, lab: Cluster) -> None:
        assert lab["node3"].run(["busybox", "ping", "-c1", "-W30", "server"]).ok

    def test_unknown_and_dead_ones_are_errors(self, lab: Cluster) -> None:
        with pytest.raises(LabError, match="no host node9"):
            lab["node9"]
        lab.kill("node1")
        with pytest.raises(LabError, match="powered off"):
            lab["node1"].run("true")


class TestNfs:
    def test_two_clients_share_files_over_both_versions(self, lab: Cluster) -> None:
        lab.start_nfs_server()
        lab.start_lock_daemons()
        first, second = mount(lab["node1"], "3"), mount(lab["node2"], "4.2")
        lab["node1"].write_file(f"{first}/hello", "from node1")
        assert lab["node2"].read_text(f"{second}/hello") == "from node1"
        assert lab.server.read_text("/srv/share/hello") == "from node1"

    def test_locks_exclude_after_warming(self, lab: Cluster) -> None:
        lab.start_nfs_server()
        lab.start_lock_daemons()
        lab.warm_locks()
        directories = {node.name: mount(node, "4.2") for node in lab.nodes}
        holder = lab["node1"].start(f"exec 9>{directories['node1']}/lock; flock 9; echo held; sleep 1000")
        wait_until(lambda: holder.stdout() == b"held\n", DEADLINE)
        assert lab["node2"].run(["flock", "-n", f"{directories['node2']}/lock", "true"]).returncode == 1

    def test_another_export(self, lab: Cluster) -> None:
        lab.server.run("mkdir -p /srv/share/sub", check=True)
        lab.start_nfs_server(exports={"/srv/share/sub": "node1(rw,no_subtree_check)"})
        script = "mkdir -p /mnt/sub && mount -t nfs -o vers=4.2 server:/srv/share/sub /mnt/sub"
        assert lab["node1"].run(script).ok
        assert not lab["node2"].run(script).ok


class TestFaults:
    def test_killed_server_hangs_clients_until_it_is_back(self, lab: Cluster) -> None:
        directories = serve_and_mount(lab)
        lab["node1"].write_file(f"{directories[0]}/kept", "data")
        lab.kill("server")
        assert all_hang(lab["node1"], directories)
        lab.reboot("server")
        lab.start_nfs_server(exports=None)
        assert all(answers(lab["node1"], directory) for directory in directories)
        assert lab["node1"].read_text(f"{directories[1]}/kept") == "data"

    def test_disk_and_settings_survive_a_reboot(self, lab: Cluster) -> None:
        lab["node1"].write_file("/etc/kept", "x")
        lab["node1"].write_file("/etc/rc.local", "#!/bin/sh\ntouch /local/booted\n", mode=0o755)
        lab.reboot("node1", rc_local=True)
        assert lab["node1"].exists("/etc/kept") and lab["node1"].exists("/local/booted")
        assert lab["node1"].run(["busybox", "ping", "-c1", "-W30", "server"]).ok

    def test_client_with_mounts_and_a_lock_can_be_killed(self, lab: Cluster) -> None:
        directories = serve_and_mount(lab)
        lab.warm_locks()
        holder = lab["node1"].start(f"exec 9>{directories[1]}/lock; flock 9; echo held; sleep 1000")
        wait_until(lambda: holder.stdout() == b"held\n", DEADLINE)
        lab.kill("node1")
        lab.reboot("node1")
        lab.start_lock_daemons("node1")
        assert answers(lab["node1"], mount(lab["node1"], "3"))

    @pytest.mark.parametrize(("begin", "end"), [("freeze", "resume"), ("drop_traffic", "restore_traffic")])
    def test_silent_server(self, lab: Cluster, begin: str, end: str) -> None:
        directories = serve_and_mount(lab)
        getattr(lab, begin)("server")
        assert all_hang(lab["node1"], directories)
        getattr(lab, end)("server")
        assert all(answers(lab["node1"], directory) for directory in directories)

    def test_latency_shows_in_the_ratio_of_round_trips(self, lab: Cluster) -> None:
        def shortest_round_trip() -> float:
            said = lab["node1"].run(["busybox", "ping", "-c5", "-A", "server"], check=True).out
            return float(said.rpartition("= ")[2].split("/")[0])

        near = shortest_round_trip()
        lab.latency("server", 400)
        assert shortest_round_trip() > 2 * near
        lab.latency("server", 0)

    def test_remade_filesystem_is_stale(self, lab: Cluster) -> None:
        directories = serve_and_mount(lab)
        lab["node1"].write_file(f"{directories[0]}/lost", "data")
        lab.remake_filesystem("server")
        for directory in directories:
            wait_for_error(lab["node1"], directory, "Stale file handle")
        assert not lab.server.exists("/srv/share/lost")

    def test_removed_export_is_denied_or_stale_and_heals(self, lab: Cluster) -> None:
        directories = serve_and_mount(lab)
        lab.remove_export("server")
        for directory in directories:
            wait_for_error(lab["node1"], directory, "Stale file handle", "Permission denied")
        lab.server.run(["exportfs", "-ra"], check=True)
        for directory in directories:
            wait_for_health(lab["node1"], directory)


class TestSeparateKernels:
    def test_power_loss_of_the_server(self, kernel_lab: KernelCluster) -> None:
        directories = serve_and_mount(kernel_lab)
        node = kernel_lab["node1"]
        for directory in directories:
            node.run(f"echo kept >{directory}/$(basename {directory}) && sync {directory}", check=True)
        kernel_lab.kill("server")
        assert all_hang(node, directories)
        kernel_lab.reboot("server")
        kernel_lab.start_nfs_server(exports=None)
        assert all(answers(node, directory) for directory in directories)
        assert kernel_lab.server.run("cat /srv/share/v3 /srv/share/v4.2").out == "kept\nkept\n"

    def test_other_faults(self, kernel_lab: KernelCluster) -> None:
        directories = serve_and_mount(kernel_lab)
        node = kernel_lab["node1"]
        for begin, end in (("freeze", "resume"), ("drop_traffic", "restore_traffic")):
            getattr(kernel_lab, begin)("server")
            assert all_hang(node, directories)
            getattr(kernel_lab, end)("server")
            assert all(answers(node, directory) for directory in directories)
        kernel_lab.remake_filesystem("server")
        for directory in directories:
            wait_for_error(node, directory, "Stale file handle")


class TestTeardown:
    def test_hung_mounts_do_not_hold_it_up(self, lab: Cluster) -> None:
        directories = serve_and_mount(lab)
        lab.kill("server")
        for directory in directories:
            lab["node1"].start(["stat", "-f", directory])
        lab.close()

    @pytest.mark.parametrize("kind", [Cluster, KernelCluster])
    def test_no_process_or_file_stays(self, lab_ready: None, kind: type[Cluster | KernelCluster]) -> None:
        with kind(hosts=("server", "node1")) as cluster:
            pids = cluster.pids()
            directories = cluster.directories()
            assert pids and all(is_alive(pid) for pid in pids)
            assert directories and all(directory.exists() for directory in directories)
        wait_until(lambda: not any(is_alive(pid) for pid in pids))
        assert not any(directory.exists() for directory in directories)

    def test_guest_ends_when_its_driver_does(self, lab_ready: None, tmp_path: Path) -> None:
        record = tmp_path / "pid"
        driver = os.fork()
        if driver == 0:
            with Cluster(hosts=("node1",)) as cluster:
                record.write_text(f"{cluster.pids()[0]} {cluster.directories()[0]}")
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitid(os.P_PID, driver, os.WEXITED | os.WNOWAIT)  # until it is reaped, no other test removes what it left
        pid, path = record.read_text().split()
        guest, directory = int(pid), Path(path)
        assert directory.exists()
        os.waitpid(driver, 0)
        wait_until(lambda: not is_alive(guest), DEADLINE)
        paths.remove_orphans()
        wait_until(lambda: not directory.exists(), what="it is removed")  # another test may be at it, too
