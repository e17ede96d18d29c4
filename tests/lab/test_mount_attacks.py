"""Mount points in a user's directory, which he exchanges for something else while root mounts and unmounts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from sharefslab import Cluster, Host
from sharefslab.product import configure, done, mount_lines, sharefs

RUNS = int(os.environ.get("SHAREFS_ATTACK_RUNS", "10"))
HOME_MOUNT = "/home/alice/mnt"
CRON = "/etc/cron.d"

CONFIG = f"""\
version: 1
servers:
  storage:
    address: 10.77.0.1
    exports: [{{path: /srv/share, clients: [10.77.0.2], options: [rw]}}]
mounts:
  share: {{from: "storage:/srv/share", at: {HOME_MOUNT}}}
"""

# Exchanges two names in one system call (renameat2 with RENAME_EXCHANGE), over and over.
EXCHANGE = """\
import ctypes, sys
libc = ctypes.CDLL(None)
a, b = sys.argv[1].encode(), sys.argv[2].encode()
while True:
    libc.renameat2(-100, a, -100, b, 2)
"""


@contextmanager
def exchanging(host: Host, one: str, other: str) -> Iterator[None]:
    host.write_file("/tmp/exchange.py", EXCHANGE)
    job = host.start(["python3", "/tmp/exchange.py", one, other], user="alice")
    try:
        yield
    finally:
        job.kill()


def prepare(lab: Cluster) -> Host:
    configure(lab, CONFIG)
    done(lab.server, "export", "--all", "--yes")
    node = lab["node1"]
    node.run(f"mkdir -p {CRON}", check=True)
    return node


def test_a_mount_point_in_a_home_works(lab: Cluster) -> None:
    node = prepare(lab)
    node.run(f"mkdir {HOME_MOUNT}", user="alice", check=True)
    done(node, "mount", "share", "--yes")
    assert len(mount_lines(node, HOME_MOUNT)) == 1
    done(node, "umount", "share", "--yes")
    assert mount_lines(node, HOME_MOUNT) == []


def test_a_mount_point_exchanged_for_a_link(lab: Cluster) -> None:
    """The share never lies over a system directory, and what is mounted lies on alice's own one."""
    node = prepare(lab)
    node.run(f"mkdir {HOME_MOUNT} && ln -s {CRON} /home/alice/link", user="alice", check=True)
    with exchanging(node, HOME_MOUNT, "/home/alice/link"):
        for _ in range(RUNS):
            sharefs(node, "mount", "share", "--yes")
            assert mount_lines(node, CRON) == []
            node.run("umount -l /home/alice/mnt /home/alice/link 2>/dev/null; true")


def test_an_unmount_reaches_no_other_mount(lab: Cluster) -> None:
    """alice exchanges the directory above her mount for a link to the directory above another one."""
    node = prepare(lab)
    node.run("mkdir -p /home/alice/a/mnt && ln -s /srv/b /home/alice/link", user="alice", check=True)
    node.run("mkdir -p /srv/b/mnt && mount -t tmpfs victim /srv/b/mnt", check=True)
    for _ in range(RUNS):
        node.run("mount -t nfs -o vers=4.2 10.77.0.1:/srv/share /home/alice/a/mnt", check=True)
        with exchanging(node, "/home/alice/a", "/home/alice/link"):
            sharefs(node, "umount", "/home/alice/a/mnt", "--yes")
            assert len(mount_lines(node, "/srv/b/mnt")) == 1
        # whichever of the two names is the directory now
        node.run("[ ! -L /home/alice/a ] || { mv /home/alice/a /home/alice/x; mv /home/alice/link /home/alice/a; }")
        node.run("[ ! -L /home/alice/x ] || mv /home/alice/x /home/alice/link; umount -l /home/alice/a/mnt; true")
