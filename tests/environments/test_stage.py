"""sharefs conda stage: copies of a shared environment on this host's own disk."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from environmentslab.shared import Shared


@pytest.fixture
def staged(shared: Shared) -> Shared:
    """Shared, and nothing is staged yet."""
    shared.stage = shared.place / "stage"
    for above in shared.place.parents:  # copies lie only where nobody else could exchange them
        if above.stat().st_mode & 0o022 and not above.stat().st_mode & 0o1000:
            above.chmod(0o755)
    shared.configure(f"  stage: {shared.stage}\n")
    shared.share()
    return shared


def stage(staged: Shared, *words: str, expect: int = 0) -> str:
    return staged.run("conda", "stage", "env", "--yes", *words, expect=expect).stderr


def prefix(staged: Shared) -> str:
    """Of a command of `conda run`."""
    return staged.run("conda", "run", "env", "python", "-c", "import sys, json; print(sys.prefix)").stdout.strip()


def copies(staged: Shared) -> list[str]:
    return sorted(path.name for path in staged.stage.glob("*/*/env/*"))


def test_the_copy_is_used_and_follows_the_generation(staged: Shared) -> None:
    assert prefix(staged) == str(staged.generation)
    stage(staged)
    assert prefix(staged).startswith(str(staged.stage)) and copies(staged) == ["0001", "0001.complete"]
    assert "is there" in stage(staged)
    staged.run("conda", "update", "--yes", "env", "sh", "-c", "echo new >$CONDA_PREFIX/share/new")
    second = staged.generation.parent / "0002"
    assert prefix(staged) == str(second)  # not of the right generation
    said = stage(staged)
    assert "there already" in said and copies(staged) == ["0002", "0002.complete"]
    if os.geteuid() == 0:  # what has not changed is not copied again
        assert int(said.split(" copied (")[0].rpartition(": ")[2].split()[0]) < 20
    assert (Path(prefix(staged)) / "share/new").read_text() == "new\n"
    differences = subprocess.run(["diff", "-r", "--no-dereference", second, prefix(staged)], capture_output=True, text=True)
    assert differences.stdout + differences.stderr == ""
    stage(staged, "--remove")
    assert prefix(staged) == str(second) and copies(staged) == []


def test_a_copy_that_a_command_works_with_stays(staged: Shared) -> None:
    stage(staged)
    command = [os.environ["SHAREFS_BIN"], "--config", staged.config, "conda", "run", "env", "python", "-c", "print(flush=True); input()"]
    job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert job.stdout
    job.stdout.readline()
    try:
        assert "a command works with it" in stage(staged, "--remove")
        assert copies(staged) == ["0001", "0001.complete"]
    finally:
        job.communicate(b"\n")
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
def test_a_later_generation_needs_room_for_what_has_changed(small: Shared) -> None:
    subprocess.run(["mount", "-o", "remount,size=400m", small.stage], check=True)
    stage(small)
    small.run("conda", "update", "--yes", "env", "sh", "-c", "echo new >$CONDA_PREFIX/share/new")
    status = os.statvfs(small.stage)
    taken = (status.f_blocks - status.f_bfree) >> 8  # MiB, of pages
    size = json.loads(small.run("conda", "generations", "env", "--json").stdout)["generations"][1]["bytes"] >> 20
    subprocess.run(["mount", "-o", f"remount,size={taken + 256 + max(2, size // 2)}m", small.stage], check=True)
    stage(small)
    assert copies(small) == ["0002", "0002.complete"]
    subprocess.run(["mount", "-o", f"remount,size={taken + 255}m", small.stage], check=True)
    small.run("conda", "update", "--yes", "env", "sh", "-c", "echo newer >$CONDA_PREFIX/share/new")
    assert "256 MiB stay free for others" in stage(small, expect=1)


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
    assert "as the directories above the environment on the share" in stage(staged)
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


def test_copies_go_when_the_environment_is_gone(staged: Shared) -> None:
    stage(staged)
    staged.stable.unlink()
    shutil.rmtree(staged.store / ".generations")
    stage(staged, "--remove")
    assert copies(staged) == []


# ---- images ----


def mounted(staged: Shared) -> list[str]:
    """What is mounted below the stage: directory, type and options."""
    fields = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [f"{each[4]} {each[each.index('-') + 1]} {each[5]}" for each in fields if each[4].startswith(f"{staged.stage}/")]


def loops(staged: Shared) -> list[str]:
    """The images that a loop device holds. One that is unmounted goes when udev, which looks at it, has closed it."""
    end = time.monotonic() + 60
    while len(held := images_held(staged)) > len(mounted(staged)) and time.monotonic() < end:
        time.sleep(0.05)
    return held


def images_held(staged: Shared) -> list[str]:
    held = []
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # of another test, and gone meanwhile
            held.append(path.read_text().strip())
    return [path for path in held if path.startswith(f"{staged.stage}/")]


@pytest.fixture
def imaged(staged: Shared) -> Iterator[Shared]:
    staged.configure(f"  stage: {staged.stage}\n  stage_format: squashfs\n")
    shown = staged.run("conda", "stage", "env", "--dry-run")
    if "a directory, not an image: " in shown.stderr:
        pytest.skip(shown.stderr.splitlines()[0])
    yield staged
    for line in reversed(mounted(staged)):
        subprocess.run(["umount", line.split()[0]], check=True)


IMAGE = ["0001", "0001.complete", "0001.squashfs"]


def test_an_image_is_mounted_used_and_replaced(imaged: Shared) -> None:
    stage(imaged)
    used = Path(prefix(imaged))
    assert copies(imaged) == IMAGE and mounted(imaged) == [f"{used} squashfs ro,nosuid,nodev,relatime"]
    assert used.parent.joinpath("0001.squashfs").stat().st_mode & 0o7777 == 0o600  # it holds what not everybody may read
    differences = subprocess.run(["diff", "-r", "--no-dereference", imaged.generation, used], capture_output=True, text=True)
    assert differences.stdout + differences.stderr == ""
    with pytest.raises(OSError, match="Read-only"):
        (used / "new").touch()
    assert "is there" in stage(imaged)
    imaged.run("conda", "update", "--yes", "env", "sh", "-c", "echo new >$CONDA_PREFIX/share/new")
    assert prefix(imaged) == str(imaged.generation.parent / "0002")
    stage(imaged)
    assert (Path(prefix(imaged)) / "share/new").read_text() == "new\n"
    assert copies(imaged) == [name.replace("1", "2") for name in IMAGE]
    assert len(mounted(imaged)) == len(loops(imaged)) == 1
    stage(imaged, "--remove")
    assert copies(imaged) == mounted(imaged) == loops(imaged) == [] and prefix(imaged).endswith("/0002")


def test_after_a_reboot_commands_run_from_the_share_until_the_image_is_mounted_again(imaged: Shared) -> None:
    stage(imaged)
    used = prefix(imaged)
    image = Path(f"{used}.squashfs")
    before = image.stat()
    subprocess.run(["umount", used], check=True)
    assert prefix(imaged) == str(imaged.generation)
    said = stage(imaged)
    assert prefix(imaged) == used and (image.stat().st_ino, image.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    imaged.undo(said)
    assert mounted(imaged) == loops(imaged) == [] and prefix(imaged) == str(imaged.generation)


def test_undo_leaves_an_image_that_is_not_used(imaged: Shared) -> None:
    imaged.undo(stage(imaged))
    assert copies(imaged) == ["0001.squashfs"] and mounted(imaged) == loops(imaged) == []
    assert prefix(imaged) == str(imaged.generation)
    assert stage(imaged, "--format", "directory") and copies(imaged) == ["0001", "0001.complete"] and mounted(imaged) == []
    stage(imaged, "--remove")
    stage(imaged)
    assert copies(imaged) == IMAGE and len(mounted(imaged)) == 1


def test_an_image_that_a_command_works_with_stays(imaged: Shared) -> None:
    stage(imaged)
    command = [os.environ["SHAREFS_BIN"], "--config", imaged.config, "conda", "run", "env", "python", "-c", "print(flush=True); input()"]
    job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert job.stdout
    job.stdout.readline()
    try:
        assert "a command works with it" in stage(imaged, "--remove")
        assert copies(imaged) == IMAGE and len(mounted(imaged)) == 1
    finally:
        job.communicate(b"\n")
    stage(imaged, "--remove")
    assert copies(imaged) == mounted(imaged) == []


def test_an_image_killed_at_any_moment_is_made_by_a_second_run(imaged: Shared) -> None:
    command = [os.environ["SHAREFS_BIN"], "--config", imaged.config, "conda", "stage", "env", "--yes"]
    kills = 0
    for patience in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(patience)
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
        assert Path(prefix(imaged)).is_dir()
    assert kills > 0
    stage(imaged)
    assert copies(imaged) == IMAGE and len(mounted(imaged)) == len(loops(imaged)) == 1
    assert prefix(imaged).startswith(str(imaged.stage))


@pytest.mark.parametrize("form", ["directory", "squashfs"])
def test_requirement_1_killed_at_each_step_of_the_plan(imaged: Shared, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one that replaces the copy of an older generation: at every moment commands run, and a second run finishes."""
    stage(imaged, "--format", form)
    killed = 0
    for number, step in enumerate(f"{step}{after}" for step in range(8) for after in ("", "+")):
        imaged.run("conda", "update", "--yes", "env", "sh", "-c", f"echo {number} >$CONDA_PREFIX/share/number")
        monkeypatch.setenv("SHAREFS_TEST_KILL_AT", step)
        done = imaged.run("conda", "stage", "env", "--yes", "--format", form, expect=None)
        monkeypatch.delenv("SHAREFS_TEST_KILL_AT")
        shared = Path(prefix(imaged))
        assert (shared / "share/number").read_text() == f"{number}\n"
        stage(imaged, "--wait", "30s", "--format", form)
        assert prefix(imaged).startswith(str(imaged.stage)) and len(copies(imaged)) == (3 if form == "squashfs" else 2)
        assert len(mounted(imaged)) == len(loops(imaged)) == (1 if form == "squashfs" else 0)
        if done.returncode == 0:
            break
        assert done.returncode == -9, done
        killed += 1
    assert killed >= 6  # mark, copy, mark of the new one: before and after each


def test_an_image_is_not_made_of_what_has_acls(imaged: Shared) -> None:
    """Its mode shows the mask: with the ACL left out, the owning group would get what somebody else was given."""
    secret = imaged.generation / "share/wide.txt"
    subprocess.run(["setfacl", "-m", "u:65534:r,g::-", secret], check=True)
    said = stage(imaged, "--format", "squashfs", expect=1)
    assert "share/wide.txt: has an ACL" in said and "--format directory" in said
    assert copies(imaged) == [] and prefix(imaged) == str(imaged.generation)
    stage(imaged, "--format", "directory")
    read = subprocess.run(["getfacl", "-cnp", Path(prefix(imaged)) / "share/wide.txt"], capture_output=True, text=True, check=True)
    assert "user:65534:r--" in read.stdout and "group::---" in read.stdout


def test_an_image_that_is_not_the_same_is_not_used(imaged: Shared) -> None:
    """mksquashfs is found in the system's directories only, and what it made is read again."""
    lying = imaged.place / "bin/mksquashfs"
    lying.parent.mkdir()
    other = imaged.place / "other"
    script = f"#!/bin/sh\n[ -d \"$1\" ] || exec {other}/real \"$@\"\ncp -a \"$1\" {other}/tree; echo x >{other}/tree/share/planted; shift; exec {other}/real {other}/tree \"$@\"\n"
    lying.write_text(script)
    lying.chmod(0o755)
    program = shutil.which("mksquashfs", path="/usr/bin:/usr/sbin")
    assert program
    other.mkdir()
    shutil.copy(program, other / "real")
    command = [os.environ["SHAREFS_BIN"], "--config", str(imaged.config), "conda", "stage", "env", "--yes"]
    exchange = ["unshare", "-m", "sh", "-c", f"mount --bind {lying} {program} && exec \"$@\"", "sh"]
    done = subprocess.run([*exchange, *command], capture_output=True, text=True, check=False)
    # The directory by its time, if that is another second; else the file.
    assert done.returncode == 1 and re.search(r"/new-0001\.squashfs: share(/planted)? is not as in", done.stderr), done.stderr
    assert prefix(imaged) == str(imaged.generation) and mounted(imaged) == loops(imaged) == []
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PATH": f"{lying.parent}:{os.environ['PATH']}"})
    assert copies(imaged) == IMAGE and not (Path(prefix(imaged)) / "share/planted").exists()


def test_an_image_that_others_could_have_written_is_not_mounted(imaged: Shared) -> None:
    stage(imaged)
    used = prefix(imaged)
    subprocess.run(["umount", used], check=True)
    os.chown(f"{used}.squashfs", 65534, 65534)
    assert "no file that only root can write" in stage(imaged, expect=4)
    assert mounted(imaged) == loops(imaged) == [] and prefix(imaged) == str(imaged.generation)


def test_a_user_other_than_root_gets_a_directory(staged: Shared) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can mount an image")
    assert "only root can mount one" in stage(staged, "--format", "squashfs")
    assert copies(staged) == ["0001", "0001.complete"]
