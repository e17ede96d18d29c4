"""Generations of a shared environment on kernel NFS, seen from two nodes: who updates, who runs, and what stops."""

from __future__ import annotations

import json

import pytest

from sharefslab import Cluster, wait_until
from sharefslab.environment import PROGRAM, make_environment
from sharefslab.host import Host
from sharefslab.product import SHARE, done, export_and_mount, sharefs

STORE = f"{SHARE}/conda"
ENVIRONMENT = f"{STORE}/llm_train"
GENERATIONS = f"{STORE}/.generations/llm_train"
RECORD = {
    **{"sharefs": 1, "number": 1, "parent": 0, "created": 1, "user": "alice", "host": "node1", "command": "", "message": ""},
    **{"prefix": ENVIRONMENT, "python": "", "files": 1, "bytes": 1, "own_bytes": 1, "packages": []},
}
# As pip does it: what is replaced is another file.
RUNS = 20
CHANGE = 'cd $CONDA_PREFIX/lib/python3*; rm lab_package.py; echo "answer = 43" > lab_package.py; chmod u+w json/*.py; echo "# x" >> json/__init__.py'


@pytest.fixture
def cluster(lab: Cluster) -> Cluster:
    """The share squashes root, and the store is alice's: whoever is root on a node works as her."""
    export_and_mount(lab)
    node = lab["node1"]
    for one in lab.nodes:
        one.run("modprobe overlay || grep -q overlay /proc/filesystems", check=True)
    make_environment(node, f"{GENERATIONS}/0001", user="alice")
    node.run(f"chmod -R a-w {GENERATIONS}/0001", user="alice", check=True)
    node.run(f"mkdir -m 1777 {GENERATIONS}/uses && ln -s .generations/llm_train/0001 {ENVIRONMENT}", user="alice", check=True)
    node.run(f"cat > {GENERATIONS}/0001.json", user="alice", check=True, input=json.dumps(RECORD))
    return lab


def digest(node: Host, generation: int) -> str:
    every = f"cd {GENERATIONS}/{generation:04} && find . -type f -printf '%p %m %T@\\n' -exec sha256sum {{}} +"
    return node.run(f"{every} | sort | sha256sum", user="alice", timeout=300, check=True).out


def answer(node: Host, user: str = "bob") -> list:
    said = node.run([f"{ENVIRONMENT}/bin/python", "-S", "-c", PROGRAM], user=user, check=True)
    return json.loads(said.out)


def current(node: Host) -> int:
    return int(node.run(["readlink", ENVIRONMENT], user="alice", check=True).out.strip().rpartition("/")[2])


def wait_for_generation(node: Host, number: int) -> None:
    """A client may remember where a link leads for as long as it remembers attributes: acdirmax, 60 s (nfs(5))."""
    wait_until(lambda: current(node) == number, 180, what=f"{node.name} sees generation {number}")


def as_if_long_ago(node: Host) -> None:
    """The link was replaced: `conda gc` does not wait for other hosts to see that."""
    node.run(f"touch -h -d '2 minutes ago' {ENVIRONMENT}", user="alice", check=True)


def wait_for_server(node: Host) -> None:
    """The kernel tries again after pauses that are as long as the server was away."""
    node.run(["stat", "-f", SHARE], user="alice", timeout=600, check=True)


def listed(node: Host) -> list[tuple[int, str]]:
    """What `conda list` says of the environment in the store."""
    rows = json.loads(done(node, "conda", "list", "llm_train", "--json").out)["environments"]
    return [(one["generation"], one["state"]) for one in rows if one["path"] == ENVIRONMENT]


def test_requirement_6_an_update_on_one_node_is_seen_on_the_other(cluster: Cluster) -> None:
    one, other = cluster.nodes
    before = digest(one, 1)
    said = done(one, "conda", "update", "llm_train", "--yes", "--", "sh", "-c", CHANGE, timeout=400)
    assert "working as `alice`" in said.err + said.out
    assert digest(one, 1) == before
    for node in cluster.nodes:
        wait_for_generation(node, 2)
        assert answer(node) == [43, ENVIRONMENT]
    done(other, "conda", "rollback", "llm_train", "--yes", timeout=200)
    wait_for_generation(one, 1)
    assert answer(one) == [42, ENVIRONMENT]
    listed = json.loads(done(one, "conda", "generations", "llm_train", "--json").out)["generations"]
    assert [(each["number"], each["current"]) for each in listed] == [(1, True), (2, False)]


def test_requirement_4_what_runs_keeps_its_generation(cluster: Cluster) -> None:
    """A process that imports late gets the module of the generation that it began in."""
    one, other = cluster.nodes
    late = (
        "import os, time; open('/tmp/ready', 'w').close()\n"
        "while not os.path.exists('/tmp/go'): time.sleep(0.1)\n"
        "import lab_package; print(lab_package.answer)"
    )
    one.run(["ls", f"{GENERATIONS}/uses"], user="alice", check=True)  # this host remembers it: as yet empty
    job = other.start(["sharefs", "conda", "run", "llm_train", "--", "python", "-S", "-c", late], user="bob")
    wait_until(lambda: other.exists("/tmp/ready") or not job.running(), 240, what="the process has begun")
    assert job.running(), job.wait()
    done(one, "conda", "update", "llm_train", "--yes", "--", "sh", "-c", CHANGE, timeout=400)
    kept = done(one, "conda", "gc", "llm_train", "--keep", "1", "--yes", timeout=200)
    assert "generation 1 is kept: used by process" in kept.err + kept.out
    other.run("touch /tmp/go", check=True)
    assert job.wait().out == "42\n"
    as_if_long_ago(other)
    done(other, "conda", "gc", "llm_train", "--keep", "1", "--yes", timeout=200)  # on the host that knows that it ended
    assert not one.run(["ls", GENERATIONS], user="alice", check=True).out.split().count("0001")
    assert answer(one) == [43, ENVIRONMENT]


def test_requirement_1_gc_leaves_what_other_hosts_may_still_see(cluster: Cluster) -> None:
    """A client that remembers where the link leads finds a whole environment there."""
    one, other = cluster.nodes
    reader = other.start(f"while ! test -e /tmp/end; do {ENVIRONMENT}/bin/python -S -c 'import lab_package' || exit 1; sleep 0.2; done", user="bob")
    done(one, "conda", "update", "llm_train", "--yes", "--", "sh", "-c", CHANGE, timeout=400)
    kept = done(one, "conda", "gc", "llm_train", "--keep", "1", "--yes", timeout=400)
    assert "other hosts may still" in kept.err + kept.out
    assert one.run(["ls", GENERATIONS], user="alice", check=True).out.split().count("0001") == 0
    assert answer(other) == [43, ENVIRONMENT]
    other.run("touch /tmp/end", check=True)
    assert reader.wait().returncode == 0, reader.wait()


def test_gc_sees_what_begins_on_another_host_meanwhile(cluster: Cluster) -> None:
    """After it was asked for consent, with what it remembers of the notes; the job there has generation 1 by its path."""
    one, other = cluster.nodes
    done(one, "conda", "update", "llm_train", "--yes", "--", "sh", "-c", CHANGE, timeout=400)
    as_if_long_ago(one)
    one.run("mkfifo /tmp/answer", check=True)
    gc = one.start("exec script -qefc 'sharefs conda gc llm_train --keep 1' /tmp/said < /tmp/answer")
    consent = one.start("exec 3> /tmp/answer; while ! test -e /tmp/agreed; do sleep 0.1; done; echo y >&3; sleep 100")
    wait_until(lambda: "Proceed?" in one.run("cat /tmp/said").out or not gc.running(), 240, what="the question")
    job = other.start(["sharefs", "conda", "run", f"{GENERATIONS}/0001", "--", "sh", "-c", "touch /tmp/begun; sleep 300"], user="bob")
    wait_until(lambda: other.exists("/tmp/begun") or not job.running(), 240, what="the job has begun")
    one.run("touch /tmp/agreed", check=True)
    assert gc.wait(timeout=200).returncode != 0
    assert "works with generation 1 since" in one.run("cat /tmp/said", check=True).out
    assert other.run(["ls", f"{GENERATIONS}/0001/bin/python"], user="alice").returncode == 0
    consent.kill()
    job.kill()


def test_it_is_never_a_full_copy_by_chance(cluster: Cluster) -> None:
    """A process that has just ended its threads has them for a moment yet, and enters no user namespace."""
    for _ in range(RUNS):
        said = sharefs(cluster["node1"], "conda", "update", "llm_train", "--yes", "--", "false", timeout=400)
        assert said.returncode != 0 and "full copy" not in said.err, said.err


def test_requirement_8_the_lease_holds_across_hosts(cluster: Cluster) -> None:
    one, other = cluster.nodes
    job = one.start("sharefs conda update llm_train --yes -- sh -c 'touch /tmp/begun; while ! test -e /tmp/end; do sleep 0.1; done'")
    wait_until(lambda: one.exists("/tmp/begun") or not job.running(), 240, what="the first update has begun")
    assert job.running(), job.wait()
    busy = sharefs(other, "--wait", "0s", "conda", "update", "llm_train", "--yes", "--", "true", timeout=200)
    assert busy.returncode == 1
    assert "alice on node1" in busy.err + busy.out
    assert current(other) == 1
    one.run("touch /tmp/end", check=True)
    assert job.wait(timeout=400).returncode == 0
    done(other, "conda", "update", "llm_train", "--yes", "--", "sh", "-c", CHANGE, timeout=400)
    wait_for_generation(one, 3)
    assert answer(one) == [43, ENVIRONMENT]


def test_requirement_8_clocks_five_minutes_apart_change_nothing(cluster: Cluster) -> None:
    """A lease is not taken from who has it because its host's clock is behind; bytecode is judged by the file's own time."""
    one, other = cluster.nodes
    other.run("date -s '+5 minutes'", check=True)
    job = one.start("sharefs conda update llm_train --yes -- sh -c 'touch /tmp/begun; while ! test -e /tmp/end; do sleep 0.1; done'")
    wait_until(lambda: one.exists("/tmp/begun") or not job.running(), 240, what="the first update has begun")
    assert job.running(), job.wait()
    busy = sharefs(other, "--wait", "0s", "conda", "update", "llm_train", "--yes", "--", "true", timeout=200)
    assert busy.returncode == 1 and "alice on node1" in busy.err + busy.out
    one.run("touch /tmp/end", check=True)
    assert job.wait(timeout=400).returncode == 0
    done(other, "conda", "update", "llm_train", "--yes", "--", "sh", "-c", CHANGE, timeout=400)
    wait_for_generation(one, 3)
    for node in cluster.nodes:
        ran = node.run([f"{ENVIRONMENT}/bin/python", "-S", "-v", "-c", PROGRAM], user="bob", check=True)
        assert ran.out == f'[43, "{ENVIRONMENT}"]\n'
        stale = [line for line in ran.err.splitlines() if "bytecode is stale" in line]
        assert stale == ["# bytecode is stale for 'json'"]  # whose source the command has changed
        assert listed(node) == [(3, "good")]
    assert [each["number"] for each in json.loads(done(one, "conda", "generations", "llm_train", "--json").out)["generations"]] == [1, 2, 3]


def test_a_link_that_another_host_exchanges_is_never_stale(cluster: Cluster) -> None:
    """What a client remembers of the link is older than its attributes' time, acregmin (nfs(5)): then it asks."""
    one, other = cluster.nodes
    swap = f"i=0; while test ! -e /tmp/end; do ln -s .generations/llm_train/0001 {STORE}/l.$i; mv -T {STORE}/l.$i {ENVIRONMENT}; i=$((i+1)); done"
    job = one.start(["bash", "-c", swap], user="alice")
    try:
        for _ in range(40):
            done(other, "conda", "generations", "llm_train")
    finally:
        one.run("touch /tmp/end", check=True)
    assert job.wait().returncode == 0


def test_a_server_that_is_away_does_not_hang_it(cluster: Cluster) -> None:
    node = cluster["node1"]
    cluster.freeze("server")
    try:
        for words in (["generations", "llm_train"], ["rollback", "llm_train", "--yes"], ["gc", "llm_train", "--yes"]):
            said = sharefs(node, "conda", *words)
            assert said.returncode == 1, said
            assert "did not answer" in said.err + said.out or "no answer" in said.err + said.out, said
        launch = node.start("sharefs conda run llm_train -- true 2> /tmp/launch", user="bob")
        node.run("until grep 'waiting for up to' /tmp/launch; do sleep 0.1; done", timeout=60, check=True)
    finally:
        cluster.resume("server")
    wait_for_server(node)
    assert launch.wait(timeout=300).returncode == 0  # as the command itself would have waited
    assert answer(node) == [42, ENVIRONMENT]
    assert listed(node) == [(1, "good")]
