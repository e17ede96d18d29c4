"""Users of the cluster who attack sharefs: alice and bob are in the group of the share (ml), carol is not.

An attack runs $SHAREFS_ATTACKS times, by default 10. docs/security.md says which boundary each test stands for.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .host import Host
from .namespaces import Cluster
from .product import config_text, export_and_mount
from .wait import wait_until

RUNS = int(os.environ.get("SHAREFS_ATTACKS", "10"))
LATE = 90.0  # a command that takes longer hangs


@contextmanager
def attacked_cluster() -> Iterator[Cluster]:
    """A server and a node that has the share mounted, for all tests of a file: each has directories of its own, and
    leaves no process and no mount behind."""
    with Cluster(hosts=("server", "node1")) as cluster:
        for host in cluster:
            host.run("echo carol:x:2003:2003::/home/carol:/bin/bash >>/etc/passwd", check=True)
            host.run("install -d -o 2003 -g 2003 /home/carol; install -d -m 1777 /local/cache", check=True)
        source = Path(__file__).parent.parent / "exchange.c"
        compiled = cluster.share / "exchange"
        subprocess.run(["gcc", "-O2", "-Wall", "-static", "-o", str(compiled), str(source)], check=True)
        # Root, who is nobody on the share, may read it: what root looks at is what is attacked.
        text = config_text().replace("10.77.0.2, 10.77.0.3", "10.77.0.2").replace('mode: "2770"', 'mode: "2775"')
        export_and_mount(cluster, text)
        yield cluster


def successes(attack: Callable[[], bool], races: bool = True) -> int:
    """How many of RUNS attacks did what the attacker wants. One that races nobody does the same each time: it is tried
    once, unless SHAREFS_ATTACKS says how often."""
    return sum(attack() for _ in range(RUNS if races or "SHAREFS_ATTACKS" in os.environ else 1))


@contextmanager
def exchanging(host: Host, user: str, *arguments: str, cwd: str = "/") -> Iterator[None]:
    """Meanwhile `user` exchanges two names without end (see exchange.c)."""
    job = host.start(["/share/exchange", *arguments], user=user, cwd=cwd)
    wait_until(lambda: b"at work" in job.stdout() or not job.running(), what="the attacker is at work")
    try:
        yield
        assert job.running(), f"the attacker has ended: {job.wait()}"
    finally:
        job.kill()
        job.wait_or_kill()


def config_with(host: Host, name: str, text: str) -> str:
    """A configuration file beside the usual one."""
    path = f"/etc/sharefs/{name}.yaml"
    host.write_file(path, text, mode=0o644)
    return path
