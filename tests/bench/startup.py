#!/usr/bin/python3
"""What a program in front of the command costs: `sharefs run -- true` beside `env true` and other wrappers.

Every round starts each program once, so that whatever else the machine does meets all of them. Prints a markdown table
of medians, without mounts and with 50 of them (in a mount namespace of this script's own; needs root). The goal is 2 ms
over `env true` with 50 mounts, and 3 ms with a home on shared storage; it ends with 1 where one is missed.

The home lies on a FUSE mount that nobody serves: whoever looked there would not come back. With --lab it is one on the
lab's NFS, where starts of Python are measured, too, and nothing is a goal: there a system call costs more.
"""

from __future__ import annotations

import argparse
import atexit
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
GOAL_HOME_MS = 3.0
LAB_RUNS = 20
# Where `sharefs run` makes directories, besides the home.
LOCAL_DIRECTORIES = ("/var/cache", "/var/cache/sharefs", "/var/tmp", "/local/cache")

# Its source shows that datasets are built in the directory; it does nothing.
SCRIPT = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--cache_dir")
args = parser.parse_args()
def load():
    from datasets import load_dataset
    return load_dataset("json", cache_dir=args.cache_dir)
"""

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
    home: str | None = None

    def start_once(self) -> float:
        begin = time.perf_counter()
        environment = {**os.environ, "HOME": self.home} if self.home else os.environ
        pid = os.posix_spawn(self.argv[0], self.argv, environment, file_actions=_QUIET)
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
    parser.add_argument("--lab", action="store_true", help="only with a home on the lab's NFS, and Python there, too")
    parser.add_argument("--home", metavar="DIRECTORY", help="only with this home, and Python, too")
    return parser.parse_args()


def resolved(command: str) -> list[str] | None:
    """The words of a wrapper with the path of its program, or None where it is not installed."""
    words = shlex.split(command)
    program = shutil.which(words[0])
    return None if program is None else [program, *words[1:]]


def made_environment() -> str:
    """A generation with a variable and without scripts, by its stable path; it goes with this process."""
    store = tempfile.mkdtemp(prefix="sharefs-startup-store-")
    atexit.register(shutil.rmtree, store)
    generation = Path(store, ".generations/llm/0001")
    for name in ("bin", "conda-meta", "etc/conda/env_vars.d"):
        (generation / name).mkdir(parents=True)
    (generation / "etc/conda/env_vars.d/x.json").write_text('{"X": "1"}')
    Path(store, "llm").symlink_to(".generations/llm/0001")
    return f"{store}/llm"


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
        environment = made_environment()
        programs.append(Program(shown.replace(" run", " conda run"), [*words, "conda", "run", environment, "--", true]))
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


@contextmanager
def unserved_home() -> Iterator[str]:
    """A directory on shared storage that hangs whoever looks at it."""
    with tempfile.TemporaryDirectory(prefix="sharefs-startup-") as directory:
        device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
        libc_call("mount", b"server:/home", os.fsencode(directory), b"fuse.sshfs", ctypes.c_ulong(0), options)
        try:
            yield directory
        finally:
            os.close(device)
            libc_call("umount2", os.fsencode(directory), 2)  # MNT_DETACH


def names(directories: Sequence[str]) -> list[list[str]]:
    return [sorted(os.listdir(directory)) if os.path.isdir(directory) else [] for directory in directories]


def with_home(arguments: argparse.Namespace, home: str, python: bool) -> bool:
    """The table for a home on shared storage. Is `true` over the goal, or has it made anything?"""
    sharefs = [*(resolved((arguments.sharefs or [newest_binary()])[0]) or ["sharefs"]), "run", "-q", "--"]
    true, env, interpreter = "/bin/true", shutil.which("env") or "env", "/usr/bin/python3"
    pairs = [("true", [env, true], [*sharefs, true])]
    watched = list(LOCAL_DIRECTORIES)
    if python:
        watched.append(home)
        Path(home, "x.py").write_text(SCRIPT)
        for flag in ([], ["--cache_dir", f"{home}/c"]):
            bare = [interpreter, f"{home}/x.py", *flag]
            pairs.append((" ".join(["python3", "x.py", *flag[:1]]), bare, [*sharefs, *bare]))
    print("| home on shared storage | median, ms | wrapped, ms | over it, ms | ratio |\n|---|---|---|---|---|")
    missed = False
    for name, bare_words, wrapped_words in pairs:
        bare, wrapped = Program(name, bare_words, home=home), Program(name, wrapped_words, home=home)
        before = names(watched)
        measure([bare, wrapped], arguments.runs)
        medians = statistics.median(bare.times), statistics.median(wrapped.times)
        over = added_ms(wrapped, bare)
        print(f"| `{name}` | {medians[0]:.2f} | {medians[1]:.2f} | {over:+.2f} | {medians[1] / medians[0]:.2f} |", flush=True)
        if name == "true":
            made = names(watched) != before
            missed = made or (over > GOAL_HOME_MS and not python)
            goal = "nothing made" if python else f"nothing made, at most {GOAL_HOME_MS:.0f} ms over `env true`"
            print(f"| goal: {goal} | | | {over:+.2f} | {'missed' if missed else 'met'} |")
    return missed


def in_lab(arguments: argparse.Namespace) -> int:
    """This script on a node whose homes are the lab's NFS."""
    sys.path.insert(0, str(PROJECT / "tests" / "lab"))
    if arguments.sharefs:
        os.environ["SHAREFS_BIN"] = arguments.sharefs[0]
    from sharefslab import Cluster

    with Cluster(hosts=("server", "node1")) as cluster:
        cluster.start_nfs_server()
        node = cluster["node1"]
        node.run("mkdir -p /nfs && mount -t nfs -o vers=3,nolock server:/srv/share /nfs", check=True)
        node.run("install -d -o alice /nfs/alice && mkdir -m 1777 /local/cache", check=True)
        node.write_file("/etc/sharefs/sharefs.yaml", "version: 1\ncaches:\n  local: /local/cache\n", mode=0o644)
        words = ["/usr/bin/python3", "/project/tests/bench/startup.py", "--home", "/nfs/alice", "--sharefs", "sharefs"]
        done = node.run([*words, "--runs", str(min(arguments.runs, LAB_RUNS))], user="alice", timeout=600)
        print(done.out + done.err, end="")
        return done.returncode


def main() -> int:
    arguments = parse_arguments()
    if arguments.lab:
        return in_lab(arguments)
    if arguments.home:
        return int(with_home(arguments, arguments.home, python=True))
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
            if number == GOAL_MOUNTS and program.name.endswith("sharefs run"):
                added = added_ms(program, programs[1])
                missed = missed or added > GOAL_MS
                verdict = "missed" if added > GOAL_MS else "met"
                print(f"| {number} | goal: at most {GOAL_MS:.0f} ms over `env` | | | {added:+.2f} | {verdict} |")
    if any(arguments.mounts):
        with unserved_home() as home:
            missed = with_home(arguments, home, python=False) or missed
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
