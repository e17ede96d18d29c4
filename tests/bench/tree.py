#!/usr/bin/python3
"""How long a copy by src/tree takes beside cp -a, rsync -a, tar | tar, and 16 cp at a time.

A tree of many small files and some large ones is copied from DIRECTORY to DIRECTORY, by all of them in turns: only the
ratios mean something. It also syncs each file and reads it again, which none of the others does; it is measured
with and without (--no-verify), and the others are once followed by `sync -f`, which is in their time. The program is
unit_tree with its hidden case "bench", the newest build/*/tests/unit_tree or $SHAREFS_UNIT_TREE.

With --lab the copies go from a node's own memory to an export of the lab's kernel NFS, once for each --rtt (in ms, added
to the round trip). Then the RPCs of each are counted (/proc/self/mountstats), and compared with the most that go over
that mount in a second: GETATTRs, by up to 64 threads. A table of a lab with delays means more than one without.
With --lab --read they go the other way, each from a mount that is new, so that nothing of it is in the node's memory.
(The GETACLs of a mount are counted nowhere on a client.)
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SPREAD = "cd FROM && find . -type d -print0 | (cd TO && xargs -0 mkdir -p) && find . ! -type d -print0 | xargs -0 -P16 -n64 cp -a --parents -t TO"
OTHERS = {
    "cp -a": "cp -a FROM/. TO",
    "rsync -a": "rsync -a FROM/ TO/",
    "tar | tar": "tar -C FROM -cf - . | tar -C TO -xpf -",
    "16 x cp": SPREAD,
}


# Runs on the node. In: {options, original, source, target, ways, files, rounds, make}; out: [ceiling, {way: [seconds, {operation:
# RPCs}]}], of the median of the rounds.
WORKER = """
import collections, concurrent.futures, ctypes, filecmp, json, os, shutil, subprocess, sys, threading, time
given = json.load(sys.stdin)
exec(given["make"])
original, source, target = Path(given["original"]), Path(given["source"]), Path(given["target"])
if not original.exists():
    make_tree(original, given["files"])
os.makedirs("/mnt/bench", exist_ok=True)

def mount():
    subprocess.run(["mount", "-t", "nfs", "-o", given["options"], "server:/srv/share", "/mnt/bench"], check=True)
mount()

def operations():
    counts, here = collections.Counter(), False
    for line in open("/proc/self/mountstats"):
        words = line.split()
        if words[:1] == ["device"]:
            here = words[4] == "/mnt/bench"
        elif here and len(words) > 8 and words[0][:-1].replace("_", "").isupper() and words[0] != "RPC:":
            counts[words[0][:-1]] += int(words[1])
    return counts

def differs(path):
    copy = target / path.relative_to(original)
    return not copy.exists() or (path.is_file() and not filecmp.cmp(path, copy, shallow=False))

statx, answer = ctypes.CDLL(None).statx, threading.local()
def ask(descriptor, end):  # the server, whatever this host remembers
    answer.of = ctypes.create_string_buffer(256)
    while time.perf_counter() < end:
        statx(descriptor, b"", 0x1000 | 0x2000, 0x7ff, answer.of)  # AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS

def most():
    best = 0
    for count in (1, 8, 16, 64):
        before, begin = operations(), time.perf_counter()
        askers = [threading.Thread(target=ask, args=(descriptor, begin + 1)) for _ in range(count)]
        [one.start() for one in askers], [one.join() for one in askers]
        best = max(best, (operations() - before).total() / (time.perf_counter() - begin))
    return best

try:
    Path("/mnt/bench/probe").write_text("x")
    descriptor = os.open("/mnt/bench/probe", os.O_RDONLY)
    ceiling = most()
    os.close(descriptor)
    times, pool = collections.defaultdict(list), concurrent.futures.ThreadPoolExecutor(32)
    all_paths = list(original.rglob("*"))
    if not source.exists():
        shutil.copytree(original, source)
    for _ in range(given["rounds"]):
        for name, (line, environment) in given["ways"].items():
            list(pool.map(shutil.rmtree, target.glob("*/*")))
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            if source != original:
                subprocess.run(["umount", "/mnt/bench"], check=True)
                mount()
            before, begin = operations(), time.perf_counter()
            done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, env={**os.environ, **environment})
            seconds, asked = time.perf_counter() - begin, operations() - before
            if done.returncode or any(pool.map(differs, all_paths)):
                sys.exit(f"{name}: the copy differs: {done.stderr} {done.stdout}")
            times[name].append([seconds, asked])
    middle = {name: sorted(all, key=lambda one: one[0])[len(all) // 2] for name, all in times.items()}
    print(json.dumps([ceiling, middle]))
finally:
    subprocess.run(["umount", "-l", "/mnt/bench"])
"""


def unit_tree() -> Path:
    if "SHAREFS_UNIT_TREE" in os.environ:
        return Path(os.environ["SHAREFS_UNIT_TREE"])
    built = sorted(ROOT.glob("build/*/tests/unit_tree"), key=lambda path: path.stat().st_mtime)
    if not built:
        sys.exit("error: no build/*/tests/unit_tree\nhint: build first")
    return built[-1]


def make_tree(at: Path, files: int) -> None:
    chance = random.Random(7)
    for number in range(files):
        directory = at / f"lib{number // 8 % 13}" / f"package{number // 8}"  # as in /usr/lib/python3
        directory.mkdir(parents=True, exist_ok=True)
        size = int(chance.expovariate(1 / 4096)) if number % 500 else 4_000_000
        (directory / f"module{number}.py").write_bytes(chance.randbytes(size))


def ways_of(program: Path, source: Path, target: Path, threads: list[int]) -> dict[str, tuple[str, dict[str, str]]]:
    """Each way to copy: a line for the shell, and what it finds in the environment."""
    ways: dict[str, tuple[str, dict[str, str]]] = {}
    for count in threads:
        given = {"FROM": str(source), "TO": str(target), "THREADS": str(count)}
        ways[f"sharefs, {count or 'own'} threads"] = (
            f"{program} bench",
            {f"SHAREFS_BENCH_{key}": value for key, value in given.items()},
        )
    for name, line in OTHERS.items():
        if name != "rsync -a" or shutil.which("rsync"):
            line = line.replace("FROM", str(source)).replace("TO", str(target))
            ways[name] = (f"{line} && sync -f {target}", {})
    return ways


def bench_here(arguments: argparse.Namespace, program: Path) -> None:
    for directory in arguments.directories:
        with tempfile.TemporaryDirectory(dir=directory) as place:
            source, target = Path(place, "from"), Path(place, "to")
            make_tree(source, arguments.files)
            best: dict[str, float] = {}
            for _ in range(arguments.rounds):
                for name, (line, environment) in ways_of(program, source, target, arguments.threads).items():
                    shutil.rmtree(target, ignore_errors=True)
                    target.mkdir()
                    subprocess.run(["sync", "-f", place], check=True)
                    begin = time.perf_counter()
                    subprocess.run(
                        ["bash", "-o", "pipefail", "-c", line], check=True, stdout=subprocess.DEVNULL, env={**os.environ, **environment}
                    )
                    best[name] = min(best.get(name, 1e9), time.perf_counter() - begin)
                    if subprocess.run(["diff", "-r", source, target], capture_output=True, check=False).returncode:
                        sys.exit(f"error: {name}: the copy differs")
            print(f"{directory}: {arguments.files} files\n\n| program | best, s | files/s | of cp -a |\n|---|---|---|---|")
            for name, seconds in best.items():
                print(f"| {name} | {seconds:.2f} | {arguments.files / seconds:.0f} | {seconds / best['cp -a']:.2f} |")
            print()


def bench_lab(arguments: argparse.Namespace, program: Path) -> int:
    sys.path.insert(0, str(ROOT / "tests" / "lab"))
    from sharefslab import Cluster, missing_prerequisites

    missing = missing_prerequisites()
    if missing:
        print("error: the lab lacks: " + ", ".join(missing), file=sys.stderr)
        return 2
    original = Path("/dev/shm/from")
    source, target = (Path("/mnt/bench/from"), Path("/dev/shm/to")) if arguments.read else (original, Path("/mnt/bench/to"))
    there = Path("/project") / program.resolve().relative_to(ROOT)
    given = {
        "options": arguments.options,
        "original": str(original),
        "source": str(source),
        "target": str(target),
        "ways": ways_of(there, source, target, arguments.threads),
        "files": arguments.files,
        "rounds": arguments.rounds,
        "make": "import random\nfrom pathlib import Path\n" + inspect.getsource(make_tree),
    }
    with Cluster(hosts=("server", "node1")) as lab:
        lab.start_nfs_server(threads=16)
        for rtt in arguments.rtt:
            lab.latency("server", rtt)
            done = lab["node1"].run(
                ["/usr/bin/python3", "-c", WORKER], input=json.dumps(given), timeout=3600, check=True
            )
            ceiling, found = json.loads(done.out)
            print(f"{arguments.options}, {rtt:g} ms added: {arguments.files} files; at most {ceiling:.0f} RPCs/s\n")
            print("| program | median, s | files/s | times cp -a | RPCs per file | of the most RPCs/s | which RPCs |")
            print("|---|---|---|---|---|---|---|")
            for name, (seconds, asked) in found.items():
                rpcs = sum(asked.values())
                each = sorted(((count / arguments.files, one) for one, count in asked.items()), reverse=True)
                print(
                    f"| {name} | {seconds:.2f} | {arguments.files / seconds:.0f} | {found['cp -a'][0] / seconds:.1f} "
                    f"| {rpcs / arguments.files:.1f} | {rpcs / seconds / ceiling:.0%} "
                    f"| {', '.join(f'{one} {count:.2f}' for count, one in each if count > 0.04)} |"
                )
            print(flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="*", default=["/dev/shm", "/var/tmp"], metavar="DIRECTORY")
    parser.add_argument("--files", type=int, default=5000, metavar="N", help="[default: %(default)s]")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of each [default: %(default)s]")
    parser.add_argument("--threads", type=int, nargs="*", default=[0], metavar="N", help="0: what it chooses itself")
    parser.add_argument("--lab", action="store_true", help="to the lab's kernel NFS")
    parser.add_argument("--read", action="store_true", help="from the lab's kernel NFS, to the node's memory")
    parser.add_argument("--rtt", type=float, nargs="*", default=[0, 0.5, 2], metavar="MS", help="[default: 0 0.5 2]")
    parser.add_argument("--options", default="vers=3,nolock", help="of the lab's mount [default: %(default)s]")
    arguments = parser.parse_args()
    program = unit_tree()
    if arguments.lab:
        return bench_lab(arguments, program)
    bench_here(arguments, program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
