"""packaging/ansible by the real ansible-core of PyPI: two nodes, each in a mount namespace with files of its own."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SHAREFS = os.environ["SHAREFS_BIN"]
TREE = Path(__file__).parents[2]
CACHE = TREE / "build/ansible-python"
WANTED = "ansible-core>=2.19,<2.20"
NODES = ("node1", "node2")
SITE = "/var/tmp/site"  # tests/support/alone: the test's own
OWN = (SITE, "/var/lib/sharefs")  # of each node

CONFIG = f"""version: 1
servers:
  storage1:
    address: 127.0.0.1
    exports:
      - {{path: {SITE}/share, clients: [192.168.16.11]}}
mounts:
  share: {{from: "storage1:{SITE}/share", at: {SITE}/data}}
"""


def ansible() -> Path:
    """Its programs; installed the first time, by one process at a time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = CACHE / "finished"
        if not done.exists() or done.read_text() != WANTED:
            python = CACHE / "venv/bin/python"
            for command in (["/usr/bin/python3", "-m", "venv", "--clear", CACHE / "venv"],
                            [python, "-m", "pip", "install", "-q", "--no-input", "--timeout=30", WANTED]):  # fmt: skip
                subprocess.run([str(word) for word in command], check=True, timeout=250, stdout=sys.stderr)
            done.write_text(WANTED)
    return CACHE / "venv/bin"


class Site:
    def __init__(self, place: Path) -> None:
        self.place = place
        self.keepers = [self._begin(name) for name in NODES]
        lines = [f"{name} ansible_connection=local ansible_shell_executable={place / name / 'sh'}" for name in NODES]
        place.joinpath("inventory").write_text("\n".join(lines) + "\n")
        place.joinpath("site.yml").write_text(
            "- hosts: all\n  gather_facts: false\n  roles: [sharefs]\n  vars:\n"
            f"    ansible_python_interpreter: /usr/bin/python3\n    sharefs_config_path: {SITE}/etc/sharefs.yaml\n"
            f"    sharefs_command: [{SHAREFS}, --config, {SITE}/etc/sharefs.yaml, mount, --all]\n"
        )

    def _begin(self, name: str) -> subprocess.Popen[bytes]:
        """A namespace that lives as long as the process in it; what the node's shell runs, runs there."""
        there = self.place / name
        for path in OWN:
            (there / path[1:]).mkdir(parents=True)
            Path(path).mkdir(exist_ok=True)
        (there / SITE[1:] / "share").mkdir()
        (there / "var/lib/sharefs").chmod(0o700)
        binds = "".join(f"mount --bind {shlex.quote(str(there / path[1:]))} {path}\n" for path in OWN)
        keeper = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-ec", binds + "echo ready\nexec sleep 1000"],
            stdout=subprocess.PIPE,
        )
        assert keeper.stdout is not None and keeper.stdout.readline() == b"ready\n"
        shell = there / "sh"
        shell.write_text(f'#!/bin/sh\nexec nsenter --mount --target {keeper.pid} /bin/sh "$@"\n')
        shell.chmod(0o755)
        return keeper

    def end(self) -> None:
        for keeper in self.keepers:
            keeper.kill()
            keeper.communicate()

    def on(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.place / name / "sh", "-c", shlex.join(words)], capture_output=True, text=True, check=False)

    def play(self, *words: str, config: str = CONFIG, code: int = 0) -> dict[str, Any]:
        """What ansible-playbook counts for each node, and what it said."""
        (self.place / "vars.json").write_text(json.dumps({"sharefs_config": config}))
        ran = subprocess.run(
            [ansible() / "ansible-playbook", "-i", "inventory", "site.yml", "-e", "@vars.json", *words],
            cwd=self.place, capture_output=True, text=True, timeout=200, check=False, stdin=subprocess.DEVNULL,
            env={
                **os.environ, "ANSIBLE_ROLES_PATH": str(TREE / "packaging/ansible/roles"), "HOME": str(self.place),
                "LC_ALL": "C.UTF-8",
            },
        )  # fmt: skip
        assert ran.returncode == code, ran.stdout + ran.stderr
        recap = ran.stdout.split("PLAY RECAP", 1)[1]
        counts = {
            words[0]: {key: int(value) for key, _, value in (word.partition("=") for word in words[2:])}
            for words in (line.split() for line in recap.splitlines()[1:] if " : " in line)
        }
        return {"counts": counts, "said": ran.stdout}

    def changed(self, *words: str, config: str = CONFIG) -> list[int]:
        counts = self.play(*words, config=config)["counts"]
        return [counts[name]["changed"] for name in NODES]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.end()


def test_the_second_run_changes_nothing_and_check_mode_says_so_before(site: Site) -> None:
    assert site.changed("--check") == [2, 2], "the file that is missing, and its directory"
    assert site.on("node1", "test", "-e", f"{SITE}/etc/sharefs.yaml").returncode == 1
    first = site.play()
    assert [first["counts"][name]["changed"] for name in NODES] == [3, 3], "the file, its directory, and what it says"
    assert f"bind {SITE}/share to {SITE}/data" in first["said"], "the plan is shown"
    for name in NODES:
        assert site.on(name, "findmnt", f"{SITE}/data").returncode == 0
    assert site.changed() == [0, 0]
    assert site.changed("--check") == [0, 0]


def test_check_mode_is_that_of_sharefs(site: Site) -> None:
    site.play()
    assert site.on("node2", "umount", f"{SITE}/data").returncode == 0
    assert site.changed("--check") == [0, 1]
    assert site.on("node2", "findmnt", f"{SITE}/data").returncode == 1, "check mode changes nothing"
    assert site.changed() == [0, 1]
    assert site.changed() == [0, 0]


def test_a_file_that_is_wrong_replaces_nothing(site: Site) -> None:
    site.play()
    wrong = site.play(config=CONFIG + "mount: {}\n", code=2)
    assert [wrong["counts"][name]["failed"] for name in NODES] == [1, 1] and "unknown key" in wrong["said"]
    assert site.on("node1", "cat", f"{SITE}/etc/sharefs.yaml").stdout == CONFIG
