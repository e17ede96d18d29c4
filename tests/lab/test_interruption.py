"""Killed between any two steps, interrupted, two at once: a plan is completed by running it again, or undone."""

from __future__ import annotations

import signal

import pytest

from sharefslab import Cluster, Job, wait_until
from sharefslab.nfs import exported_clients
from sharefslab.product import EXPORTS_FILE, SHARE, configure, document, done, etc_digest, mount_lines, sharefs

MOST_STEPS = 30


def steps_of(lab: Cluster, host: str, *arguments: str) -> int:
    return len(document(done(lab[host], *arguments, "--dry-run", "--json"))["plan"]["steps"])


# exportfs as a slow step: it waits, for at most a minute, until the test lets it go.
SLOW_EXPORTFS = """\
#!/bin/sh
touch /tmp/begun 2>/dev/null || exec /lab-slow/real "$@" # where sharefs only asks it, nothing can be written
for turn in $(seq 1200); do
  [ -e /tmp/go ] && break
  sleep 0.05
done
exec /lab-slow/real "$@"
"""


def start_and_stop_in_exportfs(lab: Cluster) -> Job:
    """Starts `sharefs export` on the server. Returns when it is inside the step that runs exportfs."""
    lab.server.write_file("/lab-slow/exportfs", SLOW_EXPORTFS, mode=0o755)
    # Over the real one: sharefs does not search the caller's PATH.
    lab.server.run("cp /usr/sbin/exportfs /lab-slow/real", check=True)
    lab.server.run("mount --bind /lab-slow/exportfs /usr/sbin/exportfs", check=True)
    job = lab.server.start("exec sharefs export --all --yes")
    wait_until(lambda: lab.server.exists("/tmp/begun"), what="exportfs is running")
    return job


def let_exportfs_go(lab: Cluster) -> None:
    lab.server.run("touch /tmp/go; umount -l /usr/sbin/exportfs", check=True)


@pytest.mark.parametrize("after", ["", "+"])
def test_sigkill_between_any_two_steps_of_export(lab: Cluster, after: str) -> None:
    configure(lab)
    server = lab.server
    before = etc_digest(server)
    count = steps_of(lab, "server", "export", "--all")
    assert 2 <= count <= MOST_STEPS
    for step in range(count):
        killed = sharefs(server, "export", "--all", "--yes", env={"SHAREFS_TEST_KILL_AT": f"{step}{after}"})
        if steps_of(lab, "server", "export", "--all") == 0 and after:
            break  # it was killed after its last effect
        if killed.returncode != -signal.SIGKILL:
            break  # the steps before this one were all that was left to do
        done(server, "undo", "--yes")
        assert etc_digest(server) == before, f"killed at step {step}{after}"
    killed = sharefs(server, "export", "--all", "--yes", env={"SHAREFS_TEST_KILL_AT": f"1{after}"})
    done(server, "export", "--all", "--yes")
    assert sorted(exported_clients(server, "/srv/share")) == ["10.77.0.2", "10.77.0.3"]


def test_sigkill_between_any_two_steps_of_mount(lab: Cluster) -> None:
    configure(lab)
    done(lab.server, "export", "--all", "--yes")
    node = lab["node1"]
    # Of `caches.local`: what is made there stays for the next round.
    node.run("install -d -m 1777 /local/cache && install -d /local/cache/staged /local/cache/conda", check=True)
    count = steps_of(lab, "node1", "mount", "--all")
    for step in range(count):
        for after in ("", "+"):
            killed = sharefs(node, "mount", "--all", "--yes", env={"SHAREFS_TEST_KILL_AT": f"{step}{after}"})
            assert killed.returncode == -signal.SIGKILL
            done(node, "mount", "--all", "--yes")
            assert len(mount_lines(node)) == 1
            done(node, "umount", "share", "--yes")
            node.run("rmdir /data/share /data", check=True)


def test_an_unfinished_run_is_told(lab: Cluster) -> None:
    configure(lab)
    sharefs(lab.server, "export", "--all", "--yes", env={"SHAREFS_TEST_KILL_AT": "1"})
    listed = document(done(lab.server, "undo", "--list", "--json"))
    assert listed["entries"][0]["state"] == "unfinished"
    again = sharefs(lab.server, "export", "--all", "--yes")
    assert again.ok and "cut off" in again.err


def test_two_changes_within_a_second_are_taken_back_newest_first(lab: Cluster) -> None:
    configure(lab)
    done(lab.server, "export", "--all", "--yes")
    node = lab["node1"]
    done(node, "mount", "--all", "--yes")
    node.run("sharefs umount share --yes; sharefs mount share --yes", check=True)
    done(node, "undo", "--yes")
    assert mount_lines(node) == []
    done(node, "undo", "--yes")
    assert len(mount_lines(node)) == 1


def test_two_at_once(lab: Cluster) -> None:
    configure(lab)
    done(lab.server, "export", "--all", "--yes")
    node = lab["node1"]
    jobs = [node.start(["sharefs", "mount", "--all", "--yes", "--wait", "200s"]) for _ in range(4)]
    results = [job.wait(240) for job in jobs]
    assert [r.returncode for r in results] == [0, 0, 0, 0], [r.err for r in results]
    assert len(mount_lines(node)) == 1


def test_the_second_waits_and_then_says_who(lab: Cluster) -> None:
    """The first stands still inside a step, with the lock of the host."""
    configure(lab)
    first = start_and_stop_in_exportfs(lab)
    second = sharefs(lab.server, "export", "--all", "--yes", "--wait", "1s")
    let_exportfs_go(lab)
    assert first.wait().returncode == 0
    assert second.returncode == 1 and "pid" in second.err and "--wait" in second.err, second.err


def test_ctrl_c_ends_after_the_running_step(lab: Cluster) -> None:
    configure(lab)
    before = etc_digest(lab.server)
    job = start_and_stop_in_exportfs(lab)
    job.kill(signal.SIGINT)
    let_exportfs_go(lab)
    ended = job.wait()
    assert ended.returncode == 130
    assert lab.server.exists(EXPORTS_FILE)
    done(lab.server, "undo", "--yes")
    assert etc_digest(lab.server) == before


def test_what_somebody_mounts_meanwhile_is_not_mounted_twice(lab: Cluster) -> None:
    """move_mount(2) accepts the second mount that mount(2) refuses: a boot entry and the daemon, as the server returns."""
    configure(lab)
    done(lab.server, "export", "--all", "--yes")
    node = lab["node1"]
    wait = "touch /tmp/begun; for turn in $(seq 1200); do [ -e /tmp/go ] && break; sleep 0.05; done"
    node.write_file("/lab-slow/mount.nfs", f'#!/bin/sh\n{wait}\nexec /tmp/real "$@"\n', mode=0o755)
    node.run("cp /usr/sbin/mount.nfs /tmp/real; mount --bind /lab-slow/mount.nfs /usr/sbin/mount.nfs", check=True)
    job = node.start("exec sharefs mount --all --yes")
    wait_until(lambda: node.exists("/tmp/begun"), what="mount.nfs is running")
    node.run(f"/tmp/real 10.77.0.1:/srv/share {SHARE} && touch /tmp/go", check=True)
    ended = job.wait(60)
    assert ended.ok and "mounted with (suid) instead of nosuid" in ended.err, ended  # it is theirs
    assert len(mount_lines(node)) == 1


def test_ctrl_c_ends_a_mount_that_hangs(lab: Cluster) -> None:
    """The server accepts connections and answers nothing more; mount.nfs is ended, and mounts nothing later."""
    configure(lab)
    done(lab.server, "export", "--all", "--yes")
    node = lab["node1"]
    # The preflight is answered; mount.nfs is the program that finds a server that says nothing.
    node.write_file("/lab-slow/mount.nfs", "#!/bin/sh\ntouch /tmp/begun\nsleep 1000\n", mode=0o755)
    node.run("mount --bind /lab-slow/mount.nfs /usr/sbin/mount.nfs", check=True)
    job = node.start("exec sharefs mount --all --yes")
    wait_until(lambda: node.exists("/tmp/begun"), what="mount.nfs is running")
    job.kill(signal.SIGINT)
    ended = job.wait(20)
    assert ended.returncode in (1, 130)
    assert not node.run("pgrep -f '[m]ount.nfs 10'").ok
    assert mount_lines(node) == []
