"""Namespaces of this test process: its mounts, its network and its host's name are nobody else's.

They are gone with the last process in them, so there is nothing to take down.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWNET = 0x00020000, 0x04000000, 0x40000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000

_libc = ctypes.CDLL(None, use_errno=True)
_OUTER = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("net", "mnt")]

HEAD = "head"
BRIDGE = "lab0"
ADDRESS = "10.77.9.1"
OTHER_HOSTS = {"node1": "10.77.9.2", "node2": "10.77.9.3"}

ROOT = Path("/mnt")
# A file system that counts as shared storage and needs no server: an autofs whose daemon is gone. It is empty.
SHARED = ROOT / "shared"
# The node's own disk, for caches.local.
LOCAL = ROOT / "local"


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare_host() -> None:
    """Mounts, network and host name of the calling process become its own. Also a `preexec_fn`."""
    _check(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWUTS | _CLONE_NEWNET), "unshare")
    _check(_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "make / private")


def mount_tmpfs(at: Path, mode: str = "755") -> None:
    _check(_libc.mount(b"tmpfs", os.fsencode(at), b"tmpfs", 0, f"mode={mode}".encode()), f"mount {at}")


def bind_mount(source: Path, at: Path) -> None:
    _check(_libc.mount(os.fsencode(source), os.fsencode(at), None, _MS_BIND, None), f"bind {at}")


def _mount_autofs(at: Path) -> None:
    at.mkdir()
    asks, answers = os.pipe()
    options = f"fd={answers},pgrp={os.getpgrp()},minproto=5,maxproto=5,indirect"
    _check(_libc.mount(b"lab", os.fsencode(at), b"autofs", 0, options.encode()), f"mount autofs on {at}")
    os.close(asks)
    # From the first question that nobody reads on, every name below is answered with ENOENT. Processes of the group
    # that mounted it never ask.
    subprocess.run(["ls", at / "nothing"], start_new_session=True, capture_output=True, timeout=60, check=False)


def ip(*commands: str) -> None:
    for command in commands:
        subprocess.run(["ip", *command.split()], check=True, timeout=60)


def rejoin_machine() -> None:
    """A `preexec_fn` for what needs the machine's own network, as pip does."""
    for namespace in _OUTER:
        _check(_libc.setns(namespace, 0), "setns")


def isolate() -> None:
    """Moves this process into namespaces of its own: host `head`, a shared mount, a local directory."""
    unshare_host()
    socket.sethostname(HEAD)
    mount_tmpfs(ROOT)
    _mount_autofs(SHARED)
    LOCAL.mkdir(mode=0o1777)
    LOCAL.chmod(0o1777)
    names = {"localhost": "127.0.0.1", HEAD: ADDRESS, **OTHER_HOSTS}
    hosts = ROOT / "hosts"
    hosts.write_text("".join(f"{address} {name}\n" for name, address in names.items()))
    bind_mount(hosts, Path("/etc/hosts"))
    # The bridge to the other hosts has an address also where there are none: Slurm wants one beside the loopback's.
    ip("link set lo up", f"link add {BRIDGE} type bridge", f"link set {BRIDGE} up", f"addr add {ADDRESS}/24 dev {BRIDGE}")
