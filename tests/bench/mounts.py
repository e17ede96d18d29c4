#!/usr/bin/python3
"""What many mounts cost: `sharefs status` and `doctor` beside `df` and `findmnt`, `sharefs mount --all` beside `mount -a`, on
the lab's NFS.

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
PATIENCE = 20.0  # with df and findmnt, which wait as long as the server is away
DOCTOR_RATIO = 10.0
DOCTOR_LIMIT = 20.0
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


def bench_status(lab: Cluster, mounts: int, hung: int, runs: int) -> list[tuple[str, float, str, bool]]:
    """All well; then with `hung` of them from a second server, which falls silent."""
    node = lab["node1"]
    # Each with a superblock of its own, as mounts of different exports have it.
    node.run(
        f"for n in $(seq {mounts}); do mkdir -p /many/$n; s=server; [ $n -le {hung} ] && s=server2; "
        "mount -t nfs -o vers=4.2,nosharecache $s:/srv/share/$n /many/$n || exit 1; done",
        check=True,
        timeout=LONG,
    )

    def with_few_descriptors(command: str) -> float:  # the same shell for each, which costs a tenth of df here
        return best(runs, lambda: timed(node, f"sh -c 'ulimit -n {DESCRIPTORS}; {command}'"))

    def ours() -> float:
        return with_few_descriptors(f"sharefs status --timeout {DEADLINE:g}s")

    status = ours()
    rows = []
    for name, command in (("df", "df -t nfs4"), ("findmnt -D", "findmnt -D -t nfs4")):
        theirs = with_few_descriptors(command)
        rows.append((f"status over {name}, all healthy", status / theirs, f"at most {HEALTHY_RATIO:g}",
                     status <= HEALTHY_RATIO * theirs))
    limit = DEADLINE + HUNG_SLACK
    doctor = with_few_descriptors("sharefs doctor")
    rows.append((f"doctor over status, {mounts} healthy", doctor / status, f"at most {DOCTOR_RATIO:g}",
                 doctor <= DOCTOR_RATIO * status))
    lab.drop_traffic("server2")
    taken = ours()
    rows.append((f"status with {hung} of {mounts} hung, s", taken, f"at most {limit:g}", taken <= limit))
    for name, command in (("df", "df -t nfs4"), ("findmnt -D", "findmnt -D -t nfs4")):
        theirs = timed(node, f"timeout -s KILL {PATIENCE:g} {command}")
        rows.append((f"{name} with them, s (killed after {PATIENCE:g})", theirs, "", True))
    taken = best(1, lambda: timed(node, f"sharefs doctor --timeout {DEADLINE:g}s"))
    rows.append((f"doctor with {hung} of {mounts} hung, s", taken, f"at most {DOCTOR_LIMIT:g}", taken <= DOCTOR_LIMIT))
    lab.drop_traffic("server")
    taken = ours()
    rows.append(("status with all hung, s", taken, f"at most {limit:g}", taken <= limit))
    lab.restore_traffic("server")
    lab.restore_traffic("server2")
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
    parser.add_argument("--hung", type=int, default=50, help="of them; 50 if not given")
    parser.add_argument("--only", choices=("mount", "status"), help="one of the two tables")
    parser.add_argument("--runs", type=int, default=3, help="of each; the fastest counts")
    parser.add_argument("--retry", default="", help="option of fstab's lines, as `,retry=0`: mount -a gives up sooner")
    arguments = parser.parse_args()
    begin = time.monotonic()
    with Cluster(hosts=("server", "server2", "node1", "node2")) as lab:
        for name in ("server", "server2"):
            lab.start_nfs_server(name)
            lab[name].run(f"for n in $(seq {max(arguments.mounts, 28)}); do mkdir -p /srv/share/$n; done", timeout=LONG)
        rows = [] if arguments.only == "status" else bench_mount(lab, arguments.runs, arguments.retry)
        if arguments.only != "mount":
            rows += bench_status(lab, arguments.mounts, arguments.hung, arguments.runs)
    print("| what | measured | goal | |\n|---|---|---|---|")
    for name, value, goal, met in rows:
        print(f"| {name} | {value:.2f} | {goal} | {'yes' if met else 'NO'} |")
    print(f"{time.monotonic() - begin:.0f} s", file=sys.stderr)
    return 0 if all(met for _, _, _, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
