"""sharefs conda update, rollback, gc: generations of an environment that rattler has installed."""

from __future__ import annotations

import json
import os
import pty
import random
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from environmentslab.store import Store

_USER = "nobody"  # to whom the store of some tests belongs
_NAMESPACES = pytest.mark.skipif(
    subprocess.run(["unshare", "-Ur", "true"], stderr=subprocess.DEVNULL).returncode != 0, reason="no user namespaces here"
)


def state(tree: Path) -> dict[str, tuple]:
    """All that a generation is: modes, times, owners, contents."""
    found = {}
    for path in sorted(tree.rglob("*")):
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(tree))] = (status.st_mode, status.st_uid, status.st_mtime_ns, content)
    return found


def imports(env: Path) -> str:
    return subprocess.run([env / "bin/python", "-c", "import json, sys; print(sys.prefix)"], capture_output=True, text=True, timeout=60).stdout


_CHANGES = """
test "${USER:-$(id -un)}" = "$(id -un)"
test "$CONDA_PREFIX" = "$(python -c 'import sys; print(sys.prefix)')"
site=$CONDA_PREFIX/lib/python3.11/site-packages
echo 'value = 2' > $site/brand_new.py
one=$(ls $site/*/*.py $site/*.py | head -1); chmod u+w $one
echo '# a tool that writes in place' >> $one
chmod 600 $(ls $CONDA_PREFIX/conda-meta/*.json | head -1)
echo '==> now' >> $CONDA_PREFIX/conda-meta/history
rm -r $CONDA_PREFIX/share
mkdir $CONDA_PREFIX/share
"""


@_NAMESPACES
def test_an_update_without_a_mount_namespace_works_in_a_copy_that_is_relocated(store: Store) -> None:
    before = state(store.generation(1))
    script = """
test "$CONDA_PREFIX" = "$(python -c 'import sys; print(sys.prefix)')"
case $CONDA_PREFIX in */.generations/llm/new-0002.*) ;; *) exit 9;; esac
printf '#!%s/bin/python\nprint("hello")\n' "$CONDA_PREFIX" >$CONDA_PREFIX/bin/hello
chmod +x $CONDA_PREFIX/bin/hello
! test -e $CONDA_PREFIX/conda-meta/frozen
"""
    words = [os.environ["SHAREFS_BIN"], "--config", store.config, "conda", "update", "--yes", "llm", "bash", "-ec", script]
    # The limit is one of the user namespace that it is written in.
    none = ["unshare", "-Ur", "sh", "-c", 'echo 0 >/proc/sys/user/max_mnt_namespaces && exec "$@"', "sh"]
    said = subprocess.run([*none, *words], capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL)
    assert said.returncode == 0, said.stderr
    assert "works in a full copy" in said.stderr
    assert state(store.generation(1)) == before
    assert store.current() == 2 and store.leftovers() == []
    assert (store.generation(2) / "bin/hello").read_text().splitlines()[0] == f"#!{store.env}/bin/python"
    assert subprocess.run([store.env / "bin/hello"], capture_output=True, text=True, check=True).stdout == "hello\n"
    assert imports(store.env) == f"{store.env}\n"
    assert (store.generation(2) / "conda-meta/frozen").exists()
    assert not any(path.lstat().st_mode & 0o222 for path in store.generation(2).rglob("*") if not path.is_symlink())


@pytest.mark.parametrize("owner", ["root", pytest.param(_USER, marks=_NAMESPACES)])
def test_requirement_6_an_update_leaves_the_old_generation_byte_identical(store: Store, owner: str) -> None:
    subprocess.run(["chown", "-Rh", f"{owner}:", store.path], check=True)
    for above in store.path.parents:  # pytest's own are closed to all others
        if above.stat().st_mode & 0o001 == 0:
            above.chmod(above.stat().st_mode | 0o011)
    before = state(store.generation(1))
    said = store.update(_CHANGES, "--no-verify", "--message", "the first")
    assert state(store.generation(1)) == before
    assert store.current() == 2
    assert ("working as `nobody`" in said) == (owner != "root")
    new = store.generation(2)
    assert list((new / "share").iterdir()) == []
    assert list(new.rglob("brand_new.py"))
    assert (new / "conda-meta/history").read_text().endswith("==> now\n")
    assert (new / "conda-meta/frozen").read_text() == "{}"
    assert {path.owner() for path in new.rglob("*")} == {owner}
    assert not [path for path in new.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o222]  # requirement 7
    shared = [path for path in new.rglob("*") if path.is_file() and not path.is_symlink() and path.stat().st_nlink > 1]
    assert len(shared) > 0.8 * len(before) - 40
    assert not [path for path in shared if path.is_relative_to(new / "conda-meta")]
    assert imports(store.env).strip() == str(store.env)
    files = [path for path in new.rglob("*") if path.is_symlink() or not path.is_dir()]
    record = json.loads((store.path / ".generations/llm/0002.json").read_text())
    assert record["files"] == len(files) and record["bytes"] == sum(path.lstat().st_size for path in files if not path.is_symlink())
    assert [(one["number"], one["message"], one["current"]) for one in store.generations()] == [(1, "", False), (2, "the first", True)]
    assert store.leftovers() == []


@pytest.mark.parametrize("owner", ["root", _USER])
def test_requirement_3_a_repair_is_a_generation_and_the_one_before_stays_as_it_is(store: Store, owner: str) -> None:
    old = store.generation(1)
    (old / "bin/perlish").chmod(0o500)
    (old / "bin").chmod(0o755)
    (old / "bin/mixed").write_text(f"#!{old}/bin/python\nprint('mixed')\n")  # as micromamba writes it
    (old / "bin/mixed").chmod(0o555)
    (old / "bin").chmod(0o555)
    subprocess.run(["chown", "-Rh", f"{owner}:", store.path], check=True)
    for above in store.path.parents:
        if above.stat().st_mode & 0o001 == 0:
            above.chmod(above.stat().st_mode | 0o011)
    before = state(old)
    assert "new" not in store.sharefs("conda", "verify", "llm", "--repair", "--dry-run", expect=0).stderr
    said = store.sharefs("conda", "verify", store.env, "--repair", "--yes").stderr
    assert state(old) == before and store.current() == 2 and store.leftovers() == []
    new = store.generation(2)
    assert (new / "bin/mixed").read_text().startswith(f"#!{store.env}/bin/python\n")
    assert (new / "bin/perlish").stat().st_mode & 0o777 == 0o555 and (new / "bin/perlish").owner() == owner
    document = json.loads(store.sharefs("conda", "verify", "llm", "--json").stdout)
    assert {one["kind"] for one in document["environment"]["found"]} <= {"unmanaged", "nobody"}
    assert not [path for path in new.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o222]
    files = [path for path in new.rglob("*") if path.is_file() and not path.is_symlink()]
    assert sum(path.stat().st_nlink > 1 for path in files) > 0.8 * len(files)
    assert [one["command"] for one in store.generations()] == ["", "sharefs conda verify llm --repair"]
    assert "nothing that can be repaired" in store.sharefs("conda", "verify", "llm", "--repair", "--yes").stderr
    store.sharefs("conda", "rollback", "llm", "--yes")
    again = store.sharefs("conda", "verify", store.generation(2), "--repair", "--yes", expect=2).stderr
    assert "not the present one" in again
    store.sharefs("undo", said.rsplit("sharefs undo ", 1)[1].split("`")[0], "--yes", expect=None)
    assert store.current() == 1


@pytest.mark.parametrize("step", [f"{number}{after}" for number in range(2) for after in ("", "+")])
def test_requirement_1_a_repair_that_is_killed_leaves_the_environment_and_is_finished(store: Store, step: str) -> None:
    (store.generation(1) / "bin/perlish").chmod(0o500)
    before = state(store.generation(1))
    os.environ["SHAREFS_TEST_KILL_AT"] = step
    try:
        store.sharefs("conda", "verify", "llm", "--repair", "--yes", expect=-9)
    finally:
        del os.environ["SHAREFS_TEST_KILL_AT"]
    assert imports(store.env) == f"{store.env}\n"
    said = store.sharefs("conda", "verify", "llm", "--repair", "--yes", "--wait", "30s").stderr
    assert ("nothing that can be repaired" in said) == (step == "1+")
    store.sharefs("conda", "gc", "llm", "--yes")
    assert state(store.generation(1)) == before and store.current() > 1 and store.leftovers() == []
    assert json.loads(store.sharefs("conda", "verify", "llm", "--json").stdout)["ok"]


def test_requirement_3_a_generation_is_not_relocated(store: Store, place: Path) -> None:
    before = state(store.path)
    (place / "link").symlink_to(store.env)
    for word, to in (("llm", place / "else"), ("llm", store.env), (store.generation(1), place / "else"), (place / "link", place / "link")):
        assert "generation 1 of the shared environment" in store.sharefs("conda", "relocate", word, to, "--yes", expect=1).stderr
    assert state(store.path) == before
    said = store.sharefs("conda", "relocate", "llm", place / "else", "--yes", expect=1).stderr
    cp, relocate = said.rsplit("there: `", 1)[1].split("`")[0], said.rsplit("`sharefs ", 1)[1].split("`")[0]
    subprocess.run(cp, shell=True, check=True)
    store.sharefs(*relocate.split(), "--yes")
    assert imports(place / "else") == f"{place / 'else'}\n"


def test_env_is_a_path_that_leads_to_the_environment(store: Store, place: Path) -> None:
    (place / "envs").mkdir()
    link = place / "envs/mine"
    link.symlink_to(store.env)
    (place / "data").symlink_to(store.path)
    for word in (link, store.env, place / "data/llm", store.generation(1)):
        assert len(json.loads(store.sharefs("conda", "generations", word, "--json").stdout)["generations"]) == 1
    store.sharefs("conda", "update", "--yes", link, "true")
    assert store.current() == 2
    store.sharefs("conda", "rollback", "--yes", place / "data/llm")
    assert store.current() == 1
    for word in (place / "envs", "/usr", store.path / "nothing/there"):
        assert "does not lead to an environment" in store.sharefs("conda", "generations", word, expect=2).stderr


def test_requirement_6_a_command_that_fails_changes_nothing(store: Store) -> None:
    before = state(store.path)
    said = store.update("rm -rf $CONDA_PREFIX/lib $CONDA_PREFIX/conda-meta; exit 7", expect=1)
    assert "ended with exit code 7: nothing was changed" in said
    assert {name: one for name, one in state(store.path).items()}.keys() == before.keys()
    assert state(store.generation(1)) == {
        name.removeprefix(".generations/llm/0001/"): one for name, one in before.items() if name.startswith(".generations/llm/0001/")
    }


def test_requirement_6_what_a_command_breaks_is_not_switched_to(store: Store) -> None:
    said = store.update('for one in $CONDA_PREFIX/lib/python3.11/site-packages/*/*.py; do echo "broken" > $one; done', expect=1)
    assert "is not sound" in said
    assert store.current() == 1
    assert store.leftovers() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="it is about what root runs")
@pytest.mark.parametrize("writable", ["store", "store/.generations/llm", "store/.generations/llm/0001/bin"])
def test_attack_root_runs_no_program_that_a_group_could_exchange(store: Store, writable: str) -> None:
    directory = store.path.parent / writable
    os.chown(directory, 0, 100)
    directory.chmod(0o2775)
    said = store.update("touch /nowhere/ran", expect=1)
    assert "would run their programs as root" in said and "chown -R USER" in said
    assert store.current() == 1 and store.leftovers() == []


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


@contextmanager
def used(store: Store, number: int) -> Iterator[None]:
    """By a process of this host, as `conda run` leaves word of it."""
    process = subprocess.Popen(["sleep", "600"])
    try:
        start = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        (store.path / f".generations/llm/uses/{os.uname().nodename}.{process.pid}.{start}.{number:04}").touch()
        yield
    finally:
        process.kill()
        process.wait()


def test_gc_keeps_what_is_needed_and_deletes_the_rest(store: Store) -> None:
    for number in range(2, 6):
        store.update(f"echo {number} > $CONDA_PREFIX/number")
    store.sharefs("conda", "pin", "llm", "1", "--message", "paper", "--yes")
    with used(store, 2):
        (store.path / ".generations/llm/uses/elsewhere.node.1.1.0003").touch()
        store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes")
        assert [one["number"] for one in store.generations()] == [1, 2, 3, 5]
        store.sharefs("conda", "gc", "llm", "--keep", "1", "--forget", "elsewhere.node", "--yes")
        assert [one["number"] for one in store.generations()] == [1, 2, 5]
    store.sharefs("conda", "unpin", "llm", "1", "--yes")
    store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes")
    assert [one["number"] for one in store.generations()] == [5]
    assert imports(store.env).strip() == str(store.env)


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


def read_until(terminal: int, end: str | None) -> str:
    """None: until nobody has it open any more."""
    said = ""
    while end is None or end not in said:
        assert select.select([terminal], [], [], 60)[0], said
        try:
            said += os.read(terminal, 4096).decode()
        except OSError:
            break
    return said


def test_requirement_1_rollback_and_gc_killed_at_each_step(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (2, 3, 4):
        store.update(f"echo {number} > $CONDA_PREFIX/number")
    for step in ("0", "0+"):
        monkeypatch.setenv("SHAREFS_TEST_KILL_AT", step)
        store.sharefs("conda", "rollback", "llm", "--to", "3", "--yes", expect=-9)
        monkeypatch.delenv("SHAREFS_TEST_KILL_AT")
        assert imports(store.env).strip() == str(store.env)
        store.sharefs("--wait", "30s", "conda", "rollback", "llm", "--to", "3", "--yes")
        assert store.current() == 3 and (store.env / "number").read_text() == "3\n"
        store.sharefs("conda", "rollback", "llm", "--to", "4", "--yes")
    kept = {1, 2, 3, 4}
    for step in ("0", "0+", "1", "1+", "2", "2+"):  # of each generation: the record goes, its name, then the tree
        monkeypatch.setenv("SHAREFS_TEST_KILL_AT", step)
        store.sharefs("--wait", "30s", "conda", "gc", "llm", "--keep", "3", "--yes", expect=None)
        monkeypatch.delenv("SHAREFS_TEST_KILL_AT")
        assert imports(store.env).strip() == str(store.env)
        store.sharefs("--wait", "30s", "conda", "gc", "llm", "--keep", "3", "--yes")
        assert store.leftovers() == [] and store.current() == max(kept)
        kept = set(sorted(kept)[-3:])
        assert [one["number"] for one in store.generations()] == sorted(kept)
        store.update(f"echo {step} > $CONDA_PREFIX/number")
        kept.add(max(kept) + 1)


def test_requirement_2_the_link_is_there_at_every_moment(store: Store) -> None:
    """While it is exchanged on and on, who reads it finds it."""
    store.update("echo 2 > $CONDA_PREFIX/number")
    end = threading.Event()
    looks = 0
    failures: list[OSError] = []

    def look() -> None:
        nonlocal looks
        while not end.is_set():
            try:
                os.readlink(store.env)
                os.stat(store.env / "bin/python")
                looks += 1
            except OSError as error:
                failures.append(error)

    reader = threading.Thread(target=look)
    reader.start()
    for number in (1, 2) * 4:
        store.sharefs("conda", "rollback", "llm", "--to", str(number), "--yes")
    end.set()
    reader.join()
    assert failures == [] and looks > 1000


def test_requirement_8_a_second_update_waits_for_the_first(store: Store, place: Path) -> None:
    fifo = place / "go"
    os.mkfifo(fifo)
    first = store.start("conda", "update", "--yes", "llm", "bash", "-c", f"cat {fifo}; echo 1 > $CONDA_PREFIX/one")
    with open(fifo, "w"):  # opens when the first one's command reads
        busy = store.sharefs("--wait", "0s", "conda", "update", "--yes", "llm", "true", expect=None)
        assert busy.returncode == 1
        assert "is at work" in busy.stderr and "conda update" in busy.stderr
        second = store.start("--wait", "200s", "conda", "update", "--yes", "llm", "bash", "-c", "test -e $CONDA_PREFIX/one; echo 2 > $CONDA_PREFIX/two")
        assert second.stdout is not None
        assert "waiting" in second.stdout.readline()
    assert first.communicate(timeout=200) and first.returncode == 0
    assert second.communicate(timeout=200) and second.returncode == 0
    assert (store.env / "one").exists() and (store.env / "two").exists()
    assert store.current() == 3


def test_requirement_1_killed_at_any_moment(store: Store) -> None:
    """A reader in a loop never misses the environment, and the next run goes on."""
    chance = random.Random(11)
    longest = 0.2
    reader = subprocess.Popen(
        ["bash", "-c", f'while :; do "{store.env}/bin/python" -c "import json, ast" || exit 9; done'], stderr=subprocess.PIPE, text=True
    )
    try:
        for round_ in range(12):
            begin = time.monotonic()
            update = store.start("conda", "update", "--yes", "llm", "bash", "-c", f"echo {round_} > $CONDA_PREFIX/round")
            try:
                update.wait(chance.uniform(0.01, longest))
            except subprocess.TimeoutExpired:
                os.killpg(update.pid, signal.SIGKILL)
                update.wait()
            else:
                longest = max(longest, 2 * (time.monotonic() - begin))
            longest *= 1.3
            assert update.stdout is not None
            update.stdout.close()
        store.update("echo last > $CONDA_PREFIX/round")
        assert reader.poll() is None, reader.stderr.read() if reader.stderr else ""
    finally:
        reader.kill()
        reader.wait()
    assert (store.env / "round").read_text() == "last\n"
    store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes")
    assert store.leftovers() == []
    assert [one["number"] for one in store.generations()] == [store.current()]
    store.update("true")
    assert list(Path("/var/tmp").glob("sharefs-update-*")) == []  # of those that were killed


@pytest.mark.parametrize("lost", ["name", "generation"])
def test_requirement_1_what_somebody_has_removed_comes_back(store: Store, lost: str) -> None:
    """STORE/ENV, as `conda env remove` of one user removes it, or what it leads to: the rest is told, and used."""
    store.update("touch $CONDA_PREFIX/share/new", "--no-verify")
    if lost == "name":
        store.env.unlink()
    else:
        store.generation(2).rename(store.path.parent / "away")
    for words in (["generations"], ["update", "--yes"], ["gc", "--yes"], ["pin", "--yes"]):
        number = ["1"] if words[0] == "pin" else ["--", "true"] if words[0] == "update" else []
        said = store.sharefs("conda", words[0], "llm", *words[1:], *number, expect=1).stderr
        assert "sharefs conda rollback llm" in said, said
    (row,) = json.loads(store.sharefs("conda", "list", "--json", expect=None).stdout)["environments"]
    assert (row["name"], row["state"]) == ("llm", "missing")
    assert lost != "name" or "sharefs conda rollback llm" in row["detail"]
    said = store.sharefs("conda", "rollback", "llm", "--yes").stderr
    assert store.current() == (2 if lost == "name" else 1), said
    assert imports(store.env).strip() == str(store.env)
