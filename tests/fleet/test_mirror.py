"""`sharefs mirror` by the real rsync: each node has its own disk below the same path, in a mount namespace of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from network import Network, wait_for

DATA = Path("/var/tmp/cluster")  # tests/support/alone: the test's own
CODE, MODELS = DATA / "code", DATA / "models"
LOCKS = "sharefs/mirror"


class Cluster:
    def __init__(self, network: Network, names: list[str]) -> None:
        self.network = network
        self.names = names
        shutil.rmtree(DATA, ignore_errors=True)
        (CODE / "pkg/empty").mkdir(parents=True)
        MODELS.mkdir()
        (CODE / "train.py").write_text("print(1)\n")
        (CODE / "pkg/a b'$(x).py").write_text("x\n" * 100)
        os.chmod(CODE / "train.py", 0o750)
        os.chown(CODE / "train.py", 1234, 4321)
        os.link(CODE / "train.py", CODE / "same.py")
        (CODE / "out").symlink_to("/etc")
        (MODELS / "weights").write_bytes(os.urandom(3_000_000))
        for name in names:
            self.has_disk(name)
        self.configure()

    def configure(self, code: str = "", models: str = "") -> None:
        self.network.nodes(self.names)
        text = self.network.config.read_text()
        text += f"mirror:\n  code: {{path: {CODE}{code}}}\n  models: {{path: {MODELS}{models}}}\n"
        self.network.config.write_text(text)

    def has_disk(self, name: str, before: str = "", command: str = 'eval "$1"') -> None:
        """What the node is told is done where its own directories lie below the paths of this machine."""
        for place in (self.disk(name), self.state(name)):
            place.mkdir(parents=True, exist_ok=True)
        inside = f"mount --bind {self.disk(name)} {DATA}; mount --bind {self.state(name)} /var/lib\n{before}\n{command}"
        self.network.does(name, f'exec unshare --mount --propagation private sh -c {shlex.quote(inside)} sh "$*"')

    def disk(self, name: str) -> Path:
        return self.network.place / "disks" / name

    def state(self, name: str) -> Path:
        return self.network.place / "states" / name

    def push(self, *words: str, code: int | None = 0) -> dict[str, str]:
        return self.network.states("mirror", "push", "--yes", *words, code=code)

    def status(self, *words: str, code: int | None = 0) -> dict[str, list[str]]:
        answer = self.network.json("mirror", "status", *words, code=code)
        return {
            node["name"]: [mirror["state"] for mirror in node["document"]["mirrors"]]
            for node in answer["nodes"] if node["state"] == "ok"
        }


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    shutil.rmtree("/var/lib/sharefs/fleet", ignore_errors=True)
    yield Cluster(Network(tmp_path / "network"), ["gpu1", "gpu2", "gpu3"])


def tree(root: Path) -> list[str]:
    """Times in whole seconds: rsync leaves the rest of a directory or link that it made in the same second as it is."""
    shown = subprocess.run(
        ["find", ".", "-printf", "%P %y %m %U:%G %T@ %n %l\n"], cwd=root, capture_output=True, text=True, check=True
    )
    return sorted(re.sub(r"(\d{9})\.\d+ ", r"\1 ", line) for line in shown.stdout.splitlines())


def same(cluster: Cluster, name: str, mirror: Path = CODE) -> bool:
    there = cluster.disk(name) / mirror.name
    assert tree(there) == tree(mirror)
    return subprocess.run(["diff", "-r", "--no-dereference", there, mirror], check=False).returncode == 0


@pytest.mark.parametrize("engine", ["xargs", "clush", "pdsh"])
def test_the_same_tree_is_on_each_node_and_a_second_push_does_nothing(cluster: Cluster, engine: str) -> None:
    assert cluster.status() == dict.fromkeys(cluster.names, ["missing", "missing"])
    assert cluster.push("--engine", engine) == dict.fromkeys(cluster.names, "changed")
    assert all(same(cluster, name, mirror) for name in cluster.names for mirror in (CODE, MODELS))
    assert cluster.push("--engine", engine) == dict.fromkeys(cluster.names, "ok")
    cluster.network.run("mirror", "push", "--check")
    assert cluster.status() == dict.fromkeys(cluster.names, ["same", "same"])
    cluster.network.run("mirror", "verify")


def test_the_plan_is_shown_before_anything_is_sent(cluster: Cluster) -> None:
    refused = cluster.network.run("mirror", "push", code=2)
    assert "no terminal" in refused.stderr
    assert "gpu[1-3]: 2 steps" in refused.stderr and "new (" in refused.stderr and "code: /var/tmp/cluster/code, 4 files" in refused.stderr
    states = cluster.network.states("mirror", "push", "--check", code=3)
    assert states == dict.fromkeys(cluster.names, "pending")
    assert not any(list(cluster.disk(name).iterdir()) for name in cluster.names)


def test_only_what_is_named_goes_only_where_it_is_to(cluster: Cluster) -> None:
    assert cluster.push("code", "--to", "gpu2") == {"gpu2": "changed"}
    assert cluster.status() == {"gpu1": ["missing", "missing"], "gpu2": ["same", "missing"], "gpu3": ["missing", "missing"]}
    assert "did you mean `code`" in cluster.network.run("mirror", "push", "codes", code=2).stderr
    assert "did you mean" in cluster.network.run("mirror", "push", "--to", "gpu4", code=2).stderr


def test_a_state_differs_once_something_changes_here_or_there(cluster: Cluster) -> None:
    cluster.push()
    (CODE / "train.py").write_text("print(2), 'longer'\n")
    assert cluster.status("code") == dict.fromkeys(cluster.names, ["differs"])
    cluster.push("--to", "gpu1")
    assert cluster.status("code") == {"gpu1": ["same"], "gpu2": ["differs"], "gpu3": ["differs"]}
    table = cluster.network.run("mirror", "status", "code").stdout
    assert "gpu[2-3]" in table and "2 changed" in table or "1 changed" in table
    cluster.push("code")
    (cluster.disk("gpu3") / "code/pkg/empty").rmdir()
    (cluster.disk("gpu2") / "code/own").touch()
    assert cluster.status("code") == {"gpu1": ["same"], "gpu2": ["same"], "gpu3": ["differs"]}
    table = cluster.network.run("mirror", "status", "code").stdout
    assert "1 missing" in table and "1 more there" in table


def test_nothing_is_deleted_unless_it_is_asked_for(cluster: Cluster) -> None:
    cluster.push()
    own = cluster.disk("gpu1") / "code/own.txt"
    own.write_text("of the node")
    assert cluster.push()["gpu1"] in ("ok", "changed")
    assert own.exists()
    verified = cluster.network.json("mirror", "verify", "code")
    assert [m["what"] for n in verified["nodes"] for m in n["document"]["mirrors"]] == ["1 more there", "", ""]
    cluster.configure(code=", delete: true")
    assert "1 too many" in cluster.network.run("mirror", "verify", "code", code=4).stdout
    assert "1 to delete" in cluster.network.run("mirror", "push", "--check", code=3).stderr
    cluster.push("code")
    assert not own.exists() and same(cluster, "gpu1")


def test_an_empty_directory_here_empties_no_node(cluster: Cluster) -> None:
    cluster.push()
    shutil.rmtree(CODE)
    assert "there is no directory" in cluster.network.run("mirror", "push", "--yes", "--delete", code=1).stderr
    CODE.mkdir()
    assert "would be emptied" in cluster.network.run("mirror", "push", "--yes", "--delete", code=1).stderr
    assert (cluster.disk("gpu1") / "code/train.py").exists()


def test_what_size_and_time_do_not_show_is_found_by_content(cluster: Cluster) -> None:
    cluster.push()
    broken = cluster.disk("gpu2") / "models/weights"
    times = broken.stat()
    with broken.open("r+b") as file:
        file.seek(1000)
        file.write(b"other")
    os.utime(broken, ns=(times.st_atime_ns, times.st_mtime_ns))
    cluster.network.run("mirror", "push", "--check")
    answer = cluster.network.json("mirror", "verify", code=4)
    states = {node["name"]: node["state"] for node in answer["nodes"]}
    assert states == {"gpu1": "ok", "gpu2": "failed", "gpu3": "ok"}
    hint = next(node["hint"] for node in answer["nodes"] if node["name"] == "gpu2")
    words = shlex.split(hint[1 : hint.index("`", 1)])[1:]
    assert words[:2] == ["--config", str(cluster.network.config)]
    cluster.network.run(*words[2:], "--yes")
    assert same(cluster, "gpu2", MODELS)
    cluster.network.run("mirror", "verify")


def test_patterns_are_left_out_and_left_alone(cluster: Cluster) -> None:
    cluster.configure(code=", delete: true, exclude: ['*.tmp', '__pycache__/']")
    (CODE / "x.tmp").write_text("x")
    cluster.push("code")
    assert not (cluster.disk("gpu1") / "code/x.tmp").exists()
    (cluster.disk("gpu1") / "code/y.tmp").write_text("y")
    cluster.push("code")
    assert (cluster.disk("gpu1") / "code/y.tmp").exists()
    (CODE / "x.tmp").write_text("changed")
    assert cluster.status("code")["gpu2"] == ["same"]


FAULTS = {
    "no-rsync": ("mount --bind /dev/null /usr/bin/rsync", 'eval "$1"', "failed", "rsync is not installed there"),
    "small": (f"mount -t tmpfs -o size=64k tmpfs {DATA}", 'eval "$1"', "failed", "are needed, and"),
    "full": (f"mount -t tmpfs -o size=64m,nr_inodes=4 tmpfs {DATA}", 'eval "$1"', "failed", "its disk is full"),
    "link": (f"mkdir -p {DATA}/else; ln -sfn {DATA}/else {CODE}", 'eval "$1"', "failed", "is a symbolic link there"),
    "file": (f"touch {CODE}", 'eval "$1"', "failed", "is no directory there"),
    "read-only": (f"mount -t tmpfs -o ro tmpfs {DATA}", 'eval "$1"', "failed", "Read-only file system"),
    "no-record": ("mount -t tmpfs -o ro tmpfs /var/lib", 'eval "$1"', "failed", "Read-only file system"),
    "no-flock": ("mount --bind /dev/null /usr/bin/flock", 'eval "$1"', "failed", "no flock(1)"),
    "login": ("", 'echo Welcome; eval "$1"', "failed", "logging in prints something"),
    "eio": ("", 'echo \'rsync: [receiver] write failed on "x": Input/output error (5)\' >&2; exit 11', "failed", "Input/output error"),
    "off": ("", "echo 'ssh: connect to host x port 22: No route to host' >&2; exit 255", "unreachable", "no route"),
    "key": ("", "echo 'Host key verification failed.' >&2; exit 255", "host key", "host key"),
    "sudo": ("", "echo 'sudo: a password is required' >&2; exit 1", "denied", "sudo"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_node_that_cannot_is_named_and_the_others_get_it(cluster: Cluster, fault: str) -> None:
    before, command, state, why = FAULTS[fault]
    cluster.has_disk("gpu2", before, command)
    answer = cluster.network.json("mirror", "push", "--yes", code=4)
    nodes = {node["name"]: node for node in answer["nodes"]}
    assert {name: node["state"] for name, node in nodes.items()} == {"gpu1": "changed", "gpu2": state, "gpu3": "changed"}
    assert why in nodes["gpu2"]["why"]
    shutil.rmtree(cluster.disk("gpu2"))
    cluster.has_disk("gpu2")
    again = cluster.network.json("nodes", "resume", "--yes")
    assert {node["state"] for node in again["nodes"]} == {"changed"}
    assert cluster.status() == dict.fromkeys(cluster.names, ["same", "same"])


def test_what_is_ended_by_its_deadline_has_timed_out(cluster: Cluster) -> None:
    cluster.has_disk("gpu2", command="exec sleep 60")
    assert cluster.push("code", "--node-deadline", "1s", code=4) == {"gpu1": "changed", "gpu2": "timed out", "gpu3": "changed"}


def test_a_link_of_another_user_is_not_followed_here(cluster: Cluster) -> None:
    elsewhere = CODE.rename(CODE.with_name("elsewhere"))
    CODE.symlink_to(elsewhere)
    cluster.push("code")
    os.lchown(CODE, 1000, 1000)
    assert "is a symbolic link of uid 1000" in cluster.network.run("mirror", "push", "--yes", code=1).stderr


def test_holes_of_files_stay_holes(cluster: Cluster) -> None:
    os.truncate(MODELS / "weights", 64 << 20)
    cluster.push("models")
    assert (cluster.disk("gpu1") / "models/weights").stat().st_blocks * 512 < 16 << 20 and same(cluster, "gpu1", MODELS)


def test_a_link_in_the_tree_there_leads_nowhere(cluster: Cluster) -> None:
    cluster.push("code", "--to", "gpu1")
    outside = cluster.network.place / "outside"
    outside.mkdir()
    there = cluster.disk("gpu1") / "code"
    shutil.rmtree(there / "pkg")
    (there / "pkg").symlink_to(outside)
    (there / "train.py").unlink()
    (there / "train.py").symlink_to(outside / "file")
    cluster.push("code", "--to", "gpu1")
    assert list(outside.iterdir()) == [] and same(cluster, "gpu1")


def test_a_connection_that_is_cut_leaves_no_half_file_and_pushing_again_goes_on(cluster: Cluster) -> None:
    # As ssh does it: it ends, with both its streams, and the other side reads an end.
    cut = f'mkfifo "$NETWORK/cut"; (eval "$1") <"$NETWORK/cut" & stdbuf -o0 head -c 1500000 >"$NETWORK/cut"; exit 255'
    cluster.has_disk("gpu2", command=f'case "$1" in *" \'push\' "*) {cut} ;; *) eval "$1" ;; esac')
    answer = cluster.network.json("mirror", "push", "models", "--yes", code=4)
    assert {node["name"]: node["state"] for node in answer["nodes"]}["gpu2"] in ("unreachable", "failed")
    there = cluster.disk("gpu2") / "models"
    assert not (there / "weights").exists()
    assert (there / ".rsync-partial/weights").stat().st_size > 100_000
    assert cluster.status("models")["gpu2"] == ["differs"]
    cluster.has_disk("gpu2")
    assert cluster.push("models") == {"gpu1": "ok", "gpu2": "changed", "gpu3": "ok"}
    assert same(cluster, "gpu2", MODELS)


def processes_of(place: Path) -> list[str]:
    """Those of rsync that were started in this cluster."""
    found = subprocess.run(["pgrep", "rsync"], capture_output=True, text=True, check=False).stdout.split()
    ours = []
    for pid in found:
        with contextlib.suppress(OSError):
            if f"NETWORK={place}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                ours.append(pid)
    return ours


def test_ctrl_c_ends_what_runs_and_names_what_is_open(cluster: Cluster) -> None:
    cluster.has_disk("gpu1", command='case "$1" in *" \'push\' "*) (stdbuf -o0 head -c 200000; sleep 60) | eval "$1" ;; *) eval "$1" ;; esac')
    process = cluster.network.start("mirror", "push", "models", "--yes")
    wait_for(lambda: (cluster.state("gpu1") / LOCKS / "models.lock").exists())
    assert processes_of(cluster.network.place)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "whether these are done: gpu1\n" in errors and "sharefs nodes resume" in errors
    wait_for(lambda: not processes_of(cluster.network.place))
    assert not (cluster.disk("gpu1") / "models/weights").exists()
    cluster.has_disk("gpu1")
    assert cluster.push("models") == dict.fromkeys(cluster.names, "changed")


def test_a_canary_that_fails_ends_it(cluster: Cluster) -> None:
    cluster.has_disk("gpu1", f"mount -t tmpfs -o size=64k tmpfs {DATA}")
    states = cluster.push(code=None)
    assert states == {"gpu1": "failed", "gpu2": "not tried", "gpu3": "not tried"}


def test_a_look_may_take_as_long_as_a_copy(cluster: Cluster) -> None:
    """With --content it reads all files on both sides."""
    limits = cluster.network.place / "limits"
    timeout = cluster.network.place / "bin/timeout"
    timeout.write_text(f'#!/bin/sh\n[ "$1 $2" != "-k 5" ] || echo "$3" >>{limits}\nexec /usr/bin/timeout "$@"\n')
    timeout.chmod(0o755)
    cluster.network.run("mirror", "push", "--check", code=3)
    assert set(limits.read_text().split()) == {str(24 * 3600 + 10)}


# What a user of the node can do above the directory at any moment: here once the script in front of rsync has checked it.
REPLACES = """#!/bin/sh
echo >>{calls}
[ "$(wc -l <{calls})" != 2 ] || {{ mv {code} {code}.was && ln -s {outside} {code}; }}
exec /usr/bin/rsync "$@"
"""


def test_attack_a_link_takes_the_name_of_the_directory_when_it_was_checked(cluster: Cluster) -> None:
    """Root's rsync would write and delete where the link leads. Its first call looks, the second one pushes."""
    cluster.configure(code=", delete: true")
    (cluster.disk("gpu1") / "code").mkdir()
    outside = cluster.network.place / "outside"
    outside.mkdir()
    (outside / "own").touch()
    stand_in = cluster.network.place / "there/rsync"
    stand_in.parent.mkdir()
    calls = cluster.network.place / "calls"
    stand_in.write_text(REPLACES.format(calls=calls, code=CODE, outside=outside))
    stand_in.chmod(0o755)
    cluster.has_disk("gpu1", f"PATH={stand_in.parent}:$PATH")
    cluster.push("code", "--to", "gpu1", code=None)
    assert len(calls.read_text()) == 2 and (cluster.disk("gpu1") / "code").is_symlink()
    assert [path.name for path in outside.iterdir()] == ["own"]
    assert tree(cluster.disk("gpu1") / "code.was") == tree(CODE)


def test_attack_a_link_takes_the_name_of_the_directory_here_when_it_was_measured(cluster: Cluster) -> None:
    """Root's rsync would send what the link leads to. Its first call looks, the second one pushes."""
    secret = cluster.network.place / "secret"
    secret.mkdir()
    (secret / "key").touch()
    # Outside of the node's namespace, on the machine that pushes.
    exchange = f'[ -L {CODE} ] || {{ mv {CODE} {CODE}.was; ln -s {secret} {CODE}; chown -h 1000 {CODE}; }}'
    node = cluster.network.place / "gpu1.sh"
    node.write_text(f"{exchange}\n{node.read_text()}")
    said = cluster.network.run("mirror", "push", "code", "--to", "gpu1", "--yes", code=1)
    assert "is a symbolic link of uid 1000" in said.stdout + said.stderr
    assert not (cluster.disk("gpu1") / "code/key").exists()


def test_variables_of_rsync_change_nothing(cluster: Cluster) -> None:
    """With RSYNC_PROTECT_ARGS the script there would not find the directory among the arguments, and show the node's `/`."""
    ran = cluster.network.run("mirror", "status", "code", "--to", "gpu1", "--json", RSYNC_PROTECT_ARGS="1")
    mirror = json.loads(ran.stdout)["nodes"][0]["document"]["mirrors"][0]
    assert mirror["state"] == "missing" and mirror["extra"] == 0, mirror


def test_a_mirror_that_is_not_there_is_told_with_those_that_are(cluster: Cluster) -> None:
    for word, hint in (("qqqq", "the mirrors are code, models"), ("cod", "did you mean `code`?")):
        assert f"no mirror is called `{word}`\nhint: {hint}\n" in cluster.network.run("mirror", "push", word, code=2).stderr
