#!/usr/bin/python3
"""An environment as one file, beside its files one by one: the goals of docs/conda-performance.md, "By image".

On nodes of the lab (kernel NFS, 4.2), with an environment of --files modules (tests/bench/conda.py makes it), each figure
the median of --rounds, all ways in turns: only the ratios mean something.
I1 to a node; I2 to the share, the making included; I3 a cold import of all modules, with the requests to the server;
I4 64 processes at once; I5 a generation with 1 % changed, ready on the share and on the node; I6 to eight nodes with
100 Mbit/s each, by rsync from the server and handed on from node to node; I7 verify.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from conda import IMPORT, PREFIX, ROOT, count_files, make_environment, sharefs, table

GENERATION = "/data/share/conda/.generations/bench/0001"


def requests(node: object) -> int:
    """To the server, since it was mounted."""
    text = node.run("grep -A1000 ' /data/share ' /proc/self/mountstats | grep -m1 'xprt:'", check=True).out  # type: ignore[attr-defined]
    return int(text.split()[9 if " tcp " in text else 8])


def bench(arguments: argparse.Namespace, place: Path) -> int:
    from sharefslab import Cluster, missing_prerequisites
    from sharefslab.product import config_text, export_and_mount

    missing = missing_prerequisites()
    if missing:
        print("error: the lab lacks: " + ", ".join(missing), file=sys.stderr)
        return 2
    os.environ["SHAREFS_BIN"] = str(sharefs())
    _, prefix = make_environment(place, arguments.files)
    count = count_files(prefix)
    there = Path("/project") / prefix.relative_to(ROOT)
    with Cluster(hosts=("server", "node1", "node2"), memory="2500M") as lab:
        export_and_mount(lab, config_text().replace("conda:\n", "conda:\n  stage: /local/staged\n"))
        lab.server.run("rpc.nfsd 16", check=True)
        node = lab["node1"]
        home = "/home/alice/miniconda3/envs"
        node.run(f"mkdir -p {home} ~/miniconda3/conda-meta && cp -a {there} {home}/bench", user="alice", timeout=600, check=True)
        node.run("umask 022; sharefs conda share bench --yes", user="alice", timeout=1200, check=True)
        node.run("mkdir -p /local/own /local/staged", check=True)
        node.write_file("/tmp/import.py", IMPORT, mode=0o644)

        def run(command: str, user: str | None = "alice", before: str = "true") -> float:
            node.run(f"{before}; sync; echo 3 >/proc/sys/vm/drop_caches", timeout=1200, check=True)
            begin = time.perf_counter()
            node.run(command, user=user, timeout=3000, check=True)
            return time.perf_counter() - begin

        drop = "chmod -R u+w /local/own/* 2>/dev/null; rm -rf /local/own/*; sharefs conda stage bench --remove --yes >/dev/null"
        by_files = "sed '/^conda:/a\\  image: off' /etc/sharefs/sharefs.yaml >/tmp/files.yaml; sharefs --config /tmp/files.yaml conda stage bench --yes"
        node.run("chmod 1777 /local/own", check=True)
        for rtt in arguments.rtt:
            lab.latency("server", rtt)
            title = f"{count} files, {rtt:g} ms added to each round trip"
            if "I1" in arguments.only:
                table(f"I1: to a node: {title}", arguments.rounds, {
                    "cp -a": lambda: run(f"cp -a {GENERATION} /local/own/copy", before=drop),
                    "conda stage, file by file": lambda: run(by_files, None, drop),
                    "conda stage, by image": lambda: run("sharefs conda stage bench --yes", None, drop),
                }, "80, 200, 300 times cp -a at 0.5, 2, 10 ms; 20 times file by file")  # fmt: skip
            if "I2" in arguments.only:
                share = f"chmod -R u+w {PREFIX}.copy; rm -rf {PREFIX}.copy; rm -f {GENERATION}.sqfs*"
                node.run("sharefs conda stage bench --yes", timeout=1200, check=True)
                table(f"I2: to the share: {title}", arguments.rounds, {
                    "cp -a": lambda: run(f"{share}; cp -a {home}/bench {PREFIX}.copy"),
                    "conda image (from the staged copy)": lambda: run(f"{share}; sharefs conda image bench --yes"),
                }, "30 times at 0.5 ms, 100 times at 2 ms")  # fmt: skip
            if "I3" in arguments.only:
                node.run(f"{drop}; cp -a {GENERATION} /local/own/copy; sharefs conda stage bench --yes", timeout=1200, check=True)
                sent: dict[str, int] = {}

                def cold(name: str, command: str) -> float:
                    before = requests(node)
                    seconds = run(command)
                    sent[name] = requests(node) - before
                    return seconds

                ways: dict[str, Callable[[], float]] = {
                    "a local disk": lambda: cold("a local disk", "/local/own/copy/bin/python /tmp/import.py"),
                    "the tree on the share": lambda: cold("the tree on the share", f"{GENERATION}/bin/python /tmp/import.py"),
                    "conda run, staged": lambda: cold("conda run, staged", "sharefs conda run bench -- python /tmp/import.py"),
                }
                table(f"I3: a cold import: {title}", arguments.rounds, ways, "staged within 1.13 times of local, at any round trip")
                print("requests:", ", ".join(f"{name} {number}" for name, number in sent.items()), "\n")
            if "I4" in arguments.only:
                before = requests(node)
                run("for i in $(seq 64); do sharefs conda run bench -- python /tmp/import.py & done; wait")
                print(f"I4: 64 processes, staged, cold: {requests(node) - before} requests\nGoal: 0 (but for their notes)\n", flush=True)
            if "I7" in arguments.only:
                node.run(f"sharefs conda verify bench", user="alice", timeout=1200)
                table(f"I7: verify: {title}", arguments.rounds, {
                    "every file (--files)": lambda: run("sharefs conda verify bench --files"),
                    "by size, time, inode, and the image": lambda: run("sharefs conda verify bench"),
                    "sha256sum of the image": lambda: run(f"sha256sum {GENERATION}.sqfs"),
                }, "5 times conda doctor (tests/bench/conda.py) by image")  # fmt: skip
            if "I5" in arguments.only:
                change = f"cd $CONDA_PREFIX/lib/python3.11/site-packages/many && find . -name 'module*.py' | head -n {max(1, count // 100)} | while read f; do rm $f; echo changed >$f; done"
                table(f"I5: {title}: {count // 100} of them changed, on the share and on the node", arguments.rounds, {
                    "cp -a": lambda: run(f"chmod -R u+w {PREFIX}.copy; rm -rf {PREFIX}.copy; cp -a {GENERATION} {PREFIX}.copy"),
                    "conda update and stage": lambda: run(f"runuser -u alice -- sharefs conda update bench --no-verify --yes -- sh -c {shlex.quote(change)}"
                                                          " && sharefs conda stage bench --yes", None),
                }, "as fast as the wire: the image anew in 3 s of processor for 762 MB")  # fmt: skip
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=3000, metavar="N", help="modules [default: %(default)s]")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of each [default: %(default)s]")
    parser.add_argument("--rtt", type=float, nargs="*", default=[0.5, 2], metavar="MS", help="added to the round trip [default: 0.5 2]")
    parser.add_argument("--only", nargs="*", default=["I1", "I2", "I3", "I4", "I7", "I5"], metavar="NAME")
    arguments = parser.parse_args()
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="b") as place:
        Path(place).chmod(0o755)
        return bench(arguments, Path(place))


if __name__ == "__main__":
    sys.exit(main())
