#!/usr/bin/python3
"""What `sharefs watch` costs in an hour: processor time and memory, with many mounts on the lab's NFS.

Accelerated: what it does depends on rounds, not on time, so the hour is as many rounds as an hour has at the usual interval of
30 s, one each second; a factor of 30. The bench reads the rounds that there were from the metrics, and scales to them. Beside
it, in turns: node_exporter's way to look, `df` of the same mounts once for each round. Prints a markdown table; exits with 1 if
a goal is missed.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lab"))

from sharefslab import Cluster, Host, wait_until  # noqa: E402

USUAL_INTERVAL = 30
PROM = "/local/sharefs.prom"
LONG = 1800.0
GOAL_MEMORY = 1.1  # at the end so many times that of the beginning
GOAL_CPU = 3.0  # a round at most so many times a df


def rounds_of(node: Host) -> int:
    done = node.run(f"cat {PROM}")
    found = re.search(r"^sharefs_watch_rounds_total (\d+)", done.out, re.M)
    return int(found.group(1)) if found else 0


def spent(node: Host, pid: int) -> tuple[float, float]:
    """Seconds of the processor, with those of its ended children; and MiB of memory."""
    fields = node.read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    ticks = sum(int(fields[index]) for index in (11, 12, 13, 14))
    memory = re.search(r"^VmRSS:\s+(\d+)", node.read_text(f"/proc/{pid}/status"), re.M)
    assert memory is not None
    return ticks / 100, int(memory.group(1)) / 1024


def df_seconds(node: Host, times: int) -> float:
    """Seconds of the processor that `df` takes, by the mean of many."""
    script = f"for n in $(seq {times}); do df -t nfs4 >/dev/null; done; cat /proc/self/stat /proc/$$/stat"
    fields = node.run(script, check=True, timeout=LONG).out.splitlines()[-1].rpartition(")")[2].split()
    return sum(int(fields[index]) for index in (13, 14)) / 100 / times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mounts", type=int, default=100, metavar="N", help="[default: %(default)s]")
    parser.add_argument("--rounds", type=int, default=3600 // USUAL_INTERVAL, metavar="N", help="[default: %(default)s, an hour's]")
    arguments = parser.parse_args()
    with Cluster(hosts=("server", "node1")) as lab:
        lab.start_nfs_server()
        lab.server.run(f"for n in $(seq {arguments.mounts}); do mkdir -p /srv/share/$n; done", check=True, timeout=LONG)
        node = lab["node1"]
        lines = ["version: 1", f"watch: {{interval: 1s, textfile: {PROM}}}", "mounts:"]
        for number in range(1, arguments.mounts + 1):
            lines.append(f'  m{number}: {{from: "server:/srv/share/{number}", at: /many/{number}, options: [nosharecache]}}')
        node.write_file("/etc/sharefs/sharefs.yaml", "\n".join(lines) + "\n")
        node.run(
            f"for n in $(seq {arguments.mounts}); do mkdir -p /many/$n; "
            "mount -t nfs -o vers=4.2,nosharecache server:/srv/share/$n /many/$n || exit 1; done",
            check=True,
            timeout=LONG,
        )
        job = node.start("echo $$ >/local/watch.pid; exec sharefs watch --json")
        wait_until(lambda: rounds_of(node) >= 5, 120, what="the first rounds")
        pid = int(node.read_text("/local/watch.pid"))
        first, (cpu, memory) = rounds_of(node), spent(node, pid)
        wait_until(lambda: rounds_of(node) >= first + arguments.rounds, LONG, what="an hour's rounds")
        last, (cpu_after, memory_after) = rounds_of(node), spent(node, pid)
        job.kill(signal.SIGTERM)
        job.wait(60)
        df = df_seconds(node, 30)
    per_round = (cpu_after - cpu) / (last - first)
    hour = per_round * 3600 / USUAL_INTERVAL
    rows = [
        (f"processor in an hour of {3600 // USUAL_INTERVAL} rounds, s", f"{hour:.1f}", "", True),
        ("a round over `df` of the same mounts", f"{per_round / df:.2f}", f"at most {GOAL_CPU:g}", per_round <= GOAL_CPU * df),
        ("memory, MiB", f"{memory_after:.1f}", "", True),
        ("memory at the end over that after five rounds", f"{memory_after / memory:.2f}", f"at most {GOAL_MEMORY:g}",
         memory_after <= GOAL_MEMORY * memory),
    ]
    print(f"| watch, {arguments.mounts} mounts, {last - first} rounds | measured | goal | |\n|---|---|---|---|")
    for name, value, goal, met in rows:
        print(f"| {name} | {value} | {goal} | {'yes' if met else 'NO'} |")
    return 0 if all(met for _, _, _, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
