"""The network of separate kernels: a bridge and taps in a private network namespace of the outer machine."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from pathlib import Path

from .errors import LabError

_PREFIX = "sharefs-lab-"


def _ip(*arguments: str) -> None:
    result = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise LabError(f"ip {' '.join(arguments)}: {result.stderr.strip()}")


def remove_orphans() -> None:
    """Removes the namespaces whose driver has died without a chance to do so."""
    directory = Path("/run/netns")
    for path in directory.glob(f"{_PREFIX}*") if directory.is_dir() else ():
        owner = re.fullmatch(rf"{_PREFIX}(\d+)-\d+", path.name)
        if owner and not Path("/proc", owner[1]).exists():
            with contextlib.suppress(LabError):
                _ip("netns", "del", path.name)


class Network:
    """A switch that nothing of the outer machine is connected to. Needs root."""

    _count = 0

    def __init__(self) -> None:
        if os.geteuid() != 0:
            raise LabError("separate kernels need root, for their network")
        remove_orphans()
        Network._count += 1
        self.name = f"{_PREFIX}{os.getpid()}-{Network._count}"
        _ip("netns", "add", self.name)
        _ip("-n", self.name, "link", "add", "br0", "type", "bridge")
        _ip("-n", self.name, "link", "set", "br0", "up")

    @property
    def command_prefix(self) -> list[str]:
        """Starts a command in the namespace."""
        return ["ip", "netns", "exec", self.name]

    def add_tap(self, name: str) -> None:
        _ip("netns", "exec", self.name, "ip", "tuntap", "add", name, "mode", "tap")
        _ip("-n", self.name, "link", "set", name, "master", "br0", "up")

    def connect(self, tap: str, connected: bool) -> None:
        """Puts in or pulls the cable. Off the bridge but up: the guest's driver does not survive a `down`."""
        _ip("-n", self.name, "link", "set", tap, *(("master", "br0") if connected else ("nomaster",)))

    def close(self) -> None:
        with contextlib.suppress(LabError):
            _ip("netns", "del", self.name)
