#!/usr/bin/python3
"""What `sharefs run` and the guard cost at a start, beside the same without them.

Every round starts each program once, so that whatever else the machine does meets all of them. Prints markdown tables
of medians: `sharefs run -- true` beside `true`, `env true` and other wrappers, without mounts and with 50 of them (in a
mount namespace of this script's own; needs root); each launch line of tests/corpus, its program replaced by `true`; and
Python with the guard. The goals are 2 ms over `true` with 50 mounts, 3 ms over `env true` with a home on shared
storage, 10 ms for each launch, and 0.5 ms for the guard; it ends with 1 where one is missed.

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

import guard

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
GOAL_LAUNCH_MS = 10.0
GOAL_GUARD_MS = 0.5
LAUNCH_ROUNDS = (3, 30)  # of each line, and of those that took longest
SLOWEST = 12
NFS_REMEMBERS = 3  # seconds: acregmin of nfs(5); the share of the corpus does so, too
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

_QUIET = tuple((os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2))

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
    environment: dict[str, str] = field(default_factory=dict)

    def start_once(self) -> float:
        begin = time.perf_counter()
        pid = os.posix_spawn(self.argv[0], self.argv, {**os.environ, **self.environment}, file_actions=_QUIET)
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
        bare, wrapped = (Program(name, words, environment={"HOME": home}) for words in (bare_words, wrapped_words))
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


def launch_of(line: str, environment: dict[str, str], sharefs: str, stubs: Path) -> tuple[Program, Program]:
    """A launch line bare and wrapped, its first word a link to `true`."""
    words = shlex.split(line)
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment = {**environment, name: value}
    stub = stubs / Path(words[0]).name
    if not stub.exists():
        stub.symlink_to("/bin/true")
    bare = Program(line, [str(stub), *words[1:]], environment=environment)
    return bare, Program(line, [sharefs, "run", "-q", "--", stub.name, *words[1:]], environment=environment)


def launches(binary: str) -> bool:
    """The table of the corpus. Is a launch over the goal?"""
    for name in ("corpus", "launchers", "lab"):
        sys.path.insert(0, str(PROJECT / "tests" / name))
    from corpuslab.shapes import CORPUS, is_shell_text, read_lines
    from corpuslab.world import JOB, World
    from launcherslab.isolation import ROOT, isolate

    isolate()
    world = World(Path(binary).resolve(), NFS_REMEMBERS)
    try:
        world.run(["true"], {}, {})
        os.chdir(JOB)
        stubs = ROOT / "stubs"
        stubs.mkdir()
        pairs, refused = [], 0
        for shape in read_lines(CORPUS / "lines.txt"):
            if is_shell_text(shape.text):
                continue
            environment = world.environment(shape.environment)
            environment["PATH"] = f"{stubs}:{environment['PATH']}"
            pair = launch_of(shape.text, environment, f"{ROOT}/bin/sharefs", stubs)
            try:
                pair[1].start_once()
                pairs.append(pair)
            except SystemExit:  # it has nothing to start, or must not
                refused += 1
        for rounds in LAUNCH_ROUNDS:
            for pair in pairs:
                measure(pair, rounds)
            pairs.sort(key=lambda pair: added_ms(pair[1], pair[0]))
            if rounds == LAUNCH_ROUNDS[0]:
                middle, number = added_ms(*pairs[len(pairs) // 2][::-1]), len(pairs)
                pairs = pairs[-SLOWEST:]
    finally:
        world.close()
    bare, wrapped = pairs[-1]
    worst = added_ms(wrapped, bare)
    verdict = "missed" if worst > GOAL_LAUNCH_MS else "met"
    print(f"| launches of the corpus | added, ms |\n|---|---|\n| median of {number} ({refused} left out) | {middle:+.2f} |")
    print(f"| slowest: `{wrapped.name}` | {worst:+.2f} |\n| goal: at most {GOAL_LAUNCH_MS:.0f} ms | {verdict} |", flush=True)
    return worst > GOAL_LAUNCH_MS


def guard_start() -> bool:
    """The table of the guard. Is it over the goal?"""
    added = guard.table("/usr/bin/python3", None, 50)
    print(f"| goal: under {GOAL_GUARD_MS} ms | | | | {added:+.2f} ms | {'missed' if added > GOAL_GUARD_MS else 'met'} |")
    return added > GOAL_GUARD_MS


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
                added = added_ms(program, programs[0])
                missed = missed or added > GOAL_MS
                verdict = "missed" if added > GOAL_MS else "met"
                print(f"| {number} | goal: at most {GOAL_MS:.0f} ms over `true` | | | {added:+.2f} | {verdict} |")
    missed = guard_start() or missed
    if any(arguments.mounts):
        with unserved_home() as home:
            missed = with_home(arguments, home, python=False) or missed
        missed = launches((arguments.sharefs or [newest_binary()])[0]) or missed
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
