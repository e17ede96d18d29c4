"""sharefs conda share and update where the store is full, and while somebody else writes."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from environmentslab.environment import contents, kinds
from environmentslab.shared import Shared, run_tool

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")


@pytest.fixture
def small(shared: Shared) -> Iterator[Shared]:
    """The store is a file system of its own, whose size a test gives."""
    subprocess.run(["mount", "-t", "tmpfs", "none", shared.store], check=True)
    yield shared
    subprocess.run(["umount", shared.store], check=True)


def resize(shared: Shared, *, size: int = 0, files: int = 0) -> None:
    """In bytes and inodes; 0: no limit."""
    subprocess.run(["mount", "-o", f"remount,size={size},nr_inodes={files}", shared.store], check=True)


def listed(shared: Shared) -> list[tuple[str, int, str]]:
    rows = json.loads(shared.run("conda", "list", "env", "--json").stdout)["environments"]
    return [(one["path"], one["generation"], one["state"]) for one in rows]


def weight(tree: Path) -> tuple[int, int]:
    """Bytes in files and number of entries but directories, of a tree that may be written to meanwhile."""
    size, count = 0, 0
    for path in tree.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            found = path.lstat()
            size += found.st_size if stat.S_ISREG(found.st_mode) else 0
            count += not stat.S_ISDIR(found.st_mode)
    return size, count


@pytest.mark.parametrize("planted", [".generations", ".generations/env"])
def test_an_attack_who_made_the_place_of_the_generations_first_does_not_get_the_environment(small: Shared, planted: str) -> None:
    """In a store in which everybody may make names, and nobody replace those of others."""
    subprocess.run(["mount", "-o", "remount,mode=1777", small.store], check=True)
    assert small.store.stat().st_mode & 0o7777 == 0o1777
    (small.store / ".generations").mkdir()
    (small.store / planted).mkdir(exist_ok=True)
    os.chown(small.store / planted, 65534, 65534)
    assert "SF529" in small.share("--dry-run", expect=1).stderr
    said = small.share(expect=1).stderr
    assert "SF529" in said and not small.source.is_symlink() and not small.stable.is_symlink()
    away = said.split("`mv ")[1].split("`")[0]
    subprocess.run(f"mv {away}", shell=True, check=True)
    small.share()
    for path in small.generation.parents[:2]:
        assert path.stat().st_uid == 0 and path.stat().st_mode & 0o022 == 0


def test_requirement_1_a_copy_that_was_cut_off_needs_room_for_the_rest_only(small: Shared) -> None:
    (small.source / "share/large").write_bytes(os.urandom(8_000_000))
    for number in range(60):
        (small.source / f"share/part.{number}").write_bytes(os.urandom(100_000))
    size, _ = weight(small.source)
    command = [os.environ["SHAREFS_BIN"], "--config", small.config, "conda", "share", "env", "--yes", "--limit", "8M"]
    share = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while share.poll() is None and weight(small.store)[0] < size * 0.7:
            pass
    finally:
        share.kill()
    assert share.wait() == -9
    used = os.statvfs(small.store)
    taken = (used.f_blocks - used.f_bfree) * used.f_frsize
    resize(small, size=taken + int(size * 0.6))
    small.share("--wait", "30s")
    assert kinds(small.workshop.verify(small.stable)) == {}


@pytest.mark.parametrize("limit", [{"size": 1 << 20}, {"files": 40}])
def test_requirement_10_a_store_without_room_is_known_before_the_first_byte(small: Shared, limit: dict[str, int]) -> None:
    resize(small, **limit)
    before = contents(small.source)
    said = small.share(expect=1).stderr
    assert "SF523" in said and "nothing was changed" in said
    assert contents(small.source) == before and not list(small.store.iterdir())


def test_a_store_without_a_free_byte_is_full_and_not_forbidden(small: Shared) -> None:
    (small.store / "others").write_bytes(bytes(4096))
    resize(small, size=4096)
    said = small.share(expect=1).stderr
    assert "No space left on device" in said and "hint: make room" in said and "SF526" not in said


@pytest.mark.parametrize("what", ["bytes", "inodes"])
def test_requirement_1_a_store_that_is_full_in_the_middle_of_the_copy(small: Shared, what: str) -> None:
    """What it has is enough by the sum of the sizes, and not for pages and directories."""
    size, files = weight(small.source)
    resize(small, **({"size": size + (64 << 10)} if what == "bytes" else {"files": files + 5}))
    before = contents(small.source)
    said = small.share(expect=1).stderr
    assert "No space left on device" in said
    assert not small.source.is_symlink() and contents(small.source) == before and not small.stable.exists()
    assert "there is no environment" in small.run("conda", "list", "env", expect=1).stderr
    resize(small)
    if what == "bytes":  # given up, or gone on with
        small.run("conda", "gc", "env", "--yes")
        assert [path.name for path in small.generation.parent.iterdir()] == ["uses"]
    small.share()
    assert run_tool(small.source) == f"tool -I{small.stable}/include\n"
    assert kinds(small.workshop.verify(small.stable)) == {}


@pytest.mark.parametrize("what", ["bytes", "inodes"])
def test_requirement_6_a_store_that_is_full_when_an_update_is_taken_in(small: Shared, what: str) -> None:
    small.share()
    before = contents(small.generation)
    used = os.statvfs(small.store)
    blocks, files = used.f_blocks - used.f_bfree, used.f_files - used.f_ffree
    resize(small, **({"size": (blocks + 20) * used.f_frsize} if what == "bytes" else {"files": files + 5}))
    change = "for i in $(seq 400); do head -c 5000 /dev/zero >$CONDA_PREFIX/share/new.$i; done"
    command = ["conda", "update", "env", "--yes", "--", "sh", "-ec", change]
    assert "No space left on device" in small.run(*command, expect=1).stderr
    assert os.readlink(small.stable) == ".generations/env/0001" and contents(small.generation) == before
    assert run_tool(small.stable).startswith("tool ") and listed(small) == [(str(small.stable), 1, "good")]
    assert not list(small.generation.parent.glob("new-*"))
    resize(small)
    small.run(*command)
    assert os.readlink(small.stable) == ".generations/env/0002" and (small.stable / "share/new.400").stat().st_size == 5000


def test_a_file_that_somebody_writes_while_it_is_shared_is_found(shared: Shared) -> None:
    log = shared.source / "share/busy.log"
    end = threading.Event()
    log.write_bytes(b"x" * 8_000_000)

    def write() -> None:
        with log.open("r+b", buffering=0) as file:
            while not end.is_set():
                file.seek(0)
                file.write(b"y")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        said = shared.share("--limit", "8M", expect=1).stderr  # so slowly that it is written to meanwhile
    finally:
        end.set()
        writer.join()
    assert "share/busy.log" in said and ("changed while being read" in said or "changed while it was copied" in said)
    assert not shared.source.is_symlink() and not shared.stable.exists() and run_tool(shared.source).startswith("tool ")
    shared.share()
    assert (shared.stable / "share/busy.log").stat().st_size == 8_000_000


@pytest.mark.parametrize("word", ["0", "fast", "-1"])
def test_a_limit_is_a_size(shared: Shared, word: str) -> None:
    said = shared.run("conda", "share", "env", "--yes", f"--limit={word}", expect=2).stderr
    assert f"--limit: `{word}` is no size" in said and not shared.source.is_symlink()
    shared.share("--limit", "100M")


def test_gc_makes_room_in_a_store_that_is_full(small: Shared) -> None:
    small.share()
    small.run("conda", "update", "env", "--yes", "--", "touch", f"{small.stable}/new")
    used = os.statvfs(small.store)
    resize(small, size=(used.f_blocks - used.f_bfree) * used.f_frsize + (64 << 10))
    with (small.store / "fill").open("wb", buffering=0) as fill, pytest.raises(OSError, match="No space"):
        while True:
            fill.write(bytes(4096))
    small.run("conda", "gc", "env", "--keep", "1", "--yes")
    assert [path.name for path in small.generation.parent.iterdir() if path.is_dir() and path.name.isdigit()] == ["0002"]
    assert not (small.generation.parent / "lock").exists()
