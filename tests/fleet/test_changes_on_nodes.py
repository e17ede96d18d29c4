"""Changes by `sharefs --on NODES`: who begins, what ends them, and how they are taken up again and taken back."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest
from network import KILLED, Network, cluster, document, done, frames, pending, wait_for


def test_a_change_goes_to_servers_then_a_canary_then_a_tenth_then_the_rest(network: Network) -> None:
    names = cluster(network)
    states = network.states("--on", "all", "mount", "--all", "--yes")
    assert set(states.values()) == {"changed"} and len(states) == 41
    asked = network.changed()
    assert asked[:2] == ["storage1", "gpu01"]
    assert set(asked[2:6]) == set(names[1:5])
    assert set(asked[6:]) == set(names[5:]) and len(asked) == 41


def test_the_whole_cluster_goes_up_with_the_server_first_and_down_with_it_last(network: Network) -> None:
    names = cluster(network, 3)
    network.states("--on", "all", "up", "--yes")
    assert network.changed()[0] == "storage1" and set(network.changed()) == {"storage1", *names}
    network.log.write_text("")
    network.states("--on", "all", "down", "--yes")
    assert network.changed()[-1] == "storage1" and set(network.changed()) == {"storage1", *names}


@pytest.mark.parametrize("asks", [False, True])
def test_a_client_that_is_not_down_keeps_the_exports(network: Network, asks: bool) -> None:
    """Its job would stand still. It fails in the change, or when it is asked before the change."""
    names = cluster(network, 3)
    busy = frames(names[1], document(error={"message": "/data/share: is in use", "hint": ""}), 1)
    network.place.joinpath(f"{names[1]}.{'check' if asks else 'done'}").write_text(busy)
    if asks:
        ended = asked(network, "--on", "all", "down", answer=b"y\n")
        assert ended.returncode == 4, ended
    else:
        ended = network.run("--on", "all", "down", "--yes", code=4)
    assert "the servers stay as they are: gpu02 may still use them" in ended.stderr and "too many" not in ended.stderr, ended
    assert "storage1" not in network.changed()
    before = len(network.changed())
    network.changes(names[1], 7)
    states = network.states("nodes", "resume", "--yes")
    assert set(states.values()) == {"changed"} and len(states) == 4
    assert network.changed()[before:] == [names[1], "storage1"]


def test_a_client_that_is_not_taken_back_keeps_the_exports(network: Network) -> None:
    names = cluster(network, 3)
    run = network.json("--on", "all", "up", "--yes")["run"]
    network.log.write_text("")
    network.does(names[1], "exit 255")
    assert "the servers stay" in network.run("--on", "all", "undo", run, "--yes", code=4).stderr
    assert "storage1" not in network.changed()


def test_this_machine_is_not_server_and_client_by_two_names(network: Network) -> None:
    network.config.write_text(f"""version: 1
servers: {{storage: {{address: 127.0.0.1}}}}
nodes: {{list: [{os.uname().nodename}, gpu1]}}
""")
    said = network.run("--on", "all", "down", "--yes", code=2).stderr
    assert f"sharefs.yaml:3:16: the node {os.uname().nodename} and the server storage are this machine" in said
    assert f"list it as `{{name: {os.uname().nodename}, address: 127.0.0.1}}`" in said


def test_clients_of_a_server_that_is_not_up_yet_are_asked_again_behind_it(network: Network) -> None:
    names = cluster(network, 5)
    blocked = {"message": "storage1 does not answer", "hint": ""}
    for number, name in enumerate(names):
        network.changes(name, number)
        network.place.joinpath(f"{name}.check").write_text(frames(name, document(error=blocked), 1))
    shown = network.run("--on", "all", "up", code=2)  # there is no terminal to ask
    assert "cannot do it" not in shown.stderr and "no terminal" in shown.stderr
    states = network.states("--on", "all", "up", "--check", code=3)
    assert set(states.values()) == {"pending"}
    network.prints("storage1", frames("storage1", document()))  # nothing is to be done there: they will not answer better
    assert "failed" in network.states("--on", "all", "up", "--check", code=4).values()


@pytest.mark.parametrize(("broken", "how"), [("storage1", "exit 255"), ("gpu01", "exit 255"), ("gpu01", KILLED)])
def test_a_server_or_canary_that_fails_ends_it(network: Network, broken: str, how: str) -> None:
    cluster(network)
    network.does(broken, how)
    states = network.states("--on", "all", "mount", "--all", "--yes", code=None)
    touched = ["storage1", "gpu01"][: ["storage1", "gpu01"].index(broken) + 1]
    assert network.changed() == touched
    assert [name for name, state in states.items() if state != "not tried"] == touched


def test_too_many_failures_end_it_and_resume_goes_on(network: Network) -> None:
    names = cluster(network, 30)
    for name in names[4:14]:
        network.does(name, "echo 'ssh: connect to host x port 22: Connection timed out' >&2; exit 255")
    answer = network.json("--on", "all", "mount", "--all", "--yes", "--max-failures", "2", "--fanout", "1", code=4)
    states = {node["name"]: node["state"] for node in answer["nodes"]}
    failed = list(states.values()).count("unreachable")
    assert 3 <= failed <= 5, "those that had begun when the third came"
    assert list(states.values()).count("not tried") == 31 - 5 - failed
    before = network.changed()
    for number, name in enumerate(names[4:14]):
        network.changes(name, 500 + number)
    again = network.json("nodes", "resume", answer["run"], "--yes")
    assert {node["state"] for node in again["nodes"]} == {"changed"} and len(again["nodes"]) == 31
    assert set(network.changed()[len(before) :]) == {name for name, state in states.items() if state != "changed"}
    assert "done on all its nodes" in network.run("nodes", "resume", "--yes").stderr


def asked(network: Network, *words: str, answer: bytes = b"n\n") -> subprocess.CompletedProcess[str]:
    """Somebody at a terminal answers."""
    master, terminal = pty.openpty()
    try:
        os.write(master, answer)
        return subprocess.run(network.command(*words), stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, text=True, timeout=60, env=network.environment, check=False)
    finally:
        os.close(terminal)
        os.close(master)


def test_no_to_resume_changes_nothing_and_says_so(network: Network) -> None:
    names = cluster(network, 2)
    network.does(names[1], "exit 255")
    network.json("--on", "all", "mount", "--all", "--yes", code=4)
    before = network.changed()
    ended = asked(network, "nodes", "resume")
    assert ended.returncode == 1 and "nothing was changed" in ended.stderr and network.changed() == before, ended


def test_what_is_asked_for_is_shown_with_quiet_too(network: Network) -> None:
    names = cluster(network, 2)
    for quiet in ([], ["-q"]):
        shown = asked(network, *quiet, "--on", "all", "mount", "--all")
        assert shown.returncode == 1 and "storage1: 1 step\n  write /x\nProceed? [y/N] " in shown.stderr, shown
    assert "  write /x" not in network.run("-q", "--on", "all", "mount", "--all", code=2).stderr  # nobody is asked
    network.does(names[1], "exit 255")
    network.json("--on", "all", "mount", "--all", "--yes", code=4)
    resumed = asked(network, "-q", "nodes", "resume")
    assert "mount --all` on 1 node more\nProceed? [y/N] " in resumed.stderr, resumed


def test_what_is_packed_is_shown_with_quiet_too(network: Network) -> None:
    network.nodes(["gpu1"])
    packed = "0123456789abcdef" * 4 + ":3:4096"
    network.prints("gpu1", frames("gpu1", document(packed=packed, plan=pending("pack")["plan"]), 3))
    shown = asked(network, "-q", "--on", "gpu1", "stage", "/data/share/x")
    assert "/data/share/x: 3 files (4.0 KiB) are packed into one file on the share first\nProceed? [y/N] " in shown.stderr, shown


def test_an_undo_is_offered_where_the_nodes_offer_one(network: Network) -> None:
    names = cluster(network, 2, ())
    for can, said in ((False, False), (True, True)):
        steps = {"steps": [{"description": "delete /x", "undoable": False}, {"description": "write /y", "undoable": True}]}
        for number, name in enumerate(names):
            network.place.joinpath(f"{name}.done").write_text(frames(name, {**done(number), "can_be_undone": can, "plan": steps}))
        assert ("takes it back" in network.run("--on", "all", "mount", "--all", "--yes").stderr) == said


def test_a_record_that_cannot_be_read_is_named(network: Network) -> None:
    cluster(network, 1)
    made = [network.json("--on", "all", "mount", "--all", "--yes")["run"] for _ in range(2)]
    Path("/var/lib/sharefs/fleet", made[0], "run.json").write_text("{")
    listed = network.run("nodes", "resume", "--list")
    assert made[1] in listed.stdout and f"the record of run {made[0]} cannot be read" in listed.stderr, listed


def test_runs_are_listed_in_the_order_they_were_made(network: Network) -> None:
    cluster(network, 1)
    made = [network.json("--on", "all", "mount", "--all", "--yes")["run"] for _ in range(8)]
    assert [run["run"] for run in network.json("nodes", "resume", "--list")["runs"]] == made[::-1]


def test_five_percent(network: Network) -> None:
    names = cluster(network, 40)
    for name in names[10:13]:
        network.does(name, "exit 255")
    states = network.states("--on", "all", "mount", "--all", "--yes", "--max-failures", "10%", code=4)
    assert list(states.values()).count("changed") == 38


def last_words(network: Network) -> list[str]:
    """The options behind the command that the last node got."""
    return network.log.read_text().splitlines()[-1].split("'mount'")[1].replace("'", " ").split()


def test_a_plan_is_shown_with_its_notes_and_what_cannot_be_undone(network: Network) -> None:
    network.nodes(["gpu[1-3]"])
    for number, node in enumerate(["gpu1", "gpu2", "gpu3"]):
        plan = pending("write /x")["plan"]
        plan["steps"][0]["undoable"] = number == 2
        plan["notes"] = [["40 files are opened"], ["40 files are opened"], []][number]
        network.prints(node, frames(node, document(plan=plan), 3), 3)
    shown = network.run("--on", "all", "mount", "--all", "--check", code=3).stderr
    assert "gpu[1-2]: 1 step\n  note: 40 files are opened\n  write /x  (cannot be undone)\ngpu3: 1 step\n  write /x\n" in shown


def test_one_plan_is_shown_and_asked_for(network: Network) -> None:
    names = cluster(network, 4)
    network.prints(names[3], frames(names[3], document()))
    refused = network.run("--on", "all", "mount", "--all", code=2)
    assert "storage1,gpu[01-03]: 1 step" in refused.stderr or "gpu[01-03],storage1: 1 step" in refused.stderr
    assert "no terminal" in refused.stderr and network.changed() == []
    assert network.states("--on", "all", "mount", "--all", "--check", code=3) == {
        **dict.fromkeys([*names[:3], "storage1"], "pending"), names[3]: "ok",
    }
    for flags, passed in ((["--dry-run"], []), (["-nv"], ["-v"]), (["-q", "-yn"], []), (["--check", "--"], [])):
        assert "gpu[01-03]" in network.run("--on", "all", "mount", "--all", *flags, code=None).stdout
        assert last_words(network) == ["--all", *passed, "--check", "--json"]
    assert network.changed() == []


def test_undo_takes_back_a_run_where_it_was_done(network: Network) -> None:
    names = cluster(network, 5)
    network.prints(names[2], frames(names[2], document()))
    run = network.json("--on", "all", "mount", "--all", "--yes")["run"]
    network.log.write_text("")
    network.json("--on", "all", "undo", run, "--yes")
    log = [line for line in network.log.read_text().splitlines() if "lease" not in line]
    undone = {line.split()[0]: line.split()[-1] for line in log}
    assert set(undone) == {"storage1", *names} - {names[2]}
    assert undone["storage1"] == "100" and undone[names[4]] == "105"
    assert list(undone)[-1] == "storage1"  # clients first: what they have mounted may be in use, and is not to go stale
    again = network.json("nodes", "resume", "--list")["runs"][0]["run"]
    network.log.write_text("")
    network.json("--on", "all", "undo", again, "--yes")
    assert next(line for line in network.log.read_text().splitlines() if "lease" not in line).startswith("storage1 ")
    assert "needs the run" in network.run("--on", "all", "undo", code=2).stderr
    assert "there is no run ''" in network.run("--on", "all", "undo", "", code=1).stderr
    for other in ("2026x", f"../fleet/{run}"):
        assert f"no run {other}" in network.run("--on", "all", "undo", other, code=1).stderr


@pytest.mark.parametrize(("most", "ends"), [("3", True), ("4", False), ("9%", True), ("10%", False)])
def test_unreachable_nodes_count_against_the_limit(network: Network, most: str, ends: bool) -> None:
    """Four of 40 are off; one at a time, so that none has begun when the limit is passed."""
    names = cluster(network, 40, ())
    for name in names[10:14]:
        network.does(name, "echo 'ssh: connect to host x port 22: No route to host' >&2; exit 255")
    states = network.states("--on", "all", "mount", "--all", "--yes", "--max-failures", most, "--fanout", "1", code=4)
    assert list(states.values()).count("unreachable") == 4
    assert ("not tried" in states.values()) == ends


def test_what_is_resumed_twice_still_shows_all_nodes(network: Network) -> None:
    names = cluster(network, 5)
    off = "echo 'ssh: connect to host x port 22: No route to host' >&2; exit 255"
    network.does(names[2], off)
    network.does(names[3], off)
    network.json("--on", "all", "mount", "--all", "--yes", code=4)
    network.changes(names[2], 7)
    second = network.json("nodes", "resume", "--yes", code=4)
    assert {node["name"]: node["state"] for node in second["nodes"]} == {**dict.fromkeys(["storage1", *names], "changed"), names[3]: "unreachable"}
    network.changes(names[3], 8)
    third = network.json("nodes", "resume", second["run"], "--yes")
    assert {node["name"]: node["state"] for node in third["nodes"]} == dict.fromkeys(["storage1", *names], "changed")
    network.log.write_text("")
    network.json("--on", "all", "undo", third["run"], "--yes")
    assert {line.split()[0] for line in network.log.read_text().splitlines() if "undo" in line} == {"storage1", *names}


def test_a_clock_that_was_set_back_leaves_the_order_of_runs(network: Network) -> None:
    names = cluster(network, 2)
    kept = Path("/var/lib/sharefs/fleet")
    first = network.json("--on", "all", "mount", "--all", "--yes")["run"]
    kept.joinpath(first).rename(kept / "20991231-235959-00z9")
    network.does(names[1], "echo 'ssh: connect to host x port 22: No route to host' >&2; exit 255")
    second = network.json("--on", "all", "umount", "--all", "--yes", code=4)["run"]
    assert [run["run"] for run in network.json("nodes", "resume", "--list")["runs"]] == [second, "20991231-235959-00z9"]
    network.changes(names[1], 7)
    network.json("nodes", "resume", "--yes")
    assert "umount" in network.log.read_text().splitlines()[-2]


def test_one_administrator_at_a_time(network: Network) -> None:
    cluster(network, 2)
    gate = network.place / "gate"
    network.changes("storage1", 1, f"while [ ! -e {gate} ]; do sleep 0.05; done")
    first = network.start("--on", "all", "mount", "--all", "--yes")
    wait_for(lambda: network.changed() == ["storage1"])
    second = network.run("--on", "all", "mount", "--all", "--yes", "--wait", "0.2s", code=1)
    assert "another sharefs" in second.stderr and "mount --all" in second.stderr
    gate.touch()
    first.communicate(timeout=60)
    assert first.returncode == 0


def test_the_servers_know_who_changes_the_cluster(network: Network) -> None:
    """Another machine's administrator is stopped by the note that the first has left there."""
    cluster(network, 2)
    lease = Path("/var/lib/sharefs/cluster.lease")
    network.run("nodes", "lease", "20260101-000000-aaaa", "bob@login2", "--for", "1h")
    refused = network.run("--on", "all", "mount", "--all", "--yes", code=1)
    assert "storage1: bob@login2 has been changing the cluster" in refused.stderr and network.changed() == []
    assert "no change of many nodes is on record" in network.run("nodes", "resume", "--list").stderr
    network.run("nodes", "lease", "20260101-000000-aaaa", "--release")
    assert not lease.exists()
    network.json("--on", "all", "mount", "--all", "--yes")
    assert len(network.changed()) == 3 and not lease.exists(), "it is given back"
    network.run("nodes", "lease", "20260101-000000-bbbb", "bob@login2", "--for", "0s")
    network.log.write_text("")
    network.json("--on", "all", "mount", "--all", "--yes")  # it ended by itself
    given_back = next(line for line in network.log.read_text().splitlines() if "--release" in line)
    assert "1:storage1:10 " in given_back, "a server that hangs holds up the end for 10 s, not for a minute"
    network.does("storage1", "case \"$*\" in *--release*) exit 1 ;; esac; " + (network.place / "storage1.sh").read_text())
    said = network.run("--on", "all", "mount", "--all", "--yes").stderr
    assert "may refuse other administrators" in said and "--release` on a server gives it back" in said
    lease.unlink()
    network.does("storage1", "case \"$*\" in *lease*) exit 255 ;; esac; " + (network.place / "storage1.sh").read_text())
    said = network.run("--on", "clients", "mount", "--all", "--yes")
    assert "storage1 could not be asked who else" in said.stderr


@pytest.mark.parametrize(("program", "key"), [("sinfo", "slurm: gpus"), ("nodeset", "clustershell: '@gpus'")])
def test_who_knows_the_names_is_asked_once_in_a_change(network: Network, program: str, key: str) -> None:
    cluster(network, 2)
    asked = network.place / program
    asked.write_text('#!/bin/sh\necho once >>"$NETWORK/asked"\nprintf "gpu01\\ngpu02\\n"\n')
    asked.chmod(0o755)
    network.config.write_text(f"version: 1\nservers:\n  storage1: {{address: storage1}}\nnodes: {{{key}}}\n")
    place = shutil.which(program)
    assert place is not None, "scripts/setup.sh installs it"
    subprocess.run(["mount", "--bind", asked, place], check=True)  # in the mount namespace of tests/support/alone
    try:
        assert set(network.states("--on", "all", "mount", "--all", "--yes").values()) == {"changed"}
        assert len(network.place.joinpath("asked").read_text().splitlines()) == 1
        asked.write_text("#!/bin/sh\necho\n")  # as nodeset does for a group that it does not know
        assert f"`nodes.{key.split(':')[0]}` names no node" in network.run("nodes", "list", code=2).stderr
    finally:
        subprocess.run(["umount", place], check=True)


def test_pending_of_nothing_is_no_question(network: Network) -> None:
    network.nodes(["gpu[1-2]"])
    for node in ("gpu1", "gpu2"):
        network.prints(node, frames(node, document()))
    assert network.run("--on", "all", "mount", "--all").returncode == 0
    assert pending("x")["plan"] is not None and done(1)["journal_id"] == "1"
    assert os.listdir("/var/lib/sharefs/fleet") == []
