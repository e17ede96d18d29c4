"""Daemons that a test started: their output in files, ended by their pid."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

STOP_TIMEOUT = 5
_KILL_TIMEOUT = 60


class Daemons:
    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, command: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
        with open(self._logs / f"{name}.log", "wb") as log:
            daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options)
        self._running.append(daemon)
        return daemon

    def text(self) -> str:
        """What all of them said, for the report of a failure."""
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}" for log in self._logs.glob("*.log"))

    def stop(self) -> None:
        for daemon in reversed(self._running):
            daemon.terminate()
        for daemon in reversed(self._running):
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(STOP_TIMEOUT)
            if daemon.poll() is None:
                daemon.kill()
                daemon.wait(_KILL_TIMEOUT)
        self._running.clear()
