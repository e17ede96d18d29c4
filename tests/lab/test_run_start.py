"""What `sharefs run` does before it becomes a command that has nothing to do with the share: no path of it is touched."""

from __future__ import annotations

import pytest

from sharefslab import Cluster, wait_until
from sharefslab.product import SHARE, export_and_mount, sharefs

# Long enough for a slow guest; a hard mount of a dead server is waited for without end.
PATIENCE = 90.0


@pytest.fixture
def dead_share(lab: Cluster) -> Cluster:
    """The share is mounted on the nodes, and its server has gone."""
    export_and_mount(lab)
    lab.drop_traffic("server")
    return lab


def test_no_path_of_the_dead_mount_is_named(dead_share: Cluster) -> None:
    node = dead_share["node1"]
    traced = node.run(
        ["strace", "-f", "-e", "trace=%file", "-o", "/tmp/trace", "sharefs", "run", "--", "true"], timeout=PATIENCE
    ).check()
    calls = node.read_text("/tmp/trace").splitlines()
    assert any("execve(" in call and '"true"]' in call and call.endswith("= 0") for call in calls), traced
    assert any('"/proc/self/mountinfo"' in call for call in calls)
    assert [call for call in calls if SHARE in call] == []


PRINT = "import os; print(os.environ['HF_DATASETS_CACHE'])"


def test_a_path_of_the_dead_mount_is_looked_up_by_a_child(dead_share: Cluster) -> None:
    """A variable names the dead share."""
    node = dead_share["node1"]
    words = ["env", f"HF_DATASETS_CACHE={SHARE}/cache", "sharefs", "run", "--", "python3", "-Sc", PRINT]
    traced = node.run(["strace", "-f", "-e", "trace=%file", "-o", "/tmp/trace", *words], timeout=PATIENCE).check()
    assert traced.out.startswith("/local/cache/"), traced
    calls = [line.split(maxsplit=1) for line in node.read_text("/tmp/trace").splitlines()]
    sharefs_itself = calls[0][0]
    assert [call for pid, call in calls if pid == sharefs_itself and f'"{SHARE}' in call] == []


def test_it_starts_in_a_directory_of_the_dead_mount(lab: Cluster) -> None:
    """A job's shell often stands in a directory of the share: asking the kernel where that is asks no server."""
    export_and_mount(lab)
    node = lab["node1"]
    node.run("mkfifo -m 666 /tmp/gone", check=True)
    job = node.start("echo there; read -r <>/tmp/gone; sharefs run -- echo done", cwd=SHARE, user="alice")
    wait_until(lambda: job.stdout() == b"there\n", what="a shell is in the share")
    lab.drop_traffic("server")
    node.run("echo >/tmp/gone", check=True)
    assert job.wait_or_kill(PATIENCE).check().out == "there\ndone\n"


def test_a_thousand_mounts_beside_it(dead_share: Cluster) -> None:
    node = dead_share["node1"]
    # One process makes them all: a thousand of them would take the guest a minute.
    node.write_file("/tmp/many", "".join(f"/tmp/m/{n} /tmp/m/{n} none bind 0 0\n" for n in range(1000)))
    node.run("mkdir -p $(seq -f /tmp/m/%g 0 999) && mount --all --fstab /tmp/many", timeout=400, check=True)
    targets = [line.split()[4] for line in node.read_text("/proc/self/mountinfo").splitlines()]
    assert sum(target.startswith("/tmp/m/") for target in targets) == 1000
    assert sharefs(node, "run", "--", "echo", "done", timeout=PATIENCE).check().out == "done\n"


def test_a_launch_whose_mount_is_missing_is_not_started(lab: Cluster) -> None:
    """As after a reboot: without the guard the outputs would lie on the node's own disk, unseen."""
    export_and_mount(lab)
    node = lab["node1"]
    job = ["sh", "-c", f"mkdir -p {SHARE}/out && echo x >{SHARE}/out/x"]
    sharefs(node, "umount", "--all", "--yes").check()
    stopped = sharefs(node, "run", "--", *job)
    assert stopped.returncode == 125
    assert "[SF418]" in stopped.err and "sharefs recover share" in stopped.err
    assert node.run(f"ls {SHARE}").out == ""
    assert sharefs(node, "run", "--dry-run", "--", *job).ok
    assert sharefs(node, "run", "--", "echo", "done").check().out == "done\n"
    sharefs(node, "recover", "share", "--yes").check()
    sharefs(node, "run", "--", *job, user="alice").check()
    assert lab.server.read_text("/srv/share/out/x") == "x\n"


def test_a_launch_on_a_hung_mount_is_not_started(dead_share: Cluster) -> None:
    stopped = sharefs(dead_share["node1"], "run", "--", "echo", f"{SHARE}/out", timeout=PATIENCE)
    assert stopped.returncode == 125
    assert "is hung" in stopped.err
    going = sharefs(dead_share["node1"], "run", "--no-guard", "--", "echo", f"{SHARE}/out", timeout=PATIENCE)
    assert going.check().out == f"{SHARE}/out\n"
