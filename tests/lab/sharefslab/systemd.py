"""Boots of hosts with systemd: how far they are, and when they got there by the host's own clock."""

from __future__ import annotations

from .host import Host
from .wait import wait_until

_INTERVAL = 0.5  # to ask systemd costs a booting guest half of that


def uptime(host: Host) -> float:
    """Seconds since the host's kernel began."""
    return float(host.read_text("/proc/uptime").split()[0])


def active_since(host: Host, unit: str) -> float | None:
    """When the unit became active, in seconds since the host's kernel began; None if it is not active."""
    shown = host.run(["systemctl", "show", "-P", "ActiveState", "-P", "ActiveEnterTimestampMonotonic", unit]).out
    match shown.split():
        case ["active", microseconds]:
            return int(microseconds) / 1e6
    return None


def wait_for_unit(host: Host, unit: str, timeout: float = 180.0) -> float:
    """Waits until the unit is active, and returns when it became so (see `active_since`)."""
    return wait_until(lambda: active_since(host, unit), timeout, _INTERVAL, f"{unit} is active on {host.name}")


def wait_for_boot(host: Host, timeout: float = 180.0) -> float:
    """Waits for multi-user.target, and returns when it was reached."""
    return wait_for_unit(host, "multi-user.target", timeout)


def wait_for_mount(host: Host, path: str, timeout: float = 180.0) -> float:
    """Waits until there is an NFS mount at `path`, and returns the host's uptime then. Works without systemd, too."""

    def appeared() -> float | None:
        lines = host.run(["cat", "/proc/uptime", "/proc/mounts"], check=True).out.splitlines()
        mounted = any(line.split(" ")[1] == path and line.split(" ")[2].startswith("nfs") for line in lines[1:])
        return float(lines[0].split()[0]) if mounted else None

    return wait_until(appeared, timeout, what=f"a mount at {path} of {host.name}")
