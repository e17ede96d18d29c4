"""What others, or the user, do between two steps of sharefs: between plan and deletion, copy and exchange, change and undo."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from environmentslab.environment import contents, killed_at, let_others_through
from environmentslab.shared import Shared, run_tool
from environmentslab.store import Store, imports, read_until
from environmentslab.waiting import waiting

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount, and act as another user")


def journal_id(said: str) -> str:
    return said.rsplit("sharefs undo ", 1)[1].split("`")[0]


def gc_asked(store: Store, meanwhile: Callable[[], object]) -> tuple[int, str]:
    """`conda gc` that is agreed to when `meanwhile` is done."""
    master, terminal = pty.openpty()
    command = [os.environ["SHAREFS_BIN"], "--config", str(store.config), "conda", "gc", "llm", "--keep", "1"]
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True) as gc:
        os.close(terminal)
        said = read_until(master, "Proceed?")
        meanwhile()
        os.write(master, b"y\n")
        said += read_until(master, None)
        gc.wait()
    os.close(master)
    return gc.returncode, said


def test_gc_deletes_nothing_that_undo_has_made_the_present_one(store: Store) -> None:
    undo = journal_id(store.update("echo 2 > $CONDA_PREFIX/number"))
    code, said = gc_asked(store, lambda: store.sharefs("undo", undo, "--yes"))
    assert code != 0 and "found a link to `.generations/llm/0001`" in said, said
    assert store.current() == 1 and imports(store.env).strip() == str(store.env)
    assert [one["number"] for one in store.generations()] == [1, 2] and store.leftovers() == []


def test_gc_keeps_what_was_pinned_while_it_asked(store: Store) -> None:
    store.update("echo 2 > $CONDA_PREFIX/number")
    pin = store.generation(1).with_name("0001.pinned")
    code, said = gc_asked(store, lambda: pin.write_text("paper\n"))
    assert code != 0 and "0001.pinned was made since" in said, said
    assert [one["number"] for one in store.generations()] == [1, 2] and store.leftovers() == []


def install(prefix: Path) -> Path:
    made = prefix / "lib/python3.11/site-packages/late.py"
    made.write_text("x = 1\n")
    return made


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("way", ["killed", "unlink"])
def test_share_replaces_nothing_that_has_changed_since_it_was_copied(shared: Shared, way: str, used: bool) -> None:
    """Unless it was only used: Python has compiled, and another environment has the same files of the package cache."""
    if way == "killed":
        with killed_at("2"):
            shared.share(expect=-9)
    else:
        shared.share()
        shared.run("conda", "unlink", "env", "--yes")
    if used:
        cached = shared.source / "lib/python3.11/__pycache__"
        cached.mkdir(exist_ok=True)
        (cached / "late.cpython-311.pyc").write_bytes(b"x")
        shared.workshop.install(shared.place / "other")
        shared.share("--wait", "30s")
        assert shared.source.is_symlink() and len(shared.kept()) == 1
        return
    install(shared.source)
    before = contents(shared.source)
    for option in ("--dry-run", "--yes"):
        said = shared.run("--wait", "30s", "conda", "share", "env", option, expect=1).stderr
        assert f"and {shared.source} has changed since" in said, said
    assert not shared.source.is_symlink() and contents(shared.source) == before
    shared.run("conda", "link", "env", "--backup", "--yes")  # as the hint says
    assert shared.source.is_symlink()


def test_share_does_not_take_a_new_environment_for_the_old_one_of_its_inode(shared: Shared) -> None:
    shared.share()
    (kept,) = shared.kept()
    shared.source.unlink()
    for path in (kept / "share").rglob("*"):
        if path.is_file():
            path.unlink()
    install(kept)
    kept.rename(shared.source)  # as a file system gives a new directory the number of one that was deleted
    assert "is shared already" in shared.share(expect=1).stderr
    assert not shared.source.is_symlink()


@pytest.mark.skipif(not shutil.which("mksquashfs"), reason="only an image takes long enough")
def test_share_ends_where_the_original_changes_after_the_copy_and_takes_it_along_then(shared: Shared) -> None:
    (shared.source / "share/large").write_bytes(os.urandom(60_000_000))
    command = [os.environ["SHAREFS_BIN"], "--config", shared.config, "conda", "share", "env", "--yes"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as share:
        while share.poll() is None and not list(shared.store.glob(".generations/env/new-*.sqfs")):
            pass
        install(shared.source)
        said = share.communicate(timeout=240)[1]
    assert share.returncode == 1 and "was changed while it was copied" in said, said
    assert not shared.source.is_symlink() and not shared.stable.is_symlink()
    shared.share()
    assert shared.source.is_symlink() and (shared.stable / "lib/python3.11/site-packages/late.py").exists()


def test_undo_of_an_undone_share_makes_no_link_to_what_gc_has_deleted(shared: Shared) -> None:
    first = journal_id(shared.share().stderr)
    shared.run("undo", first, "--yes")
    (undone,) = [one["id"] for one in json.loads(shared.run("undo", "--list", "--json").stdout)["entries"] if one["undoes"] == first]
    shared.run("conda", "gc", "env", "--yes")
    before = contents(shared.source)
    said = shared.run("undo", undone, "--yes", expect=1).stderr
    assert "cannot be taken back" in said and "0001 is gone" in said, said
    assert not shared.source.is_symlink() and contents(shared.source) == before and not shared.stable.is_symlink()


def test_undo_of_an_unlink_moves_nothing_aside_for_a_link_to_nothing(shared: Shared) -> None:
    shared_by = journal_id(shared.share().stderr)
    unlinked = journal_id(shared.run("conda", "unlink", "env", "--yes").stderr)
    shared.run("undo", shared_by, "--yes")
    shared.run("undo", unlinked, "--yes", expect=1)
    assert not shared.source.is_symlink() and run_tool(shared.source)


def test_undo_takes_back_what_was_done_again_after_a_first_undo_in_part(shared: Shared) -> None:
    first = journal_id(shared.share().stderr)
    update = ("conda", "update", "env", "--yes", "--no-verify", "--", "sh", "-c", "touch $CONDA_PREFIX/new")
    second = journal_id(shared.run(*update).stderr)
    shared.run("undo", first, "--yes", expect=4)  # STORE/env leads to generation 2
    assert not shared.source.is_symlink()
    shared.share()
    assert shared.source.is_symlink()
    shared.run("undo", second, "--yes")
    shared.run("undo", first, "--yes")
    assert not shared.source.is_symlink() and run_tool(shared.source) and not shared.stable.is_symlink()


@contextmanager
def bound(what: Path, at: Path) -> Iterator[None]:
    at.mkdir(exist_ok=True)
    subprocess.run(["mount", "--bind", what, at], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", at], check=True)


@NEEDS_ROOT
def test_gc_keeps_what_runs_by_another_path_to_the_store(store: Store) -> None:
    with bound(store.path, store.path.parent / "seen"):
        program = store.path.parent / "seen/.generations/llm/0001/bin/python"
        with waiting(program) as pid:
            assert os.readlink(f"/proc/{pid}/exe").startswith(str(store.path.parent / "seen"))
            store.update("echo 2 > $CONDA_PREFIX/number")
            said = store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes").stderr
            assert f"used by process {pid} on " in said
            assert [one["number"] for one in store.generations()] == [1, 2]
    store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes")
    assert [one["number"] for one in store.generations()] == [2]


@NEEDS_ROOT
@pytest.mark.parametrize("case", ["parent", "mount"])
def test_share_knows_before_the_copy_that_it_cannot_replace_the_directory(shared: Shared, case: str) -> None:
    if case == "mount":
        with bound(shared.source, shared.source):
            said = shared.share(expect=1).stderr
    else:
        let_others_through(shared.source)
        shared.source.rename(shared.place / "linked")  # with files of the package cache, which other tests use
        subprocess.run(["cp", "-a", shared.place / "linked", shared.source], check=True)
        subprocess.run(["chown", "-Rh", "daemon:daemon", shared.source], check=True)
        said = shared.share("--from", shared.source, expect=1).stderr  # its owner renames it
    assert "SF526" in said and ("it is a mount point" if case == "mount" else f"`daemon` cannot write in {shared.envs}") in said, said
    assert not (shared.store / ".generations").exists()


def test_share_from_the_kept_original_when_the_store_is_lost(shared: Shared) -> None:
    shared.share()
    before = contents(shared.kept()[0])
    subprocess.run(["chmod", "-R", "u+w", shared.store], check=True)
    shutil.rmtree(shared.store)
    shared.store.mkdir()
    shared.source.unlink()
    said = shared.share().stderr
    (kept,) = shared.kept()
    assert shared.source.readlink() == shared.stable and contents(kept) == before and run_tool(shared.source)
    shared.undo(said)
    assert not shared.source.is_symlink() and shared.kept() == [] and contents(shared.source) == before


@pytest.mark.skipif(not shutil.which("mksquashfs"), reason="there are no images")
def test_share_makes_the_image_over_the_part_of_one_that_was_cut_off(shared: Shared) -> None:
    with killed_at("0"):
        shared.share(expect=-9)
    (tree,) = shared.store.glob(".generations/env/new-0001.??????")
    tree.with_name(tree.name + ".sqfs").write_bytes(b"\0" * 100)
    said = shared.share("--wait", "30s").stderr
    assert "it gets no image" not in said and shared.generation.with_name("0001.sqfs").exists(), said


def test_gc_deletes_a_record_that_was_never_finished(store: Store) -> None:
    root = store.generation(1).parent
    for name in (".0002.json.sharefs-4194305", ".0002.sqfs.json.sharefs-4194305"):
        (root / name).write_text("{")
    (root / ".0002.json.sharefs-4194306").write_text("a diary")
    store.sharefs("conda", "gc", "llm", "--yes")
    assert [path.name for path in root.iterdir() if path.name.startswith(".0")] == [".0002.json.sharefs-4194306"]


def test_an_update_whose_switch_was_overtaken_by_undo_says_where_its_work_is(store: Store) -> None:
    undo = journal_id(store.update("echo 2 > $CONDA_PREFIX/number"))
    go = store.path.parent / "go"
    command = ("conda", "update", "--yes", "llm", "--", "sh", "-c", f"while ! test -e {go}; do sleep 0.1; done; echo 3 > $CONDA_PREFIX/number")
    running = store.start(*command)
    while not store.generation(2).with_name("lock").exists():
        assert running.poll() is None
        time.sleep(0.05)
    store.sharefs("undo", undo, "--yes")
    go.touch()
    said = running.communicate(timeout=240)[0]
    assert running.returncode != 0 and "`sharefs conda rollback llm --to 3` shows it" in said, said
    store.sharefs("conda", "rollback", "llm", "--to", "3", "--yes")
    assert (store.env / "number").read_text() == "3\n"


@NEEDS_ROOT
def test_undo_of_a_share_names_those_who_use_it(shared: Shared) -> None:
    said = shared.share().stderr
    other = shared.place / "other"
    (other / "envs").mkdir(parents=True)
    (other / "envs/env").symlink_to(shared.stable)
    text = shared.config.read_text()
    at = text.index("  homes: ")
    shared.config.write_text(f"{text[:at]}  homes: [{text[at:].removeprefix('  homes: ').strip()}, {{users: [daemon], conda: {other}}}]\n")
    with waiting(shared.stable / "bin/python") as pid:
        shown = shared.run("undo", journal_id(said), "--dry-run").stdout
        assert f"the links of daemon to {shared.stable} lead nowhere then" in shown, shown
        assert f"env is used by process {pid} on " in shown, shown
    shown = shared.run("undo", journal_id(said), "--dry-run").stdout
    assert "is used by" not in shown
