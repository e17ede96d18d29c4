"""The program under test: what it says of a command line, and running one through it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .isolation import LOCAL, ROOT, bind_mount, mount_tmpfs

CONFIG = ROOT / "sharefs.yaml"
GUARD_SOURCE = Path(__file__).parents[3] / "cachefix" / "guard"


@dataclass(frozen=True)
class Answer:
    """What `sharefs run --dry-run --json` says of a command line."""

    argv: list[str]
    document: dict[str, Any]

    @property
    def final(self) -> list[str]:
        return self.document["final_argv"]

    @property
    def codes(self) -> list[str]:
        return [diagnosis["code"] for diagnosis in self.document["diagnoses"]]

    @property
    def warned(self) -> bool:
        return any(diagnosis["severity"] == "warning" for diagnosis in self.document["diagnoses"])

    @property
    def environment(self) -> dict[str, str]:
        return self.document["environment"]["set"]

    @property
    def index(self) -> int | None:
        """Of the program in argv; None where sharefs is not certain."""
        return None if self.document["script"] is None else self.document["script"]["index"]

    @property
    def passed(self) -> list[str] | None:
        """The program and its arguments as they stand in the final command."""
        if self.index is None:
            return None
        # Words may be added in front of it and taken away behind it; none that is added is its name.
        name = self.argv[self.index]
        number = self.argv[: self.index].count(name)
        at = [at for at, word in enumerate(self.final) if word == name][number]
        return self.final[at:]


@dataclass(frozen=True)
class Sharefs:
    """The binary and the environment that it is started in."""

    binary: Path
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, *options: str) -> list[str]:
        return [str(self.binary), "--config", str(CONFIG), "run", *options, "--"]

    def run(self, command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        settings: dict[str, Any] = {"timeout": 60, "cwd": self.directory, "env": dict(self.environment)}
        return subprocess.run(command, text=True, capture_output=True, **(settings | options))

    def ask(self, argv: Sequence[str], **options: Any) -> Answer:
        words = list(argv)
        ran = self.run(self.command("--dry-run", "--json") + words, **options)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return Answer(words, json.loads(ran.stdout))


def sharefs_under_test(directory: Path) -> Sharefs:
    """$SHAREFS_BIN with a configuration of this test, in a home of its own."""
    CONFIG.write_text(f"version: 1\ncaches:\n  local: {LOCAL}\n")
    home = directory / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "SLURM_CONF")}
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(home), **kept}
    # Where it counts as installed, so that other nodes have it, too. The mounts are the test's own.
    installed = Path("/usr/local/src/sharefs")
    mount_tmpfs(installed.parent)
    installed.touch()
    bind_mount(Path(os.environ["SHAREFS_BIN"]).resolve(), installed)
    shutil.copytree(GUARD_SOURCE, installed.parent / "share" / "sharefs" / "guard")
    return Sharefs(installed, directory, environment)
