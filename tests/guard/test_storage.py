"""What is shared, where caches go, and what is said about it: without any library."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Cluster
from guardlab.hosts import GUARD, Host

sys.path.insert(0, str(GUARD))

from sharefs_guard import libraries, storage  # noqa: E402

PYTHON = "/usr/bin/python3"
CXX = GUARD.parents[1] / "src/sys/mounts/shared_storage.cpp"
CACHES = Path(storage.__file__).parent / "caches.txt"
PLACE = storage.Place("/s", "local", "/nowhere/local", "", False, False)


def test_no_shared_file_system_counts_as_local() -> None:
    source = re.sub(r"//.*", "", CXX.read_text())
    for name, prefix in (("k_shared", ""), ("k_shared_fuse", "fuse.")):
        table = re.search(name + r"\[\] = \{(.*?)\};", source, re.DOTALL)
        assert table and storage.LOCAL.isdisjoint(prefix + one for one in re.findall(r'"([^"]+)"', table.group(1)))
    assert "fuse" not in storage.LOCAL


def test_the_variables_of_programs_that_compile_are_set() -> None:
    """Each row of caches.txt whose cache holds code is the guard's, too."""
    rows = re.findall(r"^variable (.*)\n((?: .*\n)*)", CACHES.read_text(), re.MULTILINE)
    code = {name for first, more in rows if "| code: yes" in first + more for name in first.partition(" | ")[0].split()}
    ours = {name: (default, is_code) for name, default, is_code in libraries.read_variables()}
    assert len(ours) > 20 and code == {name for name, (_, is_code) in ours.items() if is_code}
    assert ours["TRITON_CACHE_DIR"] == ("$TRITON_HOME/.triton/cache", True)
    assert ours["HF_MODULES_CACHE"] == ("$HF_HOME/modules", False)
    assert ours["CUDA_CACHE_PATH"] == ("", True)


def test_the_mount_of_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"/": "ext4", "/share": "nfs", "/share/scratch": "xfs", "/disk": "xfs"}
    for root in "ext4", "nfs":  # a node without a disk
        mounts = {target: storage.Mount(kind, "") for target, kind in {**table, "/": root}.items()}
        monkeypatch.setattr(storage, "_read_mounts", lambda mounts=mounts: mounts)
        # sharefs knows of the mount below the share.
        for path, kind in (("/a", root), ("/share", "nfs"), ("/share/a/b", "nfs"), ("/sharex", root), ("/share/scratch/c", "nfs")):
            found, resolved = storage._resolve(path)
            assert (found.type, resolved) == (kind, path)
        assert storage._resolve("/disk/a")[0].type == "xfs"


def ask(host: Host, program: str, **environment: str) -> object:
    """What a program that imports the guard's storage prints as JSON."""
    answer = host.run([PYTHON, "-c", "import json\nfrom sharefs_guard import storage\n" + program], environment=environment)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_a_place_is_asked_for_once_in_a_tree_of_processes(cluster: Cluster) -> None:
    host = cluster.hosts[0]
    program = (
        "import subprocess, sys\n"
        "storage.place_of('/mnt/share/c'); storage.place_of('/mnt/share/c/'); storage.place_of('/mnt/local/d')\n"
        "child = 'from sharefs_guard import storage; print(storage.place_of(\"/mnt/share/c\").directory)'\n"
        "print(json.dumps(subprocess.check_output([sys.executable, '-c', child]).decode().strip()))\n"
    )
    directory = ask(host, program)
    assert str(directory).startswith("/mnt/local/caches/")
    assert host.asked == ["/mnt/share/c"]


@pytest.mark.parametrize("mode", ["another", 0o777, 0o770, "link", 0o750])
def test_a_place_that_others_have_made_anew_is_asked_for_again(cluster: Cluster, mode: str | int) -> None:
    program = (
        "import os\n"
        "first = storage.place_of('/mnt/share/c').directory\n"
        "os.rename(first, '/mnt/local/old')  # systemd-tmpfiles removes it\n"
        f"mode = {mode!r}\n"
        "os.symlink('/mnt/local/old', first) if mode == 'link' else os.mkdir(first)\n"
        "os.chown(first, 65534, 65534) if mode == 'another' else os.chmod(first, mode) if mode != 'link' else None\n"
        "storage.place_of('/mnt/share/c')\n"
        "print(json.dumps(True))\n"
    )
    host = cluster.hosts[0]
    ask(host, program)
    assert len(host.asked) == (1 if mode == 0o750 else 2)


def test_an_answer_for_another_host_is_none_here(cluster: Cluster) -> None:
    other = json.dumps({"host": "another", "places": {"/mnt/share/c": ["/mnt/share/c", "local", "/elsewhere", "", False, False]}})
    program = "print(json.dumps(storage.place_of('/mnt/share/c').directory))"
    assert str(ask(cluster.hosts[0], program, SHAREFS_GUARD_PLACES=other)).startswith("/mnt/local/")


@pytest.mark.parametrize("broken", ["{", "[]", '{"host": 1}', '{"host": "x", "places": 3}'])
def test_a_broken_answer_of_a_parent_is_asked_anew(cluster: Cluster, broken: str) -> None:
    program = "print(json.dumps(storage.place_of('/mnt/share/c').kind))"
    assert ask(cluster.hosts[0], program, SHAREFS_GUARD_PLACES=broken) == "local"


@pytest.mark.parametrize(
    ("answer", "environment", "kind"),
    [
        (None, {}, "local"),
        (None, {"SHAREFS_GUARD_BUILD": "unique"}, "unique"),
        (None, {"SHAREFS_BIN": "/nothing"}, "unique"),
        (None, {"SHAREFS_BIN": "/bin/false"}, "unique"),
        (None, {"SHAREFS_BIN": "/bin/echo"}, "unique"),
        ({"place": "leave", "reason": "a rule"}, {}, None),
        ({"place": "unique", "reason": "no room"}, {}, "unique"),
        ({"place": "local", "directory": "/mnt/local/not there"}, {}, "unique"),
        ({"place": "local", "directory": "/mnt/local", "excludes": True}, {}, "local"),
        ({"place": "local", "directory": "/mnt/local", "excludes": True}, {"SHAREFS_GUARD_WHEN": "racy"}, None),
        ({"place": "local", "directory": "/mnt/local", "excludes": False}, {"SHAREFS_GUARD_WHEN": "racy"}, "local"),
    ],
)
def test_places(cluster: Cluster, answer: dict[str, object] | None, environment: dict[str, str], kind: str | None) -> None:
    host = cluster.hosts[0]
    host.answers(answer)
    program = "p = storage.place_of('/mnt/share/c'); print(json.dumps(p and p.kind))"
    assert ask(host, program, **environment) == kind


def test_what_sharefs_yaml_says_counts_where_the_environment_says_nothing(cluster: Cluster) -> None:
    """In shared environments that have the guard nobody sets its variables."""
    host = cluster.hosts[0]
    answer = {"place": "local", "directory": "/mnt/local", "excludes": True, "build": "local", "when": "racy", "keep": "A:B"}
    host.answers(answer)
    program = "p = storage.place_of('/mnt/share/c'); print(json.dumps([p and p.kind, storage.publishes(), storage.keeps('B')]))"
    assert ask(host, program) == [None, False, True]
    set_otherwise = {"SHAREFS_GUARD_BUILD": "publish", "SHAREFS_GUARD_WHEN": "shared", "SHAREFS_GUARD_KEEP": "C"}
    assert ask(host, program, **set_otherwise) == ["local", True, False]


def test_a_link_to_the_share_is_followed_and_the_share_not_touched(cluster: Cluster) -> None:
    host = cluster.hosts[0]
    program = (
        "import os\n"
        "os.symlink('/mnt/share/c', '/mnt/local/link'); os.symlink('nowhere', '/mnt/local/broken')\n"
        "os.symlink('loop', '/mnt/local/loop')\n"
        "print(json.dumps([bool(storage.place_of(p)) for p in ('/mnt/local/link', '/mnt/local/broken', '/mnt/local/loop')]))"
    )
    assert ask(host, program) == [True, False, False]
    assert host.asked == ["/mnt/share/c"]


@pytest.mark.parametrize(
    ("environment", "lines"),
    [
        ({}, 1),
        ({"RANK": "0", "LOCAL_RANK": "0"}, 1),
        ({"RANK": "8", "LOCAL_RANK": "0"}, 0),
        ({"SLURM_PROCID": "1"}, 0),
        ({"OMPI_COMM_WORLD_RANK": "3"}, 0),
        ({"PMI_RANK": "0"}, 1),
        ({"PALS_RANKID": "1"}, 0),
        ({"JSM_NAMESPACE_RANK": "1"}, 0),
        ({"FLUX_TASK_RANK": "1"}, 0),
    ],
)
def test_one_line_for_each_cache_of_a_job(cluster: Cluster, environment: dict[str, str], lines: int) -> None:
    program = (
        "import subprocess, sys\nfrom sharefs_guard import storage\n"
        "place = storage.place_of('/mnt/share/c')\nstorage.announce(place); storage.announce(place)\n"
        "child = 'from sharefs_guard import storage; storage.announce(storage.place_of(\"/mnt/share/c\"))'\n"
        "subprocess.run([sys.executable, '-c', child])\n"
    )
    answer = cluster.hosts[0].run([PYTHON, "-c", program], environment=environment)
    assert len(answer.stderr.splitlines()) == lines, answer.stderr


def test_a_line_is_one_line_and_said_once(cluster: Cluster) -> None:
    program = (
        "import subprocess, sys\nfrom sharefs_guard import storage\n"
        "storage.announce(storage.place_of('/mnt/share/a:b\\nc'))\n"
        "child = 'from sharefs_guard import storage; storage.announce(storage.place_of(\"/mnt/share/a:b\\\\nc\"))'\n"
        "subprocess.run([sys.executable, '-c', child], check=True)\n"
    )
    answer = cluster.hosts[0].run([PYTHON, "-c", program])
    assert (answer.returncode, len(answer.stderr.splitlines())) == (0, 1), answer.stderr
    assert r"/mnt/share/a:b\nc are built" in answer.stderr


def test_stderr_that_cannot_be_written_changes_no_exit_code() -> None:
    program = "from sharefs_guard import storage; storage.warn('x')"
    with open("/dev/full", "w") as full:
        answer = subprocess.run([PYTHON, "-c", program], env={"PYTHONPATH": str(GUARD)}, stderr=full, timeout=60)
    assert answer.returncode == 0


def test_a_held_function_shows_the_signature_of_its_own() -> None:
    import inspect

    from sharefs_guard import holds

    class Owner:
        def method(self, path: str, *, count: int = 1) -> None: ...

        @classmethod
        def of_class(cls, path: str) -> None: ...

    before = [inspect.getfullargspec(function) for function in (Owner.method, Owner.of_class)]
    for name in "method", "of_class":
        holds.hold_after(Owner, name, lambda *_: None)
    assert [inspect.getfullargspec(function) for function in (Owner.method, Owner.of_class)] == before


def test_a_directory_of_another_user_is_replaced_by_this_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    from sharefs_guard import holds

    class Owner:
        def __init__(self, name: str, cache_dir: str = "/s") -> None:
            self.cache_dir = cache_dir
            if cache_dir == "/s" and name == "theirs":
                raise PermissionError

    monkeypatch.setattr(storage, "place_of", lambda path: PLACE if path == "/s" else None)
    holds.hold_cache_dir(Owner, lambda: "/s", lambda _, arguments, place, is_refused: is_refused)
    assert Owner("ours").cache_dir == "/s"
    assert Owner("theirs").cache_dir == Owner(name="theirs", cache_dir="/s").cache_dir == PLACE.directory
    holds.hold_cache_dir(Owner, lambda: "/s", lambda _, arguments, place, is_refused: arguments["name"] == "moved")
    assert Owner("moved").cache_dir == PLACE.directory


def test_builders_whose_workers_meet_are_left() -> None:
    from sharefs_guard import builds

    class DatasetBuilder: ...

    class Spark(DatasetBuilder): ...

    class BeamBasedBuilder(DatasetBuilder): ...

    class Mine(BeamBasedBuilder): ...

    assert [builds._is_distributed(kind()) for kind in (DatasetBuilder, Spark, Mine)] == [False, True, True]


def test_maps_of_version_3_are_moved_although_its_locks_exclude(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHAREFS_GUARD_WHEN", "racy")
    for is_version3 in False, True:
        place = PLACE._replace(excludes=True, is_version3=is_version3)
        monkeypatch.setattr(storage, "_find_place", lambda path, place=place: place)
        assert storage.place_of("/s") is None
        assert storage.place_of("/s", for_maps=True) == (place if is_version3 else None)


@pytest.mark.parametrize("program", ["bin/sharefs", "sharefs"])
def test_the_sharefs_that_is_asked_lies_where_the_guard_lies(tmp_path: Path, program: str) -> None:
    guard = tmp_path / "share/sharefs/guard"
    shutil.copytree(GUARD, guard)
    ours = tmp_path / program
    ours.parent.mkdir(exist_ok=True)
    ours.touch()
    show = [PYTHON, "-c", "from sharefs_guard import storage; print(storage._program())"]
    for mode, expected in ((0o755, str(ours)), (0o644, "/usr/bin/sharefs")):
        ours.chmod(mode)
        done = subprocess.run(show, env={"PATH": "/nowhere", "PYTHONPATH": str(guard)}, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected
