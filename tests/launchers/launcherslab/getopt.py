"""The options of programs that read them with getopt_long(3), from the table that they hand to it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path(__file__).parent.parent / "getopt_table.c"

NO_VALUE, VALUE, ATTACHED = 0, 1, -1
_TAKES = {0: NO_VALUE, 1: VALUE, 2: ATTACHED}  # getopt's has_arg, and the number of colons behind a letter


@dataclass(frozen=True)
class RealOption:
    name: str
    takes: int  # the number of its values, or ATTACHED


def build_reader(directory: Path) -> Path:
    """The library that is preloaded."""
    library = directory / "getopt_table.so"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library, _SOURCE]
    subprocess.run(command, check=True, timeout=60)
    return library


def _letters(text: str) -> Iterator[RealOption]:
    letters = [letter for letter in text.strip() if letter not in "+-"]
    for at, letter in enumerate(letters):
        if letter != ":":
            following = "".join(letters[at + 1 : at + 3])
            colons = len(following) - len(following.lstrip(":"))
            yield RealOption("-" + letter, _TAKES[colons])


def real_options(program: str, library: Path, environment: Mapping[str, str]) -> list[RealOption]:
    """All that `program` knows. It is ended before it does anything."""
    table = library.with_name(Path(program).name + ".options")
    table.unlink(missing_ok=True)
    env = {**os.environ, **environment, "LD_PRELOAD": str(library), "GETOPT_TABLE": str(table)}
    subprocess.run([program, "--no-such-option"], env=env, timeout=60, capture_output=True, check=False)
    found: list[RealOption] = []
    for line in table.read_text().splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "short":
            found += _letters(rest)
        else:
            name, takes, _ = rest.split()
            found.append(RealOption("--" + name, _TAKES[int(takes)]))
    return found
