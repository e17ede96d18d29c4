"""Two hosts behind ssh: an sshd each, with a host name, mounts and a network of its own."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from sharefslab.wait import wait_until

from .daemons import Daemons
from .isolation import BRIDGE, OTHER_HOSTS, ip, mount_tmpfs, unshare_host

_SSHD_OPTIONS = ("UsePAM=no", "StrictModes=no", "PidFile=none", "PermitRootLogin=yes", "MaxStartups=50")
# Waits for the network that the first host lays, at most a minute. $0 is the address, $@ the sshd.
_BOOT = """\
set -e
mkdir /run/sshd
tries=0
until ip link set eth0 up 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 1200 ]
    sleep 0.05
done
ip link set lo up
ip addr add "$0/24" dev eth0
exec "$@"
"""
_CLIENT = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\nIdentityFile {key}\n"


def _answers(address: str) -> bool:
    try:
        socket.create_connection((address, 22), timeout=1).close()
    except OSError:
        return False
    return True


class SshHosts:
    """Running when the constructor returns. Each has a home directory of its own, which is empty."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._daemons = Daemons(directory)
        key, host_key = directory / "key", directory / "host_key"
        for path in (key, host_key):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True, timeout=60)
        self._configure_client(key)
        try:
            for name, address in OTHER_HOSTS.items():
                self._start(name, address, key.with_suffix(".pub"), host_key)
        except BaseException:
            self.close()
            raise

    def _configure_client(self, key: Path) -> None:
        # ssh takes its configuration from the home directory in passwd, not from $HOME.
        mount_tmpfs(Path("/root"), "700")
        ssh = Path("/root/.ssh")
        ssh.mkdir(mode=0o700)
        (ssh / "config").write_text(_CLIENT.format(key=key))

    def _start(self, name: str, address: str, public_key: Path, host_key: Path) -> None:
        def become_host() -> None:
            unshare_host()
            socket.sethostname(name)
            mount_tmpfs(Path("/root"), "700")
            mount_tmpfs(Path("/run"))

        options = [f"ListenAddress={address}", f"AuthorizedKeysFile={public_key}", *_SSHD_OPTIONS]
        sshd = ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", "-h", str(host_key)]
        sshd += [word for option in options for word in ("-o", option)]
        daemon = self._daemons.start(name, ["sh", "-c", _BOOT, address, *sshd], preexec_fn=become_host)
        link = f"to-{name}"
        ip(f"link add {link} type veth peer name eth0 netns {daemon.pid}", f"link set {link} master {BRIDGE} up")
        wait_until(lambda: _answers(address), 60, what=f"sshd of {name}")

    def close(self) -> None:
        self._daemons.stop()
