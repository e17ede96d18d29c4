"""sharefs --on NODES stage: a directory of the share, or an environment, on the disks of four nodes, which hand it on."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from sharefslab import Cluster, Host, wait_until
from sharefslab.fleet import NODES, Stub, fleet_config, fleet_with_exports, on, second_administrator, states
from sharefslab.host import Completed, Job
from sharefslab.product import CONFIG_PATH, SHARE, document, done, mount_lines, sharefs
from staging import DATASET, STAGED, bound, messages, sums

# who hands on to whom
CHAIN = {"node1": "", "node2": "node1", "node3": "node2", "node4": "node3"}
CONFIG = fleet_config(more=f"stage: {{store: {SHARE}/images, paths: [{DATASET}]}}\n")
# Small files that do not compress, so that what is sent can be counted; one name that a shell would take apart.
_FILL = """
mkdir -p {path}/train && cd {path} && for i in $(seq 400); do head -c 20000 /dev/urandom >train/$i.bin; done
echo 'x = 1' >'train/a file; rm -rf $HOME'.py && ln -s train/1.bin first && chmod 640 train/2.bin
"""


@pytest.fixture(scope="module")
def meshed(lab_ready: None, shipped_program: None) -> Iterator[Cluster]:
    """Trusted, mounted, and root of each node gets into the others."""
    with fleet_with_exports(memory="1500M") as cluster:
        server = cluster.server
        for host in cluster:
            host.write_file(CONFIG_PATH, CONFIG, mode=0o644)
        for node in cluster.nodes:
            for name in ("id_ed25519", "id_ed25519.pub"):
                node.write_file(f"/root/.ssh/{name}", server.read_file(f"/root/.ssh/{name}"), mode=0o600)
        done(server, "nodes", "trust", "clients", "--mesh", "--accept", "--yes", timeout=300)
        mounted = on(cluster, "clients", "mount", "--all", "--yes")
        assert mounted.returncode == 0, mounted
        cluster["node1"].run(_FILL.format(path=DATASET), user="alice", check=True, timeout=120)
        yield cluster


@pytest.fixture
def cluster(meshed: Cluster) -> Iterator[Cluster]:
    yield meshed
    for node in meshed.nodes:
        sharefs(node, "stage", "--drop", DATASET, "--yes")
        node.run(f"rm -rf /local/cache/staged {SHARE}/images", check=False)
    meshed["node1"].run(f"rm -rf {SHARE}/images", user="alice")


def stage(cluster: Cluster, *words: str) -> Completed:
    return on(cluster, "clients", "stage", DATASET, "--yes", *words, timeout=400)


def image(node: Host) -> str:
    return node.run(f"ls {STAGED}/*.sqfs", check=True).out.strip()


def left(node: Host) -> list[str]:
    return node.run(f"ls -A {STAGED}", check=True).out.split()


def told(completed: Completed) -> str:
    """What became of each node, and what else was said."""
    nodes = [f"{node['name']} {node['state']}: {node['why']} {node['hint']}" for node in document(completed).get("nodes", [])]
    return "\n".join([*nodes, completed.err])


def handed_on(completed: Completed) -> dict[str, Any]:
    """Of each node, from whom it has it."""
    return {node["name"]: (node.get("document") or {}).get("from") for node in document(completed)["nodes"]}


def read_from_server(node: Host) -> int:
    """Bytes, by the kernel's count of the mount."""
    text = node.read_text("/proc/self/mountstats").partition(f" mounted on {SHARE} with")[2]
    return int(text.partition("bytes:")[2].split()[4])


def test_a_dataset_on_all_nodes_is_sent_by_the_server_once(cluster: Cluster) -> None:
    before = sums(cluster["node1"], DATASET)
    planned = on(cluster, "clients", "stage", DATASET, "--check", timeout=300)
    assert planned.returncode == 3 and "would be packed" in messages(planned), planned
    assert not cluster["node1"].run(f"ls {SHARE}/images", user="alice").ok
    staged = stage(cluster)
    assert staged.returncode == 0 and states(staged) == dict.fromkeys(NODES, "changed"), told(staged)
    assert handed_on(staged) == CHAIN, told(staged)
    assert len({node.run(f"sha256sum <{image(node)}", check=True).out for node in cluster.nodes}) == 1
    for node in cluster.nodes:
        assert bound(node), mount_lines(node)
        assert sums(node, DATASET) == before  # of the copy
        assert not node.run(f"touch {DATASET}/x", user="alice").ok
        node.run("echo carol:x:2003:2003::/home/carol:/bin/bash >>/etc/passwd", check=True)
        assert not node.run(f"ls {STAGED}", user="carol").ok  # whom the share keeps out
    again = stage(cluster)
    assert again.returncode == 0 and states(again) == dict.fromkeys(NODES, "ok"), again
    listed = document(sharefs(cluster["node2"], "stage", "--list", "--json"))["staged"]
    assert [one["path"] for one in listed] == [DATASET] and listed[0]["state"] == "mounted, in place of the share"

    dropped = on(cluster, "clients", "stage", "--drop", DATASET, "--yes")
    assert dropped.returncode == 0 and states(dropped) == dict.fromkeys(NODES, "changed"), dropped
    assert "takes it back" in messages(staged) and "takes it back" not in messages(dropped), dropped
    for node in cluster.nodes:
        assert not bound(node) and node.run(f"ls {STAGED}", check=True).out == ""
        assert sums(node, DATASET) == before  # of the share


def test_a_node_that_is_lost_loses_only_its_own(cluster: Cluster) -> None:
    """What node1 was to hand on comes from the share."""
    done(cluster["node1"], "stage", DATASET, "--yes", timeout=300)  # packed
    done(cluster["node1"], "stage", "--drop", DATASET, "--yes")
    with Stub(cluster["node2"], "#!/bin/sh\nexit 7\n"):
        staged = stage(cluster)
    said = states(staged)
    assert staged.returncode == 4 and said.pop("node2") != "changed" and set(said.values()) == {"changed"}, staged
    assert handed_on(staged)["node3"] == "node1", staged  # the one before node2
    resumed = sharefs(cluster.server, "nodes", "resume", document(staged)["run"], "--yes", "--json", timeout=300)
    assert resumed.returncode == 0 and states(resumed)["node2"] == "changed", resumed


def begun(cluster: Cluster) -> Job:
    """All nodes have some of the image, which is made before; slowly, so that a busy machine sees them in the middle."""
    first = cluster["node1"]
    done(first, "stage", DATASET, "--yes", timeout=300)
    done(first, "stage", "--drop", DATASET, "--yes")
    job = cluster.server.start(["sharefs", "--on", "clients", "stage", DATASET, "--yes", "--json", "--limit", "300K"])
    for node in cluster.nodes:
        wait_until(lambda node=node: node.run(f"test -s {STAGED}/.*.part").ok, timeout=120, what=f"{node.name} has some of it")
    return job


def test_a_node_that_is_killed_in_the_middle_loses_only_its_own(cluster: Cluster) -> None:
    """Those behind it go on with the node before it, or with the share."""
    first = cluster["node1"]
    job = begun(cluster)
    first.run(f"pkill -KILL -f 'sharefs.*{DATASET}|nodes serve'", check=True)
    ended = job.wait(timeout=200)
    said = states(ended)
    assert ended.returncode == 4 and said.pop("node1") != "changed" and set(said.values()) == {"changed"}, told(ended)
    again = stage(cluster)
    assert again.returncode == 0 and states(again)["node1"] == "changed" and len(left(first)) == 3, told(again)


def test_a_node_that_is_stopped_in_the_middle_holds_up_nobody(cluster: Cluster) -> None:
    """Those behind it get it from another node, and the run ends."""
    stopped = cluster["node2"]
    job = begun(cluster)
    # by then it has said how far it is
    wait_until(lambda: stopped.run(f"find {STAGED} -name '.*.part' -size +3M | grep .").ok, timeout=120, what="node2 has 3 MiB of it")
    stopped.run("pkill -STOP -x sharefs", check=True)
    try:
        for node in cluster.nodes:
            if node is not stopped:
                wait_until(lambda node=node: node.run(f"test -s {STAGED}/*.sqfs").ok, timeout=200, what=f"{node.name} has all of it")
        ended = job.wait(timeout=200)
    finally:
        stopped.run("pkill -KILL -x sharefs", check=True)
    said = states(ended)
    assert ended.returncode == 4 and said.pop("node2") == "timed out" and set(said.values()) == {"changed"}, told(ended)
    again = stage(cluster)
    assert again.returncode == 0 and states(again)["node2"] == "changed", told(again)


def test_a_node_whose_packets_are_lost_in_the_middle_holds_up_nobody(cluster: Cluster) -> None:
    job = begun(cluster)
    cluster.drop_traffic("node2")
    try:
        ended = job.wait(timeout=300)
    finally:
        cluster.restore_traffic("node2")
    said = states(ended)
    assert ended.returncode == 4 and said.pop("node2") == "unreachable" and set(said.values()) == {"changed"}, told(ended)
    again = stage(cluster, "--wait", "120s")
    assert again.returncode == 0 and states(again)["node2"] in ("ok", "changed"), told(again)


def test_a_disk_that_is_filled_in_the_middle_is_one_node_s_fault(cluster: Cluster) -> None:
    """On ext2, which cannot keep room for what is coming."""
    full = cluster["node2"]
    full.run("truncate -s 300M /local/disk && mkfs.ext2 -q -m 0 /local/disk && mount -o loop /local/disk /local/cache && chmod 1777 /local/cache", check=True)
    try:
        job = begun(cluster)
        full.run("head -c 400M /dev/zero >/local/cache/others", timeout=300)
        ended = job.wait(timeout=300)
        said = states(ended)
        assert ended.returncode == 4 and said.pop("node2") == "failed" and set(said.values()) == {"changed"}, told(ended)
        assert "No space left on device" in told(ended) and "make room" in told(ended), told(ended)
        assert not full.run(f"test -s {STAGED}/.*.part").ok and document(done(full, "stage", "--list", "--json"))["staged"] == []
        full.run("rm /local/cache/others", check=True)
        again = stage(cluster)
        assert again.returncode == 0 and states(again)["node2"] == "changed", told(again)
    finally:
        sharefs(full, "stage", "--drop", DATASET, "--yes")
        full.run("umount --lazy /local/cache; rm -f /local/disk", check=True)


def test_two_heads_at_once(cluster: Cluster) -> None:
    """Each makes an image, and the nodes have one of them."""
    other = cluster["node4"]
    second_administrator(cluster, other)
    words = ["sharefs", "--on", "clients", "stage", DATASET, "--yes", "--json", "--wait", "120s"]
    both = [host.start(words) for host in (cluster.server, other)]
    ended = [job.wait(timeout=400) for job in both]
    assert any(one.returncode == 0 for one in ended), [told(one) for one in ended]
    for one in ended:
        assert one.returncode == 0 or "has been changing the cluster" in messages(one), messages(one)
    names = cluster["node1"].run(f"ls -A {SHARE}/images", user="alice", check=True).out.split()
    assert [name.endswith(".sqfs") for name in names] == [True, False], names
    assert len({node.run(f"sha256sum <{image(node)}", check=True).out for node in cluster.nodes}) == 1
    for node in cluster.nodes:
        assert bound(node) and len(left(node)) == 3, left(node)


def test_the_first_node_may_be_lost_before_it_packs(cluster: Cluster) -> None:
    with Stub(cluster["node1"], "#!/bin/sh\nexit 7\n"):
        staged = stage(cluster)
    said = states(staged)
    assert staged.returncode == 4 and said.pop("node1") != "changed" and set(said.values()) == {"changed"}, told(staged)
    assert image(cluster["node2"]) == image(cluster["node4"])


def test_a_node_that_says_nothing_is_given_up(cluster: Cluster) -> None:
    """Its shell waits for a dead server before sharefs is there, say. Nobody else waits for it."""
    with Stub(cluster["node3"], "#!/bin/sh\nexec sleep 1000\n"):
        staged = stage(cluster)
    said = states(staged)
    assert staged.returncode == 4 and said.pop("node3") == "timed out" and set(said.values()) == {"changed"}, told(staged)
    assert "it has reported nothing for more than a minute" in told(staged)


def test_what_gets_no_image_comes_as_files(cluster: Cluster) -> None:
    """An image has one owner, and this directory has files of two, which not all may read."""
    node, mixed = cluster["node1"], f"{SHARE}/mixed"
    node.run(f"mkdir {mixed} && echo 1 >{mixed}/one", user="alice", check=True)
    node.run(f"echo 2 >{mixed}/two && chmod 650 {mixed}/two", user="bob", check=True)
    # Its first reader elsewhere calls back what this node holds, and Linux 7.2 gives the files another time with that.
    cluster["node2"].run(f"cat {mixed}/one {mixed}/two", user="alice", check=True)
    staged = on(cluster, "clients", "stage", mixed, "--yes", timeout=400)
    assert staged.returncode == 0 and states(staged) == dict.fromkeys(NODES, "changed"), told(staged)
    assert "it gets no image: " in messages(staged) and f"{mixed}/two belongs to" in messages(staged), told(staged)
    assert on(cluster, "clients", "stage", "--drop", mixed, "--yes").returncode == 0
    node.run(f"rm -rf {mixed}", user="alice", check=True)


def test_without_trust_between_nodes_it_comes_from_the_share(cluster: Cluster) -> None:
    for node in cluster.nodes:
        node.run("mv /root/.ssh/id_ed25519 /root/.ssh/away", check=True)
    try:
        staged = stage(cluster)
    finally:
        for node in cluster.nodes:
            node.run("mv /root/.ssh/away /root/.ssh/id_ed25519", check=True)
    assert staged.returncode == 0 and states(staged) == dict.fromkeys(NODES, "changed"), told(staged)
    assert set(handed_on(staged).values()) == {""}, staged
    assert "ermission denied" in messages(staged) and "nodes trust --mesh" in messages(staged), staged


def test_what_was_damaged_on_the_way_is_not_mounted(cluster: Cluster) -> None:
    """A node whose copy rots hands it on, and nobody takes it."""
    done(cluster["node1"], "stage", DATASET, "--yes", timeout=300)
    path = image(cluster["node1"])
    cluster["node1"].run(f"printf x | dd of={path} bs=1 seek=5000 conv=notrunc 2>/dev/null", check=True)
    staged = stage(cluster)
    assert staged.returncode == 0, staged
    good = cluster["node2"].run(f"sha256sum <{path}", check=True).out
    assert cluster["node1"].run(f"sha256sum <{path}", check=True).out != good
    assert handed_on(staged)["node2"] == "", staged
    assert "SF537" in messages(staged) and "nodes trust --mesh" not in messages(staged), staged


def test_a_changed_directory_is_staged_anew(cluster: Cluster) -> None:
    assert stage(cluster).returncode == 0
    for node in cluster.nodes:
        done(node, "stage", "--drop", DATASET, "--yes")
    one = cluster["node1"]
    one.run(f"echo more >{DATASET}/train/more", user="alice", check=True)
    again = stage(cluster)
    assert again.returncode == 0, told(again)
    for node in cluster.nodes:
        assert node.run(f"cat {DATASET}/train/more", user="bob", check=True).out == "more\n"
    names = one.run(f"ls {SHARE}/images", user="alice", check=True).out.split()
    assert [name.endswith(".sqfs") for name in names] == [True, False], names


def test_few_large_files_are_handed_on_as_they_lie(cluster: Cluster) -> None:
    model = f"{SHARE}/models/base"
    one = cluster["node1"]
    one.run(f"mkdir -p -m 2750 {model}/more && head -c 70000000 /dev/urandom >{model}/more/weights && chmod 640 {model}/more/weights", user="alice", check=True)
    before = {node.name: read_from_server(node) for node in cluster.nodes}
    staged = on(cluster, "clients", "stage", model, "--yes", timeout=400)
    assert staged.returncode == 0 and states(staged) == dict.fromkeys(NODES, "changed"), told(staged)
    assert "read once first" in messages(staged), told(staged)
    assert handed_on(staged) == CHAIN, told(staged)
    for node in cluster.nodes:
        read = read_from_server(node) - before[node.name]
        assert read < (150_000_000 if node is one else 1_000_000), (node.name, read)
        copy = document(sharefs(node, "stage", "--list", "--json"))["staged"][0]["copy"]
        assert sums(node, copy) == sums(node, model)
        assert node.run(f"stat -c '%U %G %a' {copy}/more {copy}/more/weights").out == node.run(f"stat -c '%U %G %a' {model}/more {model}/more/weights", user="alice").out
    again = on(cluster, "clients", "stage", model, "--yes", timeout=400)
    assert states(again) == dict.fromkeys(NODES, "ok"), told(again)
    damaged = cluster["node4"]
    damaged.run(f"printf x | dd of={copy}/more/weights bs=1 seek=5000 conv=notrunc", check=True)
    again = on(cluster, "clients", "stage", model, "--yes", timeout=400)
    assert again.returncode == 0 and sums(damaged, copy) == sums(damaged, model), told(again)
    assert on(cluster, "clients", "stage", "--drop", model, "--yes").returncode == 0
    one.run(f"rm -rf {model}", user="alice", check=True)


def test_progress_is_of_each_node_and_ctrl_c_leaves_whole_files(cluster: Cluster) -> None:
    done(cluster["node1"], "stage", DATASET, "--yes", timeout=300)  # packed
    done(cluster["node1"], "stage", "--drop", DATASET, "--yes")
    job = cluster.server.start(["sharefs", "--on", "clients", "stage", DATASET, "--yes", "--json", "--limit", "1M"])
    try:
        wait_until(lambda: all(f'"{node.name}":{{"bytes":' in job.stderr().decode() for node in cluster.nodes), timeout=120, what="all nodes say how far they are")
    finally:
        job.kill(signal.SIGINT)
    ended = job.wait(timeout=60)
    assert ended.returncode == 130, ended
    last = json.loads([line for line in ended.err.splitlines() if line.startswith('{"progress"')][-1])
    assert last["bytes"] == sum(node["bytes"] for node in last["nodes"].values()) > 0 and last["total_bytes"] > last["bytes"], last
    for node in cluster.nodes:
        assert not node.run(f"ls {STAGED}/*.sqfs").ok
    again = stage(cluster, "--wait", "60s")
    assert again.returncode == 0 and states(again) == dict.fromkeys(NODES, "changed"), told(again)
