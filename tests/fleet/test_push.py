"""`sharefs nodes push` to nodes whose disks refuse it: each node has its own /usr/local, /var/tmp and /etc/sharefs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from network import Network


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    made = Network(tmp_path / "network")
    made.nodes(["gpu1", "gpu2"])
    os.makedirs("/etc/sharefs", exist_ok=True)
    yield made


def has_disk(network: Network, name: str, fault: str = "true") -> Path:
    disk = network.place / "disks" / name
    lines = ["export PATH=/usr/bin:/bin:/usr/sbin:/sbin"]
    for place in ("/usr/local", "/var/tmp", "/etc/sharefs"):
        own = disk / place[1:]
        own.mkdir(parents=True, exist_ok=True)
        lines.append(f"mount --bind {own} {place}")
    inside = "\n".join([*lines, fault, 'eval "$1"'])
    network.does(name, f'exec unshare --mount --propagation private sh -c {shlex.quote(inside)} sh "$*"')
    return disk


def files_below(directory: Path) -> dict[str, str]:
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}


FAULTS = {
    "no room to arrive": ("mount -t tmpfs -o size=1m none /var/tmp", "No space left on device"),
    "no room for the program": ("mount -t tmpfs -o size=1m none /usr/local", "No space left on device"),
    "read-only": ("mount -t tmpfs -o ro none /usr/local", "Read-only file system"),
    "noexec": ("mount -t tmpfs -o noexec none /usr/local", "Permission denied"),
    "no room for sharefs.yaml": ("mount -t tmpfs -o nr_inodes=1 none /etc/sharefs", "No space left on device"),
    "a directory in the program's place": ("mkdir -p /usr/local/bin/sharefs", "is a directory there"),
    "a directory in the place of sharefs.yaml": ("mkdir -p /etc/sharefs/sharefs.yaml", "is a directory there"),
    "a directory in the place of the new one": ("mkdir -p /usr/local/bin/sharefs.new", "is a directory there"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_node_that_cannot_take_it_keeps_what_it_had(network: Network, fault: str) -> None:
    first = has_disk(network, "gpu1")
    disk = has_disk(network, "gpu2", FAULTS[fault][0])
    nodes = network.json("nodes", "push", "--yes", code=4)["nodes"]
    assert [node["state"] for node in nodes] == ["changed", "failed"]
    assert FAULTS[fault][1] in nodes[1]["why"]
    assert [path for path in disk.rglob("*") if path.is_file()] == []
    assert (first / "usr/local/bin/sharefs").exists() and (first / "etc/sharefs/sharefs.yaml").exists()


def test_a_full_disk_leaves_a_whole_guard_and_the_one_before(network: Network) -> None:
    first, second = has_disk(network, "gpu1"), has_disk(network, "gpu2")
    local = second / "usr/local"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "none", local], check=True)
    try:
        network.run("nodes", "push", "--yes")
        guard, kept = local / "share/sharefs", local / "share/sharefs.old"
        files = [path.relative_to(guard) for path in guard.rglob("*.py")]
        for number, path in enumerate(files):
            guard.joinpath(path).write_text(f"old {number}")
        before = files_below(guard)
        shutil.copytree(guard, kept)
        kept.joinpath("older").touch()
        room = os.statvfs(local)
        pages = (room.f_blocks - room.f_bfree) + len(files) + 3  # room for one more guard as small as the old one
        subprocess.run(["mount", "-o", f"remount,size={pages * room.f_frsize}", local], check=True)
        for _ in range(2):
            nodes = network.json("nodes", "push", "--yes", code=4)["nodes"]
            assert [node["state"] for node in nodes] == ["ok", "failed"] and "No space left" in nodes[1]["why"], nodes
            assert files_below(guard) == before and {*files_below(kept)} == {*before, "older"}
        subprocess.run(["mount", "-o", "remount,size=1g", local], check=True)
        network.run("nodes", "push", "--yes")
        assert files_below(guard) == files_below(first / "usr/local/share/sharefs") and files_below(kept) == before
        assert not local.joinpath("share/sharefs.new").exists()
    finally:
        subprocess.run(["umount", local], check=True)


def test_a_program_that_cannot_be_replaced_leaves_the_guard(network: Network) -> None:
    disk = has_disk(network, "gpu1")
    network.run("nodes", "push", "--yes", "gpu1")
    guard = disk / "usr/local/share/sharefs"
    next(guard.rglob("*.py")).write_text("old")
    before = files_below(guard)
    disk.joinpath("usr/local/bin/sharefs").write_text("#!/bin/sh\n")
    disk.joinpath("usr/local/bin/sharefs.old").mkdir()  # the old program cannot be kept: it would lie in this directory
    has_disk(network, "gpu1", "mount -t tmpfs none /usr/local/bin/sharefs.old; mount -o remount,ro /usr/local/bin/sharefs.old")
    node = network.json("nodes", "push", "--yes", "gpu1", code=1)["nodes"][0]
    assert node["state"] == "failed" and "cannot be replaced" in node["why"], node
    assert files_below(guard) == before and not guard.with_name("sharefs.old").exists()


def test_a_changed_sharefs_yaml_comes_without_the_program(network: Network) -> None:
    """Two hundred nodes would else wait for two gigabytes after the change of a line."""
    for name in ("gpu1", "gpu2"):
        has_disk(network, name)
    network.run("nodes", "push", "--yes")
    network.config.write_text(network.config.read_text() + "# one line more\n")
    disk = has_disk(network, "gpu1", "mount -t tmpfs -o size=1m none /var/tmp")
    meanwhile = """case $1 in *program_sum=*) echo more >>/usr/local/bin/sharefs ;; esac"""
    has_disk(network, "gpu2", meanwhile)
    nodes = network.json("nodes", "push", "--yes", code=4)["nodes"]
    assert [node["state"] for node in nodes] == ["changed", "failed"]
    assert disk.joinpath("etc/sharefs/sharefs.yaml").read_text() == network.config.read_text()
    assert "was changed meanwhile" in nodes[1]["why"]
