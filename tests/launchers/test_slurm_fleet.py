"""`--on NODES` by srun inside an allocation, and `nodes: slurm:`, with Debian's Slurm."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import need_programs
from launcherslab.sharefs import Sharefs
from launcherslab.slurm import NODES, Slurm

SHAREFS = Path(os.environ["SHAREFS_BIN"])


@pytest.fixture(scope="module")
def slurm(sharefs: Sharefs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    need_programs("srun", "salloc", "slurmctld", "slurmd", "munged", "gcc")
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    yield cluster
    cluster.close()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sharefs.yaml"
    path.write_text("version: 1\nnodes: {slurm: all}\n")
    return path


def run(slurm: Slurm, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **slurm.environment, "PATH": f"{SHAREFS.parent}:/usr/bin:/bin"}
    return subprocess.run(words, env=environment, text=True, capture_output=True, timeout=120, check=False, stdin=subprocess.DEVNULL)


def test_the_nodes_of_a_partition(slurm: Slurm, config: Path) -> None:
    listed = run(slurm, str(SHAREFS), "--config", str(config), "nodes", "list", "--format", "names")
    assert listed.stdout.split() == list(NODES), listed.stderr
    config.write_text("version: 1\nnodes: {slurm: nosuch}\n")
    refused = run(slurm, str(SHAREFS), "--config", str(config), "nodes", "list")
    assert refused.returncode == 2 and "nodes.slurm" in refused.stderr


def test_a_step_answers_for_each_node(slurm: Slurm, config: Path) -> None:
    answer = run(slurm, "salloc", "-N2", str(SHAREFS), "--config", str(config), "--on", "all", "--engine", "srun", "status", "--json")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    document = json.loads(answer.stdout)
    assert [(node["name"], node["state"]) for node in document["nodes"]] == [(name, "ok") for name in NODES]
    assert all(node["document"]["command"] == "status" for node in document["nodes"])


def test_no_job_is_queued_outside_of_an_allocation(slurm: Slurm, config: Path) -> None:
    refused = run(slurm, str(SHAREFS), "--config", str(config), "--on", "all", "--engine", "srun", "status")
    assert refused.returncode == 2 and "allocation" in refused.stderr
