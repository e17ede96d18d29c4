#!/usr/bin/python3
"""`sharefs --on all status` of a thousand nodes beside the engine alone, and beside Ansible.

The network is a stand-in for ssh that waits as long as a connection takes and prints an answer in frames; all have the
same fan-out, in turns in one run. Prints a markdown table of the best of each. The goals: at most 1.1 times the engine
alone, 20 times faster than `ansible -m raw`.

    tests/bench/fleet.py [--nodes 1000] [--rounds 3] [--latency 0.05] [--ansible ANSIBLE]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
os.environ.setdefault("SHAREFS_BIN", str(PROJECT / "build/release/sharefs"))
sys.path.insert(0, str(PROJECT / "tests/fleet"))

from network import Network, document, frames  # noqa: E402

FANOUT = 64


def seconds(work: Callable[[], object]) -> float:
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", default="0.05", help="seconds that a connection takes")
    parser.add_argument("--ansible", help="the program, of a virtual environment with ansible-core")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        network = Network(Path(place) / "network")
        names = [f"gpu{number:04}" for number in range(given.nodes)]
        network.nodes([f"gpu[0000-{given.nodes - 1:04}]"])
        for name in names:
            network.prints(name, frames(name, document(mounts=[{"state": "healthy", "text": "x" * 2000}])))
        network.environment["LATENCY"] = given.latency
        listed = network.place / "names"
        listed.write_text("".join(f"{name}\n" for name in names))
        outputs = network.place / "outputs"
        outputs.mkdir()
        alone = (f'cd {outputs}; timeout -k 2 60 ssh -o BatchMode=yes -- "$1" sharefs status --json '
                 '>"$1.out" 2>"$1.err" </dev/null; echo $? >"$1.end"')

        def engine() -> None:
            words = ["xargs", "-a", str(listed), "-P", str(FANOUT), "-n", "1", "sh", "-c", alone, "sh"]
            subprocess.run(words, env=network.environment, check=True)

        def sharefs() -> None:
            states = network.states("--on", "all", "--engine", "xargs", "--fanout", str(FANOUT), "status")
            assert states == dict.fromkeys(names, "ok")

        rows: dict[str, Callable[[], None]] = {"xargs and ssh alone": engine, "`sharefs --on all status`": sharefs}
        if given.ansible:
            inventory = network.place / "inventory"
            inventory.write_text("".join(f"{name}\n" for name in names))

            def ansible() -> None:
                words = [given.ansible, "all", "-i", str(inventory), "-f", str(FANOUT), "-m", "raw", "-a", "sharefs status"]
                ended = subprocess.run(words, env=network.environment, capture_output=True, check=False)
                assert ended.stdout.count(b"rc=0") == given.nodes, ended.stderr[-2000:]

            rows["`ansible all -m raw`"] = ansible
        best = dict.fromkeys(rows, float("inf"))
        for _ in range(given.rounds):
            for name, work in rows.items():
                best[name] = min(best[name], seconds(work))
        base = best["xargs and ssh alone"]
        print(f"{given.nodes} nodes, {FANOUT} at a time, {float(given.latency) * 1000:.0f} ms each, best of {given.rounds}\n")
        print("| | seconds | to the engine alone |\n|---|---|---|")
        for name, took in best.items():
            print(f"| {name} | {took:.2f} | {took / base:.2f} |")
        print(f"\nLargest process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
