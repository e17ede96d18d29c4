#!/usr/bin/python3
"""What the guard costs at the start of Python, side by side with a Python that has none. Prints a markdown table: medians
of the time by the clock, and of the processor's time (the last column), which other load on the machine changes least.

The race without and with it on real NFS: tests/bench/cache_race.py.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GUARD = Path(__file__).resolve().parents[2] / "cachefix" / "guard"


def milliseconds(command: list[str], path: str) -> tuple[float, float]:
    """By the clock, and of the processor."""
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": path}
    begin = time.perf_counter()
    child = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{command} failed")
    return (time.perf_counter() - begin) * 1000, (used.ru_utime + used.ru_stime) * 1000


def table(python: str, library: str | None, runs: int) -> float:
    """Prints it; what the guard adds to a program that imports nothing, in ms."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for name in ("empty", "compiled", "source"):
            (root / name).mkdir()
        for name in ("compiled", "source"):
            shutil.copytree(GUARD, root / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([python, "-m", "compileall", "-q", root / "compiled"], check=True)
        print("| program | bare | with the guard | without bytecode | added | processor |\n|---|---|---|---|---|---|")
        first = None
        for program in ["pass", *([f"import {library}"] if library else [])]:
            rows = [
                [milliseconds([python, "-c", program], str(root / kind)) for kind in ("empty", "compiled", "source")]
                for _ in range(runs)
            ]
            bare, compiled, source = (statistics.median(run[0] for run in column) for column in zip(*rows))
            added, used = (statistics.median(row[1][kind] - row[0][kind] for row in rows) for kind in (0, 1))
            first = added if first is None else first
            print(
                f"| `{program}` | {bare:.1f} ms | {compiled:.1f} ms | {source:.1f} ms | {added:+.2f} ms | {used:+.2f} ms |",
                flush=True,
            )
    return first or 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="/usr/bin/python3", help="[default: %(default)s]")
    parser.add_argument("--runs", type=int, default=50, metavar="N", help="of each row [default: 50]")
    parser.add_argument("--import", dest="library", metavar="NAME", help="also a program that imports this library")
    arguments = parser.parse_args()
    table(arguments.python, arguments.library, arguments.runs)


if __name__ == "__main__":
    main()
