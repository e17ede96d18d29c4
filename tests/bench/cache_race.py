#!/usr/bin/python3
"""How many launches of a training script fail when several hosts build one dataset cache, with and without sharefs run.

Prints one row of a markdown table after the other, and what the hosts that failed died of. Exits with 1 if a launch
with sharefs run failed, read other data, or left an incomplete cache on the share.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "lab"))

from sharefslab import Cluster, LabError, missing_prerequisites  # noqa: E402
from sharefslab.cluster import host_names  # noqa: E402
from sharefslab.python_packages import DATASETS, find_python, interpreter  # noqa: E402
from sharefslab.race import DEFAULT_ROWS, DEFAULT_SKEW, NOLOCK, Race, Tally  # noqa: E402

COLUMNS = ("datasets", "hosts", "mount", "sharefs run", "launches", "failed", "killed", "differ", "median load")
PROGRESS_INTERVAL = 30.0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    versions = list(DATASETS)
    option("--version", nargs="+", choices=versions, default=["2.19.2"], help="releases of datasets [default: 2.19.2]")
    option("--hosts", nargs="+", type=int, choices=range(2, 9), default=[2], metavar="N", help="[default: 2]")
    option("--mount", nargs="+", default=[NOLOCK], metavar="OPTIONS", help=f"[default: {NOLOCK}]")
    option("--launches", type=int, default=60, metavar="N", help="of each kind [default: 60]")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--wrapped", action="store_true", help="only with sharefs run")
    kind.add_argument("--unwrapped", action="store_true", help="only without")
    option("--skew", type=float, default=DEFAULT_SKEW, metavar="S", help="latest start [default: %(default)s s]")
    option("--rows", type=int, default=DEFAULT_ROWS, metavar="N", help="of the data [default: %(default)s]")
    option("--seed", type=int, default=1, help="of the hosts' lateness [default: 1]")
    option("--json", action="store_true", help="a JSON document for each row instead of the table")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    missing = missing_prerequisites()
    if missing:
        print("error: the lab lacks: " + ", ".join(missing), file=sys.stderr)
        return 2
    if not arguments.json:
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    died_of: list[str] = []
    broken: list[str] = []
    for version, hosts in itertools.product(arguments.version, arguments.hosts):
        needed = DATASETS[version].python
        if needed and not find_python(needed):
            print(f"skipped: datasets {version} needs Python {needed}, which is not here", file=sys.stderr)
            continue
        for mount, wrapped, tally in measure(arguments, version, hosts):
            configuration = (version, str(hosts), mount, "yes" if wrapped else "no")
            if arguments.json:
                print(json.dumps(document(configuration, tally)), flush=True)
            else:
                print(f"| {' | '.join([*configuration, *figures(tally)])} |", flush=True)
            for error, count in tally.errors.most_common():
                died_of.append(f"- {', '.join(configuration)}: {count} x `{error}`")
            if wrapped and (tally.failed or tally.differing or tally.incomplete):
                broken.append(", ".join(configuration))
    if died_of and not arguments.json:
        print("\nWhat the hosts that failed died of:\n\n" + "\n".join(died_of))
    for configuration in broken:
        print(f"error: with sharefs run, launches failed or left incomplete caches on the share: {configuration}", file=sys.stderr)
    return 1 if broken else 0


def measure(arguments: argparse.Namespace, version: str, hosts: int) -> Iterator[tuple[str, bool, Tally]]:
    """All mounts, each without and with sharefs run, as far as they are asked for."""
    kinds = [wrapped for wrapped in (False, True) if not (arguments.unwrapped if wrapped else arguments.wrapped)]
    python = interpreter(DATASETS[version])
    with Cluster(hosts=host_names(hosts), memory=f"{1 + hosts // 2}G") as cluster:
        race = Race(cluster, arguments.skew, arguments.rows, arguments.seed)
        race.prepare()
        race.warm_up(python)
        for mount, wrapped in itertools.product(arguments.mount, kinds):
            race.mount(mount)
            yield mount, wrapped, race.run(arguments.launches, wrapped, Progress(arguments.launches))


class Progress:
    """A line on standard error now and then."""

    def __init__(self, launches: int) -> None:
        self._launches = launches
        self._last = time.monotonic()

    def __call__(self, tally: Tally) -> None:
        if time.monotonic() - self._last >= PROGRESS_INTERVAL:
            self._last = time.monotonic()
            print(f"{tally.launches} of {self._launches}, {tally.failed} failed", file=sys.stderr, flush=True)


def figures(tally: Tally) -> list[str]:
    """Of launches: all, failed. Of hosts: killed by a signal, went on with other data than was put in."""
    load = f"{tally.median_seconds:.2f} s" if tally.median_seconds is not None else "-"
    return [str(tally.launches), str(tally.failed), str(tally.killed), str(tally.differing), load]


def document(configuration: tuple[str, ...], tally: Tally) -> dict[str, object]:
    version, hosts, mount, wrapped = configuration
    return {
        "datasets": version,
        "hosts": int(hosts),
        "mount": mount,
        "wrapped": wrapped == "yes",
        "launches": tally.launches,
        "failed": tally.failed,
        "killed": tally.killed,
        "differing": tally.differing,
        "median_seconds": tally.median_seconds,
        "caches_on_share": tally.on_share,
        "incomplete_on_share": tally.incomplete,
        "caches_on_hosts": tally.on_hosts,
        "errors": dict(tally.errors.most_common()),
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (LabError, TimeoutError) as problem:
        sys.exit(f"error: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
