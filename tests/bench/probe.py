#!/usr/bin/python3
"""How long `sharefs probe HOST:/path` takes beside what it stands for: rpcinfo, showmount, and a mount that is ended again.

On the lab's NFS, in turns in one run: only the ratio means something. Exits with 1 if it is below --goal.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lab"))

from sharefslab import Cluster, missing_prerequisites  # noqa: E402

SHARE = "server:/srv/share"
GOAL = 5.0
PROGRAMS = {
    "sharefs probe": ["sharefs probe " + SHARE],
    "by hand, version 3": [
        "rpcinfo -p server",
        "showmount -e server",
        f"mount -t nfs -o vers=3,nolock {SHARE} /mnt/bench",
        "umount /mnt/bench",
    ],
    "by hand, version 4": [
        "rpcinfo -p server",
        "showmount -e server",
        f"mount -t nfs -o vers=4.2 {SHARE} /mnt/bench",
        "umount /mnt/bench",
    ],
}

# Runs on the node, so that what the lab takes to start a command there does not count.
WORKER = """
import json, os, subprocess, sys, time
programs, rounds = json.load(sys.stdin)
os.makedirs("/mnt/bench", exist_ok=True)
times = {name: [] for name in programs}
for turn in range(rounds + 1):
    for name, commands in programs.items():
        begin = time.perf_counter()
        for command in commands:
            done = subprocess.run(command.split(), capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                sys.exit(f"`{command}` ended with {done.returncode}: {done.stderr}")
        if turn > 0:  # the first round warms caches up
            times[name].append(1000 * (time.perf_counter() - begin))
print(json.dumps({name: sorted(values)[len(values) // 2] for name, values in times.items()}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="of each [default: %(default)s]")
    parser.add_argument("--goal", type=float, default=GOAL, metavar="RATIO", help="[default: %(default)s]")
    arguments = parser.parse_args()
    missing = missing_prerequisites()
    if missing:
        print("error: the lab lacks: " + ", ".join(missing), file=sys.stderr)
        return 2
    with Cluster(hosts=("server", "node1")) as lab:
        lab.start_nfs_server()
        done = lab["node1"].run(
            ["/usr/bin/python3", "-S", "-c", WORKER],
            input=json.dumps([PROGRAMS, arguments.rounds]),
            timeout=600,
            check=True,
        )
    medians = json.loads(done.out)
    own = medians["sharefs probe"]
    print("| commands | median, ms | ratio to `sharefs probe` |\n|---|---|---|")
    for name, median in medians.items():
        print(f"| {name} | {median:.1f} | {median / own:.1f} |")
    return 0 if min(median for name, median in medians.items() if name != "sharefs probe") / own >= arguments.goal else 1


if __name__ == "__main__":
    sys.exit(main())
