"""Users attack `sharefs export`: what is exported and opened is what the administrator means."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sharefslab import Cluster, Host
from sharefslab.attack import LATE, config_with, exchanging, successes
from sharefslab.nfs import exported_clients
from sharefslab.product import done, sharefs

EXPORTED = "/srv/share"  # on the server


@pytest.fixture
def node(attacked: Cluster) -> Host:
    return attacked["node1"]


# 1. The export of a directory that a user can replace for another


def exports_of(*directories: str) -> str:
    rows = "".join(
        f"      - {{path: {directory}, clients: [10.77.0.2], access: {{group: ml}}}}\n" for directory in directories
    )
    return f"version: 1\nservers:\n  storage:\n    address: 10.77.0.1\n    exports:\n{rows}"


class Victim:
    """A directory of the server that the attacker wants opened and exported."""

    def __init__(self, server: Host, path: str) -> None:
        self.server, self.path, self.before = server, path, self._state(server, path)

    @staticmethod
    def _state(server: Host, path: str) -> str:
        return server.run(f"stat -c '%a %U %G' {path} && getfacl -cpd {path}", check=True).out

    def was_opened(self) -> bool:
        """Whether it was; then everything is put back for the next attack."""
        exports = "".join(self.server.read_text("/var/lib/nfs/etab").partition(f"{self.path}\t")[1:])
        hurt = self._state(self.server, self.path) != self.before or exports != ""
        if hurt:
            mode, user, group = self.before.splitlines()[0].split()
            self.server.run(
                f"chown {user}:{group} {self.path}; chmod {mode} {self.path}; setfacl -k {self.path}; "
                f"rm -f /etc/exports.d/*; exportfs -ra",
                check=True,
            )
        return hurt


@pytest.fixture
def server(attacked: Cluster) -> Iterator[Host]:
    """The server with its exports as before each test of them."""
    server = attacked.server
    yield server
    server.run(f"rm -rf {EXPORTED}/proj {EXPORTED}/other", check=True)
    done(server, "export", "--all", "--yes")


@pytest.mark.parametrize("victim_path", ["/etc", "/local/private"])
def test_export_of_a_planted_link(server: Host, victim_path: str) -> None:
    server.run("install -d -m 700 /local/private", check=True)
    victim = Victim(server, victim_path)
    config = config_with(server, "planted", exports_of(f"{EXPORTED}/proj"))
    server.run(f"ln -sfn {victim_path} {EXPORTED}/proj", user="alice", check=True)

    def attack() -> bool:
        refused = sharefs(server, "--config", config, "export", "--all", "--yes", timeout=LATE)
        return victim.was_opened() or refused.ok

    assert successes(attack) == 0


def test_export_of_a_directory_that_is_exchanged_for_a_link(server: Host) -> None:
    server.run("install -d -m 700 /local/private", check=True)
    victim = Victim(server, "/local/private")
    config = config_with(server, "exchanged", exports_of(f"{EXPORTED}/proj"))
    server.run(f"mkdir {EXPORTED}/proj; ln -s /local/private {EXPORTED}/other", user="alice", check=True)

    def attack() -> bool:
        with exchanging(server, "alice", f"{EXPORTED}/proj", f"{EXPORTED}/other"):
            sharefs(server, "--config", config, "export", "--all", "--yes", timeout=LATE)
        return victim.was_opened()

    assert successes(attack) == 0


def test_export_of_anothers_directory_renamed_into_place(server: Host) -> None:
    """bob's private directory below the share, under the name that is exported: his secrets, for the group."""
    server.run(f"mkdir -m 700 {EXPORTED}/other", user="bob", check=True)
    config = config_with(server, "renamed", exports_of(f"{EXPORTED}/proj"))
    victim = Victim(server, f"{EXPORTED}/other")
    victim.path = f"{EXPORTED}/proj"
    server.run(f"mv {EXPORTED}/other {EXPORTED}/proj", user="alice", check=True)

    def attack() -> bool:
        sharefs(server, "--config", config, "export", "--all", "--yes", timeout=LATE)
        return victim.was_opened()

    assert successes(attack) == 0


def test_export_below_directories_of_root_works(server: Host) -> None:
    server.run("install -d /local/projects", check=True)
    config = config_with(server, "honest", exports_of(EXPORTED, "/local/projects/proj"))
    done(server, "--config", config, "export", "--all", "--yes")
    assert exported_clients(server, "/local/projects/proj") == ["10.77.0.2"]
    assert server.run("stat -c %G /local/projects/proj").out == "ml\n"
    server.run("exportfs -u 10.77.0.2:/local/projects/proj", check=True)


# 7. access: {group}, and who else gets to read


def test_group_access_gives_nothing_to_others(server: Host, node: Host) -> None:
    config = config_with(server, "group", exports_of("/local/group"))
    done(server, "--config", config, "export", "--all", "--yes")
    assert server.run("stat -c '%a %G' /local/group").out == "2770 ml\n"
    server.run("umask 077; echo secret >/local/group/token", user="alice", check=True)
    assert server.run("echo more >>/local/group/token", user="bob").ok  # what the group is for
    node.run("mkdir -p /local/group && mount -t nfs -o vers=4.2 10.77.0.1:/local/group /local/group", check=True)
    try:
        assert "secret" in node.run("cat /local/group/token", user="bob", check=True).out
        for host in (server, node):
            assert not host.run("cat /local/group/token", user="carol").ok
        # not even where the directory itself is opened later
        server.run("chmod 2775 /local/group", check=True)
        assert not server.run("cat /local/group/token", user="carol").ok
    finally:
        node.run("umount -l /local/group", check=True)


@pytest.mark.parametrize("access,mode", [('{group: ml, mode: "2775"}', "2775"), ("open", "1777")])
def test_wider_access_is_said_in_words(server: Host, access: str, mode: str) -> None:
    config = config_with(server, "wide", exports_of("/local/wide").replace("{group: ml}", access))
    shown = sharefs(server, "--config", config, "export", "--all", "--dry-run")
    assert "everyone on every node" in " ".join((shown.out + shown.err).split())
    done(server, "--config", config, "export", "--all", "--yes")
    assert server.run("stat -c %a /local/wide").out == f"{mode}\n"
    server.run("rm -rf /local/wide", check=True)


# 11. Smaller ones


def test_squashed_to_root_for_everyone_is_warned_of(server: Host) -> None:
    server.write_file("/tmp/exports", "/local/x *(rw,sync,no_subtree_check,all_squash,anonuid=0)\n")
    said = sharefs(server, "export", "check", "/tmp/exports")
    assert "every user of any machine is root here" in said.err and "SF137" in said.err
    server.write_file("/tmp/exports", "/local/x 10.77.0.2(rw,sync,no_subtree_check,all_squash,anonuid=2001,anongid=3000)\n")
    said = sharefs(server, "export", "check", "/tmp/exports")
    assert "SF137" not in said.err


def test_tools_do_not_come_from_the_callers_path(server: Host) -> None:
    server.run("rm -rf /local/bin /tmp/evil-ran; mkdir /local/bin", check=True)
    for tool in ("exportfs", "systemctl", "getent", "rpc.nfsd", "rpcbind", "mount.nfs", "id"):
        server.write_file(f"/local/bin/{tool}", f'#!/bin/sh\necho {tool} >>/tmp/evil-ran\nexec /usr/sbin/{tool} "$@"\n', mode=0o755)
    config = config_with(server, "path", exports_of("/local/path"))
    done(server, "--config", config, "export", "--all", "--yes", env={"PATH": "/local/bin:/lab-bin:/usr/sbin:/usr/bin"})
    assert not server.exists("/tmp/evil-ran"), server.read_text("/tmp/evil-ran")
