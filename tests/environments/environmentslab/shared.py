"""An environment in a home, and a store that it is to be shared in."""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

from environmentslab.environment import Workshop


@dataclass
class Shared:
    """A store and a home's directory of environments, with the configuration for both."""

    workshop: Workshop
    place: Path

    def __post_init__(self) -> None:
        self.store = self.place / "store"
        self.store.mkdir()
        self.envs = self.place / "conda/envs"
        self.source = self.workshop.install(self.envs / "env")
        self.stable = self.store / "env"
        self.generation = self.store / ".generations/env/0001"
        self.configure()

    def configure(self, more: str = "") -> None:
        self.config = self.place / "sharefs.yaml"
        self.config.write_text(
            f"version: 1\nconda:\n  store: {self.store}\n  envs: [env]\n{more}"
            f"  homes: {{users: [{pwd.getpwuid(os.geteuid()).pw_name}], conda: {self.place / 'conda'}}}\n"
        )

    def run(self, *words: str | Path, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        return self.workshop.sharefs("--config", self.config, *words, expect=expect)

    def share(self, *words: str | Path, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        return self.run("conda", "share", "env", "--yes", *words, expect=expect)

    def kept(self) -> list[Path]:
        return sorted(self.envs.glob("env.sharefs-backup-*"))

    def undo(self, said: str) -> None:
        self.run("undo", said.rsplit("sharefs undo ", 1)[1].split("`")[0], "--yes")


def run_tool(prefix: Path) -> str:
    return subprocess.run([prefix / "bin/tool"], check=True, capture_output=True, text=True, timeout=60).stdout
