"""The fast cluster: one guest, whose hosts are namespaces joined by a bridge."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from .cluster import DEFAULT_HOSTS, BaseCluster, HostName, address_of, is_server, mac_of, set_latency
from .errors import LabError
from .guest import Guest
from .host import Completed, Host
from .installation import RUN_RC_LOCAL, SHORTEN_GRACE, add_users, load_modules, make_homes, write_hosts_file
from .nfs import SHARE

SETUP_TIMEOUT = 240.0
TEARDOWN_TIMEOUT = 120.0


def boot_guest(memory: str = "1G") -> Guest:
    """A guest that is ready for hosts: modules loaded, users and bridge made."""
    guest = Guest("lab", memory=memory)
    try:
        guest.boot()
        setup = "set -e\n" + load_modules("veth", "bridge") + add_users()
        setup += "ip link add lab0 type bridge\nip link set lab0 up\n"
        _in_guest(guest).run(setup, timeout=SETUP_TIMEOUT, check=True)
    except BaseException:
        guest.close()
        raise
    return guest


def _in_guest(guest: Guest) -> Host:
    return Host("the guest", "", guest, "-")


class Cluster(BaseCluster):
    """Hosts in one guest. Boots a guest of its own unless it is given one from `boot_guest`."""

    def __init__(self, hosts: Sequence[str] = DEFAULT_HOSTS, guest: Guest | None = None, memory: str = "1G") -> None:
        self._owns_guest = guest is None
        self.guest = guest or boot_guest(memory)
        self.share = self.guest.share
        self._inside = _in_guest(self.guest)
        self.hosts = {name: Host(name, address_of(number), self.guest, name) for number, name in enumerate(hosts, 1)}
        self._spent = False  # the guest's kernel may hold on to what a fault left: not for another test
        self._silent: dict[str, set[str]] = {name: set() for name in hosts}
        try:
            addresses = {host.name: host.address for host in self}
            script = write_hosts_file(addresses)
            script += "".join(_install_disk(host.name) + _power_on(host) for host in self)
            self._in_guest(script, SETUP_TIMEOUT)
        except BaseException:
            self.close()
            raise

    def _in_guest(self, script: str, timeout: float) -> Completed:
        return self._inside.run("set -e\n" + script, timeout=timeout, check=True)

    def pids(self) -> Sequence[int]:
        return [self.guest.pid] if self.guest.pid and self.guest.running else []

    def directories(self) -> Sequence[Path]:
        return [self.guest.directory]

    # Faults

    def kill(self, host: HostName) -> None:
        victim = self[host]
        if victim.powered:
            # A process that even so does not end is left behind, in namespaces that nobody sees any more.
            left = self._in_guest(_power_off(victim.name), TEARDOWN_TIMEOUT).out
            self._spent = self._spent or bool(left)
            victim.powered = False
            self._silent[victim.name].clear()

    def reboot(self, host: HostName, rc_local: bool = False) -> None:
        victim = self[host]
        self.kill(victim)
        self._in_guest(_power_on(victim), SETUP_TIMEOUT)
        victim.powered = True
        victim.boots += 1
        if rc_local:
            victim.run(RUN_RC_LOCAL)

    # There is only one kernel, whose nfsd threads cannot be stopped for one host. To its peers, a host that
    # receives and sends nothing looks the same.
    def freeze(self, host: HostName) -> None:
        self._silence(self[host], "frozen", True)

    def resume(self, host: HostName) -> None:
        self._silence(self[host], "frozen", False)

    def drop_traffic(self, host: HostName) -> None:
        self._silence(self[host], "dropped", True)

    def restore_traffic(self, host: HostName) -> None:
        self._silence(self[host], "dropped", False)

    def _silence(self, host: Host, reason: str, silent: bool) -> None:
        if not host.powered:
            raise LabError(f"host {host.name} is powered off")
        reasons = self._silent[host.name]
        (reasons.add if silent else reasons.discard)(reason)
        # Off the bridge, but with the link still up: an interface that goes down would be noticed.
        attachment = "nomaster" if reasons else "master lab0"
        self._in_guest(f"ip link set {_port(host.name)} {attachment}", TEARDOWN_TIMEOUT)

    def latency(self, host: HostName, milliseconds: float) -> None:
        self._in_guest(set_latency(_port(self[host].name), milliseconds), TEARDOWN_TIMEOUT)

    def _remake_share(self, host: Host, path: str) -> None:
        if path != SHARE:
            raise LabError(f"only {SHARE} has a file system of its own")
        host.run(["umount", path], check=True)
        self._in_guest(_remove_share(host.name) + _make_share(host.name), SETUP_TIMEOUT)
        host.run(["mount", self._share_device(host.name), path], check=True)

    def _share_device(self, name: str) -> str:
        return self._in_guest(f"findmnt -no SOURCE /disks/{name}.share", TEARDOWN_TIMEOUT).out.strip()

    # End

    def close(self) -> None:
        """The guest ends, too, if a host cannot be ended in time; `guest.running` tells."""
        if self.guest.running and not self._owns_guest and not self._spent:
            try:
                self._end_hosts()
            except LabError:
                self.guest.close()
        if self._owns_guest or self._spent:
            self.guest.close()
        for host in self:
            host.powered = False

    def _end_hosts(self) -> None:
        for host in self:
            self.kill(host)
        if not self._spent:
            self._in_guest("".join(_remove_disk(host.name) for host in self), TEARDOWN_TIMEOUT)


# Scripts for the guest itself. `/disks/NAME` is the root file system of a host, and `/disks/NAME.share` the
# disk for exports of a server; both stay mounted in the guest while the host is off.


def _port(name: str) -> str:
    """The bridge's side of a host's network cable."""
    return f"v-{name}"


# More than the guest has memory: sharefs looks for 1 GiB of free space, and no test fills it. A bench does, and says so.
disk_size, share_size = "2G", "1G"


def _install_disk(name: str) -> str:
    script = f"mkdir -p /disks/{name}\nmount -t tmpfs -o mode=755,size={disk_size} {name} /disks/{name}\n"
    return script + (_make_share(name) if is_server(name) else "")


def _make_share(name: str) -> str:
    image, directory = f"/disks/{name}.img", f"/disks/{name}.share"
    return f"""
truncate -s {share_size} {image}
mkfs.ext4 -q -F -J size=4 -E nodiscard {image}
mkdir -p {directory}
mount -o loop {image} {directory}
rmdir {directory}/lost+found
"""


def _remove_share(name: str) -> str:
    return f"umount /disks/{name}.share\nrm /disks/{name}.img\n"


def _remove_disk(name: str) -> str:
    return (_remove_share(name) if is_server(name) else "") + f"umount /disks/{name}\n"


def _power_on(host: Host) -> str:
    name, port = host.name, _port(host.name)
    script = f"""
/exchange/labguest host {name}
{make_homes(f"/disks/{name}")}
ip -batch - <<'END'
link add {port} type veth peer name eth0 address {mac_of(host.address)} netns {name}
link set {port} master lab0 up
END
ip -n {name} -batch - <<'END'
addr add {host.address}/24 dev eth0
link set eth0 up
END
"""
    if is_server(name):
        inside = f"{SHORTEN_GRACE}mkdir -p {SHARE}\nmount $1 {SHARE}\n"
        share = f"$(findmnt -no SOURCE /disks/{name}.share)"
        script += f'/exchange/labguest on {name} -- bash -ec {shlex.quote(inside)} power-on "{share}"\n'
    return script


# Inside a host that loses power. nfsd goes while its rpcbind still answers: a network namespace that ends with
# nfsd in it can block every other nfsd for a minute. Processes that end want to give back NFS locks, and the
# last mount of NFSv4 wants to say goodbye, both for ever if the server does not hear them: `umount -f` fails
# their calls, again and again because each may begin another one.
_END_INSIDE = """
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
if (($(</proc/fs/nfsd/threads) > 0)); then
    pgrep -x rpcbind >/dev/null || rpcbind -w
    rpc.nfsd 0
    exportfs -f
fi
unmount_nfs() {
    while read -r _ directory type _; do
        [[ $type != nfs && $type != nfs4 ]] ||
            timeout -s KILL 0.5 busybox umount "$@" "$(printf %b "$directory")" &
    done </proc/mounts
    wait
}
kill -KILL -1
for attempt in {1..10}; do
    processes=(/proc/[0-9]*)
    ((${#processes[@]} > 2)) || break
    unmount_nfs -f
    sleep 0.05
done
unmount_nfs -f -l
"""


def _power_off(name: str) -> str:
    # The cable first, so that nobody hears of it.
    return f"""
ip link del {_port(name)}
/exchange/labguest on {name} -- bash -c {shlex.quote(_END_INSIDE)} 2>/dev/null || true
init=$(</run/lab-hosts/{name})
kill -KILL "$init"
for attempt in {{1..150}}; do [[ -d /proc/$init ]] || break; sleep 0.02; done
[[ ! -d /proc/$init ]] || echo {name}
umount /run/netns/{name}
rm -f /run/netns/{name} /run/lab-hosts/{name}
"""
