"""What every kind of cluster can do: hosts by name, faults, and a server made by hand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from . import nfs
from .errors import LabError
from .host import Host

DEFAULT_HOSTS = ("server", "node1", "node2")
NETWORK = "10.77.0"

HostName = str | Host


def host_names(nodes: int) -> tuple[str, ...]:
    return ("server", *(f"node{number}" for number in range(1, nodes + 1)))


def is_server(name: str) -> bool:
    """Hosts with this kind of name have a disk of their own for exports at /srv/share."""
    return name.startswith("server")


def name_of(host: HostName) -> str:
    return host.name if isinstance(host, Host) else host


def address_of(number: int) -> str:
    return f"{NETWORK}.{number}"


def mac_of(address: str) -> str:
    """Fixed, so that a host that is made again does not cost its peers an ARP timeout."""
    return "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))


def set_latency(interface: str, milliseconds: float) -> str:
    """A script that delays what leaves by the interface; 0 ends that."""
    script = f"tc qdisc del dev {interface} root 2>/dev/null || true\n"
    if milliseconds > 0:
        script += f"tc qdisc add dev {interface} root netem delay {milliseconds * 1000:.0f}us limit 10000\n"
    return script


class BaseCluster(ABC):
    """Hosts on one network. Use it in a `with` statement, or call `close`."""

    hosts: dict[str, Host]
    share: Path  # what every host has at /share

    def __getitem__(self, name: HostName) -> Host:
        try:
            return self.hosts[name_of(name)]
        except KeyError:
            raise LabError(f"no host {name}; there are {', '.join(self.hosts)}") from None

    def __iter__(self) -> Iterator[Host]:
        return iter(self.hosts.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def server(self) -> Host:
        return self["server"]

    @property
    def nodes(self) -> list[Host]:
        """The hosts that are no servers."""
        return [host for host in self if not is_server(host.name)]

    # Faults

    @abstractmethod
    def kill(self, host: HostName) -> None:
        """Power off, without a word to anybody. What is on the host's disk stays."""

    @abstractmethod
    def reboot(self, host: HostName, rc_local: bool = False) -> None:
        """Power off, if it is on, and boot again from the same disk.

        No daemon is started and nothing mounted. With `rc_local`, /etc/rc.local runs if it is executable.
        """

    @abstractmethod
    def freeze(self, host: HostName) -> None:
        """The host answers nobody any more, until `resume`."""

    @abstractmethod
    def resume(self, host: HostName) -> None: ...

    @abstractmethod
    def drop_traffic(self, host: HostName) -> None:
        """Everything from and to the host is lost silently, until `restore_traffic`."""

    @abstractmethod
    def restore_traffic(self, host: HostName) -> None: ...

    @abstractmethod
    def latency(self, host: HostName, milliseconds: float) -> None:
        """Adds to the round trip between this host and every other; 0 takes it away."""

    def remake_filesystem(self, server: HostName, path: str = nfs.SHARE) -> None:
        """A new, empty file system in place of the exported one: clients get ESTALE."""
        host = self[server]
        threads = host.run("cat /proc/fs/nfsd/threads 2>/dev/null").out.strip() or "0"
        # With clients of NFSv4, only a stopped nfsd lets go of the file system. It goes first: without its exports it
        # would call handles stale that cannot be recovered yet.
        if threads != "0":
            host.run("rpc.nfsd 0 && { exportfs -ua; true; }", check=True)
        self._remake_share(host, path)
        # mountd names file systems by libblkid's cache, which trusts a device for 200 s unless it is newer.
        host.run(f'touch -d "+5 seconds" "$(findmnt -no SOURCE {path})"', check=True)
        if threads != "0":
            host.run(f"exportfs -ra; rpc.nfsd {threads}", check=True)

    @abstractmethod
    def _remake_share(self, host: Host, path: str) -> None:
        """Makes the file system anew that is mounted at `path`, while nfsd is stopped."""

    def remove_export(self, server: HostName, path: str = nfs.SHARE) -> None:
        """Withdraws an export until the next `exportfs -ra`; the files that configure it stay."""
        nfs.remove_export(self[server], path)

    # A server made by hand

    def start_nfs_server(
        self,
        server: HostName = "server",
        exports: str | Mapping[str, str] | None = nfs.DEFAULT_EXPORTS,
        threads: int = 4,
        end_grace: bool | None = None,
    ) -> None:
        """Starts the NFS daemons that do not run yet, and exports.

        `exports` is the text of /etc/exports or a mapping of directories to clients with options; None leaves
        the file as it is. The grace period, in which clients may reclaim their locks, is ended at once on the
        host's first boot only; `end_grace` decides otherwise.
        """
        host = self[server]
        nfs.start_server(host, exports, threads, host.boots == 1 if end_grace is None else end_grace)

    def stop_nfs_server(self, server: HostName = "server") -> None:
        nfs.stop_server(self[server])

    def start_lock_daemons(self, *clients: HostName) -> None:
        """Starts rpcbind and rpc.statd, which mounts of NFSv3 need, on these hosts or else on all nodes."""
        for client in clients or self.nodes:
            nfs.start_lock_daemons(self[client])

    def warm_locks(
        self,
        client: HostName = "node1",
        source: str = f"server:{nfs.SHARE}",
        timeout: float = 120.0,
    ) -> None:
        """Waits until the server grants locks over v3 and v4.2, which it first does after a grace period.

        Call it before whatever measures locks. The client must be allowed to write to `source`.
        """
        nfs.warm_locks(self[client], source, timeout)

    # End

    @abstractmethod
    def close(self) -> None:
        """Ends all hosts and removes every trace, within a bounded time."""

    @abstractmethod
    def pids(self) -> Sequence[int]:
        """The processes of the outer machine that this cluster runs in."""

    @abstractmethod
    def directories(self) -> Sequence[Path]:
        """The directories of the outer machine that this cluster keeps its state in."""
