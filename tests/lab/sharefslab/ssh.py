"""sshd on hosts, and who may log in there."""

from __future__ import annotations

from .host import Host
from .wait import wait_until

PASSWORD = "a password of the lab"  # noqa: S105 - of hosts that nobody outside reaches
KEY = "/root/.ssh/id_ed25519"

# Host keys of two types: RSA takes seconds to make. The key exchange is the one that costs a tenth. A tmpfs over /usr/local, which is this machine's own otherwise.
_SETUP = """
rm -rf /etc/ssh/ssh_host_* /etc/ssh/sshd_config.d /root/.ssh
mkdir -p /etc/ssh/sshd_config.d /run/sshd
for type in ed25519 ecdsa; do ssh-keygen -q -t $type -N '' -f /etc/ssh/ssh_host_${type}_key; done
cat >/etc/ssh/sshd_config <<'END'
Include /etc/ssh/sshd_config.d/*.conf
HostKey /etc/ssh/ssh_host_ed25519_key
HostKey /etc/ssh/ssh_host_ecdsa_key
KexAlgorithms curve25519-sha256
UsePAM no
PermitRootLogin yes
PidFile /run/sshd.pid
END
mountpoint -q /usr/local || mount -t tmpfs -o mode=755 tmpfs /usr/local
mkdir -p /usr/local/bin
"""


def start_sshd(host: Host) -> None:
    """The first time with new host keys; nobody may log in but by a password, which root has not yet."""
    host.run("set -e\n[[ -s /run/sshd.pid ]] || {\n" + _SETUP + "\n}\n/usr/sbin/sshd", check=True)
    wait_until(lambda: host.run("[[ -s /run/sshd.pid ]]").ok, what=f"sshd runs on {host.name}")


def start_service(host: Host) -> None:
    """On a host with systemd, with a host key of its own; it starts again at each boot."""
    host.run(
        "set -e\nssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key\n"
        "echo 'KexAlgorithms curve25519-sha256' >/etc/ssh/sshd_config.d/lab.conf\nsystemctl --quiet enable --now ssh",
        check=True,
    )


def set_password(host: Host, user: str = "root") -> None:
    host.run("chpasswd", input=f"{user}:{PASSWORD}\n", check=True)


def make_key(host: Host) -> str:
    """Of root there: the public key."""
    host.run(f"mkdir -p -m 700 /root/.ssh && {{ [ -e {KEY} ] || ssh-keygen -q -t ed25519 -N '' -C cluster -f {KEY} ; }}", check=True)
    return host.read_text(KEY + ".pub")


def authorize(host: Host, public_key: str, home: str = "/root") -> None:
    host.write_file(f"{home}/.ssh/authorized_keys", public_key, mode=0o600)
    host.run(["chmod", "700", f"{home}/.ssh"], check=True)


def host_key_line(host: Host) -> str:
    """As known_hosts has it."""
    key = " ".join(host.read_text("/etc/ssh/ssh_host_ed25519_key.pub").split()[:2])
    return f"{host.name},{host.address} {key}\n"


def fingerprints(host: Host) -> list[str]:
    """What a person reads on its console."""
    lines = host.run("for f in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $f; done", check=True).out.splitlines()
    return [line.split()[1] for line in lines]


def reload_sshd(host: Host) -> None:
    """With a new process that has read its configuration and host keys."""
    host.run("kill $(cat /run/sshd.pid); rm -f /run/sshd.pid", check=True)
    wait_until(lambda: not host.run("ss -Hltn 'sport = :22' | grep -q .").ok, what="sshd is gone")
    start_again(host)


def start_again(host: Host) -> None:
    host.run("/usr/sbin/sshd", check=True)
    wait_until(lambda: host.run("[[ -s /run/sshd.pid ]]").ok, what=f"sshd runs on {host.name}")
