"""`sharefs nodes trust` with real sshd: two nodes, each with a network and files of its own in namespaces."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SHAREFS = os.environ["SHAREFS_BIN"]
NODES = {"gpu1": "10.77.1.11", "gpu2": "10.77.1.12"}
HERE = "10.77.1.1"
KEYS = "/root/.ssh/authorized_keys"
OWN = "/etc/ssh/sshd_config.d/10-sharefs.conf"
SSHD = """Include /etc/ssh/sshd_config.d/*.conf
HostKey /etc/ssh/ssh_host_ed25519_key
KexAlgorithms curve25519-sha256
UsePAM no
PermitRootLogin yes
PidFile /run/sshd.pid
"""


class Machine:
    """A mount namespace with a home of root and files of ssh; it lives as long as the process in it."""

    def __init__(self, setup: str) -> None:
        script = "set -e\nfor each in /root /etc/ssh /run; do mount -t tmpfs -o mode=755 none $each; done\n" + setup
        self.keeper = subprocess.Popen(
            ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", "ip link set lo up\n" + script + "\necho ready\nexec sleep 1000"],
            stdout=subprocess.PIPE,
        )
        assert self.keeper.stdout is not None and self.keeper.stdout.readline() == b"ready\n"
        self.enter = ["nsenter", "--mount", "--net", "--target", str(self.keeper.pid)]

    def run(self, *words: str, code: int | None = 0, text: str = "") -> str:
        ran = subprocess.run([*self.enter, *words], input=text, capture_output=True, text=True, timeout=120, check=False)
        assert code is None or ran.returncode == code, f"{words}: {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout + ran.stderr

    def sh(self, line: str, code: int | None = 0) -> str:
        return self.run("sh", "-c", line, code=code)

    def has(self, path: str) -> bool:
        return self.sh(f"[ -e {path} ] && echo yes; true") == "yes\n"


class Site:
    def __init__(self) -> None:
        self.here = Machine("mkdir -m 700 /root/.ssh")
        self.here.sh(f"ip link add name br0 type bridge && ip address add {HERE}/24 dev br0 && ip link set br0 up")
        self.here.sh("ssh-keygen -q -t ed25519 -N '' -C cluster -f /root/.ssh/id_ed25519; ssh-keygen -q -t ed25519 -N '' -C 'me @ work' -f /root/mine")
        key = self.here.sh("cat /root/.ssh/id_ed25519.pub")
        self.nodes = {}
        for name, address in NODES.items():
            node = self.nodes[name] = Machine(
                f"mkdir -p /etc/ssh/sshd_config.d /run/sshd\nssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key\n"
                f"cat >/etc/ssh/sshd_config <<'END'\n{SSHD}END\nmkdir -m 700 /root/.ssh\n"
                f"cat >{KEYS} <<'END'\n{key}END\n/usr/sbin/sshd",
            )
            self.here.sh(f"ip link add name {name} master br0 type veth peer name eth0 netns {node.keeper.pid} && ip link set {name} up")
            node.sh(f"ip address add {address}/24 dev eth0 && ip link set eth0 up")
        listed = ", ".join(f"{{name: {name}, address: {address}}}" for name, address in NODES.items())
        self.here.run("sh", "-c", "cat >/root/sharefs.yaml", text=f"version: 1\nnodes: {{list: [{listed}]}}\n")

    def sharefs(self, *words: str, code: int | None = 0) -> str:
        return self.here.run(SHAREFS, "--config", "/root/sharefs.yaml", *words, code=code)

    def trust(self, *words: str, code: int = 0) -> dict[str, str]:
        said = self.sharefs("nodes", "trust", *words, "--json", code=code)
        answer: dict[str, Any] = json.loads(said[: said.rindex("}") + 1])
        return {node["name"]: node["state"] for node in answer["nodes"]}

    def login(self, key: str) -> bool:
        words = ["ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-i", key, "10.77.1.11", "true"]
        return "denied" not in self.here.run(*words, code=None)

    def end(self) -> None:
        for machine in [*self.nodes.values(), self.here]:
            machine.sh("[ ! -e /run/sshd.pid ] || kill $(cat /run/sshd.pid)", code=None)
            machine.keeper.kill()
            machine.keeper.communicate()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.end()


ALL = dict.fromkeys(NODES, "changed")
SAME = dict.fromkeys(NODES, "ok")


def test_a_key_comes_and_goes_and_nothing_else_changes(site: Site) -> None:
    assert site.trust(code=1) == dict.fromkeys(NODES, "host key")
    assert not site.here.has("/root/.ssh/known_hosts")
    site.trust("--accept", "--yes")
    assert site.trust("--check") == SAME
    gpu1 = site.nodes["gpu1"]
    gpu1.sh(f"printf '# of this node\\nno-pty ssh-rsa AAAA other' >>{KEYS}; chmod 640 {KEYS}")
    before = gpu1.sh(f"cat {KEYS}; stat -c %a {KEYS}")
    mine = ["--key", "/root/mine"]
    assert site.trust(*mine, "--check", code=3) == dict.fromkeys(NODES, "pending")
    assert "nodes grant key 'gpu[1-2]'" in site.sharefs("nodes", "trust", *mine, "--dry-run")
    assert gpu1.sh(f"cat {KEYS}; stat -c %a {KEYS}") == before and not site.login("/root/mine")
    assert site.trust(*mine, "--yes") == ALL and site.login("/root/mine")
    key = " ".join(site.here.sh("cat /root/mine.pub").split()[:2])
    assert f"\n{key} me @ work sharefs-" in gpu1.sh(f"cat {KEYS}")
    assert site.trust(*mine, "--yes") == SAME
    site.sharefs("undo", "--yes")
    assert gpu1.sh(f"cat {KEYS}; stat -c %a {KEYS}") == before.replace("other640", "other\n640") and not site.login("/root/mine")
    assert not site.here.sh("ls /var/lib/sharefs/fleet | grep grant; true"), "no record is left"



def test_the_sites_own_ssh_config_counts(site: Site) -> None:
    site.trust("--accept", "--yes")
    site.here.sh("cp /root/.ssh/id_ed25519 /root/gpu2; cp /root/.ssh/id_ed25519.pub /root/gpu2.pub; cp /root/mine /root/.ssh/id_ed25519; cp /root/mine.pub /root/.ssh/id_ed25519.pub")
    site.here.sh("printf 'Host jump\\n HostName 10.77.1.11\\nHost gpu2\\n ProxyJump jump\\nHost *\\n IdentityFile ~/gpu2\\n' >/root/.ssh/config")
    assert site.trust("--check") == SAME, "a jump host of ~/.ssh/config"
    site.here.sh("printf 'Host gpu2\\n IdentityFile ~/gpu2\\n' >/root/.ssh/config")
    assert site.trust("--check", code=4) == {"gpu1": "denied", "gpu2": "ok"}, "each node's own key"


def test_known_hosts_that_keeps_nothing_is_named(site: Site) -> None:
    site.here.sh("printf 'StrictHostKeyChecking no\\nUserKnownHostsFile /dev/null\\n' >/root/.ssh/config")
    said = site.sharefs("nodes", "trust", "--accept", "--yes", code=1)
    assert "gpu1: ssh_config sends its host key to /dev/null" in said and "--system" in said
    site.here.sh("rm /root/.ssh/config")


def test_a_node_without_awk_is_named(site: Site) -> None:
    site.trust("--accept", "--yes")
    site.nodes["gpu1"].sh("mount --bind /dev/null $(readlink -f /usr/bin/awk)")
    said = site.sharefs("nodes", "trust", "--key", "/root/mine", "--yes", code=4)
    assert "awk does not run there" in said and "gpu2      1 changed" in said

def test_an_undo_that_does_not_reach_a_node_is_not_done_and_goes_on(site: Site) -> None:
    site.trust("--accept", "--yes")
    site.trust("--key", "/root/mine", "--yes")
    gpu2 = site.nodes["gpu2"]
    gpu2.sh("kill $(cat /run/sshd.pid)")
    assert "gpu2" in site.sharefs("undo", "--yes", code=1)
    assert "sharefs-" not in site.nodes["gpu1"].sh(f"cat {KEYS}") and "sharefs-" in gpu2.sh(f"cat {KEYS}")
    gpu2.sh("/usr/sbin/sshd")
    site.sharefs("undo", "--yes")
    assert "sharefs-" not in gpu2.sh(f"cat {KEYS}")


def test_a_key_that_is_there_and_not_taken_is_said(site: Site) -> None:
    site.trust("--accept", "--yes")
    site.trust("--key", "/root/mine", "--yes")
    site.nodes["gpu1"].sh(f"sed -i 's/^\\(ssh-ed25519 .* me @ work\\)/from=\"10.0.0.1\" \\1/' {KEYS}")
    assert site.trust("--key", "/root/mine", "--yes", code=4) == {"gpu1": "failed", "gpu2": "ok"}
    assert "sshd does not take it" in site.sharefs("nodes", "trust", "--key", "/root/mine", "--yes", code=4)


def test_a_certificate_lets_the_user_in_and_one_line_stands_for_all_hosts(site: Site) -> None:
    site.here.sh("for each in hosts users; do ssh-keygen -q -t ed25519 -N '' -f /root/$each; done")
    site.trust("--accept", "--yes")
    words = ["--key", "/root/mine", "--ca", "/root/hosts", "--user-ca", "/root/users"]
    assert site.trust(*words, "--check", code=3) == dict.fromkeys(NODES, "pending")
    assert not site.here.has("/root/mine-cert.pub") and not site.nodes["gpu1"].has(OWN)
    assert site.trust(*words, "--yes") == ALL
    shown = site.here.sh("TZ=UTC ssh-keygen -L -f /root/mine-cert.pub")
    assert "user certificate" in shown and "root" in shown.split("Principals:")[1]
    assert site.login("/root/mine") and "me @ work" not in site.nodes["gpu1"].sh(f"cat {KEYS}")
    site.here.sh("cd /root/.ssh; cp known_hosts all_hosts; sed -i '/^@cert-authority/!d' known_hosts")
    before = site.sharefs("undo", "--list")
    assert site.trust(*words, "--yes") == SAME and site.sharefs("undo", "--list") == before
    assert len(site.here.sh("cat /root/.ssh/known_hosts").splitlines()) == 1

    # The certificate is over: the next one is all that is needed.
    site.here.sh("cp /root/mine.pub /root/old.pub; ssh-keygen -q -s /root/users -I x -n root -V 20200101:20200102 /root/old.pub; cp /root/old-cert.pub /root/mine-cert.pub")
    assert not site.login("/root/mine")
    assert site.trust(*words, "--yes") == ALL and site.login("/root/mine")
    site.sharefs("undo", "--yes")
    assert not site.login("/root/mine")

    # Without the certificates of the hosts their keys are to be known again.
    site.here.sh("cd /root/.ssh; cp all_hosts known_hosts")
    for _ in range(2):  # the certificates of the hosts, the authority of users
        site.sharefs("undo", "--yes")
    for node in site.nodes.values():
        assert not node.has(OWN) and "cert" not in node.sh("ls /etc/ssh") and not node.has("/etc/ssh/sharefs_user_ca.pub")


def test_a_host_key_that_cannot_be_certified_is_one_nodes_failure(site: Site) -> None:
    site.here.sh("ssh-keygen -q -t ed25519 -N '' -f /root/hosts")
    site.trust("--accept", "--yes")
    site.nodes["gpu1"].sh("echo ssh-ed25519 AAAAbroken >/etc/ssh/ssh_host_ed25519_key.pub")
    assert site.trust("--ca", "/root/hosts", "--yes", code=4) == {"gpu1": "failed", "gpu2": "changed"}
    assert site.nodes["gpu2"].has(OWN) and not site.nodes["gpu1"].has(OWN)


def test_a_file_of_authorities_of_the_site_gets_a_line(site: Site) -> None:
    site.here.sh("ssh-keygen -q -t ed25519 -N '' -f /root/users")
    site.trust("--accept", "--yes")
    gpu1 = site.nodes["gpu1"]
    gpu1.sh("cp /etc/ssh/ssh_host_ed25519_key.pub /etc/ssh/site.pub; echo 'TrustedUserCAKeys /etc/ssh/site.pub' >>/etc/ssh/sshd_config; kill -HUP $(cat /run/sshd.pid)")
    before = gpu1.sh("cat /etc/ssh/site.pub")
    site.trust("gpu1", "--key", "/root/mine", "--user-ca", "/root/users", "--yes")
    assert gpu1.sh("cat /etc/ssh/site.pub").startswith(before) and not gpu1.has(OWN) and site.login("/root/mine")
    site.sharefs("undo", "--yes")
    assert gpu1.sh("cat /etc/ssh/site.pub") == before


def test_the_nodes_know_one_another(site: Site) -> None:
    site.trust("--accept", "--yes")
    key = site.here.sh("cat /root/.ssh/id_ed25519")
    assert set(site.trust("--mesh", "--yes", code=1).values()) == {"failed"}, "without a key there"
    for node in site.nodes.values():
        node.run("sh", "-c", "umask 077; cat >/root/.ssh/id_ed25519", text=key)
        node.sh("printf 'Host gpu1\\n HostName 10.77.1.11\\nHost gpu2\\n HostName 10.77.1.12\\n' >/root/.ssh/config")
    assert site.trust("--mesh", "--yes") == SAME
    known = site.nodes["gpu1"].sh("cat /etc/ssh/ssh_known_hosts")
    assert known.count("sharefs-") == 2 and "10.77.1.12,gpu2 ssh-ed25519" in known
    site.sharefs("undo", "--yes")
    assert site.nodes["gpu1"].sh("cat /etc/ssh/ssh_known_hosts") == ""
