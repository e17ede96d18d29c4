"""`sharefs --on NODES` with every kind of answer and of silence."""

from __future__ import annotations

import fcntl
import json
import resource
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from network import KILLED, SHAREFS, Network, cluster, document, frames

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


def test_attack_a_task_of_srun_answers_for_another_node(network: Network) -> None:
    network.nodes(["gpu[1-3]"])
    own, false = (frames("gpu1", document(error={"message": text}), 1) for text in ("its own", "x" * 2000))
    twice = frames("gpu2", document()) * 2
    srun = network.place / "bin/srun"
    for text in (own + false, false + own):
        network.place.joinpath("out").write_text(text + twice + frames("gpu3", document()))
        srun.write_text(f"#!/bin/sh\ncat {network.place}/out\n")
        srun.chmod(0o755)
        ran = network.run("--on", "all", "--engine", "srun", "status", "--json", code=4, SLURM_JOB_ID="1")
        nodes = {node["name"]: (node["state"], node["why"]) for node in json.loads(ran.stdout)["nodes"]}
        assert nodes["gpu1"] == ("failed", "two answers came in its name, and one of them is another node's")
        assert nodes["gpu2"][0] == nodes["gpu3"][0] == "ok"


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
    for typed in ("10min", "600s"):  # as long as the default, and typed nevertheless
        assert given("--node-deadline", typed, "status") == ["600"]
        assert given("--node-deadline", typed, "conda", "stage", "env", "--yes") == ["600"]
    assert given("conda", "stage", "env", "--yes") == ["86400"]


def test_a_relative_configuration_is_named_to_nodes_by_its_whole_path(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster(network, 1, ())
    monkeypatch.chdir(network.place)
    for words in (["--config", "./sharefs.yaml"], ["--config=sharefs.yaml"]):
        network.log.write_text("")
        done = subprocess.run([SHAREFS, *words, "--on", "all", "mount", "--all", "--check"], env=network.environment, stdin=subprocess.DEVNULL, timeout=60)
        assert done.returncode == 3
        assert network.log.read_text().rstrip().endswith(f"'--config' '{network.config}' 'mount' '--all' '--check' '--json'"), network.log.read_text()
    packed = "0123456789abcdef" * 4 + ":3:4096"
    network.prints("gpu01", frames("gpu01", document(packed=packed)))
    for words, given in (
        (["mount", "./data", "../share", "--check"], f"'mount' '{network.place}/data' '{network.place.parent}/share'"),
        (["stage", "data/x", "--check"], f"'stage' '{network.place}/data/x' '--packed'"),
    ):
        network.log.write_text("")
        subprocess.run([SHAREFS, "--config", network.config, "--on", "all", *words], env=network.environment, stdin=subprocess.DEVNULL, timeout=60)
        assert given in network.log.read_text(), network.log.read_text()


def test_the_command_that_mends_a_finding_is_shown(network: Network) -> None:
    network.nodes(["gpu[1-2]"])
    finding = {"severity": "error", "code": "SF603", "subject": "/var/cache", "message": "it is full", "hint": "", "fix": "sharefs cache prune"}
    for node in ("gpu1", "gpu2"):
        network.prints(node, frames(node, document(diagnoses=[finding]), 1))
    said = network.run("--on", "all", "doctor", code=1).stderr
    assert "error: gpu[1-2]: /var/cache: it is full [SF603]\nhint: run `sharefs cache prune`\n" in said, said


def test_a_node_that_is_stopped_holds_up_nobody_for_hours(network: Network) -> None:
    """gpu1 is stopped after its first word; gpu2 says now and then that it is at work, and is waited for."""
    network.nodes(["gpu[1-2]"])
    for node in "gpu1", "gpu2":
        hello, answer = frames(node, document()).splitlines()
        signs = "for each in 1 2 3 4 5 6 7 8; do sleep 10; echo '{\"progress\":\"at work\",\"seconds\":'$each'0}' >&2; done"
        network.does(node, f"echo {shlex.quote(hello)}; {'sleep 600' if node == 'gpu1' else signs}; echo {shlex.quote(answer)}")
    said = network.run("--on", "all", "--node-deadline", "1h", "status", "--json", code=4)
    nodes = {node["name"]: node for node in json.loads(said.stdout)["nodes"]}
    assert nodes["gpu1"]["state"] == "timed out" and "more than a minute" in nodes["gpu1"]["why"]
    assert nodes["gpu2"]["state"] == "ok" and "bytes" not in said.stderr


def test_a_node_says_that_it_is_at_work(network: Network) -> None:
    """Also while it waits for another command: nothing else comes of it then."""
    network.config.write_text(f"version: 1\ncaches: {{local: [{network.place}/caches]}}\n")
    Path("/var/lib/sharefs").mkdir(mode=0o700, exist_ok=True)
    with Path("/var/lib/sharefs/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        words = [SHAREFS, "--frame", "1:gpu1", "--config", str(network.config), "mount", "--all", "--yes", "--wait", "17s"]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    signs = [line for line in ran.stderr.splitlines() if line.startswith('{"progress"')]
    assert [json.loads(line)["seconds"] for line in signs] == [15], ran.stderr


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
    assert " nodes list` shows" in network.run("--on", "all!all", "status", code=2).stderr
    assert " nodes resume --list`" in network.run("nodes", "resume", "x", code=1).stderr
    assert " nodes resume --list`" in network.run("--on", "all", "undo", "../..", code=1).stderr
    for pattern in ("", " "):
        assert "names no node" in network.run("nodes", "push", pattern, "--check", code=2).stderr, pattern
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


def test_an_answer_of_an_object_with_countless_members_is_none(network: Network) -> None:
    """An object that keeps the order of its members takes the square of their number to read: hours, not seconds."""
    network.nodes(["gpu1", "gpu2"])
    network.prints("gpu1", frames("gpu1", document(own={str(number): 1 for number in range(150_000)})))
    network.prints("gpu2", frames("gpu2", document()))
    begin = time.monotonic()
    assert network.states("--on", "all", "status", code=4) == {"gpu1": "failed", "gpu2": "ok"}
    assert time.monotonic() - begin < 20
