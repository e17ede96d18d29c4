"""The program at the end of each command line, and reading what it printed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

PRINTER = Path(__file__).parent.parent / "print_arguments"

GUARD = "share/sharefs/guard"


@dataclass(frozen=True)
class Printed:
    """What one process of the launched program saw."""

    argv: list[str]
    directory: str
    host: str
    has_guard: bool  # a Python that it starts
    environment: dict[str, str]


def printed(output: str) -> list[Printed]:
    """One entry per process. Launchers put their own words around the lines, and in front of them."""
    lines = [line[line.index('{"argv"') :] for line in output.splitlines() if '{"argv"' in line]
    return [Printed(**json.JSONDecoder().raw_decode(line)[0]) for line in lines]


def write_printers(directory: Path) -> None:
    """Into a working directory: the programs `print_arguments` and `train.py`, and the module `lab.train`."""
    (directory / "lab").mkdir()
    (directory / "lab" / "__init__.py").touch()
    for name in ("print_arguments", "lab/train.py", "train.py"):
        (directory / name).write_text(PRINTER.read_text())
        (directory / name).chmod(0o755)


def is_guarded(process: Printed) -> bool:
    """Has a Python there the guard?"""
    directories = process.environment.get("PYTHONPATH", "").split(":")  # deepspeed puts its own in front
    return process.has_guard and any(directory.rstrip("/").endswith(GUARD) for directory in directories)
