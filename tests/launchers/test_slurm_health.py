"""packaging/slurm under a real Slurm: a node whose mounts do not work is drained, and only such a drain is taken back."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcherslab.isolation import mount_tmpfs
from launcherslab.slurm import Slurm
from sharefslab.wait import wait_until

from conftest import need_programs

SCRIPTS = Path(__file__).resolve().parents[2] / "packaging/slurm"
WELL = "version: 1\n"
NOT_WELL = WELL + 'mounts: {share: {from: "127.0.0.1:/x", at: /nonexistent/share}}\n'
REASON = "sharefs: share: missing"


class Node:
    """node1 as Slurm has it, and what sharefs finds there."""

    def __init__(self, slurm: Slurm, config: Path) -> None:
        self.slurm, self._config = slurm, config

    def is_well(self, well: bool) -> None:
        self._config.write_text(WELL if well else NOT_WELL, encoding="utf-8")

    def shown(self) -> tuple[str, str]:
        text = self.slurm.run("scontrol", "show", "node", "node1").stdout
        reason = re.search(r"Reason=(.*)", text)
        state = re.search(r"State=(\S+)", text)
        return state.group(1) if state else "", reason.group(1) if reason else ""

    def wait_for(self, state: str, reason: str = "") -> None:
        wait_until(lambda: state in self.shown()[0] and self.shown()[1].startswith(reason), 180, 0.5, f"{state} {reason}")

    def update(self, *words: str) -> None:
        assert self.slurm.run("scontrol", "update", "nodename=node1", *words).returncode == 0


@pytest.fixture
def config(isolated: None, tmp_path: Path) -> Path:
    """Of the sharefs that the scripts find; it is the real one."""
    need_programs("srun", "slurmctld", "slurmd", "munged", "gcc")
    tmp_path.chmod(0o755)
    path = tmp_path / "sharefs.yaml"
    mount_tmpfs(Path("/usr/local/sbin"))
    program = Path("/usr/local/sbin/sharefs")
    program.write_text(f"#!/bin/sh\nSHAREFS_CONFIG={path} exec {os.environ['SHAREFS_BIN']} \"$@\"\n", encoding="utf-8")
    program.chmod(0o755)
    return path


def start(config: Path, extra: str) -> Iterator[Node]:
    config.write_text(WELL, encoding="utf-8")
    (config.parent / "slurm").mkdir()
    slurm = Slurm(config.parent / "slurm", extra)
    try:
        yield Node(slurm, config)
    finally:
        slurm.close()


@pytest.fixture
def checked(config: Path) -> Iterator[Node]:
    # slurmd gives its program nothing but the node's name, and this slurm.conf is not where Slurm looks for it.
    script = config.parent / "healthcheck"
    conf = config.parent / "slurm/slurm.conf"
    script.write_text(f"#!/bin/sh\nSLURM_CONF={conf} exec {SCRIPTS / 'healthcheck.sh'}\n", encoding="utf-8")
    script.chmod(0o755)
    yield from start(config, f"HealthCheckProgram={script}\nHealthCheckInterval=1\nHealthCheckNodeState=ANY\n")


@pytest.fixture
def with_prolog(config: Path) -> Iterator[Node]:
    yield from start(config, f"Prolog={SCRIPTS / 'prolog.sh'}\nPrologFlags=Alloc\n")


def test_health_check(checked: Node) -> None:
    checked.is_well(False)
    checked.wait_for("DRAIN", REASON)
    checked.is_well(True)
    wait_until(lambda: "DRAIN" not in checked.shown()[0], 180, 0.5, "it is taken back")
    # What an administrator has drained stays so, with its reason, whatever the mounts do.
    checked.update("state=drain", "reason=memory is replaced")
    checked.wait_for("DRAIN", "memory is replaced")
    checked.is_well(False)
    other = "node2"
    wait_until(lambda: REASON in checked.slurm.run("scontrol", "show", "node", other).stdout, 180, 0.5, "the other node drains")
    checked.is_well(True)
    wait_until(lambda: "DRAIN" not in checked.slurm.run("scontrol", "show", "node", other).stdout, 180, 0.5, "it comes back")
    checked.wait_for("DRAIN", "memory is replaced")


def test_prolog(with_prolog: Node) -> None:
    slurm = with_prolog.slurm
    assert slurm.run("srun", "-w", "node1", "-n1", "true").returncode == 0
    wait_until(lambda: with_prolog.shown()[0] == "IDLE", 180, 0.5, "that job has gone")  # srun waits only 5 s for a node
    with_prolog.is_well(False)
    slurm.run("srun", "-w", "node1", "-n1", "--immediate=5", "true")
    with_prolog.wait_for("DRAIN", REASON)
