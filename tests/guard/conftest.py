"""Fixtures: two hosts with one share, and the guard."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from guardlab.hosts import Host  # noqa: E402


@dataclass(frozen=True)
class Cluster:
    """`share` is the directory of this machine that the hosts see as /mnt/share."""

    share: Path
    hosts: tuple[Host, Host]

    def sweep(self) -> None:
        for directory in (self.share, *(host.disk for host in self.hosts)):
            for entry in directory.iterdir():
                if entry.name == "sharefs":
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()


@pytest.fixture(scope="session")
def made_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.fail("namespaces and mounts of these tests need root", pytrace=False)
    root = tmp_path_factory.mktemp("guard")
    share = root / "share"
    share.mkdir()
    cluster = Cluster(share, (Host("nodea", share, root / "nodea"), Host("nodeb", share, root / "nodeb")))
    yield cluster
    for host in cluster.hosts:
        host.close()


@pytest.fixture
def cluster(made_cluster: Cluster) -> Iterator[Cluster]:
    yield made_cluster
    made_cluster.sweep()
