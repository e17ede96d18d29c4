"""sharefs conda share, on environments that rattler has installed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from environmentslab.environment import contents, holders, killed_at, kinds, let_others_through
from environmentslab.shared import Shared, run_tool
from environmentslab.waiting import waiting


def write_modes(prefix: Path) -> list[str]:
    return [str(path) for path in [prefix, *prefix.rglob("*")] if not path.is_symlink() and path.stat().st_mode & 0o222]


def test_requirement_1_it_works_by_both_paths_and_the_original_is_kept(shared: Shared) -> None:
    before = contents(shared.source)
    said = shared.share().stderr
    assert shared.source.readlink() == shared.stable
    assert os.readlink(shared.stable) == ".generations/env/0001"
    assert run_tool(shared.source) == run_tool(shared.stable) == f"tool -I{shared.stable}/include\n"
    (kept,) = shared.kept()
    assert contents(kept) == before
    assert [name for name in holders(shared.generation, shared.source) if not name.startswith("conda-meta/")] == []
    assert kinds(shared.workshop.verify(shared.stable)) == {}
    record = json.loads((shared.generation.parent / "0001.json").read_text())
    assert record["number"] == 1 and record["prefix"] == str(shared.stable)
    assert record["python"].startswith("3.") and any(one["name"] == "tool" for one in record["packages"])
    shared.undo(said)
    assert not shared.source.is_symlink() and contents(shared.source) == before
    assert not shared.stable.exists() and shared.kept() == []
    assert run_tool(shared.source) == f"tool -I{shared.source}/include\n"


def test_requirement_1_twice_is_once(shared: Shared) -> None:
    shared.share()
    state = contents(shared.place)
    assert "is a link to the shared environment already" in shared.share().stderr
    assert contents(shared.place) == state
    assert shared.run("conda", "share", "env", "--check").returncode == 0


def test_a_dry_run_changes_nothing(shared: Shared) -> None:
    before = sorted(shared.place.rglob("*"))
    shown = shared.run("conda", "share", "env", "--dry-run").stdout
    assert "replace" in shown and "0001" in shown
    assert shared.run("conda", "share", "env", "--check", expect=3)
    assert sorted(shared.place.rglob("*")) == before


@pytest.mark.parametrize("step", [f"{number}{after}" for number in range(3) for after in ("", "+")])
def test_requirement_1_killed_at_any_step_it_imports_and_a_second_run_finishes(shared: Shared, step: str) -> None:
    with killed_at(step):
        shared.share(expect=-9)
    assert run_tool(shared.source).startswith("tool ")
    shared.share("--wait", "30s")
    assert shared.source.readlink() == shared.stable and len(shared.kept()) == 1
    assert run_tool(shared.source) == f"tool -I{shared.stable}/include\n"
    assert kinds(shared.workshop.verify(shared.stable)) == {}
    made = os.readlink(shared.stable).rpartition("/")[2]  # a number that was used is not used again
    names = {path.name for path in shared.generation.parent.iterdir()}
    assert names >= {made, f"{made}.json", "uses"} and not [name for name in names if name.startswith("new-")]


@pytest.mark.parametrize("step", ["0+", "1", "1+", "2", "2+"])
def test_requirement_1_killed_and_taken_back(shared: Shared, step: str) -> None:
    before = contents(shared.source)
    with killed_at(step):
        shared.share(expect=-9)
    shared.run("undo", "--yes")
    assert not shared.source.is_symlink() and contents(shared.source) == before
    assert not shared.stable.exists() and shared.kept() == []


def test_requirement_1_killed_while_it_copies(shared: Shared) -> None:
    """A real kill -9, at times that nobody chose, while somebody uses the environment."""
    end = threading.Event()
    failures: list[str] = []

    def use() -> None:
        while not end.is_set():
            try:
                run_tool(shared.source)
            except (OSError, subprocess.CalledProcessError) as error:
                failures.append(str(error))

    command = [os.environ["SHAREFS_BIN"], "conda", "share", "env", "--yes", "--wait", "30s", "--config", str(shared.config)]
    reader = threading.Thread(target=use)
    kills = 0
    # SF520 looks at programs of the environment: the reader begins where the copy does.
    for patience in (0.2, 0.4, 0.6, 0.9, 1.3, 1.8, 240):
        share = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            share.wait(patience)
            break
        except subprocess.TimeoutExpired:
            share.kill()
            share.wait()
            kills += 1
        assert run_tool(shared.source).startswith("tool ")
    reader.start()
    shared.share("--wait", "30s", expect=None)
    end.set()
    reader.join()
    assert failures == [] and kills > 0
    assert shared.source.readlink() == shared.stable
    assert kinds(shared.workshop.verify(shared.stable)) == {}


def test_requirement_7_nobody_writes_in_it(shared: Shared) -> None:
    shared.share()
    assert write_modes(shared.generation) == []
    assert json.loads((shared.generation / "conda-meta/frozen").read_text())["message"]
    assert "[externally-managed]" in (shared.generation / "lib/python3.11/EXTERNALLY-MANAGED").read_text()


@pytest.mark.parametrize("own", [False, True])
def test_requirement_7_without_protection(shared: Shared, own: bool) -> None:
    shared.configure("  protect: false\n")
    if own:  # of this environment; the others are protected
        shared.configure("  protect: true\n")
        shared.config.write_text(shared.config.read_text().replace("[env]", "[{name: env, protect: false}, other]"))
    shared.share()
    assert shared.generation.stat().st_mode & 0o777 == 0o755
    assert not (shared.generation / "conda-meta/frozen").exists()


def _editable(prefix: Path) -> None:
    (prefix / "lib/python3.11/site-packages/__editable__.mine.pth").write_text("/home/alice/mine\n")


def _pkgs_link(prefix: Path) -> None:
    (prefix / "share/linked").symlink_to("/home/alice/miniconda3/pkgs/x/share/linked")


def _base(prefix: Path) -> None:
    (prefix / "condabin").mkdir()
    (prefix / "pkgs").mkdir()


def _set_id(prefix: Path) -> None:
    (prefix / "bin/plain").write_text("x")
    (prefix / "bin/plain").chmod(0o4755)


def _fifo(prefix: Path) -> None:
    os.mkfifo(prefix / "share/pipe")


def _compact_editable(prefix: Path) -> None:
    metadata = prefix / "lib/python3.11/site-packages/mine-1.dist-info"
    metadata.mkdir()
    (metadata / "direct_url.json").write_text('{"url":"file:///home/alice/mine","dir_info":{"editable":true}}')


@pytest.mark.parametrize(
    ("spoil", "code"), [(_fifo, "SF530"), (_compact_editable, "SF514"), (_editable, "SF514"), (_pkgs_link, "SF521"), (_base, "SF519"), (_set_id, "SF515")]
)
def test_requirement_10_what_others_could_not_use_is_refused(shared: Shared, spoil, code: str) -> None:  # type: ignore[no-untyped-def]
    spoil(shared.source)
    said = shared.share(expect=1).stderr
    assert code in said and "nothing was changed" in said
    assert not (shared.store / ".generations").exists() and not shared.source.is_symlink()


def test_requirement_10_an_environment_in_use_is_refused(shared: Shared) -> None:
    with waiting(shared.source / "bin/python") as pid:
        assert f"process {pid}" in shared.share(expect=1).stderr
    shared.share()


def test_requirement_10_an_overwritten_file_is_said_and_comes_along(shared: Shared) -> None:
    changed = shared.source / "share/plain.txt"
    changed.unlink()
    changed.write_text("by pip\n")
    assert "SF502" in shared.share().stderr
    assert (shared.stable / "share/plain.txt").read_text() == "by pip\n"


def test_requirement_10_another_one_of_this_name_is_not_replaced(shared: Shared) -> None:
    shared.share()
    other = shared.workshop.install(shared.place / "other/env")
    said = shared.run("conda", "share", "env", "--from", other, "--yes", expect=1).stderr
    assert "is shared already" in said and not other.is_symlink()
    cure = said.rsplit("`sharefs ", 1)[1].split("`")[0].replace("NAME", "second")
    shared.workshop.sharefs(*cure.split(), "--yes")  # which names the configuration
    assert other.readlink() == shared.store / "second"


def listed(shared: Shared, name: str = "env") -> dict:
    document = json.loads(shared.run("conda", "list", name, "--json").stdout)
    (row,) = [one for one in document["environments"] if one["name"] == name]
    return row


def test_requirement_15_verified_is_when_it_was_found_good(shared: Shared) -> None:
    begin = int(time.time())
    shared.share()
    assert begin <= listed(shared)["verified"] <= time.time()
    shared.run("conda", "update", "env", "--yes", "--no-verify", "true")
    assert listed(shared)["verified"] == 0  # of generation 2 nobody knows
    shared.run("conda", "update", "env", "--yes", "true")
    assert listed(shared)["verified"] == 0  # generation 3 has its files
    shared.run("conda", "verify", "env")
    assert listed(shared)["verified"] >= begin
    shared.run("conda", "update", "env", "--yes", "true")
    assert listed(shared)["verified"] >= begin
    program = shared.stable.resolve() / "bin/tool"
    program.parent.chmod(0o755)
    program.unlink()
    shared.run("conda", "verify", "env", expect=1)
    assert listed(shared)["verified"] == 0


def test_requirement_15_verified_is_of_the_generation_that_users_see(shared: Shared) -> None:
    shared.share()
    seen = listed(shared)
    with killed_at("1"):  # generation 2 has its name, and STORE/ENV leads to generation 1
        shared.run("conda", "update", "env", "--yes", "true", expect=-signal.SIGKILL)
    assert shared.generation.with_name("0002").exists() and shared.stable.resolve() == shared.generation
    assert listed(shared)["generation"] == 1 and listed(shared)["verified"] == seen["verified"] > 0


def opened(shared: Shared, *words: str) -> set[str]:
    """The names of the generation's files that `conda verify` reads."""
    names = {path.name for path in shared.generation.rglob("*") if path.is_file() and path.suffix in {".py", ".txt"}}
    assert len(names) > 100
    return names & shared.workshop.opened(shared.place / "trace", "--config", shared.config, "conda", "verify", "env", *words)


@pytest.mark.parametrize("option", ["--all", "--files"])
def test_what_is_as_it_was_found_good_is_read_again_only_when_asked(shared: Shared, option: str) -> None:
    shared.share()
    assert len(opened(shared, option)) > 100
    assert opened(shared) == set()
    assert len(opened(shared, option)) > 100
    plain = shared.generation / "share/plain.txt"
    os.utime(plain, (1, 1))  # its content stays, and nobody can know that
    assert "plain.txt" in opened(shared)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is let in")
def test_requirement_15_a_directory_above_that_lets_nobody_in_is_told(shared: Shared) -> None:
    shared.store.chmod(0o755)
    shared.share()
    let_others_through(shared.store)
    assert "SF308" not in shared.run("conda", "verify", "env").stderr
    shared.place.chmod(0o700)
    assert f"{shared.place}: it lets nobody" in shared.run("conda", "verify", "env").stderr


def test_what_is_no_environment_is_told(shared: Shared) -> None:
    (shared.place / "plain").mkdir()
    said = shared.run("conda", "share", "other", "--from", shared.place / "plain", "--yes", expect=1).stderr
    assert "is no conda environment: it has no directory `conda-meta`" in said and "chmod" not in said


def test_ctrl_c_in_the_copy_is_an_interruption(shared: Shared) -> None:
    (shared.source / "share/large").write_bytes(os.urandom(8_000_000))
    command = [os.environ["SHAREFS_BIN"], "--config", shared.config, "conda", "share", "env", "--yes", "--limit", "1M"]
    share = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while share.poll() is None and not list(shared.store.glob(".generations/env/new-0001.*/*")):
        pass
    share.send_signal(signal.SIGINT)
    _, said = share.communicate(timeout=60)
    assert share.returncode == 130 and "interrupted" in said and "error:" not in said and "given up" not in said
    shared.share()


def test_files_of_two_names_that_only_the_owner_can_read_are_shared(shared: Shared) -> None:
    """As pip and conda make them under umask 077; the mode of a file is that of all its names."""
    one = shared.source / "share/one.txt"
    one.write_text("of the owner\n")
    one.chmod(0o600)
    (shared.source / "share/other.txt").hardlink_to(one)
    shared.share()
    made = [(shared.generation / f"share/{name}.txt").stat() for name in ("one", "other")]
    assert made[0].st_ino == made[1].st_ino and made[0].st_mode & 0o777 == 0o444


def test_attack_a_private_directory_gets_the_name_of_an_unfinished_copy(shared: Shared) -> None:
    """Where a group writes in the store: what is neither begun by us nor marked as a copy of this original stays."""
    (shared.source / "share/large").write_bytes(os.urandom(8_000_000))
    command = [os.environ["SHAREFS_BIN"], "--config", shared.config, "conda", "share", "env", "--yes", "--limit", "1M"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as share:
        while share.poll() is None and not list(shared.store.glob(".generations/env/new-0001.*/*")):
            pass
        share.kill()
    (begun,) = shared.store.glob(".generations/env/new-0001.*")
    private = shared.place / "private"
    private.mkdir(mode=0o700)
    (private / "diary").write_text("mine\n")
    begun.rename(shared.place / "begun")
    private.rename(begun)
    shared.run("--wait", "90s", "conda", "share", "env", "--yes")
    assert (begun / "diary").read_text() == "mine\n" and begun.stat().st_mode & 0o777 == 0o700
    assert run_tool(shared.stable)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_who_may_not_change_it_is_told_who_may(shared: Shared) -> None:
    shared.share()
    let_others_through(shared.store)
    shared.config.chmod(0o644)
    binary = shared.place / "sharefs"
    shutil.copy(os.environ["SHAREFS_BIN"], binary)
    binary.chmod(0o755)
    shared.configure(f"  stage: {shared.place}/stage\n")
    (shared.place / "stage").mkdir(mode=0o755)
    shared.place.chmod(0o755)

    def as_nobody(*words: str) -> str:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HOME=/nonexistent", "XDG_STATE_HOME=/tmp"]
        done = subprocess.run([*command, binary, "--config", shared.config, "conda", words[0], "--yes", *words[1:]], capture_output=True, text=True)
        assert done.returncode == 1, done.stderr
        return done.stderr

    assert f"`nobody` may not change `env`: {shared.generation.parent} belongs to `root`" in as_nobody("update", "env", "true")
    (shared.generation / "share/plain.txt").chmod(0o400)
    assert "share/plain.txt (Permission denied)" in as_nobody("verify", "env")  # its name once
    said = as_nobody("stage", "env")
    assert "hint: root makes copies for all users" in said
    cure = said.rsplit("`sudo ", 1)[1].split("`")[0]
    subprocess.run(cure, shell=True, check=True)
    stage = shared.place / "stage"
    assert stage.stat().st_mode & 0o7777 == 0o1777

    # In a directory of all users nobody takes the name from root and the others.
    stage.rmdir()
    shared.place.chmod(0o1777)
    said = as_nobody("stage", "env")
    assert f"{shared.place} is for all users" in said and "root makes copies for all users" in said
    assert not stage.exists()
    stage.mkdir()
    os.chown(stage, 65534, 65534)
    said = shared.run("conda", "stage", "env", "--yes", expect=1).stderr
    assert f"`sudo mv {stage} {stage}.old`" in said


def test_requirement_11_no_bytecode_is_stale(shared: Shared) -> None:
    subprocess.run([shared.source / "bin/python", "-m", "compileall", "-q", shared.source / "lib/python3.11"], check=False)
    shared.share()
    ran = subprocess.run([shared.source / "bin/python", "-v", "-c", "import tool, json, asyncio"], capture_output=True, text=True, check=True)
    assert "bytecode is stale" not in ran.stderr
    cached = next((shared.generation / "lib/python3.11/site-packages/tool/__pycache__").glob("*.pyc")).read_bytes()
    assert str(shared.stable).encode() in cached and b"new-0001" not in cached


def test_requirement_12_a_group_gets_what_the_owner_has(shared: Shared) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory to a group")
    os.chown(shared.store, 0, 100)
    shared.store.chmod(0o2770)
    shared.configure("  protect: false\n")
    shared.share()
    assert shared.generation.stat().st_mode & 0o7777 == 0o2770
    tool = shared.generation / "bin/tool"
    assert tool.stat().st_gid == 100 and tool.stat().st_mode & 0o777 == 0o770
    for path in (shared.store / ".generations", shared.generation.parent):
        assert path.stat().st_mode & 0o7777 == 0o2770 and path.stat().st_gid == 100


def test_what_was_moved_into_the_store_by_hand_is_shared_by_the_hint(shared: Shared) -> None:
    shared.source.rename(shared.stable)
    said = shared.run("conda", "update", "env", "--yes", "--", "true", expect=1).stderr
    assert "is a plain directory, without generations" in said
    again = shared.run("conda", "share", "env", "--from", shared.workshop.install(shared.source), "--yes", expect=1).stderr
    move, share = said.rsplit("from there: `", 1)[1].split("`")[0].split(" && sharefs ")
    assert move in again and share in again
    subprocess.run(move, shell=True, check=True)
    shared.workshop.sharefs(*share.split(), "--yes")
    assert os.readlink(shared.stable) == ".generations/env/0001"
    assert run_tool(shared.stable) == f"tool -I{shared.stable}/include\n"
    assert kinds(shared.workshop.verify(shared.stable)) == {}
    assert write_modes(shared.generation / "conda-meta") == []


def test_a_private_environment_is_not_taken_for_what_was_shared(shared: Shared) -> None:
    shared.share()
    shared.source.unlink()
    shared.workshop.install(shared.source)
    assert "is shared already" in shared.share(expect=1).stderr
    assert not shared.source.is_symlink()


def test_undo_of_a_share_leaves_what_jobs_run_in_and_a_new_share_begins_anew(shared: Shared) -> None:
    said = shared.share().stderr
    job = [os.environ["SHAREFS_BIN"], "--config", str(shared.config), "conda", "run", "env", "--", "python", "-c"]
    code = "print(flush=True); input(); import wave, sys; print(sys.prefix)"
    with subprocess.Popen([*job, code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        running.stdout.readline()
        shared.undo(said)
        assert not shared.source.is_symlink() and not shared.stable.exists()
        assert running.communicate("\n")[0] == f"{shared.generation}\n"
    (shared.source / "share/new").write_text("since\n")
    shared.run("conda", "gc", "env", "--check", expect=3)
    shared.share()
    assert (shared.stable / "share/new").read_text() == "since\n"
    assert os.readlink(shared.stable) == ".generations/env/0002"


def test_gc_deletes_what_a_share_that_was_taken_back_has_left(shared: Shared) -> None:
    """Not where somebody has removed the link of an environment: the original is not in its place then."""
    said = shared.share().stderr
    shared.stable.unlink()
    assert " conda rollback env" in shared.run("conda", "gc", "env", "--yes", expect=1).stderr
    shared.run("conda", "rollback", "env", "--yes")
    shared.undo(said)
    shared.run("conda", "gc", "--yes")
    assert sorted(path.name for path in shared.generation.parent.iterdir()) == ["uses", "verified"]
    assert run_tool(shared.source).startswith("tool ")


def test_gc_keeps_what_was_shared_where_a_home_has_its_original_again(shared: Shared) -> None:
    """Others may work with the environment, and who has the original changes it."""
    shared.share()
    shared.run("conda", "unlink", "--all", "--yes")
    assert not shared.source.is_symlink()
    (shared.source / "bin/tool").write_text("changed since\n")
    shared.run("conda", "gc", "--keep", "0", "--yes", expect=None)
    assert run_tool(shared.stable) == f"tool -I{shared.stable}/include\n"


def test_attack_a_note_of_a_stranger_makes_no_share(shared: Shared) -> None:
    shared.share()
    shared.source.unlink()
    shared.workshop.install(shared.source)
    kept = f"{shared.source}.sharefs-backup-20200101-000000"
    original = {"path": str(shared.source), "kept": kept, "inode": shared.source.stat().st_ino}
    record = json.loads((shared.generation.parent / "0001.json").read_text()) | {"number": 9, "original": original}
    (shared.generation.parent / "0009").mkdir()
    forged = shared.generation.parent / "0009.json"
    forged.write_text(json.dumps(record))
    os.chown(forged, 12345, 12345)
    assert "is shared already" in shared.share(expect=1).stderr and not shared.source.is_symlink()


def test_a_copy_does_not_keep_others_waiting(shared: Shared) -> None:
    """It takes as long as it is told to; another environment is shared meanwhile."""
    other = shared.workshop.install(shared.envs / "other")
    command = [os.environ["SHAREFS_BIN"], "--config", str(shared.config), "conda", "share", "env", "--yes", "--limit", "100K"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as slow:
        try:
            while not (shared.store / ".generations/env").exists() or not list(shared.generation.parent.glob("new-*/*")):
                assert slow.poll() is None
                time.sleep(0.01)
            shared.run("conda", "share", "other", "--yes", "--wait", "0s")
            assert slow.poll() is None and other.is_symlink()
        finally:
            slow.kill()
