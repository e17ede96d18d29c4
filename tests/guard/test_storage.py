"""What is shared, where caches go, and how they are published: on files, without any library."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from conftest import Cluster
from guardlab.hosts import GUARD, Host, files_below

sys.path.insert(0, str(GUARD))

from sharefs_guard import libraries, publishing, storage  # noqa: E402

PYTHON = "/usr/bin/python3"
CXX = GUARD.parents[1] / "src/sys/mounts/shared_storage.cpp"
CACHES = Path(storage.__file__).parent / "caches.txt"


def mounts(*lines: str) -> dict[str, list[storage.Mount]]:
    """Of `id parent target type options`."""
    children = defaultdict(list)
    for line in lines:
        mount = storage.Mount(*line.split())
        children[mount.parent].append(mount)
    return children


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


def test_the_mount_of_a_path() -> None:
    table = mounts(
        "1 0 / ext4 rw",
        "2 1 /share nfs rw",
        "3 2 /share/scratch xfs rw",
        "4 1 /home nfs rw",
        "5 4 /home xfs rw",  # mounted over the other
    )
    found = {path: storage.mount_of(path, table).id for path in ("/", "/share", "/share/a/b", "/sharex", "/share/scratch/c", "/home/a")}
    assert found == {"/": "1", "/share": "2", "/share/a/b": "2", "/sharex": "1", "/share/scratch/c": "3", "/home/a": "5"}


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


# Publishing


PLACE = storage.Place("/s", "local", "/nowhere/local", "", False, False)


@pytest.fixture
def built(tmp_path: Path) -> tuple[Path, Path]:
    """A complete dataset on the node's disk, and where it belongs on the share."""
    local = tmp_path / "local/json/default/0.0.0/abc"
    local.mkdir(parents=True)
    (local / "json-train.arrow").write_bytes(b"rows" * 1000)
    (local / "cache-1.arrow").write_bytes(b"made of it")
    (local / "dataset_info.json").write_text("{}")
    return local, tmp_path / "share/json/default/0.0.0/abc"


DATASET = ["dataset_info.json", "json-train.arrow"]


def test_a_dataset_is_published_whole(built: tuple[Path, Path]) -> None:
    local, share = built
    assert publishing.publish_dataset(str(local), str(share), PLACE)
    assert files_below(share.parent) == [f"abc/{name}" for name in DATASET]
    assert (share / "json-train.arrow").read_bytes() == (local / "json-train.arrow").read_bytes()
    assert publishing.prefers_local(str(local), str(share))


def test_what_is_there_is_never_replaced(built: tuple[Path, Path]) -> None:
    local, share = built
    share.mkdir(parents=True)
    (share / "json-train.arrow").write_text("theirs")
    assert not publishing.publish_dataset(str(local), str(share), PLACE)
    assert files_below(share.parent) == ["abc/json-train.arrow"] and (share / "json-train.arrow").read_text() == "theirs"
    (share / "dataset_info.json").write_text("{}")
    assert publishing.publish_dataset(str(local), str(share), PLACE)
    assert (share / "json-train.arrow").read_text() == "theirs"


def test_a_rebuilt_copy_counts_and_one_that_was_removed_from_the_share_does_not(built: tuple[Path, Path]) -> None:
    local, share = built
    publishing.publish_dataset(str(local), str(share), PLACE)
    os.utime(share / "dataset_info.json", (2e9, 2e9))
    assert not publishing.prefers_local(str(local), str(share))
    publishing.mark(str(local), str(share), publishing.REBUILT)
    assert publishing.prefers_local(str(local), str(share))
    publishing.publish_dataset(str(local), str(share), PLACE)
    shutil.rmtree(share)
    assert not publishing.prefers_local(str(local), str(share))
    publishing.forget(str(local))
    assert not local.exists() and not list(local.parent.iterdir())


def test_what_took_the_place_of_a_dataset_counts_whatever_its_time(built: tuple[Path, Path]) -> None:
    """The host that built it may have a clock that is behind."""
    local, share = built
    publishing.publish_dataset(str(local), str(share), PLACE)
    os.utime(share / "dataset_info.json", (1e9, 1e9))
    assert not publishing.prefers_local(str(local), str(share))


@pytest.mark.parametrize("change", ["time", "file"])
def test_each_dataset_of_the_share_has_files_of_its_own(
    built: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """The place, the fingerprint, the sizes and even the times of two may be equal."""
    local, share = built
    place = PLACE._replace(share=str(share.parents[3]), directory=str(local.parents[3]))
    monkeypatch.setattr(storage, "_places", {place.share: place})
    monkeypatch.setattr(storage, "place_around", lambda _: place)
    publishing.publish_dataset(str(local), str(share), place)
    shutil.rmtree(local)
    first, for_share, _ = publishing.directory_for_files(str(share), 1)
    assert first.startswith(str(local)) and for_share == str(share)
    assert publishing.share_of_files(first) == (str(share), place)
    assert publishing.directory_for_files(first, 1) == (first, str(share), place)
    info = share / "dataset_info.json"
    if change == "time":
        os.utime(info, (1e9, 1e9))
    else:
        shutil.copy2(info, share / "other")
        (share / "other").rename(info)
    second, _, _ = publishing.directory_for_files(str(share), 1)
    assert second.startswith(str(local)) and second != first
    assert publishing.share_of_files(first) is None, "what is made of the first would be published beside the second"


def test_a_disk_that_is_of_no_use_any_more_gets_no_files(built: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    local, share = built
    place = PLACE._replace(share=str(share.parents[3]), directory=str(local.parents[3]))
    monkeypatch.setattr(storage, "_places", {place.share: place})
    publishing.publish_dataset(str(local), str(share), place)
    assert publishing.directory_for_files(str(local), 1) == (str(local), str(share), place)
    monkeypatch.setattr(storage, "place_around", lambda path: place if path == str(share) else None)
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).startswith(place.directory))
    own, for_share, its_place = publishing.directory_for_files(str(local), 1)
    assert (for_share, its_place.kind) == (str(share), "unique") and own.startswith(str(share) + "/.files.sharefs-")
    assert publishing.directory_for_files(own, 1) == (own, str(share), its_place)
    shutil.rmtree(share)  # not published: there is no other place
    assert publishing.directory_for_files(str(local), 1) is None


def test_a_copy_that_was_never_published_does_not_become_the_one_of_the_share(built: tuple[Path, Path]) -> None:
    local, share = built
    share.mkdir(parents=True)
    (share / "dataset_info.json").write_text("{}")
    os.utime(local / "dataset_info.json", (1e9, 1e9))
    assert not publishing.prefers_local(str(local), str(share))


def test_what_is_made_of_a_rebuilt_dataset_stays_with_it(built: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    local, share = built
    place = PLACE._replace(share=str(share.parents[3]), directory=str(local.parents[3]))
    monkeypatch.setattr(storage, "_places", {place.share: place})
    publishing.publish_dataset(str(local), str(share), place)
    assert publishing.share_of_files(str(local)) == (str(share), place)
    publishing.mark(str(local), str(share), publishing.REBUILT)
    assert publishing.share_of_files(str(local)) is None
    shutil.rmtree(share)
    assert publishing.prefers_local(str(local), str(share))
    assert publishing.publish_dataset(str(local), str(share), place)
    assert publishing.share_of_files(str(local)) == (str(share), place)


def test_a_copy_that_is_published_meanwhile_stays(
    built: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks of one host meet: one finds nothing on the share, and another publishes before it has looked further."""
    local, share = built
    asked = publishing.is_complete

    def published_right_after(directory: str) -> bool:
        answer = asked(directory)
        if directory == str(share):
            monkeypatch.setattr(publishing, "is_complete", asked)
            assert publishing.publish_dataset(str(local), str(share), PLACE)
        return answer

    monkeypatch.setattr(publishing, "is_complete", published_right_after)
    publishing.prefers_local(str(local), str(share))
    assert (local / "cache-1.arrow").read_bytes() == b"made of it"


def test_a_share_that_does_not_answer_has_lost_nothing(
    built: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    local, share = built
    publishing.publish_dataset(str(local), str(share), PLACE)
    of_files = os.stat

    def stat(path: object, **named: object) -> os.stat_result:
        if str(path).startswith(str(share)):
            raise OSError(errno.ESTALE, "Stale file handle")
        return of_files(path, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    assert publishing.prefers_local(str(local), str(share)) and local.exists()


def test_paths_of_this_node_are_not_published(built: tuple[Path, Path]) -> None:
    local, share = built
    (local / "json-train.arrow").write_bytes(b"x" * ((1 << 24) - 7) + b"/nowhere/local/downloads/extracted/1.png")
    with pytest.raises(publishing.HoldsLocalPaths):
        publishing.publish_dataset(str(local), str(share), PLACE)
    assert files_below(share.parent) == []


def test_a_share_without_room_is_left_clean(built: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    local, share = built

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for step, act in (("_has_room", lambda *_: False), ("_copy_file", full), ("_sync", full)):
        with monkeypatch.context() as context:
            context.setattr(publishing, step, act)
            with pytest.raises(OSError):
                publishing.publish_dataset(str(local), str(share), PLACE)
        assert files_below(share.parent) == [], step


def test_of_two_that_publish_one_goes_on(built: tuple[Path, Path]) -> None:
    local, share = built
    other = share.parent / ".abc.sharefs-other-1-00000000"
    other.mkdir(parents=True)
    (other / "json-train.arrow").write_text("under way")
    assert not publishing.publish_dataset(str(local), str(share), PLACE) and not share.exists()
    os.utime(other, (1e9, 1e9))
    os.utime(other / "json-train.arrow", (1e9, 1e9))
    assert publishing.publish_dataset(str(local), str(share), PLACE)
    assert other.exists(), "it is another host's"


def test_leftovers_of_the_dead_of_this_host_are_removed(built: tuple[Path, Path]) -> None:
    local, share = built
    host = publishing._HOST
    dead = 4194304 + 1  # above the largest number of a process
    old = {
        f".abc.sharefs-{host}-{dead}-0000000a": False,
        f".abc.sharefs-{host}-{os.getpid()}-0000000b": True,  # alive
        f".abc.sharefs-other-{dead}-0000000c": True,
        "abc.incomplete": True,
        f".abc.sharefs-{host}-{dead}": True,  # not a name of ours
    }
    for name in old:
        (share.parent / name).mkdir(parents=True)
        os.utime(share.parent / name, (1e9, 1e9))
    young = share.parent / f".abc.sharefs-{host}-{dead}-0000000d"
    young.mkdir()
    minutes_ago = time.time() - 600
    os.utime(young, (minutes_ago, minutes_ago))
    assert publishing.publish_dataset(str(local), str(share), PLACE)
    assert {name: (share.parent / name).exists() for name in old} == old
    assert young.exists()


def test_a_file_is_published_by_a_link(tmp_path: Path) -> None:
    local, share = tmp_path / "cache-1.arrow", tmp_path / "share/cache-1.arrow"
    local.write_text("ours")
    publishing.publish_file(str(local), str(share), PLACE)
    assert not share.parent.exists(), "the dataset is not on the share"
    share.parent.mkdir()
    publishing.publish_file(str(local), str(share), PLACE)
    assert files_below(share.parent) == ["cache-1.arrow"] and share.read_text() == "ours"
    local.write_text("newer")
    publishing.publish_file(str(local), str(share), PLACE)
    assert share.read_text() == "ours"


def test_missing_files_are_added(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    (source / "pkg/__pycache__").mkdir(parents=True)
    (source / "pkg/new.py").write_text("new")
    (source / "pkg/both.py").write_text("source")
    (source / "pkg/__pycache__/x.pyc").write_text("")
    (source / "pkg/link.py").symlink_to("/etc/passwd")
    (source / "pkg.lock").write_text("")
    (target / "pkg").mkdir(parents=True)
    (target / "pkg/both.py").write_text("target")
    publishing.add_missing_files(str(source), str(target))
    assert files_below(target) == ["pkg/both.py", "pkg/new.py"]
    assert (target / "pkg/both.py").read_text() == "target"

@pytest.mark.parametrize(
    ("environment", "lines"),
    [
        ({}, 1),
        ({"RANK": "0", "LOCAL_RANK": "0"}, 1),
        ({"RANK": "8", "LOCAL_RANK": "0"}, 0),
        ({"SLURM_PROCID": "1"}, 0),
        ({"OMPI_COMM_WORLD_RANK": "3"}, 0),
        ({"PMI_RANK": "0"}, 1),
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
