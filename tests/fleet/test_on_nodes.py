"""`sharefs --on NODES` with every kind of answer and of silence."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from network import Network, document, done, frames, pending


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    made = Network(tmp_path / "network")
    shutil.rmtree("/var/lib/sharefs/fleet", ignore_errors=True)  # a state of the test's own: tests/support/alone
    yield made


def wait_for(condition: object, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


ENGINES = [name for name, program in {"xargs": "xargs", "clush": "clush", "pdsh": "pdsh"}.items() if shutil.which(program)]


@pytest.mark.parametrize("engine", ["xargs", "clush", "pdsh"])
def test_the_real_command_runs_behind_each_engine(network: Network, engine: str) -> None:
    assert engine in ENGINES, "scripts/setup.sh installs it"
    network.nodes(["gpu[1-3]"])
    for node in ("gpu1", "gpu2", "gpu3"):
        network.does(node, 'echo "Welcome to $node"; eval "$*"')
    answer = network.json("--on", "all", "--engine", engine, "status")
    assert answer["engine"] == engine
    assert [node["state"] for node in answer["nodes"]] == ["ok"] * 3
    assert all(node["document"]["command"] == "status" for node in answer["nodes"])


FAULTS = {
    "timeout": ("echo 'ssh: connect to host x port 22: Connection timed out' >&2; exit 255", "unreachable"),
    "route": ("echo 'ssh: connect to host x port 22: No route to host' >&2; exit 255", "unreachable"),
    "name": ("echo 'ssh: Could not resolve hostname x: Name or service not known' >&2; exit 255", "unreachable"),
    "refused": ("echo 'ssh: connect to host x port 22: Connection refused' >&2; exit 255", "refused"),
    "key": ("echo 'Host key verification failed.' >&2; exit 255", "host key"),
    "changed": ("echo '@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @' >&2; exit 255", "host key"),
    "denied": ("echo 'root@x: Permission denied (publickey).' >&2; exit 255", "denied"),
    "sudo": ("echo 'sudo: a password is required' >&2; exit 1", "denied"),
    "missing": ("""echo "timeout: failed to run command 'sharefs': No such file or directory" >&2; exit 127""", "no sharefs"),
    "old": ("echo 'error: unknown option `--frame`' >&2; exit 2", "version differs"),
    "protocol": (None, "version differs"),
    "cut": (None, "failed"),
    "noise": ("echo hello; exit 0", "failed"),
    "bytes": (r"printf 'caf\351 \377\376\n' >&2; printf '\377\200@sf1 \351\n'; exit 255", "unreachable"),
    "reset": ("echo 'Connection reset by 10.0.0.1 port 22' >&2; exit 255", "unreachable"),
    "nosudo": ("echo 'sh: 1: sudo: not found' >&2; exit 127", "denied"),
    "tty": ("echo 'sudo: sorry, you must have a tty to run sudo' >&2; exit 1", "denied"),
    "noexec": ("echo 'sh: 1: exec: sharefs: Permission denied' >&2; exit 126", "failed"),
    "library": ("echo 'sharefs: error while loading shared libraries: libmount.so.1: cannot open' >&2; exit 127", "failed"),
    "down": ("echo 'ssh: connect to host x port 22: Host is down' >&2; exit 255", "unreachable"),
    "jump": ("printf 'root@jump: Permission denied (publickey).\nConnection closed by UNKNOWN port 65535\n' >&2; exit 255", "unreachable"),
    "killed": ("kill -KILL $$", "timed out"),
    "hung": ("exec sleep 60", "timed out"),
}
FINE = ("plain", "motd", "glued", "large", "latin")


def play(network: Network, node: str, kind: str) -> str:
    """The state that is to come of it."""
    answer = frames(node, document(rows=[{"state": "good"}]))
    if kind in FAULTS and FAULTS[kind][0] is not None:
        network.does(node, FAULTS[kind][0] or "")
    elif kind == "protocol":
        network.prints(node, frames(node, document(), protocol=7).splitlines(keepends=True)[0], 2)
    elif kind == "cut":
        network.prints(node, frames(node, document(text="x" * 3000))[:-900], 0)
    elif kind == "motd":
        network.prints(node, "*** maintenance on Friday ***\n" + answer + "bye\n")
    elif kind == "latin":
        network.does(node, r"printf '\377caf\351 @sf1 \376 1/2 00 x\n\200'; cat " + str(network.place / f"{node}.answer"))
        (network.place / f"{node}.answer").write_text(answer)
    elif kind == "glued":
        network.prints(node, "half a line of another@sf1 other 1/9 00" + answer.replace("\n", "\r\n"))
    elif kind == "large":
        network.prints(node, frames(node, document(rows=[{"state": "good", "text": "@sf1 " + "y" * 300} for _ in range(1000)])))
    elif kind == "real":
        network.does(node, 'eval "$*"')
    else:
        network.prints(node, answer)
    return FAULTS[kind][1] if kind in FAULTS else "ok"


def test_each_fault_is_told_by_its_state(network: Network) -> None:
    kinds = [*FAULTS, *FINE]
    network.nodes([f"n-{kind}" for kind in kinds])
    wanted = {f"n-{kind}": play(network, f"n-{kind}", kind) for kind in kinds}
    nodes = network.json("--on", "all", "--node-deadline", "1s", "status", code=4)["nodes"]
    assert {node["name"]: node["state"] for node in nodes} == wanted
    answer = {node["name"].removeprefix("n-"): node for node in nodes}
    assert "Permission denied" in answer["noexec"]["why"] and "libmount" in answer["library"]["why"]
    assert "jump host" in answer["jump"]["why"] and "`ssh -v n-jump true`" in answer["jump"]["hint"]
    assert answer["noise"]["hint"] == "`ssh n-noise true` shows what logging in prints there"
    assert all(node["hint"] for node in nodes if node["state"] not in ("ok", "failed"))


def test_a_thousand_nodes(network: Network) -> None:
    """Every answer in the table, none lost or swapped, memory bounded."""
    kinds = [kind for kind in FAULTS if kind != "hung"]
    names = [f"gpu{number:04}" for number in range(1000)]
    network.nodes(["gpu[0000-0999]"])
    wanted = {}
    for number, name in enumerate(names):
        kind = "real" if number % 10 == 0 else kinds[number // 20 % len(kinds)] if number % 20 == 7 else FINE[number % 3 if number % 7 else 4]
        wanted[name] = play(network, name, kind)
    answer = network.json("--on", "all", "status", code=4)
    assert {node["name"]: node["state"] for node in answer["nodes"]} == wanted
    for node in answer["nodes"]:
        if node["state"] == "ok" and names.index(node["name"]) % 10 != 0:
            assert node["document"]["rows"] == [{"state": "good"}]
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 300_000, "KiB"
    table = network.run("--on", "all", "status", code=4).stdout
    assert len(table.splitlines()) < 30, "equal answers are folded"


def cluster(network: Network, count: int = 40, servers: tuple[str, ...] = ("storage1",)) -> list[str]:
    names = [f"gpu{number:02}" for number in range(1, count + 1)]
    network.nodes([f"gpu[01-{count:02}]"], list(servers))
    for number, name in enumerate([*servers, *names]):
        network.changes(name, number + 100)
    return names


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


KILLED = "kill -KILL $(ps -o ppid= -p $PPID)"  # the script of the engine, as when memory runs out on the launching machine


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
    for other in ("2026x", f"../fleet/{run}"):
        assert f"no run {other}" in network.run("--on", "all", "undo", other, code=1).stderr


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


@pytest.mark.parametrize(("most", "ends"), [("3", True), ("4", False), ("9%", True), ("10%", False)])
def test_unreachable_nodes_count_against_the_limit(network: Network, most: str, ends: bool) -> None:
    """Four of 40 are off; one at a time, so that none has begun when the limit is passed."""
    names = cluster(network, 40, ())
    for name in names[10:14]:
        network.does(name, "echo 'ssh: connect to host x port 22: No route to host' >&2; exit 255")
    states = network.states("--on", "all", "mount", "--all", "--yes", "--max-failures", most, "--fanout", "1", code=4)
    assert list(states.values()).count("unreachable") == 4
    assert ("not tried" in states.values()) == ends


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


def test_nothing_of_an_attacker_comes_through_a_name_or_an_answer(network: Network) -> None:
    for name in ("-oProxyCommand=touch x", "a;touch x", "$(touch x)", "a b'c", "../x"):
        network.config.write_text(f"version: 1\nnodes:\n  list: [{json.dumps(name)}]\n")
        assert network.run("--on", "all", "status", code=2).stdout == ""
    network.nodes(["gpu1", "gpu2"])
    network.prints("gpu1", frames("gpu2", document(rows=[{"state": "forged"}])))  # speaks for another
    network.prints("gpu2", frames("gpu2", document(error={"message": "\x1b]0;owned\x07 red \x1b[31m", "hint": ""}), 1))
    answer = network.run("--on", "all", "status", code=1)
    assert "\x1b" not in answer.stdout + answer.stderr
    states = network.states("--on", "all", "status", code=1)
    assert states == {"gpu1": "failed", "gpu2": "failed"}
    network.does("gpu1", "head -c 100000000 /dev/zero; exit 0")
    network.prints("gpu2", frames("gpu2", document()))
    assert network.states("--on", "all", "status", code=4) == {"gpu1": "failed", "gpu2": "ok"}


@pytest.mark.parametrize("engine", ["xargs", "clush", "pdsh"])
def test_a_node_that_says_too_much_ends_nothing_but_its_own_answer(network: Network, engine: str) -> None:
    """Also where its script's own last words find no room any more: xargs ends when one of its commands is killed."""
    network.nodes(["gpu[1-8]"])
    for number in range(1, 9):
        network.prints(f"gpu{number}", frames(f"gpu{number}", document()))
    network.does("gpu1", "head -c 1000000000 /dev/zero | tr '\\0' x >&2; exit 1")
    network.does("gpu2", "head -c 1000000000 /dev/zero; exit 0")
    answer = network.json("--on", "all", "--engine", engine, "--fanout", "1", "status", code=4)
    states = {node["name"]: node["state"] for node in answer["nodes"]}
    assert states == {**{f"gpu{number}": "ok" for number in range(3, 9)}, "gpu1": "failed", "gpu2": "failed"}
    assert {node["why"] for node in answer["nodes"][:2]} == {"its output is larger than what is kept of one, and the answer is not in what was kept"}


def test_an_engine_that_gives_up_is_named_where_it_did_not_come(network: Network) -> None:
    network.nodes(["gpu[1-4]"])
    for number in range(1, 5):
        network.prints(f"gpu{number}", frames(f"gpu{number}", document()))
    network.does("gpu2", KILLED)
    nodes = network.json("--on", "all", "--engine", "xargs", "--fanout", "1", "status", code=4)["nodes"]
    assert [node["state"] for node in nodes] == ["ok", "failed", "not tried", "not tried"]
    assert "xargs ended with 125" in nodes[2]["why"] and "killed" not in nodes[1]["why"]


def test_what_only_looks_keeps_nobody_waiting_for_long(network: Network) -> None:
    """The deadline that a node is given: a login that hangs holds up a look for two minutes, a change for ten."""
    cluster(network, 1, ())

    def given(*words: str) -> list[str]:
        network.log.write_text("")
        network.run("--on", "all", *words, code=None)
        return [word.split(":")[2] for word in network.log.read_text().split() if word.startswith("1:gpu01:")]

    assert given("status") == ["120"]
    assert given("mount", "--all", "--check") == ["120"]
    assert given("mount", "--all", "--yes") == ["600"]
    network.run("nodes", "push", "--check", code=None)
    assert "'timeout' '-k' '2' '120' " in network.log.read_text()
    assert given("--node-deadline", "30min", "status") == ["1800"]
    assert given("--node-deadline", "30min", "mount", "--all", "--check") == ["1800"]


def test_where_no_machine_is_listed_names_are_taken_as_they_are_but_groups_are_not(network: Network) -> None:
    network.config.write_text("version: 1\n")
    network.prints("gpu1", frames("gpu1", document()))
    assert network.states("--on", "gpu1", "status") == {"gpu1": "ok"}
    network.log.write_text("")
    for group in ("all", "servers", "clients", "@servers", "all!gpu1"):
        said = network.run("--on", group, "status", code=2).stderr
        assert "names no node" in said and "under `nodes:`" in said or "no node is called" in said, said
    assert "`gpu*` fits no node" in network.run("--on", "gpu*", "status", code=2).stderr
    assert network.log.read_text() == ""


def test_mistakes_are_told_with_the_way_out(network: Network) -> None:
    network.nodes(["gpu[1-3]"], ["storage1"])
    assert "did you mean" in network.run("--on", "gpu[1-4]", "status", code=2).stderr
    assert "did you mean `clients`" in network.run("--on", "@client", "status", code=2).stderr
    assert "works on this machine only" in network.run("--on", "all", "explain", code=2).stderr
    assert "did you mean `clush`" in network.run("--on", "all", "--engine", "clus", "status", code=2).stderr
    assert "--max-failures" in network.run("--on", "all", "--max-failures", "x", "mount", "--all", "--yes", code=2).stderr
    assert "`sharefs` needs a command" in network.run("--on", "all", code=2).stderr
    assert "`sharefs help`" in network.run("--on", "all", "help", code=2).stderr
    assert "`sharefs nodes list` shows" in network.run("--on", "all!all", "status", code=2).stderr
    assert "`sharefs nodes resume --list`" in network.run("nodes", "resume", "x", code=1).stderr
    assert "`sharefs nodes resume --list`" in network.run("--on", "all", "undo", "../..", code=1).stderr
    assert "`--json` prints it" in network.run("nodes", "list", "--format", "json", code=2).stderr
    assert "running machines" in network.run("--on", "all", "--root", "/var/tmp", "status", code=2).stderr
    network.config.write_text("version: 1\nnodes:\n  list: [a, 'b[1-2]', b2]\n")
    twice = network.run("nodes", "list", code=2).stderr
    assert twice.count("sharefs.yaml:3:") == 2 and "comes twice" in twice, "both places"
    for node, said in (
        ("'2001:db8::1'", "address: 192.168.16.11"), ("'gpu1:2222'", "ssh_config(5)"), ("'alice@gpu1'", "user: alice"),
        ("{name: a, address: '10.0.0.1:22'}", "line `Port` for ssh"), ("{name: a, address: '[::1]'}", "an IP address"),
        ("{name: 'a[1-2]', address: b}", "an element of its own"),
    ):  # fmt: skip
        network.config.write_text(f"version: 1\nnodes:\n  list: [{node}]\n")
        assert said in network.run("nodes", "list", code=2).stderr, node
    network.config.write_text("version: 1\nnodes: {hostfile: /nowhere/hosts}\n")
    assert "hint: write a line `NAME slots=N`" in network.run("--on", "all", "status", code=1).stderr
    network.nodes(["gpu[1-3]"])
    for pattern in ("gpu[1-3", "gpu[3-1]", "gpu1,,gpu2", "gpu{1,2}", "gpu[1-3]!", "gpu1;gpu2", "@"):
        said = network.run("--on", pattern, "status", code=2).stderr.splitlines()
        assert len(said) == 2 and said[0].startswith("error: ") and said[1].startswith("hint: "), said
        assert "(column " in said[0], said


@pytest.mark.parametrize(("form", "text"), [
    ("DeepSpeed", "# rack 1\n  gpu1 slots=8\n\ngpu2 slots=4\n"),
    ("Open MPI", "gpu1 slots=8 max_slots=16  # rack 1\ngpu2 slots=4 max-slots=4\n"),
    ("MPICH", "gpu1:8\ngpu2:4\n"),
])
def test_a_hostfile_of_each_launcher_serves_all(network: Network, form: str, text: str) -> None:
    hosts = network.place / "hosts"
    hosts.write_text(text)
    network.config.write_text(f"version: 1\nnodes: {{hostfile: {hosts}}}\n")
    assert network.run("nodes", "list", "--format", "hostfile").stdout == "gpu1 slots=8\ngpu2 slots=4\n", form
    assert network.run("nodes", "list", "--format", "slurm").stdout == "gpu[1-2]\n"
    hosts.write_text(text + "gpu1 slots=8\n")
    said = network.run("nodes", "list", code=2).stderr
    assert f"{hosts}:{len(text.splitlines()) + 1}:1: gpu1 stands on line" in said, said


def test_what_machines_say_of_themselves_is_compared(network: Network) -> None:
    network.nodes(["gpu[1-3]"])
    facts = {"version": "0.1.0", "config": "c", "clock_ms": int(time.time() * 1000)}
    for node, uid in (("gpu1", 1000), ("gpu2", 1000), ("gpu3", 1001)):
        its = {**facts, "hostname": node, "users": [{"name": "alice", "uid": uid, "gid": 100}]}
        network.prints(node, frames(node, document(self=its)))
    said = network.run("nodes", "check", code=1)
    assert "SF803" in said.stderr and "gpu3" in said.stderr and "uid 1001" in said.stderr
    network.prints("gpu3", frames("gpu3", document(self={**facts, "hostname": "gpu3", "users": [{"name": "alice", "uid": 1000, "gid": 100}]})))
    assert "all 3 are alike" in network.run("nodes", "check").stderr


@pytest.mark.parametrize(("answers", "code"), [(("held", "refused"), None), (("held", "taken"), "SF239"), (("held", "missing"), "SF240")])
def test_locks_are_tried_between_two_machines(network: Network, answers: tuple[str, str], code: str | None) -> None:
    network.nodes(["gpu[1-3]"])
    network.config.write_text(network.config.read_text() + "mounts:\n  share: {from: 'gpu9:/x', at: /data/share}\n")
    self_ = {"version": "0.1.0", "config": "c", "clock_ms": int(time.time() * 1000), "users": []}
    mount = {"target": "/data/share", "state": "healthy"}
    for node, answer in zip(("gpu1", "gpu2", "gpu3"), (*answers, "never asked")):
        asked = {"self": document(self={"hostname": node, **self_}), "doctor": document(), "status": document(mounts=[mount]), "lock": document(lock=answer)}
        for word, said in asked.items():
            (network.place / f"{node}.{word}").write_text(frames(node, said))
        network.does(node, f"""for word in self doctor status lock; do case "$*" in *"'$word'"*) cat {network.place}/{node}.$word ;; esac; done""")
    said = network.run("nodes", "check", "--locks", code=None).stderr
    assert (code is None and "SF239" not in said and "SF240" not in said) or (code is not None and code in said)
    asked = [line for line in network.log.read_text().splitlines() if "'lock'" in line]
    assert sorted(line.split()[0] for line in asked) == ["gpu1", "gpu2"]
    assert asked[0].split()[-2:] in (["--hold", "5s"], ["--after", "2s"])


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
