"""How datasets are marked and published, and files beside them: on files, without any library."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from guardlab.hosts import GUARD, files_below

sys.path.insert(0, str(GUARD))

from sharefs_guard import publishing, storage  # noqa: E402

NO_PROCESS = 4194304 + 1  # above the largest number of a process
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
    with pytest.raises(OSError, match="without dataset_info.json; remove that"):
        publishing.publish_dataset(str(local), str(share), PLACE)
    assert files_below(share.parent) == ["abc/json-train.arrow"] and (share / "json-train.arrow").read_text() == "theirs"
    (share / "dataset_info.json").write_text("{}")
    assert publishing.publish_dataset(str(local), str(share), PLACE)
    assert (share / "json-train.arrow").read_text() == "theirs"


@pytest.mark.parametrize("lost", [["dataset_info.json"], DATASET])
def test_a_dataset_that_has_lost_files_gets_them_again(built: tuple[Path, Path], lost: list[str]) -> None:
    local, share = built
    publishing.publish_dataset(str(local), str(share), PLACE)
    (share / "cache-2.arrow").write_text("made of it on another host")
    kept = {path.name: path.stat().st_ino for path in share.iterdir() if path.name not in lost}
    for name in lost:
        (share / name).unlink()
    (local / publishing.MARK).unlink()
    assert publishing.publish_dataset(str(local), str(share), PLACE)
    assert files_below(share.parent) == ["abc/cache-2.arrow", *(f"abc/{name}" for name in DATASET)]
    assert kept.items() <= {path.name: path.stat().st_ino for path in share.iterdir()}.items()
    assert publishing.prefers_local(str(local), str(share))


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


def test_attack_links_take_the_names_of_what_is_published(built: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may rename on the share puts a link there once the name is made: it leads into the home of who publishes."""
    local, share = built
    home = local.parent / "home"
    home.mkdir()
    (home / "json-train.arrow").write_text("of the user")

    def plants(directory: str, _: int) -> bool:
        for own in Path(directory).glob(".*.sharefs-*"):
            own.rename(own.with_name("away"))
            own.symlink_to(home if own.name.startswith(".abc") else home / "json-train.arrow")
        return True

    monkeypatch.setattr(publishing, "_has_room", plants)
    with pytest.raises(FileExistsError):
        publishing.publish_dataset(str(local), str(share), PLACE)
    shutil.rmtree(share.parent / "away")
    publishing.publish_file(str(local / "cache-1.arrow"), str(share.parent / "cache-1.arrow"), PLACE)
    assert files_below(home) == ["json-train.arrow"] and (home / "json-train.arrow").read_text() == "of the user"


def test_a_file_system_without_direct_access(built: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    local, share = built
    opens = os.open

    def refuses(path: str, flags: int, mode: int = 0o777) -> int:
        descriptor = opens(path, flags & ~os.O_DIRECT, mode)
        if flags & os.O_DIRECT:  # the file is made before the kernel sees that it cannot be read so (fs/open.c)
            os.close(descriptor)
            raise OSError(errno.EINVAL, "Invalid argument")
        return descriptor

    monkeypatch.setattr(os, "open", refuses)
    assert publishing.publish_dataset(str(local), str(share), PLACE)
    assert files_below(share.parent) == [f"abc/{name}" for name in DATASET]


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


def test_a_clock_that_is_ahead_does_not_stop_publishing_for_good(built: tuple[Path, Path]) -> None:
    local, share = built
    other = share.parent / ".abc.sharefs-other-1-00000000"
    left = share.parent / f".abc.sharefs-{publishing._PROCESSES}-{NO_PROCESS}-0000000a"
    for directory in other, left:
        directory.mkdir(parents=True)
        (directory / "json-train.arrow").write_text("of a host that was an hour ahead")
    for seconds, publishes in (5, False), (4000, True):
        for directory in other, left:
            for path in directory / "json-train.arrow", directory:
                os.utime(path, (time.time() + seconds,) * 2)
        assert publishing.publish_dataset(str(local), str(share), PLACE) is publishes
    assert other.exists() and not left.exists()


@pytest.mark.parametrize(("process", "goes_on"), [(NO_PROCESS, True), (os.getpid(), False)])
def test_one_that_was_killed_is_not_under_way(built: tuple[Path, Path], process: int, goes_on: bool) -> None:
    """A job that is started again within a minute publishes what the killed one did not."""
    local, share = built
    other = share.parent / f".abc.sharefs-{publishing._PROCESSES}-{process}-00000000"
    other.mkdir(parents=True)
    (other / "json-train.arrow").write_text("under way")
    assert publishing.publish_dataset(str(local), str(share), PLACE) == goes_on == share.exists()


def test_leftovers_of_the_dead_of_this_host_are_removed(built: tuple[Path, Path]) -> None:
    local, share = built
    host = publishing._PROCESSES
    dead = NO_PROCESS
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


def test_a_process_in_a_container_with_the_name_of_this_host_is_not_taken_for_dead(built: tuple[Path, Path]) -> None:
    """Nor is one on the host by a container: the numbers of one mean nothing in the other."""
    local, share = built
    asked = "from sharefs_guard import publishing; print(publishing.own_name('/share/abc'))"
    words = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", asked]
    said = subprocess.run(words, env={"PYTHONPATH": str(GUARD)}, check=True, capture_output=True, text=True).stdout
    name = Path(said.strip()).name.replace("-1-", f"-{NO_PROCESS}-")  # its first process has number 1, as here
    of_container = share.parent / name
    of_container.mkdir(parents=True)
    os.utime(of_container, (1e9, 1e9))
    assert publishing.publish_dataset(str(local), str(share), PLACE)
    assert of_container.exists()


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
