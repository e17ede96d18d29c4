"""Faults of the machine itself: a dead share under sharefs' own files, no descriptors, no memory, no /dev/null.

No command hangs, none says that something is broken that is well, and none is ended by a signal.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sharefslab import Cluster, Host
from sharefslab.host import Completed
from sharefslab.product import CONFIG_PATH, SHARE, config_text, document, done, export_and_mount, in_time, sharefs

LATE = 120.0  # a command that takes longer hangs; deadlines are 3 s, and the machine may be busy
WITHOUT = "warning: going on without the configuration: "

# Read-only commands, and changing ones that stop before they change anything.
COMMANDS = [
    ["status"],
    ["config", "check"],
    ["export", "--all", "--dry-run"],
    ["mount", "--all", "--dry-run"],
    ["umount", "share", "--dry-run"],
    ["recover", "--all", "--dry-run"],
    ["run", "--", "true"],
    ["undo", "--list"],
    ["conda", "unlink", "--all", "--dry-run"],
    ["cache", "list"],
    ["init", "--output", "/tmp/sharefs.yaml", "--dry-run"],
]


def ended_by_itself(said: Completed) -> None:
    """Not by a signal, and not by an exception that nobody caught."""
    assert 0 <= said.returncode < 126, said
    assert "terminate called" not in said.err, said


@pytest.fixture(scope="module")
def dead(lab_ready: None) -> Iterator[Cluster]:
    """A share whose server has gone, and a second server that is well."""
    with Cluster(hosts=("server", "node1")) as cluster:
        export_and_mount(cluster, config_text().replace("10.77.0.2, 10.77.0.3", "10.77.0.2"))
        cluster["node1"].run(f"cp -r /etc/sharefs /etc/exports {SHARE}/", user="alice", check=True)
        cluster.drop_traffic("server")
        yield cluster


@pytest.fixture
def node(dead: Cluster) -> Iterator[Host]:
    """With its files as before, after each test."""
    node = dead["node1"]
    node.run("rm -rf /local/etc && mkdir -p /local/etc && cp -a /etc/sharefs /etc/exports /local/etc/", check=True)
    yield node
    node.run("rm -rf /etc/sharefs /etc/exports && cp -a /local/etc/. /etc/", check=True)


@pytest.mark.parametrize("path", ["/etc/sharefs/sharefs.yaml", "/etc/sharefs", "/etc/exports"])
def test_a_file_of_sharefs_that_is_a_link_onto_a_dead_share(node: Host, path: str) -> None:
    target = f"{SHARE}/{path.removeprefix('/etc/')}"
    node.run(f"rm -rf {path} && ln -s {target} {path}", check=True)
    for command in COMMANDS:
        ended_by_itself(sharefs(node, *command, timeout=LATE))
    # Neither of these needs a configuration.
    assert sharefs(node, "status", "--json", timeout=LATE).out.startswith("{")
    assert sharefs(node, "run", "--", "echo", "ran", timeout=LATE).out == "ran\n"


def test_a_configuration_of_the_environment_on_a_dead_share(node: Host) -> None:
    there = {"SHAREFS_CONFIG": f"{SHARE}/sharefs/sharefs.yaml"}
    ran = sharefs(node, "run", "--", "echo", "ran", env=there, timeout=LATE)
    assert ran.out == "ran\n" and ran.err.startswith(WITHOUT) and SHARE in ran.err
    said = sharefs(node, "status", "--json", env=there, timeout=LATE)
    assert any(mount["target"] == SHARE for mount in document(said)["mounts"]), said
    for command in (["mount", "--all", "--dry-run"], ["config", "show"], ["config", "check"], ["export", "--all"]):
        refused = sharefs(node, *command, env=there, timeout=LATE)
        assert refused.returncode in (1, 2) and refused.err.startswith("error: ") and SHARE in refused.err, refused


def test_a_working_directory_on_a_dead_share_or_gone(node: Host) -> None:
    node.run("mkdir -p /other /tmp/gone", check=True)
    refused = node.run("cd /tmp/gone && rmdir /tmp/gone && sharefs umount data/share --yes", timeout=LATE)
    assert refused.returncode != 0 and node.run(f"grep -q ' {SHARE} ' /proc/mounts").ok, refused


@pytest.fixture(scope="module")
def well(lab_ready: None) -> Iterator[Host]:
    """A node with a mount that is well."""
    with Cluster(hosts=("server", "node1")) as cluster:
        export_and_mount(cluster, config_text().replace("10.77.0.2, 10.77.0.3", "10.77.0.2"))
        yield cluster["node1"]


def states(said: Completed) -> list[str]:
    return [mount["state"] for mount in document(said)["mounts"]]


def test_sixteen_descriptors(well: Host) -> None:
    usual = states(in_time(lambda: done(well, "status", "--json")))
    assert states(in_time(lambda: well.run("ulimit -n 16; sharefs status --json", timeout=LATE))) == usual
    for command in (" ".join(words) for words in COMMANDS):
        ended_by_itself(well.run(f"ulimit -n 16; sharefs {command}", timeout=LATE))


@pytest.mark.parametrize("limit", ["-u 1", "-v 60000"])
def test_no_more_processes_or_little_memory(well: Host, limit: str) -> None:
    """An error that says so, or a result that is right; as alice, because root has no limit of processes."""
    for command in (["status"], ["run", "--", "true"], ["config", "check"], ["mount", "--all", "--dry-run"]):
        said = well.run(f"ulimit {limit}; exec sharefs {' '.join(command)}", user="alice", timeout=LATE)
        ended_by_itself(said)
        assert "failed" not in said.out or said.returncode != 0, said


def test_without_dev_null(well: Host) -> None:
    """In a mount namespace of its own: /dev is that of all hosts."""
    without = "unshare -m bash -c 'mount -t tmpfs none /dev && exec sharefs \"$@\"' sharefs "
    said = in_time(lambda: well.run(f"{without} status --json", timeout=LATE))
    assert states(said) == states(in_time(lambda: done(well, "status", "--json")))
    done(well, "umount", "share", "--yes")
    mounted = well.run(f"{without} mount --all --dry-run", timeout=LATE)
    assert "not installed" not in mounted.out + mounted.err, mounted
    done(well, "mount", "--all", "--yes")


def test_a_configuration_that_a_user_may_not_read(well: Host) -> None:
    well.run(f"chmod 600 {CONFIG_PATH}", check=True)
    try:
        ran = sharefs(well, "run", "--", "echo", "ran", user="alice", timeout=LATE)
        assert ran.out == "ran\n", ran
        assert ran.err.startswith(WITHOUT + CONFIG_PATH) and ran.err.count("\n") == 1
        needed = sharefs(well, "config", "check", user="alice")
        assert needed.returncode == 2 and CONFIG_PATH in needed.err
    finally:
        well.run(f"chmod 644 {CONFIG_PATH}", check=True)
