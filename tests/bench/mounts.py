#!/usr/bin/python3
"""What many mounts cost: `sharefs status` beside `df`, `sharefs mount --all` beside `mount -a`, on the lab's NFS.

One guest, one run, ratios. Prints a markdown table; exits with 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lab"))

from sharefslab import Cluster, Host  # noqa: E402

HEALTHY_RATIO = 2.0  # status at most so many times df
DEADLINE = 2.0  # of status, seconds
HUNG_SLACK = 2.0
MOUNT_RATIO = 5.0  # mount --all so many times faster than mount -a
DESCRIPTORS = 256
LONG = 1800.0

# Addresses of the lab's network that nobody has: packets to them get no answer.
DEAD = [f"10.77.0.{200 + number}" for number in range(4)]


def timed(host: Host, command: str) -> float:
    """Seconds that `command` takes on the host, whatever its exit code, as the host's own clock has them."""
    script = f"begin=$(date +%s.%N); {command} >/dev/null 2>&1 </dev/null; end=$(date +%s.%N); echo $begin $end"
    begin, end = host.run(script, check=True, timeout=LONG).out.split()
    return float(end) - float(begin)


def best(runs: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(runs))


def write_config(host: Host, sources: list[tuple[str, str]], retry: str) -> None:
    """sharefs.yaml and fstab with a mount for each (server, path)."""
    lines = ["version: 1", "mounts:"]
    fstab = []
    for number, (server, path) in enumerate(sources):
        lines.append(f'  m{number}: {{from: "{server}:{path}", at: /bench/{number}, options: [vers=4.2]}}')
        fstab.append(f"{server}:{path} /bench/{number} nfs rw,hard,nosuid,nodev,vers=4.2,proto=tcp,nconnect=4{retry} 0 0")
    host.write_file("/etc/sharefs/sharefs.yaml", "\n".join(lines) + "\n")
    host.write_file("/etc/fstab", "\n".join(fstab) + "\n")
    host.run("for n in $(seq 0 %d); do mkdir -p /bench/$n; done" % (len(sources) - 1), check=True, timeout=LONG)


def unmount_all(host: Host) -> None:
    host.run("for n in /bench/*; do umount -f -l $n 2>/dev/null; done; true", timeout=LONG)


def bench_status(lab: Cluster, mounts: int, runs: int) -> list[tuple[str, float, str, bool]]:
    node = lab["node1"]
    # Each with a superblock of its own, as mounts of different exports have it.
    node.run(
        f"for n in $(seq {mounts}); do mkdir -p /many/$n; "
        "mount -t nfs -o vers=4.2,nosharecache server:/srv/share/$n /many/$n || exit 1; done",
        check=True,
        timeout=LONG,
    )
    # Both behind the same shell, which costs a tenth of df here.
    df = best(runs, lambda: timed(node, f"sh -c 'ulimit -n {DESCRIPTORS}; df -t nfs4'"))
    status = best(runs, lambda: timed(node, f"sh -c 'ulimit -n {DESCRIPTORS}; sharefs status --timeout {DEADLINE:g}s'"))
    rows = [("status over df, all healthy", status / df, f"at most {HEALTHY_RATIO:g}", status <= HEALTHY_RATIO * df)]
    lab.drop_traffic("server")
    hung = timed(node, f"sh -c 'ulimit -n {DESCRIPTORS}; sharefs status --timeout {DEADLINE:g}s'")
    limit = DEADLINE + HUNG_SLACK
    rows.append(("status with all hung, s", hung, f"at most {limit:g}", hung <= limit))
    lab.restore_traffic("server")
    return rows


def bench_mount(lab: Cluster, runs: int, retry: str) -> list[tuple[str, float, str, bool]]:
    node = lab["node2"]
    sources = [("10.77.0.1", f"/srv/share/{number}") for number in range(1, 29)]
    for index, dead in enumerate(DEAD):
        sources.insert(8 * index, (dead, "/srv/share"))  # not at the end: mount -a waits for each where it stands
    write_config(node, sources, retry)

    def with_mount() -> float:
        unmount_all(node)
        return timed(node, "mount -a -t nfs")

    def with_sharefs() -> float:
        unmount_all(node)
        return timed(node, "sharefs mount --all --yes")

    ours = best(runs, with_sharefs)
    mounted = int(node.run("grep -c ' /bench/' /proc/mounts", check=True).out)
    theirs = with_mount()
    print(f"mounted by sharefs: {mounted} of 28; mount -a {theirs:.1f} s, sharefs {ours:.1f} s", file=sys.stderr)
    ratio = theirs / ours
    return [("mount -a over mount --all, 4 of 32 servers dead", ratio, f"at least {MOUNT_RATIO:g}", ratio >= MOUNT_RATIO)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mounts", type=int, default=1000, help="for status; 1000 if not given")
    parser.add_argument("--runs", type=int, default=3, help="of each; the fastest counts")
    parser.add_argument("--retry", default="", help="option of fstab's lines, as `,retry=0`: mount -a gives up sooner")
    arguments = parser.parse_args()
    begin = time.monotonic()
    with Cluster(hosts=("server", "node1", "node2")) as lab:
        lab.start_nfs_server()
        lab.server.run(f"for n in $(seq {max(arguments.mounts, 28)}); do mkdir -p /srv/share/$n; done", timeout=LONG)
        rows = bench_mount(lab, arguments.runs, arguments.retry) + bench_status(lab, arguments.mounts, arguments.runs)
    print("| what | measured | goal | |\n|---|---|---|---|")
    for name, value, goal, met in rows:
        print(f"| {name} | {value:.2f} | {goal} | {'yes' if met else 'NO'} |")
    print(f"{time.monotonic() - begin:.0f} s", file=sys.stderr)
    return 0 if all(met for _, _, _, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
