"""Two hosts with one name, as machines made from one image: to a server of NFS 4 they are one client, and locks exclude
neither from the other. It is reported, and `run` does not count on the locks; hosts with names of their own are silent,
whatever becomes of their server and their network."""

from __future__ import annotations

import pytest

from sharefslab import Cluster
from sharefslab.host import Host
from sharefslab.product import SHARE, config_text, document, done, export_and_mount, sharefs, write_training

LOCK = f"exec 9>{SHARE}/lock; flock -n 9"


def clone(cluster: Cluster) -> None:
    for node in cluster.nodes:
        node.run("hostname clone", check=True)


def work(cluster: Cluster, rounds: int = 5) -> None:
    """Each host sends something in turn, and finds out what the other did."""
    for number in range(rounds):
        for node in cluster.nodes:
            node.run(f"ls -l {SHARE} && stat -f {SHARE} && touch {SHARE}/{node.name}.{number}", user="alice", timeout=60)


def codes(host: Host, command: str) -> list[str]:
    return [one["code"] for one in document(sharefs(host, command, "--json", timeout=180))["diagnoses"]]


def reason(host: Host) -> str:
    """What `run` says of the cache on the share."""
    words = ["run", "--explain", "--dry-run", "--", "python3", "train.py", "--cache_dir", f"{SHARE}/cache"]
    said = done(host, *words, user="alice", cwd=SHARE)
    return said.out + said.err


@pytest.mark.parametrize("version", ["4.2", "4.0"])
def test_two_hosts_with_one_name_are_found(lab: Cluster, version: str) -> None:
    clone(lab)
    export_and_mount(lab, config_text(extra=f", options: [vers={version}]"))
    write_training(lab["node1"])
    node1, node2 = lab.nodes
    work(lab)
    holding = node1.start(f"{LOCK} && echo got && sleep 60", user="alice")
    work(lab, 1)
    both = sum(node2.run(LOCK, user="alice").ok for _ in range(5))
    assert both > 0, "the locks exclude: there is nothing to find"
    holding.kill()
    work(lab)
    for node in lab.nodes:
        status = sharefs(node, "status")
        assert status.returncode == 1 and "[SF247]" in status.err, status
        assert "SF247" in codes(node, "doctor")
        assert "see SF247" in reason(node), reason(node)


def test_names_of_their_own_are_silent(lab: Cluster) -> None:
    export_and_mount(lab)
    write_training(lab["node1"])
    node1, node2 = lab.nodes
    work(lab)
    lab.stop_nfs_server()
    lab.start_nfs_server(exports=None)
    work(lab, 2)
    lab.drop_traffic("node1")
    node2.run(f"sleep 25; ls {SHARE}", user="alice", check=True)  # longer than a lease
    lab.restore_traffic("node1")
    work(lab, 2)
    lab.reboot("server")
    lab.start_nfs_server(exports=None)
    work(lab, 2)
    for host in lab:
        assert "SF247" not in codes(host, "status") + codes(host, "doctor")
    said = reason(node1)
    assert "guarded" in said and "SF247" not in said, said


def test_after_the_cure_they_are_silent(lab: Cluster) -> None:
    clone(lab)
    export_and_mount(lab)
    work(lab)
    assert "SF247" in codes(lab["node1"], "status")
    for number, node in enumerate(lab.nodes):
        done(node, "umount", "--all", "--yes")
        node.run(f"hostname own{number}", check=True)
    for node in lab.nodes:
        done(node, "mount", "--all", "--yes")
    work(lab)
    for node in lab.nodes:
        assert sharefs(node, "status").ok
