"""sharefs on lab hosts: a configuration for the lab's cluster, and commands with their outcome."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .cluster import BaseCluster
from .host import Completed, Host, Job
from .wait import wait_until

CONFIG_PATH = "/etc/sharefs/sharefs.yaml"
EXPORTS_FILE = "/etc/exports.d/sharefs.exports"
SHARE = "/data/share"

# The cluster of the README on the lab's hosts. {profile} and {extra} are for the tests that need another mount.
CONFIG = """\
version: 1
servers:
  storage:
    address: 10.77.0.1
    exports:
      - path: /srv/share
        clients: [10.77.0.2, 10.77.0.3]
        options: [{export_options}]
        access: {{group: ml, mode: "2770"}}
mounts:
  share: {{from: "storage:/srv/share", at: /data/share, profile: {profile}{extra}}}
conda:
  store: /data/share/conda
  envs: [llm_train]
  homes: {{users: [alice, bob], conda: miniconda3}}
caches:
  local: /local/cache
"""

# A training script of the plainest kind: it writes into both directories that it is given, and says which.
# A training script as it is: its cache goes to the datasets library (here a few lines in its place) and nowhere else.
DATASETS = """\
import os, socket
def load_dataset(name, cache_dir=None):
    os.makedirs(cache_dir, exist_ok=True)
    open(os.path.join(cache_dir, socket.gethostname()), "w").close()
"""
TRAIN = """\
import argparse, os, socket
from datasets import load_dataset
parser = argparse.ArgumentParser()
parser.add_argument("--cache_dir", required=True)
parser.add_argument("--output_dir")
arguments = parser.parse_args()
load_dataset("squad", cache_dir=arguments.cache_dir)
os.makedirs(arguments.output_dir, exist_ok=True)
open(os.path.join(arguments.output_dir, socket.gethostname()), "w").close()
print("cache: ", arguments.cache_dir)
print("output:", arguments.output_dir)
"""


def write_training(host: Host, user: str = "alice") -> None:
    for name, text in (("datasets.py", DATASETS), ("train.py", TRAIN)):
        host.run(f"cat >{name}", input=text, cwd=SHARE, user=user, check=True)


def config_text(profile: str = "safe", extra: str = "", export_options: str = "rw, sync, no_subtree_check") -> str:
    return CONFIG.format(profile=profile, extra=extra, export_options=export_options)


def configure(cluster: BaseCluster, text: str | None = None) -> None:
    """The same sharefs.yaml on every host."""
    for host in cluster:
        host.write_file(CONFIG_PATH, text or config_text(), mode=0o644)


def sharefs(host: Host, *arguments: str, timeout: float = 120.0, **options: Any) -> Completed:
    """Runs sharefs to its end, whatever its exit code."""
    return host.run(["sharefs", *arguments], timeout=timeout, **options)


def done(host: Host, *arguments: str, timeout: float = 120.0, **options: Any) -> Completed:
    """Runs sharefs, which must succeed."""
    return sharefs(host, *arguments, timeout=timeout, **options).check()


def document(completed: Completed) -> dict[str, Any]:
    """The JSON document of a command that was given --json."""
    return json.loads(completed.stdout)


def export_and_mount(cluster: BaseCluster, text: str | None = None) -> None:
    """The whole way up: configuration, export on the server, mounts on all nodes. Root of a node is nobody on the share,
    which only the group may read: tests look into it as alice or bob."""
    configure(cluster, text)
    done(cluster.server, "export", "--all", "--yes")
    for node in cluster.nodes:
        done(node, "mount", "--all", "--yes")


def in_time(ask: Callable[[], Completed]) -> Completed:
    """What `ask` says of mounts, once none of them is `slow`, which half a second makes it: on a busy machine any may be."""

    def said() -> Completed | None:
        completed = ask()
        return None if '"slow"' in completed.out or " slow " in completed.out else completed

    return wait_until(said, what="the server answers within half a second")


def states_of(host: Host, patience: int = 10) -> list[str]:
    """Of all mounts. One that gives no answer for `patience` seconds is hung."""
    said = in_time(lambda: sharefs(host, "status", "--timeout", str(patience), "--json"))
    return [mount["state"] for mount in document(said)["mounts"]]


def state_of(host: Host, patience: int = 10) -> str:
    """Of the first mount."""
    return states_of(host, patience)[0]


def hold_share(host: Host, user: str | None = "alice") -> Job:
    """A process whose working directory is the share."""
    job = host.start(["sleep", "600"], cwd=SHARE, user=user)
    wait_until(lambda: host.run(["pgrep", "-x", "sleep"]).ok or not job.running(), what="a process is in the share")
    assert job.running(), job.wait()
    return job


def mount_lines(host: Host, target: str = SHARE) -> list[str]:
    """The mounts at `target` as /proc/mounts has them."""
    return [line for line in host.read_text("/proc/mounts").splitlines() if line.split(" ")[1] == target]


def etc_digest(host: Host) -> str:
    """One digest over every path below /etc: kind, mode, owner, link text and content."""
    script = (
        "cd /etc && { find . -printf '%p %y %m %U %G %l\\n' | LC_ALL=C sort; "
        "find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; } | sha256sum"
    )
    return host.run(script, check=True).out
