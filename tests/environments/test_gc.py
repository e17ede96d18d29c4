"""sharefs conda rollback and gc: which generation users see, and which are kept. On an environment that rattler has installed."""

from __future__ import annotations

import json
import os
import pty
import pwd
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from environmentslab.environment import killed_at, let_others_through
from environmentslab.store import USER, Store, as_user, give_to, imports, read_until, state
from environmentslab.waiting import waiting


def test_requirement_3_rollback_there_and_back(store: Store) -> None:
    store.update("echo 1 > $CONDA_PREFIX/one")
    store.update("echo 2 > $CONDA_PREFIX/two")
    assert store.current() == 3
    store.sharefs("conda", "rollback", "llm", "--yes")
    assert store.current() == 2
    assert (store.env / "one").exists() and not (store.env / "two").exists()
    store.sharefs("conda", "rollback", "llm", "--to", "3", "--yes")
    assert (store.env / "two").exists()
    store.sharefs("conda", "rollback", "llm", "--to", "8", "--yes", expect=1)
    assert store.current() == 3


FIRST_NAMESPACE = "pid:[4026531836]"


def process_host() -> str:
    """As notes have it: in a container, which may have the name of its host, with the number of its PID namespace."""
    namespace = os.readlink("/proc/self/ns/pid")
    return os.uname().nodename + ("" if namespace == FIRST_NAMESPACE else f"+{namespace[5:-1]}")


@contextmanager
def used(store: Store, number: int) -> Iterator[None]:
    """By a process of this host, as `conda run` leaves word of it."""
    process = subprocess.Popen(["sleep", "600"])
    try:
        start = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        (store.path / f".generations/llm/uses/{process_host()}.{process.pid}.{start}.{number:04}").touch()
        yield
    finally:
        process.kill()
        process.wait()


def test_gc_keeps_what_is_needed_and_deletes_the_rest(store: Store) -> None:
    for number in range(2, 6):
        store.update(f"echo {number} > $CONDA_PREFIX/number")
    pin = store.path / ".generations/llm/0001.pinned"
    pin.write_text("paper\n")
    with used(store, 2):
        (store.path / ".generations/llm/uses/elsewhere.node.1.1.0003").touch()
        assert "generation 1 is kept: pinned: paper" in store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes").stderr
        assert [one["number"] for one in store.generations()] == [1, 2, 3, 5]
        store.sharefs("conda", "gc", "llm", "--keep", "1", "--forget", "elsewhere.node", "--yes")
        assert [one["number"] for one in store.generations()] == [1, 2, 5]
    pin.unlink()
    store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes")
    assert [one["number"] for one in store.generations()] == [5]
    assert imports(store.env).strip() == str(store.env)


def note(store: Store, name: str, user: str, days: float = 0) -> Path:
    """As `user` may leave it in uses/, `days` ago."""
    made = store.path / ".generations/llm/uses" / name
    made.symlink_to("a note of sharefs")
    os.utime(made, (time.time() - days * 86_400,) * 2, follow_symlinks=False)
    os.lchown(made, pwd.getpwnam(user).pw_uid, -1)
    return made


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
def test_attack_a_forged_note_keeps_nothing_for_ever(store: Store) -> None:
    """Of `games`, who may read the environment. gc says whose it is; what another user has noted stays."""
    for number in range(2, 6):
        store.update(f"echo {number} > $CONDA_PREFIX/number")
    start = Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19]
    note(store, "elsewhere.1.1.0001", "games", days=61)
    old = note(store, "elsewhere.2.1.0001", "root", days=61)
    note(store, "elsewhere.1.1.0002", "games", days=-400)
    note(store, f"{process_host()}.1.{start}.0002", "games", days=61)  # a process that never ends, and is not hers
    note(store, "elsewhere.1.1.0003", "games")
    note(store, "elsewhere.1.1.0004", "daemon")
    note(store, "elsewhere.1.1.9999", "games")  # no number for the next one
    collect = ("conda", "gc", "llm", "--keep", "1", "--yes")
    said = store.sharefs(*collect).stderr
    assert [one["number"] for one in store.generations()] == [3, 4, 5]
    assert "generation 3 is kept: used by process 1 on elsewhere, by a note of games" in said
    assert "generation 4 is kept: used by process 1 on elsewhere, by a note of daemon" in said
    assert "`--forget games@elsewhere`" in said and "4 notes older than 60 days keep nothing any more" in said
    assert not os.path.lexists(old), "what counts for nothing is removed"
    assert store.update("echo 6 > $CONDA_PREFIX/number") and store.current() == 6
    store.sharefs(*collect, "--forget", "games@")
    assert [one["number"] for one in store.generations()] == [4, 6]
    store.sharefs(*collect, "--forget", "daemon@elsewhere")
    assert [one["number"] for one in store.generations()] == [6]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
def test_attack_a_flood_of_notes_deletes_nothing(store: Store) -> None:
    for number in (2, 3):
        store.update(f"echo {number} > $CONDA_PREFIX/number")
    uses = store.path / ".generations/llm/uses"
    first = note(store, "x.1.1.0001", "games")
    for number in range(10_001):
        os.link(first, uses / f"y.{number + 1}.1.0001")
    said = store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes", expect=1).stderr
    assert "holds more than 10000 notes" in said and f"find {uses} ! -type d -user games -delete" in said
    assert [one["number"] for one in store.generations()] == [1, 2, 3]
    subprocess.run(["find", uses, "!", "-type", "d", "-user", "games", "-delete"], check=True)
    store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes")
    assert [one["number"] for one in store.generations()] == [3]


@pytest.mark.parametrize("shape", ["members", "lists", "deep", "numbers"])
def test_attack_a_forged_record_costs_no_more_than_its_bytes(store: Store, shape: str) -> None:
    """139 s of processor once; whoever may write in the store can write it."""
    size = 4 << 20
    text = {
        "members": "{" + ",".join(f'"{number:x}":0' for number in range(size // 10)) + "}",
        "lists": "[" + "[]," * (size // 3 - 9) + "[]]",
        "deep": "[" * (size // 2) + "]" * (size // 2),
        "numbers": json.dumps({**json.loads((store.path / ".generations/llm/0001.json").read_text()), "parent": 4294967295, "created": -1e300}),
    }[shape]
    store.update("echo 2 > $CONDA_PREFIX/number")
    (store.path / ".generations/llm/0001.json").write_text(text)
    for words in (("generations", "llm"), ("list",), ("gc", "llm", "--yes"), ("rollback", "llm", "--yes")):
        done = subprocess.run(
            [os.environ["SHAREFS_BIN"], "--config", str(store.config), "conda", *words],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (10, 10)), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
        )  # fmt: skip
        assert done.returncode in (0, 1, 2, 3, 4, 5), (words, done.returncode, done.stderr)
    assert store.generations()[0]["problem"] and imports(store.env)
    store.update("echo 3 > $CONDA_PREFIX/number")
    assert store.current() == 3


def test_gc_gives_back_what_somebody_has_begun_to_use_since(store: Store) -> None:
    """The plan is shown; before it is agreed to, a job begins with generation 1."""
    for number in (2, 3):
        store.update(f"echo {number} > $CONDA_PREFIX/number")
    before = store.generations()
    master, terminal = pty.openpty()
    command = [os.environ["SHAREFS_BIN"], "--config", str(store.config), "conda", "gc", "llm", "--keep", "1"]
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True) as gc:
        os.close(terminal)
        said = read_until(master, "Proceed?")
        with used(store, 1):
            os.write(master, b"y\n")
            said += read_until(master, None)
            gc.wait()
    os.close(master)
    assert gc.returncode != 0 and "works with generation 1 since" in said, said
    assert store.generations() == before and store.leftovers() == []
    store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes")
    assert [one["number"] for one in store.generations()] == [3]


def test_requirement_1_rollback_and_gc_killed_at_each_step(store: Store) -> None:
    for number in (2, 3, 4):
        store.update(f"echo {number} > $CONDA_PREFIX/number")
    for step in ("0", "0+"):
        with killed_at(step):
            store.sharefs("conda", "rollback", "llm", "--to", "3", "--yes", expect=-9)
        assert imports(store.env).strip() == str(store.env)
        store.sharefs("--wait", "30s", "conda", "rollback", "llm", "--to", "3", "--yes")
        assert store.current() == 3 and (store.env / "number").read_text() == "3\n"
        store.sharefs("conda", "rollback", "llm", "--to", "4", "--yes")
    kept = {1, 2, 3, 4}
    # After a look at STORE/ENV: of each generation the image goes with its note, where it has one, then the record, its
    # name, and the tree.
    for step in [f"{number}{after}" for number in range(6) for after in ("", "+")]:
        with killed_at(step):
            store.sharefs("--wait", "30s", "conda", "gc", "llm", "--keep", "3", "--yes", expect=None)
        assert imports(store.env).strip() == str(store.env)
        store.sharefs("--wait", "30s", "conda", "gc", "llm", "--keep", "3", "--yes")
        assert store.leftovers() == [] and store.current() == max(kept)
        kept = set(sorted(kept)[-3:])
        assert [one["number"] for one in store.generations()] == sorted(kept)
        store.update(f"echo {step} > $CONDA_PREFIX/number")
        kept.add(max(kept) + 1)


def test_gc_by_another_member_is_refused_before_anything_is_done(store: Store) -> None:
    store.update("echo 2 > $CONDA_PREFIX/number")
    give_to(store, "daemon", "games")
    before = sorted(path.name for path in store.generation(1).parent.iterdir())
    said = as_user(store, "conda", "gc", "llm", "--keep", "1", "--yes", expect=1).stderr
    assert "belong to `daemon`: nothing was changed" in said and "run it as `daemon`" in said
    assert sorted(path.name for path in store.generation(1).parent.iterdir()) == before


def test_notes_of_ended_jobs_go_with_the_next_command(store: Store) -> None:
    """Other hosts could only guess."""
    uses = store.path / ".generations/llm/uses"
    store.sharefs("conda", "run", "llm", "--", "true")
    assert len(list(uses.iterdir())) == 1
    running = store.start("conda", "run", "llm", "--", "sleep", "60")
    wait = time.monotonic() + 60
    while [path.name.split(".")[-3] for path in uses.iterdir()] != [str(running.pid)]:  # its own first, then those go
        assert running.poll() is None and time.monotonic() < wait
    elsewhere = uses / "node9.1.1.0001"
    elsewhere.touch()
    store.sharefs("conda", "generations", "llm")
    assert len(list(uses.iterdir())) == 2  # that of a job that runs, and that of another host
    running.kill()
    running.wait()
    store.sharefs("conda", "generations", "llm")
    assert [path.name for path in uses.iterdir()] == [elsewhere.name]


def test_jobs_of_a_container_with_the_name_of_this_host(store: Store) -> None:
    """As of `docker run --network host`: its processes have other numbers there."""
    uses = store.path / ".generations/llm/uses"
    container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command = [*container, os.environ["SHAREFS_BIN"], "--config", store.config, "conda", "run", "llm", "--", "python"]
    with waiting(*command):
        (note,) = uses.iterdir()
        store.update("echo 2 > $CONDA_PREFIX/number")
        store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes")
        assert list(uses.iterdir()) == [note] and [one["number"] for one in store.generations()] == [1, 2]
        if os.readlink("/proc/self/ns/pid") == FIRST_NAMESPACE:  # elsewhere it is not known which are running
            assert "SF320" not in store.sharefs("conda", "list").stderr
    store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes")
    if os.readlink("/proc/self/ns/pid") == FIRST_NAMESPACE:
        assert list(uses.iterdir()) == [] and [one["number"] for one in store.generations()] == [2]


def test_requirement_2_the_link_is_there_at_every_moment(store: Store) -> None:
    """While it is exchanged on and on, who reads it a million times finds it."""
    store.update("echo 2 > $CONDA_PREFIX/number")
    code = f"import os\nfor _ in range(10**6): os.readlink({str(store.env)!r})\nos.stat({str(store.env)!r} + '/bin/python')"
    exchanges = 0
    with subprocess.Popen(["python3", "-c", code]) as reader:
        while reader.poll() is None or exchanges < 8:
            store.sharefs("conda", "rollback", "llm", "--to", str(1 + exchanges % 2), "--yes")
            exchanges += 1
    assert reader.returncode == 0


def test_requirement_3_a_rollback_is_one_rename_and_copies_nothing(store: Store) -> None:
    store.update("echo 2 > $CONDA_PREFIX/number")
    before = {number: state(store.generation(number)) for number in (1, 2)}
    times = {path: path.lstat().st_ctime_ns for number in (1, 2) for path in store.generation(number).rglob("*")}
    names = sorted(path.name for path in store.generation(1).parent.iterdir())
    done = json.loads(store.sharefs("conda", "rollback", "llm", "--yes", "--json").stdout)
    assert [step["action"]["kind"] for step in done["plan"]["steps"]] == ["link"]
    assert {number: state(store.generation(number)) for number in (1, 2)} == before
    assert {path: path.lstat().st_ctime_ns for path in times} == times  # not even a mode was touched
    assert sorted(path.name for path in store.generation(1).parent.iterdir()) == names


@pytest.mark.parametrize("lost", ["name", "generation"])
def test_requirement_1_what_somebody_has_removed_comes_back(store: Store, lost: str) -> None:
    """STORE/ENV, as `conda env remove` of one user removes it, or what it leads to: the rest is told, and used."""
    store.update("touch $CONDA_PREFIX/share/new", "--no-verify")
    if lost == "name":
        store.env.unlink()
    else:
        store.generation(2).rename(store.path.parent / "away")
    for words in (["generations", "llm"], ["update", "--yes", "llm", "--", "true"], ["gc", "--yes", "llm"]):
        said = store.sharefs("conda", *words, expect=1).stderr
        assert " conda rollback llm" in said, said
    (row,) = json.loads(store.sharefs("conda", "list", "--json", expect=None).stdout)["environments"]
    assert (row["name"], row["state"]) == ("llm", "missing")
    assert lost != "name" or "sharefs conda rollback llm" in row["detail"]
    said = store.sharefs("conda", "rollback", "llm", "--yes").stderr
    assert store.current() == (2 if lost == "name" else 1), said
    assert imports(store.env).strip() == str(store.env)


def test_a_store_that_may_be_entered_and_not_listed_is_not_empty(store: Store) -> None:
    give_to(store, "root", "games")
    store.path.chmod(0o711)
    listed = as_user(store, "conda", "list", "--json", expect=4)
    rows = [(row["name"], row["state"]) for row in json.loads(listed.stdout)["environments"]]
    assert ("", "unreadable") in rows, listed
    assert json.loads(as_user(store, "conda", "list", "llm", "--json").stdout)["environments"][0]["name"] == "llm"


def test_a_taken_back_update_leaves_what_jobs_run_in(store: Store) -> None:
    store.update("echo 2 > $CONDA_PREFIX/number")
    job = [os.environ["SHAREFS_BIN"], "--config", str(store.config), "conda", "run", "llm", "--", "python", "-c"]
    code = "print(flush=True); input(); import wave, sys; print(sys.prefix)"
    with subprocess.Popen([*job, code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        running.stdout.readline()
        store.sharefs("undo", "--yes")
        assert store.current() == 1
        store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes")
        assert running.communicate("\n")[0] == f"{store.generation(2)}\n"
    store.update("echo 3 > $CONDA_PREFIX/number")  # another one under the same number may be staged somewhere
    assert store.current() == 3 and [one["number"] for one in store.generations()] == [1, 2, 3]


def test_gc_keeps_what_runs_without_conda_run(store: Store) -> None:
    with waiting(store.generation(1) / "bin/python") as pid:
        for number in (2, 3):
            store.update(f"echo {number} > $CONDA_PREFIX/number")
        said = store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes").stderr
        assert f"used by process {pid} on " in said
        assert [one["number"] for one in store.generations()] == [1, 3]
    store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes")
    assert [one["number"] for one in store.generations()] == [3]


@pytest.mark.parametrize("spoil", ["newer", "damaged"])
def test_gc_keeps_what_it_does_not_understand(store: Store, spoil: str) -> None:
    for number in (2, 3, 4):
        store.update(f"echo {number} > $CONDA_PREFIX/number")
    record = store.path / ".generations/llm/0002.json"
    text = record.read_text()
    record.unlink()
    record.write_text(text.replace('"sharefs": 1', '"sharefs": 2') if spoil == "newer" else text[:40])
    said = store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes").stderr
    assert "generation 2 is kept: its record " in said
    assert [one["number"] for one in store.generations()] == [2, 4]


def test_rollback_passes_what_was_rejected(store: Store) -> None:
    for number in (2, 3):
        store.update(f"echo {number} > $CONDA_PREFIX/number")
    store.sharefs("conda", "rollback", "llm", "--yes")  # 3 is bad
    store.update("echo 4 > $CONDA_PREFIX/number")
    store.sharefs("conda", "rollback", "llm", "--yes")
    assert store.current() == 2


def test_gc_is_no_obstacle_for_undo(store: Store) -> None:
    for number in (2, 3):
        store.update(f"echo {number} > $CONDA_PREFIX/number")
    said = store.sharefs("conda", "gc", "llm", "--keep", "2", "--yes").stderr
    assert "sharefs undo" not in said and [one["number"] for one in store.generations()] == [2, 3]
    said = store.sharefs("undo", "--yes").stderr
    assert "passed over" in said and store.current() == 2
    said = store.sharefs("undo", "--yes", expect=1).stderr  # of 1 -> 2: 1 is gone
    assert "cannot be taken back" in said and "0001 is gone" in said and "run the command again" not in said
    assert store.current() == 2 and imports(store.env).strip() == str(store.env)


@pytest.mark.parametrize("when", ["", "+"])
def test_undo_of_a_gc_that_was_killed_shows_no_generation_that_it_may_have_begun_to_delete(store: Store, when: str) -> None:
    store.update("echo 2 > $CONDA_PREFIX/number")
    steps = json.loads(store.sharefs("conda", "gc", "llm", "--keep", "1", "--dry-run", "--json").stdout)["plan"]["steps"]
    (deletion,) = [number for number, step in enumerate(steps) if "/old-0001." in step["description"] and step["description"].startswith("delete")]
    assert not any(step["undoable"] for step in steps)  # nodes then offer no undo either
    with killed_at(f"{deletion}{when}"):
        store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes", expect=-9)
    (cut_off, *_) = json.loads(store.sharefs("undo", "--list", "--json").stdout)["entries"]
    assert "can be taken back" in store.sharefs("undo", cut_off["id"], "--yes", expect=1).stderr
    assert [one["number"] for one in store.generations()] == [2]
    said = store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes").stderr
    assert "takes it back" not in said and ("nothing is to be deleted" if when else "again completes it") in said
    assert store.leftovers() == [] and not store.generation(1).with_name("0001.json").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a store to a user")
def test_attack_a_private_directory_with_the_name_of_an_unfinished_one(store: Store) -> None:
    """Where others may write they may have renamed it there; its owner, who cleans up, keeps it."""
    place = store.path / ".generations/llm"
    place.chmod(0o775)
    for name in ("new-0007.abcdef", "old-0008.abcdef"):
        (place / name).mkdir(mode=0o700)
        (place / name / "thesis").write_text("years of work")
    (place / "new-0009.abcdef/conda-meta").mkdir(parents=True)  # honest use: one that was cut off
    subprocess.run(["chown", "-Rh", USER, store.path], check=True)
    let_others_through(store.path)
    said = store.sharefs("conda", "gc", "llm", "--yes").stderr
    assert said.count("may be somebody's own directory") == 2, said
    assert (place / "new-0007.abcdef/thesis").exists() and (place / "old-0008.abcdef/thesis").exists()
    assert not (place / "new-0009.abcdef").exists()


def test_a_store_that_is_not_there_is_no_empty_one(store: Store) -> None:
    """`gc` and `stage --all` without `conda.envs` ask the store which environments there are."""
    text = store.config.read_text().replace("  envs: [llm]\n", f"  stage: {store.config.parent}/stage\n")
    asked = (("conda", "gc", "--check"), ("conda", "stage", "--all", "--check"))

    def said(config: str, expect: int) -> list[str]:
        store.config.write_text(config)
        return [store.sharefs(*words, expect=expect).stderr for words in asked]

    share = f"mounts:\n  share: {{from: 'storage1:/x', at: {store.path.parent}}}\n"
    for one in said(text + share, 1):
        assert "share `share`" in one and "is not mounted on" in one and f"hint: run `sharefs --config {store.config} mount share`" in one, one
        assert "no shared environment" not in one
    for one in said(text.replace(str(store.path), f"{store.path}x"), 1):
        assert "the store does not exist" in one and "or correct `conda.store`" in one, one
    empty = store.path.parent / "empty"
    empty.mkdir()
    for one in said(text.replace(str(store.path), str(empty)), 0):
        assert "there is no shared environment" in one, one


def test_a_store_that_a_user_may_not_read_is_no_empty_one(store: Store) -> None:
    store.config.write_text(store.config.read_text().replace("  envs: [llm]\n", f"  stage: {store.config.parent}/stage\n"))
    let_others_through(store.path)
    for closed in (store.path, store.path / ".generations"):
        mode = closed.stat().st_mode
        closed.chmod(0o700)
        for words in (("conda", "gc", "--check"), ("conda", "stage", "--all", "--check")):
            said = as_user(store, *words, expect=1).stderr
            assert str(closed) in said and "no shared environment" not in said, said
        closed.chmod(mode)
