"""A Python of an environment that is at work."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike


@contextmanager
def waiting(*command: str | PathLike[str]) -> Iterator[int]:
    """Runs a Python, has begun it, and ends it afterwards. Gives the number of the process that was started."""
    with subprocess.Popen(
        [*command, "-c", "print(flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout
        running.stdout.readline()
        try:
            yield running.pid
        finally:
            running.communicate(b"\n")
