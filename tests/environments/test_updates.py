"""sharefs conda update, and verify --repair: a new generation, or nothing. On an environment that rattler has installed."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import pwd
import random
import shutil
import signal
import stat
import subprocess
import tempfile
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest

from environmentslab.environment import Workshop, killed_at, let_others_through, made_generations
from environmentslab.store import USER, Store, as_user, give_to, imports, make_store, read_until, state

_NAMESPACES = pytest.mark.skipif(
    subprocess.run(["unshare", "-Ur", "true"], stderr=subprocess.DEVNULL).returncode != 0, reason="no user namespaces here"
)


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


@pytest.mark.parametrize("owner", ["root", pytest.param(USER, marks=_NAMESPACES)])
def test_requirement_6_an_update_leaves_the_old_generation_byte_identical(store: Store, owner: str) -> None:
    subprocess.run(["chown", "-Rh", f"{owner}:", store.path], check=True)
    let_others_through(store.path)
    before = state(store.generation(1))
    said = store.update(_CHANGES, "--no-verify", "--message", "the first")
    assert state(store.generation(1)) == before
    assert store.current() == 2
    assert ("working as `nobody`" in said) == (owner != "root")
    new = store.generation(2)
    assert list((new / "share").iterdir()) == []
    assert list(new.rglob("brand_new.py"))
    assert (new / "conda-meta/history").read_text().endswith("==> now\n")
    assert {path.stat().st_mode & 0o777 for path in (new / "conda-meta").glob("*.json")} == {0o444}  # 0600 is not for others
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


@pytest.mark.parametrize("owner", ["root", USER])
def test_requirement_3_a_repair_is_a_generation_and_the_one_before_stays_as_it_is(store: Store, owner: str) -> None:
    old = store.generation(1)
    (old / "bin/perlish").chmod(0o500)
    (old / "bin").chmod(0o755)
    (old / "bin/mixed").write_text(f"#!{old}/bin/python\nprint('mixed')\n")  # as micromamba writes it
    (old / "bin/mixed").chmod(0o555)
    (old / "bin").chmod(0o555)
    subprocess.run(["chown", "-Rh", f"{owner}:", store.path], check=True)
    let_others_through(store.path)
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
    with killed_at(step):
        store.sharefs("conda", "verify", "llm", "--repair", "--yes", expect=-9)
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


def test_with_json_standard_output_is_the_document(store: Store) -> None:
    done = store.sharefs("conda", "update", "llm", "--yes", "--json", "--no-verify", "--", "echo", "of the command")
    assert json.loads(done.stdout)["ok"] and "of the command" in done.stderr


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


def test_attack_records_of_packages_are_bounded_together(store: Store) -> None:
    """Sixty names of one file of 60 MiB: root's verify ended for want of memory."""
    meta = store.generation(1) / "conda-meta"
    meta.chmod(0o755)
    with (meta / "large-1-0.json").open("wb") as large:
        large.truncate(60 << 20)
    for number in range(60):
        os.link(meta / "large-1-0.json", meta / f"large-1-{number + 1}.json")
    said = store.sharefs("conda", "verify", "llm", expect=1).stderr
    assert "the records in its conda-meta are larger than 256 MiB" in said and "hint:" in said
    for one in meta.glob("large-*"):
        one.unlink()
    store.sharefs("conda", "verify", "llm")


def test_requirement_14_a_generation_costs_what_has_changed(store: Store) -> None:
    """How long that takes is the bench's (P5); here what is written is counted."""
    store.update("echo 'value = 2' >$CONDA_PREFIX/lib/python3.11/site-packages/brand_new.py")

    def files(number: int) -> dict[str, int]:
        tree = store.generation(number)
        found = {str(path.relative_to(tree)): path.lstat() for path in tree.rglob("*")}
        return {name: status.st_ino for name, status in found.items() if stat.S_ISREG(status.st_mode)}

    before, after = files(1), files(2)
    own = {name for name, inode in after.items() if before.get(name) != inode and not name.startswith("conda-meta/")}
    assert "lib/python3.11/site-packages/brand_new.py" in own and not own & set(before)
    made = store.generations()[-1]
    assert made["own_bytes"] < made["bytes"] / 10, made


def test_requirement_14_an_update_in_a_store_of_a_group_shares_what_is_equal(store: Store) -> None:
    """README's access: the group of the store is not the first one of its owner, whose user namespace lacks it."""
    give_to(store, USER, "games")
    before = state(store.generation(1))
    said = as_user(store, "conda", "update", "--yes", "--no-verify", "llm", "bash", "-ec", "echo x > $CONDA_PREFIX/new; rm -r $CONDA_PREFIX/share").stderr
    assert "works in a full copy" in said
    assert state(store.generation(1)) == before  # no mode was widened
    made = json.loads(as_user(store, "conda", "generations", "llm", "--json").stdout)["generations"][-1]
    assert made["number"] == 2 and made["own_bytes"] < made["bytes"] / 10, made
    new = store.generation(2)
    assert (new / "new").read_text() == "x\n" and not (new / "share").exists()
    assert {path.group() for path in new.rglob("*") if not path.is_symlink()} == {"games"}
    assert store.leftovers() == []


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


def runs_in(store: Store) -> bool:
    for process in Path("/proc").glob("[0-9]*/exe"):
        with suppress(OSError):
            if os.readlink(process).startswith(f"{store.path}/"):
                return True
    return False


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
    while runs_in(store):  # the last one of the reader; gc would keep its generation
        time.sleep(0.01)
    assert (store.env / "round").read_text() == "last\n"
    store.sharefs("conda", "gc", "llm", "--keep", "1", "--yes")
    assert store.leftovers() == []
    assert [one["number"] for one in store.generations()] == [store.current()]
    store.update("true")
    assert list(Path("/var/tmp").glob("sharefs-update-*")) == []  # of those that were killed


def test_what_was_left_while_the_lease_was_taken_goes(store: Store) -> None:
    old, new = (store.generation(1).with_name(f"lock.{letters}") for letters in ("abcdefghijkl", "mnopqrstuvwx"))
    for path in (old, new):  # another host may take the lease at this moment
        path.write_text("")
    os.utime(old, (time.time() - 7200,) * 2)
    store.update("true")
    assert new.exists() and not old.exists()


def test_a_number_of_what_was_cut_off_is_not_used_again(store: Store) -> None:
    """That somebody may have seen, and staged."""
    (store.path / ".generations/llm/old-0007.abcdef").mkdir()
    store.update("true")
    assert store.current() == 8


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to a group")
@pytest.mark.parametrize("others", [True, False])
def test_bytecode_is_compiled_for_an_owner_who_is_not_in_the_group_of_the_store(store: Store, others: bool) -> None:
    """Python runs with the groups that its user has, and what it makes cannot be given to the store's: nobody gets more by that."""
    old, site = store.generation(1), "lib/python3.11/site-packages/tool"
    subprocess.run(["chmod", "-R", "u+w", old], check=True)
    subprocess.run([old / "bin/python", "-m", "compileall", "-q", old / site], check=True)
    os.utime(old / site / "__init__.py", (1_000_000_000, 1_000_000_000))
    subprocess.run(["chmod", "-R", "a-w", old], check=True)
    subprocess.run(["chown", "-Rh", f"{USER}:100", store.path], check=True)
    subprocess.run(["chmod", "-R", "g=u" if others else "g=u,o=", store.path], check=True)
    for directory in [store.path, *store.path.rglob("*")]:
        if directory.is_dir() and not directory.is_symlink():
            directory.chmod(directory.stat().st_mode | 0o2000)
    let_others_through(store.path)
    said = store.sharefs("conda", "verify", "llm", "--repair", "--yes").stderr
    assert "working as `nobody`" in said and "could be compiled" not in said, said
    cached = store.generation(2) / site / "__pycache__/__init__.cpython-311.pyc"
    assert int.from_bytes(cached.read_bytes()[8:12], "little") == 1_000_000_000
    assert cached.owner() == USER and cached.stat().st_mode & 0o777 == (0o444 if others else 0o400)
    assert (store.generation(2) / site / "__init__.py").stat().st_gid == 100


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
@pytest.mark.parametrize("protect", [True, False])
def test_requirement_12_two_users_alternate_updates_under_umask_077(workshop: Workshop, protect: bool) -> None:
    """Of one group, in which neither is first of all; none of them is root."""
    group = 100
    open_place = Path(tempfile.mkdtemp(dir="/var/tmp"))  # pytest closes its own to all others, at any moment
    open_place.chmod(0o755)
    try:
        _alternate_updates(make_store(workshop, open_place), group, protect)
    finally:
        shutil.rmtree(open_place)


def _alternate_updates(store: Store, group: int, protect: bool) -> None:
    subprocess.run(["chown", "-Rh", f"daemon:{group}", store.path], check=True)
    subprocess.run(["chmod", "-R", "g=u,o=", store.path], check=True)
    for directory in [store.path, *store.path.rglob("*")]:
        if directory.is_dir() and not directory.is_symlink():
            directory.chmod(directory.stat().st_mode | 0o2000)
    if not protect:
        subprocess.run(["chmod", "-R", "ug+w", store.generation(1)], check=True)
        (store.generation(1) / "conda-meta/frozen").unlink()
        store.config.write_text(store.config.read_text() + "  protect: false\n")
    homes = {}
    for user in ("daemon", "games"):
        homes[user] = store.path.parent / user
        homes[user].mkdir()
        subprocess.run(["chown", user, homes[user]], check=True)

    def act(user: str, *words: str) -> subprocess.CompletedProcess[str]:
        entry = pwd.getpwnam(user)
        done = subprocess.run(
            words, user=entry.pw_uid, group=entry.pw_gid, extra_groups=[group], umask=0o077, cwd="/", capture_output=True, text=True,
            env={"PATH": os.environ["PATH"], "XDG_STATE_HOME": str(homes[user]), "USER": user, "PYTHONDONTWRITEBYTECODE": "1"}, stdin=subprocess.DEVNULL, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, f"{user}: {words}\n{done.stdout}{done.stderr}"
        return done

    sharefs = [os.environ["SHAREFS_BIN"], "--config", str(store.config), "conda"]
    for number, user in enumerate(("games", "daemon", "games"), 2):
        one = "$CONDA_PREFIX/lib/python3.11/site-packages/tool/__init__.py"
        script = f"chmod u+w {one}; echo '# {number}' >>{one}; mkdir $CONDA_PREFIX/by{number}; echo {user} >$CONDA_PREFIX/by{number}/who"
        act(user, *sharefs, "update", "llm", "--no-verify", "--yes", "--", "sh", "-ec", script)
        assert store.current() == number and store.leftovers() == []
        for reader in homes:
            assert act(reader, "cat", f"{store.env}/by{number}/who").stdout == f"{user}\n"
            act(reader, str(store.env / "bin/python"), "-c", "import tool, json")
            act(reader, "find", str(store.generation(number)), "!", "-readable", "-exec", "false", "{}", "+")
        for path in [store.generation(number), *store.generation(number).rglob("*")]:
            if not path.is_symlink():
                assert path.stat().st_mode & 0o007 == 0 and path.stat().st_gid == group, path
                assert path.stat().st_mode & 0o220 == (0 if protect else 0o220), path
    act("games", *sharefs, "rollback", "llm", "--yes")
    act("daemon", *sharefs, "rollback", "llm", "--yes")


def test_ctrl_c_in_the_command_of_an_update(store: Store) -> None:
    master, terminal = pty.openpty()
    command = [os.environ["SHAREFS_BIN"], "--config", str(store.config), "conda", "update", "llm", "--yes", "--"]
    script = "touch $CONDA_PREFIX/new; echo ready; exec sleep 600"
    update = subprocess.Popen([*command, "sh", "-c", script], stdin=terminal, stdout=terminal, stderr=terminal, preexec_fn=_owns_terminal)
    os.close(terminal)
    said = read_until(master, "ready")
    os.write(master, b"\x03")
    said += read_until(master, None)
    os.close(master)
    assert update.wait() == 130 and "left behind" not in said, said
    assert store.current() == 1 and store.leftovers() == []
    assert list(Path("/var/tmp").glob("sharefs-update-*")) == []


def test_ctrl_c_at_the_question_of_an_update(store: Store) -> None:
    master, terminal = pty.openpty()
    command = [os.environ["SHAREFS_BIN"], "--config", str(store.config), "conda", "update", "llm", "--", "true"]
    update = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, preexec_fn=_owns_terminal)
    os.close(terminal)
    said = read_until(master, "Proceed?")
    os.write(master, b"\x03")
    said += read_until(master, None)
    os.close(master)
    assert update.wait() == 130 and "nothing was changed" in said, said
    assert store.current() == 1 and store.leftovers() == []
    assert list(Path("/var/tmp").glob("sharefs-update-*")) == []
    assert sorted(path.name for path in store.generation(1).parent.iterdir()) == ["0001", "0001.json", "uses"]


def _owns_terminal() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@_NAMESPACES
def test_attack_a_command_writes_to_generations_by_their_own_paths(store: Store) -> None:
    """As in a shell of `conda run`, whose PATH names the generation. An older one has the same files by other names."""
    store.update("echo 2 > $CONDA_PREFIX/two")
    before = state(store.generation(1)), state(store.generation(2))
    script = """
for prefix in "$0" "$1"; do
  for path in $prefix/conda-meta/history $prefix/bin/tool $prefix/new; do
    { chmod u+w $path; echo x >> $path; rm -f $path; } 2>/dev/null
    test ! -w $path
  done
done
echo x > $(dirname $0)/../beside
exit 3
"""
    words = ["conda", "update", "--yes", "llm", "--", "bash", "-c", script, store.generation(2), store.generation(1)]
    assert "exit code 3: nothing was changed" in store.sharefs(*words, expect=1).stderr
    assert (state(store.generation(1)), state(store.generation(2))) == before
    assert (store.path / ".generations/beside").read_text() == "x\n"  # another environment may be made there


@pytest.mark.parametrize("step", ["0", "0+", "1", "1+"])
def test_requirement_1_an_update_killed_at_each_step(store: Store, step: str) -> None:
    with killed_at(step):
        store.update("echo killed > $CONDA_PREFIX/number", expect=-9)
    assert imports(store.env).strip() == str(store.env)
    switched = step == "1+"
    assert store.current() == (2 if switched else 1)
    said = store.update("echo again > $CONDA_PREFIX/number", "--wait", "30s")
    assert "running it again completes it" in said
    assert (store.env / "number").read_text() == "again\n" and store.current() == 3 and store.leftovers() == []
    names = {path.name for path in store.generation(1).parent.iterdir()}
    whole = {2} if step in ("0+", "1", "1+") else set()  # it had its name
    assert names == {"0001", "0001.json", "uses"} | made_generations(3, *whole)
    assert list(Path("/var/tmp").glob("sharefs-update-*")) == []
    store.sharefs("conda", "rollback", "llm", "--yes")  # never to what was not switched to
    assert store.current() == (2 if switched else 1)


@pytest.mark.parametrize("what", ["conda-meta", "lib", "*"])
def test_a_command_that_deletes_the_environment_is_told_so(store: Store, what: str) -> None:
    said = store.update(f"rm -rf $CONDA_PREFIX/{what}; true", "--no-verify", expect=1)
    assert "has deleted " in said and "of the environment: nothing was changed" in said and store.current() == 1


def test_a_relative_scratch_is_one_of_the_working_directory(store: Store, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    (place / "scratch").mkdir()
    fifo = place / "go"
    os.mkfifo(fifo)
    update = store.start("conda", "update", "--scratch", "scratch", "--yes", "llm", "bash", "-c", f"cat {fifo}")
    with open(fifo, "w"):
        assert list((place / "scratch").glob("sharefs-update-*"))
    assert update.communicate(timeout=100) and update.returncode == 0
    assert list((place / "scratch").iterdir()) == []
