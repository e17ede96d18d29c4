"""Launches of a training script on several hosts at once, with Hugging Face `datasets` and one cache directory.

A launch is `python3 train.py --cache_dir SHARED/N ...` on every host, or `sharefs run -- python3 train.py ...`.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from .cluster import BaseCluster
from .errors import CommandTimeout, LabError
from .host import Completed, Host, Job
from .paths import LAB_DIRECTORY
from .product import CONFIG_PATH, SHARE
from .python_packages import Interpreter
from .wait import wait_until

USER = "alice"
DIRECTORY = f"{SHARE}/race"  # on the share: the script, its data, and the caches
CACHES = f"{DIRECTORY}/cache"
SERVER_CACHES = "/srv/share/race/cache"  # the same, on the server
LOCAL = "/local/cache"  # what sharefs.yaml says: where caches of a host's own go
WORKER = "/project/tests/lab/race_worker.py"
WARM_BIN = "/local/race/bin"
WARM_OUTPUTS = "/local/race/outputs"
WARM_PORT = 7001  # race_python.sh has it, too
BARRIER_PORT = 7000
WARM_UP_TIMEOUT = 400.0
LAUNCH_TIMEOUT = 260.0  # more than a launch gives itself
LAUNCHES_BETWEEN_SWEEPS = 2

NOLOCK = "vers=3,nolock"  # no lock of one host is seen by another

# A host is as late as hosts are: by chance, and each launch anew.
DEFAULT_SKEW = 0.6
DEFAULT_ROWS = 5000

TRAIN = """\
import argparse, hashlib, json, os, socket, time
from datasets import load_dataset

parser = argparse.ArgumentParser()
parser.add_argument("--cache_dir")
parser.add_argument("--train_file", required=True)
args = parser.parse_args()

# All hosts of the launch have come this far; then each goes on when it happens to.
address, port = os.environ["RACE_BARRIER"].split(":")
with socket.create_connection((address, int(port)), timeout=200) as barrier:
    barrier.sendall(os.environ["RACE_LAUNCH"].encode())
    if barrier.recv(2) != b"go":
        raise SystemExit("the barrier is gone")
time.sleep(float(os.environ["RACE_DELAY"]))

print("loading", flush=True)
started = time.monotonic()
train = load_dataset("json", data_files=args.train_file, cache_dir=args.cache_dir)["train"]
seconds = time.monotonic() - started
table = train.with_format("arrow")[:]
rows = list(zip(table.column("id").to_pylist(), table.column("text").to_pylist()))
print(json.dumps({"seconds": seconds, "rows": len(rows), "digest": hashlib.sha256(repr(rows).encode()).hexdigest()}))
"""

# Loads a small dataset, and writes down what that imported. Runs on the outer machine, and leaves nothing there.
IMPORTS = """\
import os, sys, tempfile

with tempfile.TemporaryDirectory() as directory:
    os.environ.update(HF_HOME=directory, HF_DATASETS_OFFLINE="1", HF_HUB_OFFLINE="1")
    from datasets import load_dataset

    with open(f"{directory}/data.json", "w") as data:
        data.write('{"id": 0, "text": ""}\\n')
    load_dataset("json", data_files=data.name, cache_dir=directory)["train"].with_format("arrow")[:]
with open(sys.argv[1], "w") as names:
    names.write("\\n".join(sys.modules))
"""


def make_rows(count: int) -> list[tuple[int, str]]:
    """The same on every machine."""
    generator = random.Random(1)
    return [(number, f"{generator.getrandbits(800):x}") for number in range(count)]


def digest_of(rows: list[tuple[int, str]]) -> str:
    """As the script computes it."""
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def start_warm_interpreters(
    cluster: BaseCluster,
    interpreter: Interpreter,
    users: Mapping[str, str],
    imports: str,
    environment: Mapping[str, str],
    *arguments: str,
) -> None:
    """On the hosts in `users` (host: who may use it) `WARM_BIN/python3` becomes a Python that has imported all that
    `imports` does. It is a script that writes down its modules; it runs on the outer machine, with the file's name and
    `arguments`."""
    modules = cluster.share / "modules"
    interpreter.run(imports, str(modules), *arguments, problem="no dataset can be loaded")
    python = (LAB_DIRECTORY / "race_python.sh").read_text(encoding="utf-8")
    command = [f"{interpreter.bin}/python3", WORKER, "serve", str(WARM_PORT), WARM_OUTPUTS, f"/share/{modules.name}"]
    jobs: list[tuple[Host, Job]] = []
    for name, user in users.items():
        node = cluster[name]
        node.write_file(f"{WARM_BIN}/python3", python, mode=0o755)
        node.run(["install", "-d", "-o", user, WARM_OUTPUTS], check=True)
        jobs.append((node, node.start(command, user=user, env=environment)))
    for node, job in jobs:
        wait_until(
            lambda job=job: b"ready\n" in job.stdout() or not job.running(),  # type: ignore[misc]
            WARM_UP_TIMEOUT,
            what=f"the warm interpreter of {node.name} is ready",
        )
        if not job.running():
            raise LabError(f"the warm interpreter of {node.name} has ended:\n{job.wait()}")


@dataclass(frozen=True)
class Outcome:
    """How a launch went on one host."""

    host: str
    completed: Completed
    expected_digest: str

    def __post_init__(self) -> None:
        # Who did not get as far as to load has not lost a race: something of the lab is broken.
        if not self.completed.out.startswith("loading"):
            raise LabError(f"{self.host} did not begin to load:\n{self.completed}")

    @property
    def ok(self) -> bool:
        return self.completed.ok

    def _result(self) -> dict[str, Any]:
        return json.loads(self.completed.out.splitlines()[-1])

    @property
    def identical(self) -> bool:
        """Whether it read what was put in."""
        return self.ok and self._result()["digest"] == self.expected_digest

    @property
    def seconds(self) -> float:
        """The time in load_dataset."""
        return float(self._result()["seconds"])

    @property
    def error(self) -> str:
        """What it died of, without what differs from launch to launch."""
        return "" if self.ok else error_of(self.completed)


def error_of(completed: Completed) -> str:
    if completed.returncode < 0:
        return f"killed by signal {-completed.returncode}"
    exception = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Invalid)\b")
    lines = [line for line in completed.err.splitlines() if exception.match(line)]
    if not lines:
        return f"exit code {completed.returncode}"
    # The last line of a chain is datasets' wrapping around what happened.
    wraps = "DatasetGenerationError" in lines[-1] and len(lines) > 1
    return _without_names(lines[-2] if wraps else lines[-1])


def _without_names(line: str) -> str:
    """Only the ends of paths, as [Errno 2] ...: '.../HASH.incomplete/dataset_info.json'."""
    line = re.sub(r"[0-9a-f]{16,}", "HASH", line)
    line = re.sub(r"'/[^']*/(?=HASH)", "'.../", line)
    return line[:160]


@dataclass(frozen=True)
class Launch:
    outcomes: tuple[Outcome, ...]

    @property
    def failed(self) -> bool:
        """A launch needs all of its hosts."""
        return not all(outcome.ok for outcome in self.outcomes)

    @property
    def differing(self) -> int:
        """Hosts that went on, with wrong data."""
        return sum(outcome.ok and not outcome.identical for outcome in self.outcomes)


@dataclass(frozen=True)
class Swept:
    """What there was of caches: on the share, and the hosts' own."""

    shared: list[str]
    incomplete: list[str]  # on the share
    local: dict[str, list[str]]  # by host


@dataclass
class Tally:
    """What came of many launches."""

    launches: int = 0
    failed: int = 0
    killed: int = 0
    differing: int = 0
    on_share: int = 0  # caches that were found there
    incomplete: int = 0  # in them
    on_hosts: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def add(self, launch: Launch) -> None:
        self.launches += 1
        self.failed += launch.failed
        self.differing += launch.differing
        self.killed += sum(outcome.completed.returncode < 0 for outcome in launch.outcomes)
        self.errors.update(outcome.error for outcome in launch.outcomes if not outcome.ok)
        self.seconds += [outcome.seconds for outcome in launch.outcomes if outcome.ok]

    def add_swept(self, swept: Swept) -> None:
        self.on_share += len(swept.shared)
        self.incomplete += len(swept.incomplete)
        self.on_hosts += sum(len(paths) for paths in swept.local.values())

    @property
    def median_seconds(self) -> float | None:
        return median(self.seconds) if self.seconds else None


class Race:
    """Launches on all nodes of a cluster that exports and mounts nothing yet.

    `prepare` comes first.
    """

    def __init__(
        self,
        cluster: BaseCluster,
        skew: float = DEFAULT_SKEW,
        rows: int = DEFAULT_ROWS,
        seed: int = 1,
    ) -> None:
        self.cluster = cluster
        self.skew = skew
        self._path = ""
        self._python: Interpreter  # since warm_up
        self._rows = make_rows(rows)
        self._digest = digest_of(self._rows)
        self._random = random.Random(seed)
        self._launches = 0
        self._unswept = 0

    # Before the launches

    def prepare(self, mount: str = NOLOCK) -> None:
        """Server, mounts, script and data. Waits until the server grants locks."""
        cluster = self.cluster
        cluster.start_nfs_server()
        cluster.start_lock_daemons()
        cluster.warm_locks()
        data = "".join(json.dumps({"id": number, "text": text}) + "\n" for number, text in self._rows)
        self.mount(mount)
        for node in cluster.nodes:
            node.run(f"mkdir -p -m 1777 {LOCAL}", check=True)
            node.write_file(CONFIG_PATH, f"version: 1\ncaches:\n  local: {LOCAL}\n", mode=0o644)
        first = cluster.nodes[0]
        self._path = first.run("echo $PATH", user=USER, check=True).out.strip()
        first.run(f"install -d -o {USER} {DIRECTORY}", check=True)
        first.run(f"cat >{DIRECTORY}/data.json", user=USER, input=data, check=True)
        first.run(f"cat >{DIRECTORY}/train.py", user=USER, input=TRAIN, check=True)
        port, parties = str(BARRIER_PORT), str(len(cluster.nodes))
        cluster.server.start(["/usr/bin/python3", WORKER, "barrier", port, parties])

    def mount(self, options: str) -> None:
        """Mounts the share on all nodes, in place of what they have mounted."""
        for node in self.cluster.nodes:
            unmount = f"if mountpoint -q {SHARE}; then umount {SHARE}; fi; mkdir -p {SHARE}"
            node.run(f"set -e; {unmount}; mount -t nfs -o {options} server:/srv/share {SHARE}", check=True)

    def warm_up(self, interpreter: Interpreter) -> None:
        """Starts a warm interpreter on each node, one of the Python that all launches are of."""
        self._python = interpreter
        users = {node.name: USER for node in self.cluster.nodes}
        start_warm_interpreters(self.cluster, interpreter, users, IMPORTS, self._environment())

    @property
    def python(self) -> Interpreter:
        return self._python

    @property
    def environment(self) -> dict[str, str]:
        return self._environment()

    def _environment(self) -> dict[str, str]:
        """What every launch has: nothing is asked of the internet, and nothing drawn."""
        switches = ("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE", "HF_DATASETS_DISABLE_PROGRESS_BARS", "TQDM_DISABLE")
        return {**dict.fromkeys(switches, "1"), **self._python.environment}

    # A launch

    def arguments(self, cache: str) -> list[str]:
        return [f"{DIRECTORY}/train.py", "--cache_dir", cache, "--train_file", f"{DIRECTORY}/data.json"]

    def launch(
        self,
        wrapped: bool,
        cold: bool = False,
        cache: str | None = None,
        options: Sequence[str] = (),
        environment: Mapping[str, str] = {},
    ) -> Launch:
        """One launch on all nodes. Wrapped: by `sharefs run`, with `options`.

        With `cold`, python3 is the interpreter itself; else one that has read its modules (race_worker.py).
        Without `cache`, the cache directory is one that no launch since the last `sweep` has had.
        """
        self._launches += 1
        self._unswept += 1
        # sharefs names a host's own directory after the shared one, and sets variables to it. Few names mean few
        # environments, for each of which a warm interpreter imports datasets.
        cache = cache or f"{CACHES}/" + (f"again-{self._unswept}" if wrapped else f"new-{self._launches}")
        command = [*(["sharefs", "run", "-q", *options, "--"] if wrapped else []), "python3", *self.arguments(cache)]
        jobs = []
        for node in self.cluster.nodes:
            settings = {
                "PATH": f"{self._python.bin if cold else WARM_BIN}:{self._path}",
                "RACE_BARRIER": f"{self.cluster.server.address}:{BARRIER_PORT}",
                "RACE_LAUNCH": str(self._launches),
                "RACE_DELAY": f"{self._random.uniform(0, self.skew):.4f}",
            }
            jobs.append((node.name, node.start(command, user=USER, env=self._environment() | settings | dict(environment))))
        return Launch(tuple(Outcome(host, _end(job), self._digest) for host, job in jobs))

    def sweep(self) -> Swept:
        """Removes all caches, and says what there was."""
        self._unswept = 0
        local = {
            node.name: node.start(f"rm -f {WARM_OUTPUTS}/*; {_sweep(f'{LOCAL}/{USER}')}") for node in self.cluster.nodes
        }
        shared = self.cluster.server.run(_sweep(SERVER_CACHES), check=True).out.split()
        found = {host: job.wait_or_kill().check().out.split() for host, job in local.items()}
        for host in self.cluster:
            host.log.clear()  # a thousand launches would fill the memory
        return Swept(*_sorted_out(shared), {host: _sorted_out(paths)[0] for host, paths in found.items()})

    def run(self, launches: int, wrapped: bool, progress: Callable[[Tally], None] = lambda tally: None) -> Tally:
        """So many launches, with warm interpreters."""
        tally = Tally()
        while tally.launches < launches:
            for _ in range(min(LAUNCHES_BETWEEN_SWEEPS, launches - tally.launches)):
                tally.add(self.launch(wrapped))
            tally.add_swept(self.sweep())
            progress(tally)
        return tally


def _sweep(directory: str) -> str:
    """A script that prints what _sorted_out reads, and empties the directory if there is one."""
    return f"""
cd {directory} 2>/dev/null || exit 0
find . -mindepth 1 -maxdepth 1 ! -name '.*'
find . -name '*.incomplete'
find . -mindepth 1 -delete
"""


def _sorted_out(paths: list[str]) -> tuple[list[str], list[str]]:
    """The cache directories, and what of them was left unfinished."""
    return [path for path in paths if path.count("/") == 1], [path for path in paths if path.endswith(".incomplete")]


def _end(job: Job) -> Completed:
    """A launch that hangs has failed, too."""
    try:
        return job.wait_or_kill(LAUNCH_TIMEOUT)
    except CommandTimeout as late:
        return late.completed
