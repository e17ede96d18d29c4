"""What concerns the cluster as a whole: locks between its nodes, administrators on two machines, a full disk, and directories
that are brought to nodes that share none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sharefslab import Cluster, Host
from sharefslab.fleet import (
    CONFIG,
    NODES,
    PROGRAM,
    WAITING,
    Stub,
    fleet_config,
    nodes_command,
    on,
    second_administrator,
    states,
)
from sharefslab.product import CONFIG_PATH, document, done, mount_lines, sharefs
from sharefslab.wait import wait_until

MIRROR = "mirror: {code: {path: /local/code, delete: true}}\n"


def configured(cluster: Cluster, text: str) -> None:
    """On all machines, as an administrator brings it there."""
    cluster.server.write_file(CONFIG_PATH, text, mode=0o644)
    done(cluster.server, "nodes", "push", "--yes", timeout=300)


@pytest.fixture
def configuration(fleet: Cluster) -> Iterator[None]:
    """For tests that exchange sharefs.yaml."""
    yield
    for node in fleet.nodes:
        if mount_lines(node):
            node.run([PROGRAM, "umount", "--all", "--yes"], check=True)
    configured(fleet, CONFIG)


@pytest.mark.parametrize(("profile", "extra", "code"), [("recipe", ", options: [vers=3]", "SF239"), ("safe", "", None)])
def test_locks_between_two_nodes(fleet: Cluster, configuration: None, profile: str, extra: str, code: str | None) -> None:
    """The manual recipe's `nolock` gives a lock to each of two machines over NFSv3; NFSv4.2 to one of them."""
    configured(fleet, fleet_config(profile, extra=extra))
    mounted = on(fleet, "all", "mount", "--all", "--yes")
    assert mounted.returncode == 0, mounted
    # The first lock waits for the server's grace period.
    fleet["node1"].run("flock /data/share/warm true && rm /data/share/warm", user="alice", check=True)
    checked = nodes_command(fleet, "check", "--locks", "--json")
    found = [each for each in document(checked)["diagnoses"] if each["code"] in ("SF239", "SF240")]
    assert [each["code"] for each in found] == ([code] if code else []), checked
    if code:
        assert found[0]["subject"] == "node1,node2: /data/share" and "nolock" in found[0]["hint"]
    assert fleet.server.run("ls -A /srv/share | grep lock").out == ""


def test_a_full_disk(fleet: Cluster) -> None:
    """The journal comes before the change: where there is no room for it nothing is done, and it is said where."""
    node = fleet["node2"]
    node.run("mkdir -p /var/lib/sharefs && mount -t tmpfs -o size=64k,mode=0700 none /var/lib/sharefs", check=True)
    node.run("head -c 1M /dev/zero >/var/lib/sharefs/full")
    try:
        mounted = on(fleet, "clients", "mount", "--all", "--yes")
    finally:
        node.run("umount /var/lib/sharefs", check=True)
    assert mounted.returncode == 4 and states(mounted) == {**dict.fromkeys(NODES, "changed"), "node2": "failed"}, mounted
    assert "No space left" in mounted.out and not mount_lines(node)
    resumed = nodes_command(fleet, "resume", "--yes", "--json")
    assert resumed.returncode == 0 and mount_lines(node), resumed


def test_administrators_on_two_machines(fleet: Cluster) -> None:
    """The servers know who changes the cluster, and for how long at most."""
    server, node, other = fleet.server, fleet["node1"], fleet["node4"]
    second_administrator(fleet, other)
    with Stub(node, WAITING):
        first = server.start(["sharefs", "--on", "clients", "mount", "--all", "--yes", "--json"])
        wait_until(lambda: node.exists("/tmp/waits"), what="the canary is at work")
        try:
            refused_by_lease(other)
        finally:
            node.run("touch /tmp/go", check=True)
            ended = first.wait(300)
            node.run("rm /tmp/go /tmp/waits", check=True)
    assert ended.returncode == 0 and states(ended) == dict.fromkeys(NODES, "changed"), ended
    again = sharefs(other, "--on", "node[2-3]", "umount", "--all", "--yes", "--json")
    assert again.returncode == 0, again


def refused_by_lease(other: Host) -> None:
    other.write_file("/root/other.yaml", "# changed\n" + CONFIG, mode=0o644)
    for words in (
        ["--on", "node[2-3]", "mount", "--all", "--yes"],
        ["--on", "storage", "export", "--all", "--yes"],
        ["--config", "/root/other.yaml", "nodes", "push", "node2", "--yes"],
    ):
        refused = sharefs(other, *words)
        assert refused.returncode == 1 and "root@server has been changing the cluster" in refused.err, refused


def mirror_states(host: Host, *words: str) -> dict[str, str]:
    told = sharefs(host, "mirror", "status", *words, "--json")
    return {node["name"]: node["document"]["mirrors"][0]["state"] for node in document(told)["nodes"]}


def test_a_mirror_of_nodes_that_share_no_disk(fleet: Cluster, configuration: None) -> None:
    server, node, other = fleet.server, fleet["node1"], fleet["node4"]
    configured(fleet, CONFIG + MIRROR)
    server.run("mkdir -p /local/code/pkg && cd /local/code && echo 1 >pkg/a.py && ln train.py same.py 2>/dev/null; "
               "head -c 2M /dev/urandom >weights && chown -R 2001:3000 . && chmod 2770 pkg", check=True)
    pushed = sharefs(server, "mirror", "push", "--yes", "--json", timeout=300)
    # The server itself is not sent to: there it is.
    assert pushed.returncode == 0 and states(pushed) == dict.fromkeys(NODES, "changed"), pushed
    for each in fleet.nodes:
        assert each.run("cd /local/code && stat -c '%n %u:%g %a' . pkg pkg/a.py && sha256sum weights").out == \
            server.run("cd /local/code && stat -c '%n %u:%g %a' . pkg pkg/a.py && sha256sum weights").out
    again = sharefs(server, "mirror", "push", "--yes", "--json", timeout=300)
    assert again.returncode == 0 and states(again) == dict.fromkeys(NODES, "ok"), again
    assert mirror_states(server) == dict.fromkeys(NODES, "same")

    # Of the same size and time: only the content shows it.
    node.run("cd /local/code && touch -r weights /tmp/time && printf x | dd of=weights bs=1 conv=notrunc 2>/dev/null && "
             "touch -r /tmp/time weights", check=True)
    verified = sharefs(server, "mirror", "verify", "--json", timeout=300)
    assert verified.returncode == 4 and states(verified) == {**dict.fromkeys(NODES, "ok"), "node1": "failed"}, verified
    mended = sharefs(server, "mirror", "push", "--content", "--yes", "--json", timeout=300)
    assert mended.returncode == 0 and states(mended)["node1"] == "changed", mended
    assert sharefs(server, "mirror", "verify", timeout=300).ok

    # Pushes from two machines: a node is sent to by one of them at a time.
    second_administrator(fleet, other)
    other.run("rm -rf /local/code; mkdir -p /local/code && echo other >/local/code/b.py", check=True)
    server.run("echo 2 >/local/code/pkg/a.py", check=True)
    # The flags of the server's side follow --server; that of a dry run is n.
    node.write_file("/waiting", "#!/bin/bash\nif [[ $1 == --server && $2 != -*n* ]]; then touch /tmp/waits; until [ -e /tmp/go ]; "
                    "do sleep 0.1; done; fi\nexec /rsync \"$@\"\n", mode=0o755)
    node.run("cp /usr/bin/rsync /rsync && mount --bind /waiting /usr/bin/rsync", check=True)
    try:
        first = server.start(["sharefs", "mirror", "push", "--to", "node1", "--yes", "--json"])
        wait_until(lambda: node.exists("/tmp/waits"), what="rsync is at work")
        second = sharefs(other, "mirror", "push", "--to", "node1", "--yes", "--json", timeout=120)
        assert second.returncode == 1 and "another push" in second.out, second
    finally:
        node.run("touch /tmp/go", check=True)
        ended = first.wait(300)
        node.run("umount /usr/bin/rsync; rm -f /tmp/go /tmp/waits", check=True)
    assert ended.returncode == 0 and states(ended) == {"node1": "changed"}, ended
    assert node.run("cat /local/code/pkg/a.py; ls /local/code").out.split() == ["2", "pkg", "weights"]


def test_a_node_that_reboots_in_the_middle(fleet: Cluster) -> None:
    """It is named, the others are done, and `resume` does it once it is back, with all that was on its disk."""
    server, node = fleet.server, fleet["node3"]
    with Stub(node, WAITING):
        first = server.start(["sharefs", "--on", "clients", "mount", "--all", "--yes", "--json"])
        wait_until(lambda: node.exists("/tmp/waits"), what="it is at work")
        fleet.reboot(node)
        ended = first.wait(300)
        # What the lab keeps in memory: /run and /usr/local, and with it the Stub.
        node.run("mkdir -p /run/sshd && mount -t tmpfs -o mode=755 tmpfs /usr/local && mkdir /usr/local/bin && /usr/sbin/sshd", check=True)
        wait_until(lambda: node.run("[[ -s /run/sshd.pid ]]").ok, what="sshd is back")
        node.run(["touch", PROGRAM + ".real"], check=True)
    assert ended.returncode == 4 and states(ended) == {**dict.fromkeys(NODES, "changed"), "node3": "unreachable"}, ended
    assert "nodes resume" in ended.err and not mount_lines(node)
    node.run(["rm", "-f", PROGRAM, "/tmp/waits"], check=True)
    lost = nodes_command(fleet, "resume", "--yes", "--json")
    assert lost.returncode == 4 and states(lost) == {**dict.fromkeys(NODES, "changed"), "node3": "no sharefs"}, lost
    done(server, "nodes", "push", "--yes", timeout=300)
    resumed = nodes_command(fleet, "resume", "--yes", "--json")
    assert resumed.returncode == 0 and set(states(resumed)) == NODES and len(mount_lines(node)) == 1, resumed
