#!/usr/bin/python3
"""An environment as one file, beside its files one by one: every row of docs/conda-performance.md, "By image".

On nodes of the lab (kernel NFS, 4.2), with an environment of --files modules (tests/bench/conda.py makes it), each figure
the median of --rounds, all ways in turns: only the ratios mean something.
I1 to a node; I2 the same at 1 Gbit/s; I3 to the share, the making included; I4 a cold import of all modules, and 64
processes at once, with the requests to the server; I5 a generation with 1 % changed, ready on the share and on the node;
I6 a file of --megabytes to --nodes with --mbit Mbit/s each, by rsync from the server and handed on from node to node; I7
verify; I8 relocate, and verify of a tree, on this machine; I9 making the image, and verify again, on this machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conda import IMPORT, ROOT, SERIAL, bench_here, count_files, make_environment, sharefs, table, timed
from environmentslab.shared import Shared
from sharefslab.conda_program import conda_on_hosts

STORE = "/data/share/conda"
GENERATION = f"{STORE}/.generations/bench/0001"
CROWD = 100  # modules that each of 64 processes imports: their processor is one
EMPTY = "chmod -R u+w /local/own/* 2>/dev/null; rm -rf /local/own/*"
DROP = EMPTY + "; sharefs conda stage bench --remove --yes >/dev/null; rm -rf /local/staged/2001"
MKSQUASHFS = "f() { rm -f $2; mksquashfs $1 $2 -comp zstd -Xcompression-level 3 -mem 256M -quiet -no-progress; }; f"
FROM_SHARE = "sed '/^conda:/a\\  image_from_share: true' /etc/sharefs/sharefs.yaml >/tmp/from_share.yaml; sharefs --config /tmp/from_share.yaml mount --all --yes"
BY_FILES = "sed '/^conda:/a\\  image: off' /etc/sharefs/sharefs.yaml >/tmp/files.yaml; sharefs --config /tmp/files.yaml conda stage bench --yes"


class Bench:
    """One environment that alice has shared, and the node that everything is done on."""

    def __init__(self, arguments: argparse.Namespace, lab: Any, prefix: Path) -> None:
        self.rounds, self.lab, self.node = arguments.rounds, lab, lab["node1"]
        self.count = count_files(prefix)
        there = Path("/project") / prefix.relative_to(ROOT)
        home = "/home/alice/miniconda3/envs"
        self.do(f"mkdir -p {home} ~/miniconda3/conda-meta && cp -a {there} {home}/bench", "alice")
        self.do("umask 022; sharefs conda share bench --yes", "alice")
        self.do("mkdir -p /local/own /local/staged && chmod 1777 /local/own /local/staged")
        self.node.write_file("/tmp/import.py", IMPORT, mode=0o644)

    def do(self, command: str, user: str | None = None) -> str:
        return self.node.run(command, user=user, timeout=3000, check=True).out

    def run(self, command: str, user: str | None = "alice", before: str = "true") -> float:
        """Seconds, with nothing in the page cache."""
        return self.counted(command, user, before)[0]

    def requests(self) -> int:
        """To the server, since it was mounted."""
        xprts = self.do("sed -n '/ mounted on .data.share with/,/^device/p' /proc/self/mountstats | grep xprt:").splitlines()
        return sum(int(words[7]) for words in map(str.split, xprts) if words[1] == "tcp")  # "sends" of all connections (nconnect)

    def counted(self, command: str, user: str | None = "alice", before: str = "true") -> tuple[float, int]:
        """Seconds and requests. What the caches give up first, the server hears of, too (delegations)."""
        self.do(f"{before}; sync; echo 3 >/proc/sys/vm/drop_caches")
        requests, begin = self.requests(), time.perf_counter()
        self.do(command, user)
        return time.perf_counter() - begin, self.requests() - requests

    def wire(self, rate: str) -> None:
        """What the server sends."""
        self.lab._in_guest(f"tc qdisc replace dev {self.port('server')} root netem rate {rate} limit 10000; true", 30)
        self.lab.server.run(f"tc qdisc replace dev eth0 root netem rate {rate} limit 10000", check=True)

    def no_wire(self) -> None:
        self.lab.server.run("tc qdisc del dev eth0 root", check=False)
        self.lab.latency("server", 0)

    def port(self, name: str) -> str:
        from sharefslab import namespaces

        return namespaces._port(name)

    # The rows

    def to_node(self, title: str) -> None:
        table(f"I1: to a node: {title}", self.rounds, {
            "cp -a": lambda: self.run(f"cp -a {GENERATION} /local/own/copy", before=DROP),
            "conda stage, file by file": lambda: self.run(BY_FILES, None, DROP),
            "conda stage, by image": lambda: self.run("sharefs conda stage bench --yes", None, DROP),
            "cp of the image alone": lambda: self.run(f"cp {GENERATION}.sqfs /local/own/copy", before=DROP),
        }, "80, 200, 300 times cp -a at 0.5, 2, 10 ms; 20 times file by file")  # fmt: skip

    def at_a_gigabit(self) -> None:
        size = int(self.do(f"stat -c %s {GENERATION}.sqfs", "alice"))
        self.wire("1gbit")
        try:
            table(f"I2: {size >> 20} MiB at 1 Gbit/s ({size / 125e6:.2f} s by the wire alone)", self.rounds, {
                "cat": lambda: self.run(f"cat {GENERATION}.sqfs >/local/own/copy", before=DROP),
                "conda stage, by image": lambda: self.run("sharefs conda stage bench --yes", None, DROP),
            }, "90 % of the wire")  # fmt: skip
        finally:
            self.no_wire()

    def to_share(self, title: str) -> None:
        share = f"chmod -R u+w {STORE}/copy; rm -rf {STORE}/copy; rm -f {GENERATION}.sqfs*"
        self.do(f"sharefs conda stage bench --yes; {EMPTY}")
        self.do(f"cp -a {GENERATION} /local/own/source", "alice")
        table(f"I3: to the share: {title}", self.rounds, {
            "cp -a": lambda: self.run(f"cp -a /local/own/source {STORE}/copy", before=f"runuser -u alice -- sh -c '{share}'"),
            "mksquashfs alone, all on the local disk": lambda: self.run(f"{MKSQUASHFS} /local/own/source /local/own/image"),
            "cp of that image to the share": lambda: self.run(f"cp --remove-destination /local/own/image {STORE}/alone && sync {STORE}/alone"),
            "conda image": lambda: self.run("sharefs conda image bench --yes", before=f"runuser -u alice -- sh -c '{share}'"),
        }, "30 times at 0.5 ms, 100 times at 2 ms")  # fmt: skip

    def imports(self, title: str) -> None:
        """With what is told of the requests of the last round."""
        told: dict[str, int] = {}

        def way(name: str, command: str) -> Callable[[], float]:
            def once() -> float:
                seconds, told[name] = self.counted(command)
                return seconds
            return once

        run = "sharefs conda run bench -- python /tmp/import.py"
        self.do(f"{DROP}; {FROM_SHARE}")
        self.do(f"cp -a {GENERATION} /local/own/copy", "alice")
        lying = dict([("the image on the share", way("the image on the share", run))])
        table(f"I4: a cold import, the image on the share: {title}", self.rounds, lying, "one of the ways of the next table")
        crowd = f"for i in $(seq 64); do {run} {CROWD} & done; wait"
        _, told["64 processes, the image on the share"] = self.counted(crowd)
        self.do("sharefs conda stage bench --yes")
        table(f"I4: a cold import: {title}", self.rounds, {
            "a local disk": way("a local disk", "/local/own/copy/bin/python /tmp/import.py"),
            "the tree on the share": way("the tree on the share", f"{GENERATION}/bin/python /tmp/import.py"),
            "conda run, staged": way("conda run, staged", run),
        }, "staged within 1.13 times of local, at any round trip")  # fmt: skip
        _, told["64 processes, staged"] = self.counted(crowd)
        _, told["64 processes, the tree"] = self.counted(f"for i in $(seq 64); do {GENERATION}/bin/python /tmp/import.py {CROWD} & done; wait")
        print("| requests to the server | |\n|---|---|")
        for name, number in told.items():
            print(f"| {name} | {number} |")
        print("\nGoal: staged 0 but for the notes of `conda run`; 64 processes with the image on the share 300\n", flush=True)

    def changed(self, title: str) -> None:
        some = max(1, self.count // 100)
        change = f"cd $CONDA_PREFIX/lib/python3.11/site-packages/many && find . -name 'module*.py' | head -n {some} | while read f; do rm $f; echo changed >$f; done"
        update = f"sharefs conda update bench --no-verify --yes -- sh -c {shlex.quote(change)}"
        table(f"I5: {title}: {some} of them changed, on the share and on the node", self.rounds, {
            "cp -a": lambda: self.run(f"chmod -R u+w {STORE}/copy; rm -rf {STORE}/copy; cp -a {GENERATION} {STORE}/copy; cp -a {STORE}/copy /local/own/new; chmod -R u+w /local/own/new; rm -rf /local/own/new"),
            "conda update and stage": lambda: self.run(f"{update} && sharefs conda stage bench --yes", None),
        }, "the image anew in 3 s of processor for 762 MB")  # fmt: skip

    def verified(self, title: str) -> None:
        self.do("sharefs conda verify bench", "alice")
        present = f"$(readlink -f {STORE}/bench)"
        table(f"I7: verify: {title}", self.rounds, {
            "conda doctor": lambda: self.run(f"{conda_on_hosts()} doctor -p {present}"),
            "conda verify, every file (--files)": lambda: self.run("sharefs conda verify bench --files"),
            "conda verify, the image, files by size, time, inode": lambda: self.run("sharefs conda verify bench"),
            "sha256sum of the image": lambda: self.run(f"sha256sum {present}.sqfs"),
        }, "5 times conda doctor by image")  # fmt: skip


def made_here(arguments: argparse.Namespace, place: Path) -> None:
    """With the processors of this machine, and no network."""
    workshop, _ = make_environment(place, arguments.files)
    shared = Shared(workshop, place)
    shared.share()
    image, ours, processor = Path(f"{shared.generation}.sqfs"), [sharefs(), "--config", shared.config, "conda"], dict[str, float]()
    count, cores = count_files(shared.generation), len(os.sched_getaffinity(0))
    size = sum(path.lstat().st_size for path in shared.generation.rglob("*")) / 1e6

    def way(name: str, command: list[str | Path]) -> Callable[[], float]:
        def once() -> float:
            for path in [image, Path(f"{image}.json")]:
                path.unlink(missing_ok=True)
            subprocess.run(["sync", "-f", image.parent], check=True)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = timed(command)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            processor[name] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            return seconds
        return once

    table(f"I9: the image of {count} files, {size:.0f} MB, in the page cache, {cores} processors", arguments.rounds, {
        "mksquashfs alone": way("mksquashfs", ["sh", "-c", f"{MKSQUASHFS} {shared.generation} {place}/alone"]),
        "sharefs conda image": way("conda image", [*ours, "image", "env", "--yes"]),
    }, "3 s of processor for 762 MB")  # fmt: skip
    print("Processor, s: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in processor.items()) + "\n", flush=True)
    table(f"I9: verify again: {count} files in the page cache, {cores} processors", arguments.rounds, {
        "sha256 in Python": lambda: timed([workshop.python / "bin/python", "-c", SERIAL, shared.generation]),
        "conda verify, every file (--files)": lambda: timed([*ours, "verify", "env", "--files"]),
        "conda verify, the image, files by size, time, inode": lambda: timed([*ours, "verify", "env"]),
    }, "twice a serial pass")  # fmt: skip


def handed_on(arguments: argparse.Namespace) -> None:
    """A chain beside a star."""
    from sharefslab import Cluster, namespaces, nfs
    from sharefslab.cluster import host_names
    from sharefslab.fleet import fleet_config, trust_all
    from sharefslab.product import CONFIG_PATH, SHARE, done

    data = f"{SHARE}/data"
    nodes = arguments.nodes
    with Cluster(hosts=host_names(nodes), memory=f"{4 + arguments.megabytes // 50}G") as lab:
        trust_all(lab)
        config = fleet_config(more=f"stage: {{store: {SHARE}/images}}\n").replace("node[1-4]", f"node[1-{nodes}]")
        for host in lab:
            host.write_file(CONFIG_PATH, config, mode=0o644)
        server = lab.server
        for node in lab.nodes:
            for name in ("id_ed25519", "id_ed25519.pub"):
                node.write_file(f"/root/.ssh/{name}", server.read_file(f"/root/.ssh/{name}"), mode=0o600)
        for words in (["nodes", "trust", "--accept", "--yes"], ["nodes", "push", "--yes"], ["export", "--all", "--yes"], ["nodes", "trust", "clients", "--mesh", "--accept", "--yes"]):
            done(server, *words, timeout=600)
        done(server, "--on", "clients", "mount", "--all", "--yes", timeout=300)
        lab["node1"].run(f"mkdir -p {data} && for i in $(seq 64); do head -c {arguments.megabytes << 14} /dev/urandom >{data}/$i; done", user="alice", check=True, timeout=300)
        done(lab["node1"], "stage", data, "--pack", "--yes", timeout=300)
        for host in lab:
            lab._in_guest(f"tc qdisc replace dev {namespaces._port(host.name)} root netem rate {arguments.mbit}mbit limit 1000; true", 30)
            host.run(f"tc qdisc replace dev eth0 root netem rate {arguments.mbit}mbit limit 1000", check=True)
        image = server.run(f"ls {nfs.SHARE}/images/*.sqfs", check=True).out.strip()
        size = int(server.run(f"stat -c %s {image}", check=True).out)
        sent: list[int] = []

        def count_sent() -> int:
            return int(server.read_text("/sys/class/net/eth0/statistics/tx_bytes"))

        def star() -> float:
            for node in lab.nodes:
                node.run("rm -rf /local/copy", check=True)
            begin = time.perf_counter()
            server.run(f"for n in $(seq {nodes}); do rsync -a {image} node$n:/local/copy & done; wait", check=True, timeout=900)
            return time.perf_counter() - begin

        def chain() -> float:
            server.run(["sharefs", "--on", "clients", "stage", "--drop", data, "--yes"], timeout=300)
            before, begin = count_sent(), time.perf_counter()
            staged = server.run(["sharefs", "--on", "clients", "stage", data, "--yes"], timeout=900)
            if not staged.ok:  # many nodes on one processor: some get no turn within their deadlines
                print(staged.out, flush=True)
                done(server, "nodes", "resume", "--yes", timeout=900)
            sent.append(count_sent() - before)
            return time.perf_counter() - begin

        table(f"I6: {size >> 20} MiB to {nodes} nodes, {arguments.mbit} Mbit/s each", arguments.rounds, {
            "rsync from the server": star,
            "--on NODES stage (looking at all of it included)": chain,
        }, "3 times rsync")  # fmt: skip
        print(f"The server has sent {max(sent) / size:.2f} times its size. Goal: 2\n", flush=True)


def bench(arguments: argparse.Namespace, place: Path) -> int:
    from sharefslab import Cluster, missing_prerequisites, namespaces
    from sharefslab.product import config_text, export_and_mount

    missing = missing_prerequisites()
    if missing:
        print("error: the lab lacks: " + ", ".join(missing), file=sys.stderr)
        return 2
    os.environ["SHAREFS_BIN"] = str(sharefs())
    wants = set(arguments.only)
    megabytes = arguments.files // 20 + 500  # of the environment, and more than that
    namespaces.disk_size = namespaces.share_size = f"{4 * megabytes}M"
    if wants - {"I6", "I8", "I9"}:
        _, prefix = make_environment(place, arguments.files)
        with Cluster(hosts=("server", "node1", "node2"), memory=f"{2000 + 6 * megabytes}M") as lab:
            export_and_mount(lab, config_text().replace("conda:\n", "conda:\n  stage: /local/staged\n").replace("llm_train", "bench"))
            lab.server.run("rpc.nfsd 16", check=True)
            its = Bench(arguments, lab, prefix)
            rows: dict[str, Callable[[str], None]] = {"I1": its.to_node, "I3": its.to_share, "I4": its.imports, "I7": its.verified, "I5": its.changed}
            for rtt in arguments.rtt:
                lab.latency("server", rtt)
                for name, row in rows.items():
                    if name in wants:
                        row(f"{its.count} files, {rtt:g} ms added to each round trip")
            if "I2" in wants:
                its.at_a_gigabit()
    if "I6" in wants:
        handed_on(arguments)
    if "I8" in wants:
        other = place / "here"
        other.mkdir()
        bench_here(arguments, other)
    if "I9" in wants:
        other = place / "made"
        other.mkdir()
        made_here(arguments, other)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=3000, metavar="N", help="modules [default: %(default)s]")
    parser.add_argument("--megabytes", type=int, default=64, metavar="N", help="to the nodes [default: %(default)s]")
    parser.add_argument("--nodes", type=int, default=8, metavar="N", help="[default: %(default)s]")
    parser.add_argument("--mbit", type=int, default=100, metavar="N", help="of each node [default: %(default)s]")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of each [default: %(default)s]")
    parser.add_argument("--rtt", type=float, nargs="*", default=[0.5, 2, 10], metavar="MS", help="added to the round trip [default: 0.5 2 10]")
    parser.add_argument("--only", nargs="*", default=[f"I{number}" for number in range(1, 10)], metavar="NAME")
    arguments = parser.parse_args()
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="b") as place:
        Path(place).chmod(0o755)
        return bench(arguments, Path(place))


if __name__ == "__main__":
    sys.exit(main())
