"""The README's first hour, as it is printed: its sharefs.yaml and its commands, on a server and four bare nodes; then a sixth
machine, with which nothing is right. What the README shows of the commands' output is what they print, but for numbers, and
without the contents of files. SHAREFS_README_UPDATE=1 writes the output anew; read the diff."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from sharefslab import Host, KernelCluster, ssh, systemd
from sharefslab.environment import make_environment
from sharefslab.product import CONFIG_PATH, document, done, mount_lines, sharefs, write_training
from sharefslab.wait import wait_until

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"^```console\n(.*?)^```\n", re.M | re.S)
DIFF = re.compile(r"^ {4,}(---|\+\+\+|@@|\+|-| ).*\n", re.M)
PROMPT = re.compile(r"^(?:(?P<user>\w+)@)?(?P<host>\w+)(?P<mark>[#$]) (?P<command>.*)$")
NODES = {"storage1": "server", **{f"gpu{number}": f"node{number}" for number in range(1, 6)}}
ADDRESSES = {"storage1": "192.168.16.1", **{f"gpu{number}": f"192.168.16.{10 + number}" for number in range(1, 6)}}
ENVIRONMENT = "llm_train"
UNIT = "/etc/systemd/system/sharefs-data-share.service"
pytestmark = pytest.mark.usefixtures("shipped_program")


@pytest.fixture
def cluster(boot_lab: KernelCluster) -> KernelCluster:
    """The README's machines and a further one: their addresses, the server's disk at /mnt/share, two users who have conda.
    Root of the server gets into all by ssh; nothing else was done, and sharefs is on the server alone."""
    lab = boot_lab
    server = lab.server
    for name, host in NODES.items():
        network = lab[host].guest.exchange / "network"
        more = f"ip address add {ADDRESSES[name]}/24 dev eth0\n"
        network.write_text(network.read_text() + more)  # at each boot
        lab[host].run(more, check=True)
    server.run("cat >>/etc/hosts", input="".join(f"{at} {name}\n" for name, at in ADDRESSES.items()), check=True)
    server.run("mkdir -p /mnt/share && mount $(findmnt -no SOURCE /srv/share) /mnt/share && umount /srv/share", check=True)
    key = ssh.make_key(server)
    for node in lab.nodes:
        node.run("rm /usr/local/bin/sharefs && ln -sfn /usr/local/bin/sharefs /lab-bin/sharefs", check=True)  # none there yet
        node.run("mkdir -p /local/var-cache && mount --bind /local/var-cache /var/cache", check=True)
        for user in ("alice", "bob"):
            node.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs && chmod 700 ~", user=user, check=True)
        ssh.start_service(node)
        ssh.authorize(node, key)
    make_environment(lab["node1"], f"/home/alice/miniconda3/envs/{ENVIRONMENT}", user="alice")
    server.write_file(CONFIG_PATH, README.read_text().split("```yaml\n")[1].split("```")[0], mode=0o644)
    done(server, "nodes", "trust", "--accept", "--yes", timeout=300)
    return lab


def run(cluster: KernelCluster, prompt: re.Match[str]) -> str:
    """The command that stands behind a prompt, as its user types it on its host."""
    host = cluster[NODES[prompt["host"]]]
    if "train.py" in prompt["command"]:
        write_training(host)
    ended = host.run(f"{prompt['command']} 2>&1", user=prompt["user"], timeout=400)
    assert ended.returncode == 0, ended
    return DIFF.sub("", ended.out)


def without_numbers(text: str) -> str:
    """Also of runs and caches, whose names have letters, too."""
    return re.sub(r" +", " ", re.sub(r"\b\d{8}-\d{6}-\w{4}\b|\b[0-9a-f]{12}\b|\d[\d.,]*( [KMG]iB)?", "N", text))


def is_green(host: Host, user: str | None = None) -> None:
    ended = sharefs(host, "doctor", "--json", user=user, timeout=300)
    found = [one for one in document(ended)["diagnoses"] if one["severity"] != "info"]
    if host.name == "server":  # the lab's has no disk but the one that it exports
        found = [one for one in found if one["code"] not in ("SF405", "SF414")]
    assert ended.returncode == 0 and not found, f"{user or 'root'}@{host.name}: {ended}"


@pytest.mark.lab_hosts("server", "node1", "node2", "node3", "node4", "node5")
def test_the_first_hour_is_as_it_is_printed(cluster: KernelCluster) -> None:
    text = README.read_text()
    printed: list[tuple[str, str]] = []
    for block in BLOCK.findall(text):
        renewed = ""
        for line in block.splitlines(keepends=True):
            if prompt := PROMPT.match(line):
                renewed += line + run(cluster, prompt)
        printed.append((block, renewed))
    assert len(printed) >= 4
    if os.environ.get("SHAREFS_README_UPDATE"):
        for block, renewed in printed:
            text = text.replace(block, renewed)
        README.write_text(text)
    else:
        for block, renewed in printed:
            assert without_numbers(renewed) == without_numbers(block)
    all_is_there(cluster)
    environments(cluster)
    the_sixth_machine(cluster)


def all_is_there(cluster: KernelCluster) -> None:
    """Exports, mounts, boot entries and links, on all; and a second run does nothing."""
    assert "/mnt/share" in cluster.server.read_text("/var/lib/nfs/etab")
    nodes = [cluster[NODES[f"gpu{number}"]] for number in range(1, 5)]
    for node in nodes:
        assert len(mount_lines(node)) == 1 and node.exists(UNIT), node.name
        for user in ("alice", "bob"):
            link = f"/home/{user}/miniconda3/envs/{ENVIRONMENT}"
            assert node.run(["readlink", link], user=user).out == f"/data/share/conda/{ENVIRONMENT}\n", node.name
    entries = [done(node, "undo", "--list").out for node in nodes]
    assert set(states(cluster, "--on", "all", "up").values()) == {"ok"}
    assert set(states(cluster, "nodes", "push").values()) == {"ok"}
    assert [done(node, "undo", "--list").out for node in nodes] == entries
    for host in (cluster.server, *nodes):
        is_green(host)
        is_green(host, "alice")


def environments(cluster: KernelCluster) -> None:
    one, other = cluster["node1"], cluster["node2"]
    change = ["conda", "update", ENVIRONMENT, "--yes", "--", "sh", "-c", "echo 'answer = 43' >$CONDA_PREFIX/lib/python3.11/site-packages/new.py"]
    done(one, *change, timeout=400)
    assert done(other, "conda", "run", ENVIRONMENT, "--", "python", "-S", "-c", "print(6 * 7)", user="bob").out == "42\n"
    done(one, "conda", "rollback", ENVIRONMENT, "--yes")
    assert done(one, "conda", "list", ENVIRONMENT)


def answers(cluster: KernelCluster, *words: str) -> dict[str, dict[str, str]]:
    """Of a change on nodes, what became of each of them."""
    ended = sharefs(cluster.server, *words, "--yes", "--json", timeout=400)
    return {node["name"]: node for node in document(ended)["nodes"]}


def states(cluster: KernelCluster, *words: str) -> dict[str, str]:
    return {name: node["state"] for name, node in answers(cluster, *words).items()}


def the_sixth_machine(cluster: KernelCluster) -> None:
    """It comes to the five later, and nothing is right with it."""
    server, node = cluster.server, cluster["node5"]
    server.run(["sed", "-i", "s/gpu.1-4./gpu[1-5]/", CONFIG_PATH], check=True)

    def told(state: str, *texts: str) -> None:
        answer = answers(cluster, "nodes", "push")["gpu5"]
        assert answer["state"] == state, answer
        assert all(text in answer["why"] + answer["hint"] for text in texts), answer

    told("host key", "sharefs nodes trust gpu5")
    done(server, "nodes", "trust", "--accept", "--yes", timeout=300)
    # The others have the new file from the first push on; nothing of the sixth stops that.
    assert "gpu[1-5]" in cluster["node1"].read_text(CONFIG_PATH)

    cluster.kill(node)
    told("unreachable", "ping gpu5")
    cluster.power_on(node)
    systemd.wait_for_unit(node, "ssh.service")

    node.run("cd /etc/ssh && ssh-keygen -q -t ed25519 -N '' -f new && mv new ssh_host_ed25519_key && mv new.pub ssh_host_ed25519_key.pub && systemctl restart ssh", check=True)
    told("host key", "ssh-keygen -R gpu5")
    server.run(["ssh-keygen", "-R", "gpu5"], check=True)
    done(server, "nodes", "trust", "--accept", "--yes", timeout=300)

    node.run("fallocate -l $(($(stat -f -c '%a * %S' /var/tmp))) /var/tmp/full; cat /dev/zero >>/var/tmp/full 2>/dev/null; true")
    told("failed", "No space left")
    node.run("rm /var/tmp/full", check=True)

    ssh.set_password(node, "alice")
    ssh.authorize(node, server.read_text(ssh.KEY + ".pub"), "/home/alice")
    node.run("chown -R alice: /home/alice/.ssh", check=True)
    server.write_file("/root/.ssh/config", "Host gpu5\n  User alice\n")
    told("denied", "sudo -n")
    node.write_file("/etc/sudoers.d/alice", "alice ALL = (root) NOPASSWD: ALL\n", mode=0o440)
    told("changed")
    # From here on she may run sharefs as root, and nothing else.
    node.write_file("/etc/sudoers.d/alice", "alice ALL = (root) NOPASSWD: /usr/local/bin/sharefs\n", mode=0o440)

    # Its power goes in the middle of the work, and the others have it all the same.
    node.write_file("/slow", "#!/bin/sh\ntouch /run/begun\nsleep 1000\n", mode=0o755)
    node.run("mount --bind /slow /usr/sbin/mount.nfs", check=True)
    changing = server.start(["sharefs", "--on", "all", "up", "--yes", "--json"])
    wait_until(lambda: node.exists("/run/begun"), what="it mounts")
    node.run("sync -f /etc", check=True)  # of the test's own files
    cluster.kill(node)
    ended = document(changing.wait(300))
    assert {each["name"]: each["state"] for each in ended["nodes"]}.pop("gpu5") in ("unreachable", "failed"), ended
    cluster.power_on(node)
    systemd.wait_for_unit(node, "ssh.service")
    assert states(cluster, "nodes", "resume")["gpu5"] in ("changed", "ok")
    assert mount_lines(node) and set(states(cluster, "--on", "all", "up").values()) == {"ok"}
