"""sharefs recover: a stale mount is made anew, a hung one is told apart and waits."""

from __future__ import annotations

import pytest

from sharefslab import Cluster, wait_until
from sharefslab.product import (
    SHARE,
    config_text,
    configure,
    document,
    done,
    export_and_mount,
    hold_share,
    mount_lines,
    sharefs,
    state_of,
    states_of,
)

QUICK_ATTRIBUTES = ", options: [actimeo=1]"  # clients notice a stale handle within a second


def device_of(lab: Cluster) -> str:
    lines = lab["node1"].read_text("/proc/self/mountinfo").splitlines()
    return next(line.split(" ")[2] for line in lines if line.split(" ")[4] == SHARE)


@pytest.mark.parametrize("version", ["4.2", "3"])
def test_a_stale_handle_is_recovered(lab: Cluster, version: str) -> None:
    if version == "3":
        lab.start_lock_daemons("node1", "node2")
    export_and_mount(lab, config_text(extra=f', options: [actimeo=1, "vers={version}"]'))
    lab.remake_filesystem("server")
    lab.server.run("chmod 2777 /srv/share", check=True)
    wait_until(lambda: state_of(lab["node1"]) == "stale", what="the client notices that its handle is stale")

    done(lab["node1"], "recover", "--all", "--yes", timeout=240)

    assert state_of(lab["node1"]) == "healthy"
    assert len(mount_lines(lab["node1"])) == 1
    lab["node1"].run(f"echo new >{SHARE}/after", user="alice", check=True)
    assert lab.server.read_text("/srv/share/after") == "new\n"


def test_a_stale_mount_with_a_holder_is_recovered_and_the_holder_named(lab: Cluster) -> None:
    export_and_mount(lab, config_text(extra=QUICK_ATTRIBUTES))
    holder = hold_share(lab["node1"])
    lab.remake_filesystem("server")
    wait_until(lambda: state_of(lab["node1"]) == "stale", what="stale")
    said = sharefs(lab["node1"], "recover", "--all", "--yes", timeout=240)
    assert "sleep" in said.err + said.out
    assert state_of(lab["node1"]) == "healthy"
    holder.kill()


def test_a_healthy_mount_is_left_alone(mounted_lab: Cluster) -> None:
    before = device_of(mounted_lab)
    answer = document(done(mounted_lab["node1"], "recover", "--all", "--yes", "--json"))
    assert answer["plan"]["steps"] == []
    assert device_of(mounted_lab) == before


def test_a_hung_mount_waits_unless_forced(mounted_lab: Cluster) -> None:
    lab, node = mounted_lab, mounted_lab["node1"]
    lab.drop_traffic("server")
    assert state_of(node, 2) == "hung"
    waits = sharefs(node, "recover", "--all", "--yes")
    assert waits.returncode == 1 and "hung" in waits.err + waits.out
    assert len(mount_lines(node)) == 1
    # the server returns: the mount heals by itself, nothing was lost
    lab.restore_traffic("server")
    wait_until(lambda: state_of(lab["node1"]) == "healthy", timeout=400, what="the mount heals by itself")
    # and by force, when somebody asks for it
    lab.drop_traffic("server")
    assert state_of(lab["node1"], 2) == "hung"
    sharefs(node, "recover", "--all", "--force", "--yes", timeout=240)
    assert mount_lines(node) == []
    lab.restore_traffic("server")
    done(node, "mount", "--all", "--yes", timeout=240)


def test_an_export_that_is_gone_is_not_mistaken_for_a_dead_server(lab: Cluster) -> None:
    export_and_mount(lab, config_text(extra=QUICK_ATTRIBUTES))
    lab.remove_export("server")
    wait_until(lambda: state_of(lab["node1"]) in ("stale", "denied"), what="the client notices")
    refused = sharefs(lab["node1"], "recover", "--all", "--yes")
    assert refused.returncode != 0
    assert len(mount_lines(lab["node1"])) == 1  # never unmounted: it could not be mounted again
    lab.server.run("exportfs -ra", check=True)
    wait_until(lambda: state_of(lab["node1"]) == "healthy", what="it heals after the export is back")


def test_nested_stale_mounts_are_recovered_whatever_comes_first(lab: Cluster) -> None:
    """The inner one stands first in sharefs.yaml, and cannot be reached through the stale outer one."""
    inner = 'inner: {from: "storage:/srv/share/sub", at: /data/share/sub, options: [actimeo=1]}'
    text = config_text(extra=QUICK_ATTRIBUTES).replace("mounts:\n", f"mounts:\n  {inner}\n")
    configure(lab, text.replace('mode: "2770"', 'mode: "2775"'))
    done(lab.server, "export", "--all", "--yes")
    lab.server.run("mkdir -p /srv/share/sub", check=True)
    node = lab["node1"]
    done(node, "mount", "--all", "--yes")
    lab.remake_filesystem("server")
    lab.server.run("chmod 2777 /srv/share && mkdir -p /srv/share/sub", check=True)
    wait_until(lambda: "stale" in states_of(node), what="the client notices that its handles are stale")
    done(node, "recover", "--all", "--yes", timeout=240)
    assert set(states_of(node)) == {"healthy"}
    assert len(mount_lines(node, "/data/share/sub")) == 1
    well = sharefs(node, "recover", "--all", "--yes", timeout=240)
    assert well.ok and "all mounts are well" in well.err + well.out
