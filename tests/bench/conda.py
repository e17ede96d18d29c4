#!/usr/bin/python3
"""How long the conda commands take beside what people use instead: P5 to P8 of docs/conda-performance.md.

An environment is installed by rattler from packages made here (tests/environments), with --files modules more, of which
some name their prefix, and with a library for each twelfth one: 35 KiB a file, as 1,015 packages of conda have them
(289,524 files, 10 GB). Each figure is the median of --rounds, of all programs in turns: only the ratios mean something.

P6 and P7 (on this machine): `conda relocate` beside conda-unpack, `conda verify` beside sha256 in Python and conda's own
`conda doctor`.
With --lab, on a node of the lab whose mount has --rtt ms added to each round trip: P5, a generation with 1 % of the files
changed by `conda update` beside full copies; P7 over NFS; P8, a cold import of all modules from the copy of `conda stage`,
from the share, and from the node's own disk.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "lab"), str(ROOT / "tests" / "environments"), str(ROOT / "tests" / "bench")]

from environmentslab.conda_python import conda_python  # noqa: E402
from environmentslab.environment import Workshop  # noqa: E402
from sharefslab.conda_program import conda_on_hosts, conda_program  # noqa: E402
from tree import unit_tree  # noqa: E402

PREFIX = "/data/share/conda/bench"  # as users of the lab's nodes see it
GENERATIONS = "/data/share/conda/.generations/bench"

# Run by conda's Python. Arguments: the directory of build_packages.py, the channel, how many.
BUILD = """
import random, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import build_packages as builder
bytes_of = random.Random(1)
packages = [{"lib/python3.11/site-packages/many/__init__.py": (b"", None, 0o644)}]
seven = bytes(number % 7 for number in range(256))  # compressed to a third, as libraries are
for number in range(int(sys.argv[3])):
    if len(packages[-1]) > 285:  # 1,015 packages of conda have 289,524 files
        packages.append({})
    files = packages[-1]
    text = f"value = {number}\\n" + f"def function_{number}(argument):\\n    return argument + {number}\\n" * (number * 7 % 240)
    named = number % 20 == 0
    if named:
        text += f"where = '{builder.PLACEHOLDER}/lib'\\n"
    directory = f"lib/python3.11/site-packages/many/part{number // 8}"
    files[f"{directory}/module{number}.py"] = (text.encode(), "text" if named else None, 0o644)
    if number % 8 == 0:
        files[f"{directory}/__init__.py"] = (b"", None, 0o644)
    if number % 12 == 0:
        files[f"lib/libmany{number}.so"] = (bytes_of.randbytes(500 << 10).translate(seven), None, 0o755)
for number, files in enumerate(packages):
    builder._package(Path(sys.argv[2]), f"many{number}", files, {}, depends=["python"])
"""
PACK = "import conda_pack, sys; conda_pack.pack(prefix=sys.argv[1], output=sys.argv[2], format='tar', ignore_missing_files=True)"
# What checks an environment without a tool for it. Argument: the environment.
SERIAL = """
import hashlib, json, sys
from pathlib import Path
prefix, wrong = Path(sys.argv[1]), 0
for record in sorted((prefix / "conda-meta").glob("*.json")):
    for path in json.loads(record.read_text())["paths_data"]["paths"]:
        if path["path_type"] == "hardlink":
            content = (prefix / path["_path"]).read_bytes()
            wrong += hashlib.sha256(content).hexdigest() != path.get("sha256_in_prefix", path["sha256"])
sys.exit(wrong != 0)
"""
IMPORT = """
import importlib, itertools, pkgutil, sys, many
most = int(sys.argv[1]) if len(sys.argv) > 1 else None
for part in itertools.islice(pkgutil.walk_packages(many.__path__, "many."), most):
    importlib.import_module(part.name)
print(len([name for name in sys.modules if name.startswith("many.")]))
"""


def sharefs() -> Path:
    if "SHAREFS_BIN" in os.environ:
        return Path(os.environ["SHAREFS_BIN"])
    built = sorted(ROOT.glob("build/*/sharefs"), key=lambda path: path.stat().st_mtime)
    if not built:
        sys.exit("error: no build/*/sharefs\nhint: build first")
    return built[-1]


def timed(command: list[str | Path], **options: object) -> float:
    begin = time.perf_counter()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, **options)  # type: ignore[call-overload]
    seconds = time.perf_counter() - begin
    if done.returncode:
        sys.exit(f"error: {command}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return seconds


def table(title: str, rounds: int, ways: dict[str, Callable[[], float]], goal: str) -> None:
    """Prints the median of each; the ratio is to the first one."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            times[name].append(way())
    first = statistics.median(next(iter(times.values())))
    print(f"{title}\n\n| way | median, s | fastest, s | times as fast as the first |\n|---|---|---|---|")
    for name, all_of_it in times.items():
        print(f"| {name} | {statistics.median(all_of_it):.2f} | {min(all_of_it):.2f} | {first / statistics.median(all_of_it):.2f} |")
    print(f"\nGoal: {goal}\n", flush=True)


def make_environment(place: Path, files: int) -> tuple[Workshop, Path]:
    """Below `place`, with compiled modules."""
    workshop = Workshop(conda_python(), place)
    workshop.build()
    builder = ROOT / "tests" / "environments" / "environmentslab"
    subprocess.run([workshop.python / "bin/python", "-c", BUILD, builder, place / "channel", str(files)], check=True, timeout=600)
    prefix = workshop.install(place / "environment")
    # The packages' files, not names of the cache's. What is not needed stays: for minutes ext4 looks long for an inode
    # where many were deleted (1.1 s instead of 0.7 s for `relocate` of 23,000 files).
    linked = prefix.rename(place / "linked")
    subprocess.run(["cp", "-r", "--preserve=mode,timestamps,links", linked, prefix], check=True)
    return workshop, prefix


def count_files(prefix: Path) -> int:
    return sum(1 for path in prefix.rglob("*") if path.is_file())


def bench_here(arguments: argparse.Namespace, place: Path) -> None:
    workshop, prefix = make_environment(place, arguments.files)
    archive, rounds = place / "packed.tar", itertools.count()
    subprocess.run([workshop.python / "bin/python", "-c", PACK, prefix, archive], check=True, stdout=subprocess.DEVNULL, timeout=600)

    def unpack() -> float:
        there = place / f"unpacked{next(rounds)}"  # nothing is deleted meanwhile
        there.mkdir()
        subprocess.run(["tar", "-xf", archive, "-C", there], check=True)
        subprocess.run(["sync", "-f", there], check=True)  # what was unpacked is not in the time of what syncs
        return timed([there / "bin/python", there / "bin/conda-unpack"])

    def relocate() -> float:
        there = place / f"moved{next(rounds)}"
        subprocess.run(["cp", "-a", prefix, there], check=True)
        subprocess.run(["sync", "-f", there], check=True)
        return timed([sharefs(), "conda", "relocate", there, there, "--yes"])

    count, cores = count_files(prefix), len(os.sched_getaffinity(0))
    table(f"P6: {count} files, {cores} processors", arguments.rounds, {"conda-unpack": unpack, "sharefs conda relocate": relocate}, "10 times")
    table(f"P7: {count} files in the page cache, {cores} processors", arguments.rounds, {
        "sha256 in Python": lambda: timed([workshop.python / "bin/python", "-c", SERIAL, prefix]),
        "conda doctor": lambda: timed([conda_program(), "doctor", "-p", prefix]),
        "sharefs conda verify": lambda: timed([sharefs(), "conda", "verify", prefix]),
    }, f"near {cores} times the first")  # fmt: skip


def bench_lab(arguments: argparse.Namespace, place: Path) -> int:
    from sharefslab import Cluster, missing_prerequisites
    from sharefslab.product import config_text, export_and_mount

    missing = missing_prerequisites()
    if missing:
        print("error: the lab lacks: " + ", ".join(missing), file=sys.stderr)
        return 2
    os.environ["SHAREFS_BIN"] = str(sharefs())
    workshop, prefix = make_environment(place, arguments.files)
    there, archive = Path("/project") / prefix.relative_to(ROOT), "/dev/shm/environment.tar"
    tree = Path("/project") / unit_tree().resolve().relative_to(ROOT)
    count = count_files(prefix)
    record = {"sharefs": 1, "number": 1, "parent": 0, "created": 1, "user": "alice", "host": "node1", "command": "", "message": "",
              "prefix": PREFIX, "python": "3.11.9", "files": count, "bytes": 1, "own_bytes": 1, "packages": []}  # fmt: skip
    with Cluster(hosts=("server", "node1", "node2"), memory="1500M") as lab:
        export_and_mount(lab, config_text(extra=arguments.mount).replace("conda:\n", "conda:\n  stage: /local/staged\n"))
        lab.server.run("rpc.nfsd 16", check=True)
        node = lab["node1"]

        def run(command: str, user: str | None = None) -> float:
            node.run("sync; echo 3 >/proc/sys/vm/drop_caches", check=True)
            begin = time.perf_counter()
            node.run(command, user=user, timeout=3000, check=True)
            return time.perf_counter() - begin

        node.run("modprobe overlay || grep -q overlay /proc/filesystems", check=True)
        node.run(f"tar -C {there} -cf {archive} . && mkdir -p /local/own /local/staged", timeout=600, check=True)
        node.run(f"umask 022; mkdir -p {PREFIX} && tar -C {PREFIX} -xf {archive}", user="alice", timeout=1200, check=True)
        node.run(f"umask 022; sharefs conda relocate {PREFIX} {PREFIX} --yes && {PREFIX}/bin/python -m compileall -q {PREFIX}/lib/python3.11",
                 user="alice", timeout=1200, check=True)  # fmt: skip
        node.run(f"umask 022; mkdir -p {GENERATIONS} && mv {PREFIX} {GENERATIONS}/0001 && chmod -R a-w {GENERATIONS}/0001"
                 f" && mkdir -m 1777 {GENERATIONS}/uses && ln -s .generations/bench/0001 {PREFIX}", user="alice", timeout=600, check=True)  # fmt: skip
        node.run(f"cat >{GENERATIONS}/0001.json", user="alice", input=json.dumps(record), check=True)
        node.run(f"cp -a {GENERATIONS}/0001/. /local/own", timeout=600, check=True)
        lab.latency("server", arguments.rtt)
        title = f"{count} files over NFS, {arguments.rtt:g} ms added"
        node.write_file("/tmp/import.py", IMPORT, mode=0o644)
        node.write_file("/tmp/serial.py", SERIAL, mode=0o644)
        if "P8" in arguments.only:
            begin = time.perf_counter()
            node.run("sharefs conda stage bench --yes", timeout=3000, check=True)
            size = node.run("du -sk /local/staged", check=True).out.split()[0]
            print(f"stage: {time.perf_counter() - begin:.1f} s, {int(size) / 1024:.0f} MiB\n")
            table(f"P8: {title}: a cold import of {arguments.files} modules", arguments.rounds, {
                "a local disk": lambda: run("/local/own/bin/python /tmp/import.py"),
                "the share": lambda: run(f"{PREFIX}/bin/python /tmp/import.py"),
                "sharefs conda run, staged": lambda: run("sharefs conda run bench -- python /tmp/import.py"),
            }, "staged within 10 % of local")  # fmt: skip
        if "P7" in arguments.only:
            table(f"P7: {title}, nothing in the page cache", arguments.rounds, {
                "sha256 in Python": lambda: run(f"/usr/bin/python3.11 /tmp/serial.py {GENERATIONS}/0001"),
                "conda doctor": lambda: run(f"{conda_on_hosts()} doctor -p {GENERATIONS}/0001"),
                "sharefs conda verify": lambda: run("sharefs conda verify bench"),
            }, "5 times the first")  # fmt: skip
        if "P5" in arguments.only:
            copy = f"SHAREFS_BENCH_FROM={GENERATIONS}/0001 SHAREFS_BENCH_TO=/data/share/conda/full {tree} bench"
            change = f"cd $CONDA_PREFIX/lib/python3.11/site-packages/many && find . -name 'module*.py' | head -n {max(1, count // 100)} | while read f; do rm $f; echo changed >$f; done"

            def remove() -> None:
                node.run("chmod -R u+w /data/share/conda/full; rm -rf /data/share/conda/full", user="alice", timeout=1200)

            def full(command: str) -> float:
                remove()
                return run(command, user="alice")

            table(f"P5: {title}: {count // 100} of them changed", arguments.rounds, {
                "cp -a": lambda: full(f"cp -a {GENERATIONS}/0001 /data/share/conda/full"),
                "a full copy by src/tree": lambda: full(copy),
                "sharefs conda update --no-verify": lambda: run(f"sharefs conda update bench --no-verify --yes -- sh -c {shlex.quote(change)}"),
            }, "10 times the full copy")  # fmt: skip
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=3000, metavar="N", help="modules [default: %(default)s]")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of each [default: %(default)s]")
    parser.add_argument("--lab", action="store_true", help="over the lab's kernel NFS")
    parser.add_argument("--rtt", type=float, default=1, metavar="MS", help="added to the round trip [default: %(default)s]")
    parser.add_argument("--mount", default="", metavar="TEXT", help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="*", default=["P5", "P7", "P8"], metavar="NAME", help="with --lab [default: P5 P7 P8]")
    arguments = parser.parse_args()
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="b") as place:
        Path(place).chmod(0o755)
        if arguments.lab:
            return bench_lab(arguments, Path(place))
        bench_here(arguments, Path(place))
    return 0


if __name__ == "__main__":
    sys.exit(main())
