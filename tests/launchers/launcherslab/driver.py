"""The launchers' own parsers, in one process: importing them takes seconds."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from .sharefs import Sharefs


class Driver:
    """A script beside the tests that answers lines of JSON; it runs in the Python of the launchers."""

    def __init__(self, sharefs: Sharefs, python: Path, script: str, *arguments: Path) -> None:
        command = [python / "bin" / "python", Path(__file__).parents[1] / script, *arguments]
        with open(sharefs.directory / "driver.log", "w") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                cwd=sharefs.directory, env=dict(sharefs.environment),
            )  # fmt: skip

    def ask(self, **question: Any) -> Any:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the driver has died"
        return json.loads(answer)

    def close(self) -> None:
        self._process.communicate(timeout=60)
