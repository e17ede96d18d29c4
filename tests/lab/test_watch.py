"""sharefs watch: heals what its policy allows, leaves the rest, and survives what happens to it."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from sharefslab import Cluster, Completed, Host, Job, wait_until
from sharefslab.product import CONFIG_PATH, SHARE, config_text, configure, done, export_and_mount, mount_lines, sharefs, state_of

PROM = "/local/sharefs.prom"
QUICK = ", options: [actimeo=1]"  # clients notice a stale handle within a second


def text(recover: str = "stale", extra: str = QUICK) -> str:
    return config_text(extra=extra) + f"watch: {{recover: {recover}, interval: 1s, textfile: {PROM}}}\n"


def device_of(node: Host) -> str:
    lines = node.read_text("/proc/self/mountinfo").splitlines()
    return next(line.split(" ")[2] for line in lines if line.split(" ")[4] == SHARE)


def wait_for_metrics(node: Host, *lines: str) -> None:
    """A round writes them after it has said what it saw."""

    def written() -> bool:
        text = node.read_text(PROM)
        return all(line in text for line in lines)

    wait_until(written, what=f"the metrics say {lines}")


def node_health(node: Host) -> tuple[int, str]:
    """It keeps one second of its deadline for itself, and says `no answer in time` where a busy machine takes longer."""

    def said() -> Completed | None:
        completed = sharefs(node, "status", "--node-health")
        return None if "no answer in time" in completed.out else completed

    completed = wait_until(said, what="node health in time")
    return completed.returncode, completed.out


class Watch:
    """The daemon on a node, and what it says."""

    def __init__(self, node: Host, **options: Any) -> None:
        self.node = node
        self.job: Job = node.start(["sharefs", "watch", "--json"], **options)

    def lines(self) -> list[dict[str, str]]:
        """Without one that is not there as a whole yet."""
        return [json.loads(line) for line in self.job.stderr().rpartition(b"\n")[0].decode().splitlines()]

    def said(self, event: str, phrase: str = "") -> list[dict[str, str]]:
        return [line for line in self.lines() if line["event"] == event and phrase in line["message"]]

    def wait_for(self, event: str, phrase: str = "", times: int = 1, timeout: float = 240) -> None:
        try:
            wait_until(lambda: len(self.said(event, phrase)) >= times, timeout, what=f"{event}: {phrase}")
        except TimeoutError as error:
            raise AssertionError(f"{error}; it said:\n" + "\n".join(map(str, self.lines()))) from None

    def end(self, signal_number: int = signal.SIGTERM) -> int:
        self.job.kill(signal_number)
        return self.job.wait(120).returncode


def test_stale_is_healed_and_a_dead_server_is_waited_for(lab: Cluster) -> None:
    export_and_mount(lab, text())
    node = lab["node1"]
    watch = Watch(node)
    watch.wait_for("state", "healthy")

    node.write_file(CONFIG_PATH, text().replace("interval: 1s", "interval: often"), mode=0o644)
    lab.remake_filesystem("server")
    watch.wait_for("recovered")  # by the settings before, because the file is wrong now
    assert len(watch.said("config", "stays as it was")) == 1
    configure(lab, text())
    assert state_of(node) == "healthy"
    assert len(mount_lines(node)) == 1
    assert len(watch.said("recover")) == 1
    healed = device_of(node)

    lab.drop_traffic("server")
    watch.wait_for("left", "waits for its server")
    wait_for_metrics(node, 'sharefs_server_up{server="storage"} 0', 'state="hung"')
    assert node_health(node) == (1, "sharefs: share: hung\n")
    lab.restore_traffic("server")
    watch.wait_for("state", ", was hung", timeout=400)  # `slow` is well, too
    assert device_of(node) == healed  # nothing was unmounted
    assert len(watch.said("recover")) == 1
    wait_for_metrics(
        node,
        'sharefs_recoveries_total{mount="share",result="done"} 1\n',
        'sharefs_mount_up{mount="share",target="/data/share",server="storage"} 1\n',
    )
    assert node_health(node) == (0, "sharefs: 1 mount well\n")
    lab.drop_traffic("server")
    watch.wait_for("state", "hung", times=2)
    assert watch.end() == 0  # also where each round takes longer than the interval
    assert watch.said("stopped")


def test_policies(lab: Cluster) -> None:
    """What is missing: stale leaves it, all mounts it, but never what an administrator's sharefs has unmounted."""
    export_and_mount(lab, text())
    node = lab["node1"]
    watch = Watch(node)
    watch.wait_for("state", "healthy")
    node.run(f"umount {SHARE}", check=True)
    watch.wait_for("left", "nothing of sharefs was cut off")  # at once: the mount table changed
    assert mount_lines(node) == []

    node.write_file(CONFIG_PATH, text("all").replace("interval: 1s", "interval: often"), mode=0o644)
    watch.job.kill(signal.SIGHUP)
    watch.wait_for("config", "stays as it was")
    wait_for_metrics(node, "sharefs_watch_config_valid 0")
    assert mount_lines(node) == []
    configure(lab, text("all"))
    watch.job.kill(signal.SIGHUP)
    watch.wait_for("config", "read sharefs.yaml again")
    watch.wait_for("recovered")
    assert state_of(node) == "healthy"

    done(node, "umount", "--all", "--yes")
    watch.wait_for("left", "unmounted by `sharefs umount`")
    done(node, "mount", "--all", "--yes")
    watch.wait_for("state", ", was missing")
    assert state_of(node) == "healthy"
    assert len(watch.said("recover")) == 1

    configure(lab, text("never"))
    watch.job.kill(signal.SIGHUP)
    watch.wait_for("config", "recover: never")
    lab.remake_filesystem("server")
    watch.wait_for("left", "watch.recover is never")
    assert len(watch.said("recover")) == 1
    assert watch.end(signal.SIGINT) == 0


def test_an_administrators_sharefs_comes_first(lab: Cluster) -> None:
    """While one has the host, watch tries, leaves it, and tries again later."""
    export_and_mount(lab, text())
    node = lab["node1"]
    watch = Watch(node)
    watch.wait_for("state", "healthy")
    holder = node.start("exec flock /var/lib/sharefs/lock -c 'touch /tmp/held; while [ -e /tmp/held ]; do sleep 0.1; done'")
    wait_until(lambda: node.exists("/tmp/held"), what="somebody holds the lock")
    lab.remake_filesystem("server")
    watch.wait_for("busy", "another sharefs is at work", times=2)
    assert len(mount_lines(node)) == 1 and state_of(node) == "stale"
    node.run("rm /tmp/held", check=True)
    holder.wait()
    watch.wait_for("recovered")  # what was left for later has cost no attempt
    assert state_of(node) == "healthy"
    assert watch.end() == 0


@pytest.mark.parametrize("place", ["1", "1+"])
def test_a_recovery_that_was_killed_goes_on_after_a_restart(lab: Cluster, place: str) -> None:
    """The share is unmounted already; policy stale would not touch a missing one."""
    export_and_mount(lab, text())
    node = lab["node1"]
    watch = Watch(node, env={"SHAREFS_TEST_KILL_AT": place})
    watch.wait_for("state", "healthy")
    lab.remake_filesystem("server")
    wait_until(lambda: watch.said("failed") or watch.said("recovered"), 240, what="its recovery is killed")
    watch.end(signal.SIGKILL)
    mounted = mount_lines(node)
    assert bool(mounted) == (place == "1+")

    again = Watch(node)
    if not mounted:
        again.wait_for("recovered")
        assert again.said("recover", "cut off")
    again.wait_for("state", "healthy") if mounted else None
    assert state_of(node) == "healthy"
    assert len(mount_lines(node)) == 1
    assert again.end() == 0


# Stands for a mount.nfs that takes long: it waits until the test lets it go.
SLOW_MOUNT = """\
#!/bin/sh
touch /tmp/begun
for turn in $(seq 1200); do
  [ -e /tmp/go ] && break
  sleep 0.05
done
exec /tmp/real "$@"
"""


@pytest.mark.parametrize("victim", ["the daemon", "both"])
def test_a_daemon_that_is_killed_in_the_middle_of_its_recovery(lab: Cluster, victim: str) -> None:
    """The recovery ends by itself, or is killed with it as systemd does: either way the share comes back once."""
    export_and_mount(lab, text())
    node = lab["node1"]
    watch = Watch(node)
    watch.wait_for("state", "healthy")
    node.write_file("/tmp/slow", SLOW_MOUNT, mode=0o755)
    node.run("cp /usr/sbin/mount.nfs /tmp/real; mount --bind /tmp/slow /usr/sbin/mount.nfs", check=True)
    lab.remake_filesystem("server")
    wait_until(lambda: node.exists("/tmp/begun"), what="mount.nfs is running")
    assert mount_lines(node) == []
    recovery = json.loads(node.read_text("/var/lib/sharefs/lock"))["pid"]
    watch.end(signal.SIGKILL)
    if victim == "both":
        node.run(f"kill -9 {recovery}", check=True)
    again = Watch(node)
    if victim == "both":
        again.wait_for("recover", "cut off")
    else:
        again.wait_for("busy", f"pid {recovery}")  # it is still at work, and nobody disturbs it
    node.run("touch /tmp/go", check=True)
    wait_until(lambda: state_of(node) == "healthy", 240, what="the share is back")
    assert len(mount_lines(node)) == 1
    assert again.end() == 0


def test_a_failed_recovery_is_tried_again_with_pauses(lab: Cluster) -> None:
    export_and_mount(lab, text())
    node = lab["node1"]
    # mount.nfs fails: the share is unmounted, and cannot come back
    node.write_file("/tmp/broken", "#!/bin/sh\necho broken on purpose >&2\nexit 32\n", mode=0o755)
    watch = Watch(node)
    watch.wait_for("state", "healthy")
    node.run("mount --bind /tmp/broken /usr/sbin/mount.nfs", check=True)
    lab.remake_filesystem("server")
    watch.wait_for("failed")
    watch.wait_for("left", "it was tried 1 time")
    assert mount_lines(node) == []
    node.run("umount /usr/sbin/mount.nfs", check=True)
    watch.wait_for("recovered")
    assert len(watch.said("recover")) == 2
    assert state_of(node) == "healthy"
    assert watch.end() == 0


@pytest.mark.parametrize("version", ["3", "4.2"])
def test_a_server_with_a_new_address(lab: Cluster, version: str) -> None:
    """Its name leads elsewhere, and what hangs at the old address is mounted from the new one; by policy all only."""
    if version == "3":
        lab.start_lock_daemons("node1", "node2")
    name = text("stale", f', options: [actimeo=1, "vers={version}"]').replace("address: 10.77.0.1", "address: nas")
    for host in lab:
        host.run("echo '10.77.0.1 nas' >>/etc/hosts", check=True)
    export_and_mount(lab, name)
    node = lab["node1"]
    watch = Watch(node)
    watch.wait_for("state", "healthy")
    move = "ip address del 10.77.0.1/24 dev eth0; ip address add 10.77.0.9/24 dev eth0; ip neigh flush all"
    if version == "4.2":
        # Another machine by its own name, too. One that kept it is the server that the kernel knew already, by its
        # identity: it then tries the old address for more than six minutes, and no mount gets through meanwhile.
        lab.stop_nfs_server()
        lab.server.run("hostname nas2", check=True)
        lab.server.run(move, check=True)
        lab.start_nfs_server(exports=None)
    else:
        lab.server.run(move, check=True)
    for host in lab:
        host.run("sed 's/10.77.0.1 nas/10.77.0.9 nas/' /etc/hosts >/tmp/hosts; cat /tmp/hosts >/etc/hosts", check=True)
    watch.wait_for("left", "another address, and watch.recover is stale")
    assert watch.said("moved")
    wait_for_metrics(node, 'sharefs_mount_moved{mount="share",target="/data/share",server="storage"} 1\n')
    configure(lab, name.replace("recover: stale", "recover: all").replace('mode: "2770"', 'mode: "2775"'))
    watch.job.kill(signal.SIGHUP)
    watch.wait_for("recover")
    moved = lambda: [line for line in mount_lines(node) if "addr=10.77.0.9" in line]  # noqa: E731
    wait_until(lambda: moved() and state_of(node) == "healthy", 400, 1, "it is mounted from the new address")
    assert len(mount_lines(node)) == 1
    assert watch.end() == 0
