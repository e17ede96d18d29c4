#!/usr/bin/python3
"""`sharefs mirror push` of many small files to several nodes, beside rsync alone and beside one packed stream (tar).

Nodes are played by a stand-in for ssh, each with its own disk below the same path in a mount namespace; so network and
encryption cost nothing, which is the best case of the packed stream. All in one run, in turns, the best of each; as root.

    tests/bench/mirror.py [--files 20000] [--nodes 4] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
os.environ.setdefault("SHAREFS_BIN", str(PROJECT / "build/release/sharefs"))
sys.path.insert(0, str(PROJECT / "tests/fleet"))

from network import Network  # noqa: E402

SIZE = 4096


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    names = [f"gpu{number}" for number in range(1, given.nodes + 1)]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        root = Path(place)
        network = Network(root / "network")
        network.environment["LATENCY"] = "0.05"
        data, code = root / "data", root / "data/code"
        for number in range(given.files):
            file = code / f"pkg{number // 100}" / f"module{number}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(os.urandom(SIZE // 2).hex().encode())
        network.nodes(names)
        network.config.write_text(network.config.read_text() + f"mirror: {{code: {{path: {code}}}}}\n")
        disks = {name: root / "disks" / name for name in names}
        for name, disk in disks.items():
            (root / "states" / name).mkdir(parents=True)
            disk.mkdir(parents=True)
            inside = f'mount --bind {disk} {data}; mount --bind {root}/states/{name} /var/lib\neval "$1"'
            network.does(name, f'exec unshare --mount --propagation private sh -c {shlex.quote(inside)} sh "$*"')

        def empty() -> None:
            for disk in disks.values():
                shutil.rmtree(disk / "code", ignore_errors=True)

        def together(line: str) -> None:
            running = [subprocess.Popen(["sh", "-c", line, "sh", name], env=network.environment) for name in names]
            assert all(process.wait() == 0 for process in running)

        def push() -> None:
            network.run("mirror", "push", "--yes", "--canary", "0")

        def is_whole() -> None:
            for disk in disks.values():
                assert sum(len(files) for _, _, files in os.walk(disk / "code")) == given.files

        rows: dict[str, tuple[bool, Callable[[], None]]] = {
            "`sharefs mirror push`": (True, push),
            "rsync -a, to all at once": (True, lambda: together(f'rsync -a {code}/ "$1":{code}/')),
            "tar \\| ssh tar, to all at once": (
                True, lambda: together(f'tar -C {code} -c . | ssh "$1" "mkdir -p {code} && tar -C {code} -x"')),
            "`sharefs mirror push`, nothing to do": (False, push),
        }
        best = dict.fromkeys(rows, float("inf"))
        for _ in range(given.rounds):
            for name, (from_nothing, work) in rows.items():
                if from_nothing:
                    empty()
                else:
                    push()
                begin = time.monotonic()
                work()
                best[name] = min(best[name], time.monotonic() - begin)
                is_whole()
        print(f"{given.files} files of {SIZE} bytes to {given.nodes} nodes, best of {given.rounds}, {os.cpu_count()} processors\n")
        print("| | seconds |\n|---|---|")
        for name, took in best.items():
            print(f"| {name} | {took:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
