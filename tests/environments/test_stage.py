"""sharefs conda stage: copies of a shared environment on this host's own disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from environmentslab.environment import killed_at
from environmentslab.shared import Shared
from environmentslab.staging import copies, prefix, stage
from environmentslab.waiting import waiting


def test_the_copy_is_used_and_follows_the_generation(staged: Shared) -> None:
    assert prefix(staged) == str(staged.generation)
    stage(staged)
    assert prefix(staged).startswith(str(staged.stage)) and copies(staged) == ["0001", "0001.complete"]
    assert "is there" in stage(staged)
    staged.run("conda", "update", "--yes", "env", "sh", "-c", "echo new >$CONDA_PREFIX/share/new")
    second = staged.generation.parent / "0002"
    assert prefix(staged) == str(second)  # not of the right generation
    assert " copied (" in stage(staged) and copies(staged) == ["0002", "0002.complete"]
    assert (Path(prefix(staged)) / "share/new").read_text() == "new\n"
    differences = subprocess.run(["diff", "-r", "--no-dereference", second, prefix(staged)], capture_output=True, text=True)
    assert differences.stdout + differences.stderr == ""
    stage(staged, "--remove")
    assert prefix(staged) == str(second) and copies(staged) == []


def test_a_copy_that_a_command_works_with_stays(staged: Shared) -> None:
    stage(staged)
    with waiting(os.environ["SHAREFS_BIN"], "--config", staged.config, "conda", "run", "env", "python"):
        assert "a command works with it" in stage(staged, "--remove")
        assert copies(staged) == ["0001", "0001.complete"]
    stage(staged, "--remove")
    assert copies(staged) == []


def test_killed_at_any_moment_commands_run_and_a_second_run_finishes(staged: Shared) -> None:
    command = [os.environ["SHAREFS_BIN"], "--config", staged.config, "conda", "stage", "env", "--yes"]
    kills = 0
    for patience in (0.05, 0.1, 0.15, 0.2, 0.3, 0.5):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(patience)
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
        assert Path(prefix(staged)).is_dir()
    assert kills > 0
    stage(staged)
    assert prefix(staged).startswith(str(staged.stage)) and copies(staged) == ["0001", "0001.complete"]
    differences = subprocess.run(["diff", "-r", "--no-dereference", staged.generation, prefix(staged)], capture_output=True, text=True)
    assert differences.stdout + differences.stderr == ""


@pytest.fixture
def small(staged: Shared) -> Iterator[Shared]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    staged.stage.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "none", staged.stage], check=True)
    yield staged
    subprocess.run(["umount", staged.stage], check=True)


def test_a_node_whose_disk_is_full_runs_from_the_share_and_says_so(small: Shared) -> None:
    assert "commands run from the share" in stage(small, expect=1)
    assert prefix(small) == str(small.generation)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's copies share files")
def test_a_later_generation_needs_room_beside_the_one_that_is_staged(small: Shared) -> None:
    subprocess.run(["mount", "-o", "remount,size=400m", small.stage], check=True)
    stage(small)
    small.run("conda", "update", "--yes", "env", "sh", "-c", "echo new >$CONDA_PREFIX/share/new")
    status = os.statvfs(small.stage)
    taken = (status.f_blocks - status.f_bfree) >> 8  # MiB, of pages
    size = json.loads(small.run("conda", "generations", "env", "--json").stdout)["generations"][1]["bytes"] >> 20
    subprocess.run(["mount", "-o", f"remount,size={taken + 256 + size // 2}m", small.stage], check=True)
    assert "256 MiB stay free for others" in stage(small, expect=1)
    assert copies(small) == ["0001", "0001.complete"]
    subprocess.run(["mount", "-o", f"remount,size={taken + 256 + 2 * size + 8}m", small.stage], check=True)
    stage(small)
    assert copies(small) == ["0002", "0002.complete"]


def test_a_copy_that_somebody_else_made_is_not_run(staged: Shared) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can act as another user")
    stage(staged)
    for path in staged.stage.rglob("*"):
        os.lchown(path, 65534, 65534)
    assert prefix(staged) == str(staged.generation)


def test_a_copy_lets_in_nobody_whom_a_directory_above_the_store_keeps_out(staged: Shared) -> None:
    assert [path for path in staged.generation.parents if not path.stat().st_mode & 0o001]  # pytest's own is 0700
    stage(staged)
    directory = Path(prefix(staged)).parent
    assert directory.stat().st_mode & 0o7777 == 0o700
    directory.chmod(0o755)
    assert "as the directories above it on the share" in stage(staged)
    assert directory.stat().st_mode & 0o7777 == 0o700 and prefix(staged).startswith(str(staged.stage))


def test_it_is_a_plan_with_an_undo(staged: Shared) -> None:
    shown = staged.run("conda", "stage", "env", "--dry-run").stdout
    assert "0001.complete" in shown and "are copied from" in shown
    assert staged.run("conda", "stage", "env", "--check", expect=3) and not staged.stage.exists()
    assert "no terminal" in staged.run("conda", "stage", "env", expect=2).stderr and not staged.stage.exists()
    said = stage(staged)
    assert prefix(staged).startswith(str(staged.stage))
    staged.undo(said)
    assert prefix(staged) == str(staged.generation) and copies(staged) == ["0001"]
    assert " 0 files copied" in stage(staged) and prefix(staged).startswith(str(staged.stage))
    assert staged.run("conda", "stage", "env", "--remove", "--check", expect=3) and copies(staged) == ["0001", "0001.complete"]
    stage(staged, "--remove")
    assert copies(staged) == [] and "nothing of it is staged" in stage(staged, "--remove")
    (removal, *_) = json.loads(staged.run("undo", "--list", "--json").stdout)["entries"]
    assert "can be taken back" in staged.run("undo", removal["id"], "--yes", expect=1).stderr
    assert copies(staged) == []  # no mark either of what was deleted


def test_copies_go_when_the_environment_is_gone(staged: Shared) -> None:
    stage(staged)
    staged.stable.unlink()
    shutil.rmtree(staged.store / ".generations")
    stage(staged, "--remove")
    assert copies(staged) == []


def test_requirement_1_killed_at_each_step_of_the_plan(staged: Shared) -> None:
    """Of one that replaces the copy of an older generation: at every moment commands run, and a second run finishes."""
    stage(staged)
    killed = 0
    for number, step in enumerate(f"{step}{after}" for step in range(8) for after in ("", "+")):
        staged.run("conda", "update", "--yes", "env", "sh", "-c", f"echo {number} >$CONDA_PREFIX/share/number")
        with killed_at(step):
            done = staged.run("conda", "stage", "env", "--yes", expect=None)
        shared = Path(prefix(staged))
        assert (shared / "share/number").read_text() == f"{number}\n"
        stage(staged, "--wait", "30s")
        assert prefix(staged).startswith(str(staged.stage)) and len(copies(staged)) == 2
        if done.returncode == 0:
            break
        assert done.returncode == -9, done
        killed += 1
    assert killed >= 6  # mark, copy, mark of the new one: before and after each


def test_a_generation_that_is_deleted_while_it_is_copied_is_named(staged: Shared) -> None:
    """`gc` knows of no copy that is being made: the present generation is another one by then."""
    command = [os.environ["SHAREFS_BIN"], "--config", staged.config, "conda", "stage", "env", "--yes", "--limit", "1M"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as job:
        while job.poll() is None and not list(staged.stage.glob("*/*/env/0001/*")):
            time.sleep(0.05)
        shutil.rmtree(staged.generation)
        said = job.communicate(timeout=120)[1]
    assert job.returncode == 1 and f"{staged.generation} was deleted while it was copied" in said, said
    assert copies(staged) == ["0001"]
