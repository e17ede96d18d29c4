#!/usr/bin/python3
"""`sharefs export check FILE` beside `exportfs -r` on the same file, which it runs itself: how long, and how that grows.

exportfs runs in mount, network and name namespaces of its own, with this file as /etc/exports and an empty etab: it
reads, resolves and writes etab, and reaches no kernel server. Each round runs both once. Prints a markdown table of
medians. Needs root.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent

EXPORTFS = """
mount --bind "$1/nfs" /var/lib/nfs && : >/var/lib/nfs/etab && touch /etc/exports && mount --bind "$1/exports" /etc/exports
mkdir -p /etc/exports.d && mount -t tmpfs none /etc/exports.d
cd "$1" && exec /usr/bin/python3 -c '
import subprocess, time
begin = time.perf_counter()
subprocess.run(["exportfs", "-r"], stderr=subprocess.DEVNULL)
print(time.perf_counter() - begin)'
"""


def address(number: int) -> str:
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def many_directories(lines: int) -> Iterator[str]:
    """A directory for each line, with a host and a network: a server with a directory for each user."""
    for number in range(lines):
        yield f"/srv/{number} {address(number)}(rw,sync,no_subtree_check) 10.200.{number & 255}.0/24(ro,sync)\n"


def many_clients(lines: int) -> Iterator[str]:
    """One directory, a line for each host: a cluster whose exports a script writes."""
    for number in range(lines):
        yield f"/srv/share {address(number)}(rw,sync,no_subtree_check)\n"


def many_networks(lines: int) -> Iterator[str]:
    """One directory, a network on each line, all of which have to be compared with each other."""
    for number in range(lines):
        yield f"/srv/share {address(number)}/32(rw,sync,no_subtree_check)\n"


def many_names(lines: int) -> Iterator[str]:
    """One directory, a host name or a netgroup on each line; neither resolves here, which exportfs finds out for each."""
    for number in range(lines):
        yield f"/srv/share {'@group' if number % 2 else 'node'}{number}(rw,sync,no_subtree_check)\n"


SHAPES: dict[str, Callable[[int], Iterator[str]]] = {
    "directories": many_directories,
    "clients": many_clients,
    "networks": many_networks,
    "names": many_names,
}


def newest_sharefs() -> Path:
    if given := os.environ.get("SHAREFS_BIN"):
        return Path(given)
    built = [path for path in PROJECT.glob("build/*/sharefs") if path.is_file()]
    if not built:
        sys.exit("error: build sharefs first")
    return max(built, key=lambda path: path.stat().st_mtime)


def time_exportfs(directory: Path) -> float:
    command = ["unshare", "--mount", "--net", "bash", "-c", EXPORTFS, "bash", str(directory)]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=600).stdout)


def time_sharefs(program: Path, file: Path) -> float:
    begin = time.perf_counter()
    command = [program, "export", "check", file.name]  # by a short name, as /etc/exports is one
    done = subprocess.run(command, cwd=file.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        sys.exit(f"error: `sharefs export check` ended with {done.returncode}")
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, nargs="+", default=[1_000, 10_000, 20_000])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("error: exportfs needs root")
    program = newest_sharefs()
    print("| one line for each of | lines | exportfs, ms | sharefs, ms | sharefs / exportfs |")
    print("|---|---|---|---|---|")
    for shape, make in SHAPES.items():
        for lines in arguments.lines:
            with tempfile.TemporaryDirectory() as name:
                directory = Path(name)
                (directory / "nfs").mkdir()
                file = directory / "exports"
                file.write_text("".join(make(lines)))
                times = [(time_exportfs(directory), time_sharefs(program, file)) for _ in range(arguments.rounds)]
            theirs, ours = (statistics.median(column) for column in zip(*times))
            row = f"{1e3 * theirs:.0f} | {1e3 * ours:.0f} | {ours / theirs:.1f}"
            print(f"| {shape} | {lines} | {row} |", flush=True)


if __name__ == "__main__":
    main()
