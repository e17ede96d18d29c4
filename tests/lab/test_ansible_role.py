"""packaging/ansible with `sharefs up`, by the real ansible-core of PyPI over ssh, against a server and two nodes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from sharefslab import Cluster, Host, ssh
from sharefslab.product import CONFIG_PATH, config_text, mount_lines

sys.path.insert(0, str(Path(__file__).parents[1] / "fleet"))
from test_ansible import CACHE, TREE, ansible  # noqa: E402  # isort: skip

pytestmark = pytest.mark.usefixtures("shipped_program")
PYTHON = Path("/project") / CACHE.relative_to(TREE) / "venv/bin/python"
PLAY = """
- hosts: {hosts}
  gather_facts: false
  roles: [sharefs]
  vars:
    ansible_python_interpreter: /usr/bin/python3
    sharefs_binary: /binary/sharefs
"""


def play(host: Host, *words: str) -> dict[str, dict[str, int]]:
    """What ansible-playbook counts for each host."""
    ran = host.run(
        [PYTHON, "-m", "ansible", "playbook", "-i", "/root/inventory", "/root/site.yml", "-e", "@/root/vars.json", *words],
        env={"ANSIBLE_ROLES_PATH": "/project/packaging/ansible/roles", "ANSIBLE_PIPELINING": "True", "LC_ALL": "C.UTF-8"},
        timeout=500,
    )
    assert ran.returncode == 0, ran
    recap = ran.out.split("PLAY RECAP", 1)[1]
    return {
        fields[0]: {key: int(value) for key, _, value in (word.partition("=") for word in fields[2:])}
        for fields in (line.split() for line in recap.splitlines()[1:] if " : " in line)
    }


def changed(counts: dict[str, dict[str, int]]) -> dict[str, bool]:
    return {name: each["changed"] > 0 for name, each in counts.items()}


def test_the_role_brings_a_cluster_up_and_its_second_run_changes_nothing(lab: Cluster) -> None:
    ansible()
    server = lab.server
    for host in lab:
        ssh.start_sshd(host)
    key = ssh.make_key(server)
    for host in lab:
        ssh.authorize(host, key)
        server.run("cat >>/root/.ssh/known_hosts", input=ssh.host_key_line(host), check=True)
    server.write_file("/root/inventory", "server\nnode1\nnode2\n")
    # The server first, then all others at once.
    server.write_file("/root/site.yml", PLAY.format(hosts="server") + PLAY.format(hosts="all:!server"))
    server.write_file("/root/vars.json", json.dumps({"sharefs_config": config_text()}))

    assert all(changed(play(server, "--check")).values())
    assert not any(host.exists(CONFIG_PATH) for host in lab)
    first = play(server)
    assert all(changed(first).values()), first
    assert all(len(mount_lines(node)) == 1 for node in lab.nodes)

    lab["node1"].run("umount /data/share", check=True)
    assert changed(play(server)) == {"server": False, "node1": True, "node2": False}
    assert len(mount_lines(lab["node1"])) == 1
