"""The faithful cluster: a kernel for each host, so that machines can freeze and lose power."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from .cluster import DEFAULT_HOSTS, BaseCluster, HostName, address_of, is_server, mac_of, set_latency
from .errors import LabError
from .guest import Guest
from .host import Host, Job
from .image import INIT, systemd_image
from .installation import RUN_RC_LOCAL, SHORTEN_GRACE, add_users, load_modules, make_homes, write_hosts_file
from .network import Network
from .nfs import SHARE
from .paths import new_state_directory
from .systemd import wait_for_boot

SETUP_TIMEOUT = 240.0
ROOT_SIZE = "512M"
SHARE_SIZE = "1G"


def _make_disk(path: Path, size: str) -> None:
    """A sparse image with an empty file system."""
    path.unlink(missing_ok=True)
    with path.open("wb"):
        pass
    subprocess.run(
        ["mkfs.ext4", "-q", "-F", "-E", "root_owner=0:0", str(path), size],
        check=True,
        capture_output=True,
        env={**os.environ, "PATH": "/usr/sbin:/sbin:/usr/bin:/bin"},
    )


class KernelCluster(BaseCluster):
    """Hosts with a kernel each. Needs root on the outer machine, for the network between them.

    The nodes named in `systemd` boot a Debian of their own, with systemd; the others start nothing by themselves.
    """

    def __init__(
        self, hosts: Sequence[str] = DEFAULT_HOSTS, memory: str = "512M", systemd: Collection[str] = ()
    ) -> None:
        self.hosts = {}
        self._systemd = frozenset(systemd)
        self._network = Network()
        self._disks = new_state_directory()
        self.share = self._disks / "share"
        try:
            cores = sorted(os.sched_getaffinity(0), reverse=True)
            for number, name in enumerate(hosts, 1):
                self._add_host(number, name, memory, cores[number % len(cores)])
            self._boot(list(self), first=True)
        except BaseException:
            self.close()
            raise

    def _add_host(self, number: int, name: str, memory: str, core: int) -> None:
        disks: list[Path | str] = [self._disks / f"{name}.root"]
        if name in self._systemd:
            disks = [f"{disks[0]},{systemd_image()}"]
        else:
            _make_disk(self._disks / f"{name}.root", ROOT_SIZE)
        if is_server(name):
            disks.append(self._share_image(name))
            _make_disk(self._share_image(name), SHARE_SIZE)
        address = address_of(number)
        self._network.add_tap(_tap(name))
        guest = Guest(
            name,
            memory=memory,
            core=core,
            disks=disks,
            command_prefix=self._network.command_prefix,
            share=self.share,
            kernel_arguments=[f"vec0:transport=tap,ifname={_tap(name)},depth=128,gro=1,mac={mac_of(address)}"],
            init=INIT if name in self._systemd else "",
        )
        network = f"ip link set vec0 name eth0\nip address add {address}/24 dev eth0\nip link set eth0 up\n"
        (guest.exchange / "network").write_text(network, encoding="utf-8")
        self.hosts[name] = Host(name, address, guest, "-")

    def _share_image(self, name: str) -> Path:
        return self._disks / f"{name}.exports"

    def _boot(self, hosts: Sequence[Host], first: bool) -> None:
        for host in hosts:
            host.guest.boot(wait=False)
        for host in hosts:
            host.guest.wait_booted()
            host.powered = True
            if host.name in self._systemd and first:
                wait_for_boot(host, SETUP_TIMEOUT)
            host.run("set -e\n" + self._setup_script(host, first), timeout=SETUP_TIMEOUT, check=True)

    def _setup_script(self, host: Host, first: bool) -> str:
        plain = host.name not in self._systemd
        script = f". /exchange/network\n{load_modules()}" if plain else ""
        if is_server(host.name):
            script += f"{SHORTEN_GRACE}mkdir -p {SHARE}\nmount /dev/ubdb {SHARE}\n"
        if first:
            script += add_users() + make_homes() if plain else ""
            addresses = {other.name: other.address for other in self}
            script += write_hosts_file(addresses)
            # An empty share, and a disk that a power loss finds as it is now.
            script += f"rm -rf {SHARE}/lost+found /lost+found\nsync\n"
        return script

    def pids(self) -> Sequence[int]:
        return [host.guest.pid for host in self if host.guest.pid and host.guest.running]

    def directories(self) -> Sequence[Path]:
        return [self._disks, *(host.guest.directory for host in self)]

    # Faults

    def kill(self, host: HostName) -> None:
        victim = self[host]
        victim.guest.kill()
        victim.powered = False

    def power_off(self, host: HostName, timeout: float = 150.0) -> float:
        """Shuts the host down in its own order, and returns the seconds it took.

        After `timeout` seconds its power is cut, and LabError raised.
        """
        victim = self._running(host)
        begun = time.monotonic()
        orderly = victim.guest.power_off(timeout)
        victim.powered = False
        if not orderly:
            raise LabError(f"host {victim.name} was not off within {timeout:g} s:\n{victim.guest.console()}")
        return time.monotonic() - begun

    def power_on(self, host: HostName, rc_local: bool = False) -> Job | None:
        """Boots a host that is off, and returns when it takes commands.

        With systemd that is at once, long before multi-user.target: see sharefslab.systemd. Without, nothing is
        started unless `rc_local` wants /etc/rc.local, which is then returned: it may still run.
        """
        victim = self[host]
        if victim.guest.running:
            raise LabError(f"host {victim.name} is on")
        self.restore_traffic(victim)
        self._boot([victim], first=False)
        victim.boots += 1
        return victim.start(RUN_RC_LOCAL) if rc_local else None

    def reboot(self, host: HostName, rc_local: bool = False) -> None:
        """As of every cluster, but a host with systemd, if it is on, shuts down in its order (see `power_on`)."""
        victim = self[host]
        if victim.name in self._systemd and victim.guest.running:
            self.power_off(victim)
        self.kill(victim)
        if job := self.power_on(victim, rc_local):
            job.wait_or_kill()

    def freeze(self, host: HostName) -> None:
        self._running(host).guest.freeze()

    def resume(self, host: HostName) -> None:
        self._running(host).guest.resume()

    def drop_traffic(self, host: HostName) -> None:
        self._network.connect(_tap(self[host].name), False)

    def restore_traffic(self, host: HostName) -> None:
        self._network.connect(_tap(self[host].name), True)

    def latency(self, host: HostName, milliseconds: float) -> None:
        self._running(host).run(set_latency("eth0", milliseconds), check=True)

    def _running(self, host: HostName) -> Host:
        if not self[host].powered:
            raise LabError(f"host {self[host].name} is powered off")
        return self[host]

    def _remake_share(self, host: Host, path: str) -> None:
        host.run(f"umount {path} && mkfs.ext4 -q -F /dev/ubdb && mount /dev/ubdb {path}", check=True)
        host.run(["rmdir", f"{path}/lost+found"], check=True)

    # End

    def close(self) -> None:
        for host in self:
            host.guest.close()
            host.powered = False
        self._network.close()
        shutil.rmtree(self._disks, ignore_errors=True)


def _tap(name: str) -> str:
    return f"t-{name}"[:15]
