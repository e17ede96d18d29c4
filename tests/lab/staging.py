"""What tests of `sharefs stage PATH` look at."""

from __future__ import annotations

from sharefslab import Host
from sharefslab.host import Completed
from sharefslab.product import SHARE

DATASET = f"{SHARE}/datasets/c4"
STAGED = "/local/cache/staged/0/%data%share%datasets/c4"  # where root's copies of it lie
_SUMS = "find . -type f -print0 | sort -z | xargs -0 sha256sum"


def sums(node: Host, path: str, user: str = "alice") -> str:
    return node.run(f"cd {path} && {_SUMS}", user=user, check=True, timeout=120).out


def messages(completed: Completed) -> str:
    return completed.out + completed.err


def bound(node: Host) -> bool:
    return any(line.split(" ")[4] == DATASET for line in node.read_text("/proc/self/mountinfo").splitlines())
