"""A server that reaches its nodes by ssh, and changes all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import ssh
from .cluster import host_names
from .host import Completed, Host
from .namespaces import Cluster
from .product import CONFIG_PATH, config_text, document, done, mount_lines, sharefs

HOSTS = host_names(4)
NODES = set(HOSTS) - {"server"}
PROGRAM = "/usr/local/bin/sharefs"
KNOWN_HOSTS = "/root/.ssh/known_hosts"


def fleet_config(profile: str = "safe", more: str = "", extra: str = "") -> str:
    text = config_text(profile, extra).replace("[10.77.0.2, 10.77.0.3]", "[10.77.0.0/24]")
    return text + 'nodes: {list: ["node[1-4]"]}\n' + more


CONFIG = fleet_config()


def states(completed: Completed) -> dict[str, str]:
    """Of each node, by the document of a command."""
    return {node["name"]: node["state"] for node in document(completed)["nodes"]}


def on(cluster: Cluster, nodes: str, *words: str, timeout: float = 300) -> Completed:
    return sharefs(cluster.server, "--on", nodes, *words, "--json", timeout=timeout)


def nodes_command(cluster: Cluster, *words: str, timeout: float = 300) -> Completed:
    return sharefs(cluster.server, "nodes", *words, timeout=timeout)


def start_hosts(cluster: Cluster) -> None:
    for host in cluster:
        ssh.start_sshd(host)
    cluster.server.write_file(CONFIG_PATH, CONFIG, mode=0o644)


def trust_all(cluster: Cluster) -> None:
    """Root of the server gets into every node."""
    start_hosts(cluster)
    key = ssh.make_key(cluster.server)
    for node in cluster.nodes:
        ssh.authorize(node, key)
    done(cluster.server, "nodes", "trust", "--accept", "--yes", timeout=300)


def second_administrator(cluster: Cluster, host: Host) -> None:
    """Root of `host` gets everywhere, too: another launching machine."""
    cluster.server.run("ln -sfn $(readlink -f $(command -v sharefs)) /usr/local/bin/sharefs", check=True)  # for its sshd
    key = ssh.make_key(host)
    for other in cluster:
        if other is not host:
            other.run("cat >>/root/.ssh/authorized_keys", input=key, check=True)
    done(host, "nodes", "trust", "--accept", "--yes", timeout=300)


@contextmanager
def fleet_with_exports(memory: str = "1G") -> Iterator[Cluster]:
    """Trusted, served with sharefs, and exported to; nothing is mounted."""
    with Cluster(hosts=HOSTS, memory=memory) as cluster:
        trust_all(cluster)
        done(cluster.server, "nodes", "push", "--yes", timeout=300)
        done(cluster.server, "export", "--all", "--yes")
        yield cluster


def unmounted(cluster: Cluster) -> None:
    for node in cluster.nodes:
        if mount_lines(node):
            node.run([PROGRAM, "umount", "--all", "--yes"], check=True)


# Works as sharefs does once there is a file /tmp/go; that it waits is seen by /tmp/waits.
WAITING = f"#!/bin/bash\ntouch /tmp/waits\nuntil [ -e /tmp/go ]; do sleep 0.1; done\nexec {PROGRAM}.real \"$@\"\n"


class Stub:
    """Another program in the place of a node's sharefs."""

    def __init__(self, node: Host, text: str) -> None:
        self._node = node
        self._text = text

    def __enter__(self) -> None:
        self._node.run(["mv", PROGRAM, PROGRAM + ".real"], check=True)
        self._node.write_file(PROGRAM, self._text, mode=0o755)

    def __exit__(self, *_: object) -> None:
        self._node.run(["mv", PROGRAM + ".real", PROGRAM], check=True)
