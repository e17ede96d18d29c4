"""`sharefs nodes push` to nodes whose disks refuse it: each node has its own /usr/local, /var/tmp and /etc/sharefs."""

from __future__ import annotations

import os
import shlex
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
