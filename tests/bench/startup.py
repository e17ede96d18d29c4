#!/usr/bin/python3
"""What a program in front of the command costs: `sharefs run -- true` beside `env true` and other wrappers.

Every round starts each program once, so that whatever else the machine does meets all of them. Prints a markdown table
of medians, without mounts and with 50 of them (in a mount namespace of this script's own; needs root). The goal is 2 ms
over `env true` with 50 mounts; it ends with 1 where it is missed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shlex
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
# Each is a command that becomes, or runs, the command behind it. Those that are not installed are left out.
WRAPPERS = (
    "setpriv --no-new-privs",
    "numactl --localalloc",
    "tini -s --",
    "dumb-init --",
    "uv run --no-project --offline",
    "micromamba run -n base",
    "conda run -n base",
)
WARM_UP_ROUNDS = 5
GOAL_MS = 2.0
GOAL_MOUNTS = 50

_QUIET = ((os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),)

CLONE_NEWNS = 0x00020000
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000


@dataclass
class Program:
    """One row: an argument vector, and how long each start of it took in ms."""

    name: str
    argv: list[str]
    times: list[float] = field(default_factory=list)

    def start_once(self) -> float:
        begin = time.perf_counter()
        pid = os.posix_spawn(self.argv[0], self.argv, os.environ, file_actions=_QUIET)
        _, status = os.waitpid(pid, 0)
        took = 1000 * (time.perf_counter() - begin)
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            sys.exit(f"error: `{shlex.join(self.argv)}` ended with {code}")
        return took


def newest_binary() -> str:
    """The release build, or whichever is newest."""
    release = PROJECT / "build" / "release" / "sharefs"
    built = [release] if release.exists() else sorted(PROJECT.glob("build/*/sharefs"), key=os.path.getmtime)
    return str(built[-1]) if built else "sharefs"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sharefs", nargs="+", metavar="FILE", help="binaries to compare [default: of build/release, or the newest]"
    )
    parser.add_argument("--runs", type=int, default=500, metavar="N", help="of each program [default: 500]")
    parser.add_argument(
        "--mounts", nargs="+", type=int, default=[0, GOAL_MOUNTS], metavar="N", help=f"added mounts [default: 0 {GOAL_MOUNTS}]"
    )
    parser.add_argument("--cpu", type=int, metavar="N", help="run on this processor only [default: on any]")
    parser.add_argument(
        "--wrapper", action="append", metavar="COMMAND", help=f"other wrappers [default: {', '.join(WRAPPERS)}]"
    )
    return parser.parse_args()


def resolved(command: str) -> list[str] | None:
    """The words of a wrapper with the path of its program, or None where it is not installed."""
    words = shlex.split(command)
    program = shutil.which(words[0])
    return None if program is None else [program, *words[1:]]


def programs_of(arguments: argparse.Namespace) -> list[Program]:
    true, env, cat = shutil.which("true"), shutil.which("env"), shutil.which("cat")
    if true is None or env is None or cat is None:
        sys.exit("error: `true`, `env` or `cat` is not installed")
    # What the kernel takes to print the table that tells which paths are shared.
    table = "/proc/self/mountinfo"
    programs = [Program("true", [true]), Program("env", [env, true]), Program(f"cat {table}", [cat, table])]
    for binary in arguments.sharefs or [newest_binary()]:
        words = resolved(binary)
        if words is None:
            sys.exit(f"error: there is no program {binary}")
        shown = "sharefs run" if len(arguments.sharefs or []) < 2 else f"{binary} run"
        programs.append(Program(shown, [*words, "run", "--", true]))
    for wrapper in arguments.wrapper or WRAPPERS:
        words = resolved(wrapper)
        if words is not None:
            programs.append(Program(wrapper, [*words, true]))
    return programs


def measure(programs: Sequence[Program], runs: int) -> None:
    for program in programs:
        program.times.clear()
    for turn in range(WARM_UP_ROUNDS + runs):
        for program in programs:
            took = program.start_once()
            if turn >= WARM_UP_ROUNDS:
                program.times.append(took)


def added_ms(program: Program, base: Program) -> float:
    """Pairs of one round: what the two had in common falls out."""
    return statistics.median(mine - other for mine, other in zip(program.times, base.times, strict=True))


def row(program: Program, base: Program) -> str:
    median, reference = statistics.median(program.times), statistics.median(base.times)
    return f"{median:.2f} | {min(program.times):.2f} | {added_ms(program, base):+.2f} | {median / reference:.2f}"


def libc_call(name: str, *words: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*words) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


@contextmanager
def mounts(number: int) -> Iterator[None]:
    """That many mounts more, seen by this process and its children only."""
    with tempfile.TemporaryDirectory(prefix="sharefs-startup-") as directory:
        points = [Path(directory) / f"mount-{index}" for index in range(number)]
        made = []
        try:
            for point in points:
                point.mkdir()
                libc_call("mount", os.fsencode(point), os.fsencode(point), None, ctypes.c_ulong(MS_BIND), None)
                made.append(point)
            yield
        finally:
            for point in made:
                libc_call("umount2", os.fsencode(point), 0)


def enter_namespace() -> None:
    libc_call("unshare", CLONE_NEWNS)
    libc_call("mount", b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)


def main() -> int:
    arguments = parse_arguments()
    programs = programs_of(arguments)
    if arguments.cpu is not None:
        os.sched_setaffinity(0, {arguments.cpu})
    if any(arguments.mounts):
        try:
            enter_namespace()
        except OSError as error:
            print(f"error: no mount namespace ({error}): run as root, or with --mounts 0", file=sys.stderr)
            return 2
    print("| mounts added | program | median, ms | fastest, ms | over `env`, ms | ratio to `env` |\n|---|---|---|---|---|---|")
    missed = False
    for number in arguments.mounts:
        with mounts(number):
            measure(programs, arguments.runs)
        for program in programs:
            print(f"| {number} | `{program.name}` | {row(program, programs[1])} |", flush=True)
            if number == GOAL_MOUNTS and "sharefs" in program.name:
                added = added_ms(program, programs[1])
                missed = missed or added > GOAL_MS
                verdict = "missed" if added > GOAL_MS else "met"
                print(f"| {number} | goal: at most {GOAL_MS:.0f} ms over `env` | | | {added:+.2f} | {verdict} |")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
