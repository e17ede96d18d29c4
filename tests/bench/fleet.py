#!/usr/bin/python3
"""`sharefs --on all status` of a thousand nodes beside the engine alone, and beside Ansible.

The network is a stand-in for ssh that waits as long as a connection takes and prints an answer in frames; all have the
same fan-out, in turns in one run. Prints a markdown table of the best of each, and then whether the goals are met: at
most 1.1 times the engine alone, 20 times faster than `ansible -m raw`, a thousand nodes in less than 10 seconds. Answers
of 100 mounts stand in a row of their own. ansible-core comes from PyPI, as for tests/fleet/test_ansible.py.

    tests/bench/fleet.py [--nodes 1000] [--rounds 3] [--latency 0.05] [--no-ansible]
"""

from __future__ import annotations

import argparse
import os
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
from test_ansible import ansible  # noqa: E402

FANOUT = 64
# In the place of ssh: a program that costs little itself, so that what is compared is what starts it.
SSH = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int at = 1;
  while (at < argc && argv[at][0] == '-' && strcmp(argv[at], "--") != 0)
    at += argv[at][2] == 0 && strchr("oFlpiES", argv[at][1]) ? 2 : 1;
  at += at < argc && strcmp(argv[at], "--") == 0;
  usleep((useconds_t)(atof(getenv("LATENCY")) * 1e6));
  char text[65536];
  snprintf(text, sizeof text, "%s/%s.answer", getenv("NETWORK"), argv[at]);
  FILE* answer = fopen(text, "r");
  for (size_t size; answer && (size = fread(text, 1, sizeof text, answer)) > 0;)
    fwrite(text, 1, size, stdout);
  return answer ? 0 : 255;
}
"""
ENGINE, SHAREFS, LARGE, ANSIBLE = (
    "xargs and ssh alone",
    "`sharefs --on all status`",
    "the same, answers of 100 mounts",
    "`ansible all -m raw`",
)


class Bench:
    def __init__(self, place: Path, nodes: int, latency: str) -> None:
        self.network = Network(place / "network")
        self.names = [f"gpu{number:04}" for number in range(nodes)]
        self.network.nodes([f"gpu[0000-{nodes - 1:04}]"])
        self.network.environment["LATENCY"] = latency
        self.listed = self.network.place / "names"
        self.listed.write_text("".join(f"{name}\n" for name in self.names))
        self.outputs = self.network.place / "outputs"
        self.outputs.mkdir()
        ssh = self.network.place / "bin/ssh"
        ssh.unlink()
        subprocess.run(["cc", "-x", "c", "-O1", "-o", str(ssh), "-"], input=SSH, text=True, check=True)

    def answer(self, mounts: int) -> None:
        mount = {"state": "healthy", "target": "/data/share", "text": "x" * 300}
        for name in self.names:
            self.network.prints(name, frames(name, document(mounts=[mount] * mounts)))

    def engine(self) -> list[str]:
        alone = (f'cd {self.outputs}; timeout -k 2 60 ssh -o BatchMode=yes -- "$1" sharefs status --json '
                 '>"$1.out" 2>"$1.err" </dev/null; echo $? >"$1.end"')
        return ["xargs", "-a", str(self.listed), "-P", str(FANOUT), "-n", "1", "sh", "-c", alone, "sh"]

    def sharefs(self) -> list[str]:
        return self.network.command("--on", "all", "--engine", "xargs", "--fanout", str(FANOUT), "status")

    def ansible(self) -> list[str]:
        return [str(ansible() / "ansible"), "all", "-i", str(self.listed), "-f", str(FANOUT), "-m", "raw", "-a", "sharefs status"]

    def run(self, words: list[str], expected: tuple[bytes, int] | None) -> tuple[float, float, int]:
        """Seconds, those of the processor, and MiB of the largest process. `expected`: so often it is printed."""
        begin = time.monotonic()
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen(words, env=self.network.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
            _, status, usage = os.wait4(process.pid, 0)
            took = time.monotonic() - begin
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            text = out.read()
        assert process.returncode == 0, text[-2000:]
        assert expected is None or text.count(expected[0]) == expected[1], text[-2000:]
        return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", default="0.05", help="seconds that a connection takes")
    parser.add_argument("--no-ansible", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(Path(place), given.nodes, given.latency)
        row = f"{given.nodes} ok    mounts: ".encode()
        runs: dict[str, tuple[int, list[str], tuple[bytes, int] | None]] = {
            ENGINE: (7, bench.engine(), None),
            SHAREFS: (7, bench.sharefs(), (row + b"7 healthy", 1)),
            LARGE: (100, bench.sharefs(), (row + b"100 healthy", 1)),
        }
        if not given.no_ansible:
            runs[ANSIBLE] = (7, bench.ansible(), (b"rc=0", given.nodes))
        best: dict[str, tuple[float, float, int]] = {}
        for _ in range(given.rounds):
            for name, (mounts, words, expected) in runs.items():
                bench.answer(mounts)
                best[name] = min(best.get(name, (float("inf"), 0.0, 0)), bench.run(words, expected))
    base, ours = best[ENGINE][0], best[SHAREFS][0]
    print(f"{given.nodes} nodes, {FANOUT} at a time, {float(given.latency) * 1000:.0f} ms each, best of {given.rounds}\n")
    print("| | seconds | to the engine alone | seconds of the processor | MiB |\n|---|---|---|---|---|")
    for name, (took, processor, size) in best.items():
        print(f"| {name} | {took:.2f} | {took / base:.2f} | {processor:.2f} | {size} |")
    goals: list[tuple[str, Callable[[], bool]]] = [
        ("at most 1.1 times the engine alone", lambda: ours <= 1.1 * base),
        ("a thousand nodes in less than 10 s", lambda: ours * 1000 / given.nodes < 10),
    ]
    if ANSIBLE in best:
        goals.append((f"20 times faster than Ansible ({best[ANSIBLE][0] / ours:.0f} times)", lambda: best[ANSIBLE][0] >= 20 * ours))
    print()
    for text, is_met in goals:
        print(f"- {'met' if is_met() else 'MISSED'}: {text}")
    return 0 if all(is_met() for _, is_met in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
