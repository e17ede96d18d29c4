"""Runs of `sharefs --on NODES` that are cut off: by Ctrl-C, by a kill, by a full disk, by the deadline of a node."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from network import Network, cluster, document, frames, wait_for


def test_killed_in_the_middle_resume_does_the_rest(network: Network) -> None:
    names = cluster(network, 20)
    gate = network.place / "gate"
    for number, name in enumerate(names[10:]):
        network.changes(name, 300 + number, f"while [ ! -e {gate} ]; do sleep 0.05; done")
    process = network.start("--on", "all", "mount", "--all", "--yes", "--fanout", "4")
    wait_for(lambda: len(set(network.changed()) & set(names[10:])) >= 4)
    kept = Path("/var/lib/sharefs/fleet")
    wait_for(lambda: sum(len(p.read_text().splitlines()) for p in kept.glob("2*/results.jsonl")) >= 11)
    process.kill()
    process.communicate()
    gate.touch()
    before = {json.loads(line)["name"] for p in kept.glob("2*/results.jsonl") for line in p.read_text().splitlines()}
    network.log.write_text("")
    again = network.json("nodes", "resume", "--yes")
    assert {node["state"] for node in again["nodes"]} == {"changed"} and len(again["nodes"]) == 21
    assert set(network.changed()) == {"storage1", *names} - before


def test_ctrl_c_names_what_is_open(network: Network) -> None:
    names = cluster(network, 6)
    for name in names[2:]:
        network.changes(name, 9, "exec sleep 600")
    process = network.start("--on", "all", "mount", "--all", "--yes", "--json")
    wait_for(lambda: set(network.changed()) >= set(names[2:]))
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted; it is not known whether these are done: gpu[03-06]" in errors
    assert json.loads(out)["nodes"][0]["name"] == "storage1"
    states = {node["name"]: (node["state"], node["why"]) for node in json.loads(out)["nodes"]}
    assert [states[name][0] for name in ("storage1", *names[:2])] == ["changed"] * 3, "what is done is said"
    assert {states[name] for name in names[2:]} == {("failed", "it was started, and whether it has ended is not known")}
    assert "sharefs nodes resume" in errors
    wait_for(lambda: not left_of(network))


def test_undo_names_the_nodes_whose_answer_was_lost(network: Network) -> None:
    names = cluster(network, 4)
    gate = network.place / "gate"
    waits = f"while [ ! -e {gate} ]; do sleep 0.05; done"
    network.changes(names[1], 8, f"{waits}; exit 255")
    network.changes(names[2], 9, waits)  # its answer comes when nobody reads it any more
    process = network.start("--on", "all", "mount", "--all", "--yes", "--canary", "0", "--fanout", "2")
    wait_for(lambda: set(names[1:3]) <= set(network.changed()))
    kept = Path("/var/lib/sharefs/fleet")
    wait_for(lambda: sum(len(p.read_text().splitlines()) for p in kept.glob("2*/results.jsonl")) == 2)
    process.kill()
    process.communicate()
    gate.touch()
    wait_for(lambda: not left_of(network))
    run = network.json("nodes", "resume", "--list")["runs"][0]["run"]
    network.nodes(["gpu[01-04]"])  # storage1 has left sharefs.yaml
    for flags, code in (("--check", 4), ("--yes", 4)):
        answer = network.json("--on", "all", "undo", run, flags, code=code)
        nodes = {node["name"]: (node["state"], node["why"]) for node in answer["nodes"]}
        assert nodes["gpu02"] == ("failed", "its answer to that run was lost: it is not known what was changed there"), nodes
        assert "not in sharefs.yaml any more" in nodes["storage1"][1] and set(nodes) == {"storage1", *names[:3]}
    assert nodes["gpu03"][0] == "changed"
    lines = [line.split() for line in network.log.read_text().splitlines()]
    assert {words[0]: words[-1] for words in lines if "'undo'" in words and "'--yes'" in words} == {"gpu01": "101", "gpu03": "9"}
    ended = network.run("--on", "gpu02", "undo", run, "--yes", code=1)
    assert "`ssh gpu02 sharefs undo --list`" in ended.stderr and "nothing is to be done" not in ended.stderr
    assert "`ssh storage1 sharefs undo 100`" in ended.stderr

def test_ctrl_c_names_only_what_has_begun(network: Network) -> None:
    names = cluster(network, 6)
    network.changes(names[0], 9, "exec sleep 600")
    process = network.start("--on", "all", "mount", "--all", "--yes")
    wait_for(lambda: names[0] in network.changed())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "whether these are done: gpu01\n" in errors, errors


@pytest.mark.parametrize("engine", ["xargs", "clush", "pdsh"])
def test_a_node_that_had_not_begun_does_not_begin_when_sharefs_is_killed(network: Network, engine: str) -> None:
    names = cluster(network, 4, ())
    gate = network.place / "gate"
    for name in names:
        network.changes(name, 9, f"while [ ! -e {gate} ]; do sleep 0.05; done")
    process = network.start("--on", "all", "mount", "--all", "--yes", "--canary", "0", "--fanout", "1", "--engine", engine)
    wait_for(network.changed)
    process.kill()
    process.communicate()
    gate.touch()
    wait_for(lambda: not left_of(network))
    assert len(network.changed()) == 1


@pytest.mark.parametrize("fault", ["the answer", "the record"])
def test_a_full_disk_of_this_machine_ends_a_change_and_is_named(network: Network, fault: str) -> None:
    names = cluster(network, 6)
    place = "/var/lib/sharefs/fleet"
    done_there = network.place / f"{names[0]}.done"
    full = {
        "the answer": f"cat {done_there}; head -c 2M /dev/zero >{place}/fill",
        "the record": f"rm {place}/2*/results.jsonl; cat {done_there}",
    }
    network.does(names[0], f'case "$*" in *--yes*) {full[fault]} 2>/dev/null ;; esac')
    os.makedirs(place, mode=0o700, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", place], check=True)  # in the namespace of tests/support/alone
    try:
        ended = network.run("--on", "all", "mount", "--all", "--yes", code=4)
        assert network.changed() == ["storage1", names[0]]
        assert "storage1,gpu01     2 changed" in ended.stdout and "gpu[02-06]         5 not tried" in ended.stdout, ended
        assert "max-failures" not in ended.stderr and "nodes resume" in ended.stderr
        assert ("results.jsonl: " if fault == "the record" else "error: xargs ended with 123") in ended.stderr
        for name in names:
            network.changes(name, 9)
        if fault == "the answer":
            os.remove(f"{place}/fill")
            assert set(network.states("nodes", "resume", "--yes").values()) == {"changed"}
    finally:
        subprocess.run(["umount", place], check=True)


def test_what_killed_commands_have_left_goes(network: Network) -> None:
    network.nodes(["gpu1"])
    network.prints("gpu1", frames("gpu1", document()))
    network.run("--on", "all", "status")
    place = Path("/var/lib/sharefs/fleet")
    for name in ("scratch-20260101-000000-aaaa-bbbb", "scratch-29991231-000000-aaaa-bbbb"):
        (place / name).mkdir(mode=0o700)
        (place / name / "archive.tar").touch()
    network.run("--on", "all", "status")
    assert os.listdir(place) == ["scratch-29991231-000000-aaaa-bbbb"]


def test_ctrl_c_ends_a_check_of_all_nodes(network: Network) -> None:
    """Not only its first question."""
    network.nodes(["gpu[1-2]"])
    network.does("gpu1", "exec sleep 600")
    network.does("gpu2", 'eval "$*"')
    process = network.start("nodes", "check")
    wait_for(lambda: "gpu1" in network.log.read_text())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in errors and "doctor" not in network.log.read_text()
    wait_for(lambda: not left_of(network))


def left_of(network: Network, variable: str = "NETWORK") -> list[str]:
    """Processes of this network, which only the environment shows; with another variable those of its nodes."""
    left = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{variable}={network.place}".encode() in entry.joinpath("environ").read_bytes():
                left.append(entry.name)
    return left


LOGIN = 'NODE_OF="$NETWORK/$node" setsid -w sh -c "$*"'  # as sshd has it: what was begun outlives its connection


@pytest.mark.parametrize("engine", ["xargs", "clush", "pdsh"])
@pytest.mark.parametrize("end", ["ctrl-c", "kill", "kill the engine", "deadline"])
def test_nothing_goes_on_at_a_node_behind_its_deadline(network: Network, engine: str, end: str) -> None:
    """The real command waits there for a lock that is never free: for an hour, unless the node itself ends it."""
    share = network.place / "share"
    share.mkdir()
    network.nodes(["gpu1"])
    network.config.write_text(
        network.config.read_text() + f"caches: {{local: {share}/caches}}\nservers: {{storage9: {{address: 127.0.0.1}}}}\n"
        f"mounts:\n  share: {{from: 'storage9:{share}', at: {network.place}/data, boot: none}}\n"
    )
    network.does("gpu1", LOGIN)
    network.does("storage9", 'eval "$*"')
    with Path("/var/lib/sharefs/lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = network.start(
            "--on", "gpu1", "--engine", engine, "mount", "--all", "--yes", "--wait", "1h", "--node-deadline", "4s"
        )  # fmt: skip
        wait_for(lambda: left_of(network, "NODE_OF"))
        if end == "ctrl-c":
            process.send_signal(signal.SIGINT)
        elif end == "kill":
            process.kill()
        elif end == "kill the engine":
            for child in Path(f"/proc/{process.pid}/task").glob("*/children"):
                for pid in child.read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
        assert process.returncode != 0, errors
        wait_for(lambda: not left_of(network, "NODE_OF"))
        wait_for(lambda: not left_of(network))
