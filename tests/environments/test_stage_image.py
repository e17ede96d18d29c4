"""sharefs conda stage: a generation by its image, which is copied and mounted."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from environmentslab.environment import killed_at
from environmentslab.shared import Shared
from environmentslab.staging import copies, make_image, prefix, stage, staged_mounts, unmount_all

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts images")
ONE = ["0001", "0001.complete", "0001.sqfs"]


@pytest.fixture
def imaged(staged: Shared) -> Iterator[Shared]:
    """A store whose present generation has an image."""
    with_images(staged)
    yield staged
    unmount_all(staged)


def with_images(staged: Shared) -> None:
    make_image(staged.generation)
    staged.configure(f"  stage: {staged.stage}\n")


def update(imaged: Shared, text: str) -> Path:
    imaged.run("conda", "update", "--yes", "env", "sh", "-c", f"echo {text} >$CONDA_PREFIX/share/new")
    generation = imaged.stable.resolve()
    make_image(generation)
    return generation


def copy_of(imaged: Shared, name: str = "0001.sqfs") -> Path:
    return next(imaged.stage.glob(f"0/*/env/{name}"))


def test_the_image_is_copied_mounted_and_used(imaged: Shared) -> None:
    shown = imaged.run("conda", "stage", "env", "--dry-run").stdout
    assert "0001.sqfs" in shown and "mount " in shown and not imaged.stage.exists()
    stage(imaged)
    assert copies(imaged) == ONE and staged_mounts(imaged) == ["0001"]
    assert prefix(imaged).startswith(f"{imaged.stage}/0/")
    options = subprocess.run(["findmnt", "-no", "OPTIONS", prefix(imaged)], capture_output=True, text=True, check=True).stdout
    assert {"ro", "nosuid", "nodev"} <= set(options.strip().split(","))
    differences = subprocess.run(["diff", "-r", "--no-dereference", imaged.generation, prefix(imaged)], capture_output=True, text=True)
    assert differences.stdout + differences.stderr == ""
    assert copy_of(imaged).stat().st_mode & 0o7777 == 0o600
    assert "is there" in stage(imaged) and staged_mounts(imaged) == ["0001"]
    (listed,) = json.loads(imaged.run("stage", "--list", "--json").stdout)["staged"]
    assert listed["path"] == str(imaged.stable) and listed["copy"] == prefix(imaged) and listed["state"] == "mounted"


def test_a_later_generation_has_its_own_mount_and_the_older_one_goes(imaged: Shared) -> None:
    stage(imaged)
    update(imaged, "second")
    assert prefix(imaged) == str(imaged.stable.resolve())  # not of the right generation
    stage(imaged)
    assert copies(imaged) == ["0002", "0002.complete", "0002.sqfs"] and staged_mounts(imaged) == ["0002"]
    assert (Path(prefix(imaged)) / "share/new").read_text() == "second\n"
    stage(imaged, "--remove")
    assert copies(imaged) == [] and staged_mounts(imaged) == []
    assert "nothing of it is staged" in stage(imaged, "--remove")


def test_what_a_command_works_with_stays(imaged: Shared) -> None:
    stage(imaged)
    command = [os.environ["SHAREFS_BIN"], "--config", imaged.config, "conda", "run", "env", "python", "-c"]
    program = "print(flush=True); input(); import this; print(open(this.__spec__.origin).name)"
    job = subprocess.Popen([*command, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert job.stdout
    job.stdout.readline()
    try:
        update(imaged, "second")
        assert "a command works with it" in stage(imaged)
        assert staged_mounts(imaged) == ["0001", "0002"] and prefix(imaged).endswith("/0002")
    finally:
        said = job.communicate("\n")[0]
    assert "/0001/" in said  # what it imports late is of its own generation
    assert "delete" in stage(imaged)
    assert copies(imaged) == ["0002", "0002.complete", "0002.sqfs"] and staged_mounts(imaged) == ["0002"]


def test_undo_unmounts_it_and_leaves_the_image(imaged: Shared) -> None:
    said = stage(imaged)
    imaged.undo(said)
    assert copies(imaged) == ["0001.sqfs"] and staged_mounts(imaged) == [] and prefix(imaged) == str(imaged.generation)
    assert " 0 B copied" in stage(imaged) and staged_mounts(imaged) == ["0001"]


def test_an_image_that_was_deleted_under_its_mount_comes_again(imaged: Shared) -> None:
    """Somebody has emptied /var/cache."""
    stage(imaged)
    for one in copies(imaged):
        if not (copy_of(imaged).parent / one).is_dir():
            (copy_of(imaged).parent / one).unlink()
    assert copies(imaged) == ["0001"] and staged_mounts(imaged) == ["0001"]
    stage(imaged)
    assert copies(imaged) == ["0001", "0001.complete", "0001.sqfs"] and staged_mounts(imaged) == ["0001"]
    assert prefix(imaged) != str(imaged.generation)


def test_undo_mounts_no_image_that_was_removed(imaged: Shared) -> None:
    stage(imaged)
    stage(imaged, "--remove")
    (removal, *_) = json.loads(imaged.run("undo", "--list", "--json").stdout)["entries"]
    said = imaged.run("undo", removal["id"], "--yes", expect=1).stderr
    assert "can be taken back" in said and "cannot be undone: delete" in said
    assert copies(imaged) == [] and staged_mounts(imaged) == []


@pytest.mark.parametrize("what", ["damaged", "shorter", "gone meanwhile"])
def test_an_image_with_another_content_is_not_mounted(imaged: Shared, what: str) -> None:
    image = Path(f"{imaged.generation}.sqfs")
    content = bytearray(image.read_bytes())
    if what == "damaged":
        content[len(content) // 2] ^= 1
        image.write_bytes(content)
        said = stage(imaged, expect=1)
        assert f"{image}: its content is not the one that is noted of it" in said
    elif what == "shorter":
        image.write_bytes(content[:-4096])
        assert "there is no image of it: what has its name is damaged" in stage(imaged)  # its note is of another one
        verified = imaged.run("conda", "verify", "env", expect=1).stderr
        assert "SF536" in verified and str(image) in verified, verified
        assert prefix(imaged).startswith(f"{imaged.stage}/0/") and copies(imaged) == ONE[:2]
        return
    else:
        image.unlink()
        Path(f"{image}.json").unlink()
        stage(imaged)
        return
    assert copies(imaged) == [] and staged_mounts(imaged) == [] and prefix(imaged) == str(imaged.generation)
    assert not list(imaged.stage.glob("0/*/env/.*"))


@pytest.mark.parametrize("whose", ["image", "note", "mode"])
def test_root_mounts_no_image_that_others_could_have_written(imaged: Shared, whose: str) -> None:
    image = Path(f"{imaged.generation}.sqfs")
    if whose == "mode":
        image.chmod(0o664)
    else:
        os.chown(image if whose == "image" else f"{image}.json", 65534, 65534)
    assert "root mounts no image" in stage(imaged)
    assert copies(imaged) == ONE[:2] and staged_mounts(imaged) == []
    assert prefix(imaged).startswith(f"{imaged.stage}/0/")


def test_what_was_staged_as_files_stays_so_and_the_next_one_is_an_image(staged: Shared) -> None:
    assert "file by file: `conda.image` is off" in stage(staged)
    with_images(staged)
    try:
        assert "is there" in stage(staged) and copies(staged) == ONE[:2]
        update(staged, "second")
        stage(staged)
        assert copies(staged) == ["0002", "0002.complete", "0002.sqfs"] and staged_mounts(staged) == ["0002"]
    finally:
        unmount_all(staged)


def test_killed_at_each_step_commands_run_and_a_second_run_finishes(imaged: Shared) -> None:
    """Of one that replaces the image of an older generation."""
    stage(imaged)
    killed = 0
    for number, step in enumerate(f"{step}{after}" for step in range(10) for after in ("", "+")):
        update(imaged, str(number))
        with killed_at(step):
            done = imaged.run("conda", "stage", "env", "--yes", expect=None)
        assert (Path(prefix(imaged)) / "share/new").read_text() == f"{number}\n"
        stage(imaged, "--wait", "30s")
        present = imaged.stable.resolve().name
        assert copies(imaged) == [present, f"{present}.complete", f"{present}.sqfs"] and staged_mounts(imaged) == [present]
        if done.returncode == 0:
            break
        assert done.returncode == -9, done
        killed += 1
    assert killed >= 12


def test_killed_while_it_copies_it_goes_on_at_its_offset(imaged: Shared) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAREFS_TEST_KILL_AT_TREE", "3+")
        assert imaged.run("conda", "stage", "env", "--yes", expect=None).returncode == -9
    part = copy_of(imaged, ".0001.sqfs.part")
    assert part.stat().st_size > 0 and prefix(imaged) == str(imaged.generation)
    said = stage(imaged, "--wait", "30s")
    assert " 0 B there already" not in said and staged_mounts(imaged) == ["0001"] and copies(imaged) == ONE


def test_two_at_once(imaged: Shared) -> None:
    command = [os.environ["SHAREFS_BIN"], "--config", imaged.config, "conda", "stage", "env", "--yes", "--wait", "60s"]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [one.communicate(timeout=120)[1] for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert copies(imaged) == ONE and staged_mounts(imaged) == ["0001"]


def test_a_full_or_a_read_only_disk(imaged: Shared) -> None:
    imaged.stage.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "none", imaged.stage], check=True)
    try:
        assert "commands run from the share" in stage(imaged, expect=1)
        subprocess.run(["mount", "-o", "remount,ro,size=1g", imaged.stage], check=True)
        assert "Read-only file system" in stage(imaged, expect=1)
        assert copies(imaged) == [] and prefix(imaged) == str(imaged.generation)
    finally:
        subprocess.run(["umount", imaged.stage], check=True)


def in_own_mounts(imaged: Shared, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """In a mount namespace of its own, after the script."""
    command = [os.environ["SHAREFS_BIN"], "--config", str(imaged.config), "conda", *words]
    return subprocess.run(["unshare", "-m", "sh", "-ec", f'{script}\nexec "$@"', "sh", *command], capture_output=True, text=True, timeout=300)


def test_without_a_loop_device_it_is_said_and_commands_run_from_the_share(imaged: Shared) -> None:
    """As in a container, or where all are used up."""
    said = in_own_mounts(imaged, "mount --bind /dev/null /dev/loop-control", "stage", "env", "--yes")
    assert said.returncode == 4 and "no loop device can be had" in said.stderr, said
    assert copies(imaged) == ["0001", "0001.sqfs"] and prefix(imaged) == str(imaged.generation)
    assert " 0 B copied" in stage(imaged) and staged_mounts(imaged) == ["0001"]


@pytest.mark.parametrize("module, file", [("squashfs", "/proc/filesystems"), ("loop", "/proc/devices")])
def test_a_kernel_that_cannot_gets_files_and_says_so_once(imaged: Shared, tmp_path: Path, module: str, file: str) -> None:
    (tmp_path / "list").write_text("".join(line for line in Path(file).read_text().splitlines(True) if module not in line.split()))
    kernel = f'mount --bind {tmp_path}/list {file}; mount --bind /bin/false "$(readlink -f "$(command -v modprobe)")"'
    said = in_own_mounts(imaged, kernel, "stage", "env", "--yes")
    assert said.returncode == 0 and said.stderr.count(f"this kernel has no {module}") == 1, said
    assert copies(imaged) == ONE[:2] and staged_mounts(imaged) == [] and prefix(imaged).startswith(f"{imaged.stage}/0/")
    again = in_own_mounts(imaged, kernel, "stage", "env", "--yes")
    assert "is there" in again.stderr and "kernel" not in again.stderr, again


def test_a_disk_that_runs_no_programs_takes_images_only(imaged: Shared) -> None:
    imaged.stage.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g,mode=755,noexec", "none", imaged.stage], check=True)
    try:
        imaged.configure(f"  stage: {imaged.stage}\n  image: off\n")
        assert "is mounted noexec: no program of a copy would start there" in stage(imaged, expect=2)
        assert copies(imaged) == [] and prefix(imaged) == str(imaged.generation)
        imaged.configure(f"  stage: {imaged.stage}\n")
        stage(imaged)
        assert prefix(imaged).startswith(f"{imaged.stage}/0/")
        stage(imaged, "--remove")
    finally:
        subprocess.run(["umount", imaged.stage], check=True)


def test_no_loop_device_is_left_over(imaged: Shared) -> None:
    """Not even one that is bound to a file that is gone."""
    stage(imaged)
    update(imaged, "second")
    stage(imaged)
    stage(imaged, "--remove")
    left = [path.read_text().strip() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    assert not [one for one in left if one.startswith(str(imaged.stage))]


def test_what_is_not_mounted_is_said_and_mounted_again_without_the_share(imaged: Shared) -> None:
    stage(imaged)
    unmount_all(imaged)  # as a boot leaves it
    assert prefix(imaged) == str(imaged.generation)
    assert "SF535" in imaged.run("status", expect=None).stderr
    away = imaged.store.rename(imaged.store.with_name("away"))
    for cure in (["conda", "stage", "--mount"], ["mount", "--all"], ["up"]):
        assert imaged.run(*cure, "--check", expect=3)
        imaged.run(*cure, "--yes", expect=None)  # `up` misses the store
        assert staged_mounts(imaged) == ["0001"], cure
        unmount_all(imaged)
    imaged.run("watch", "--once", expect=None)
    assert staged_mounts(imaged) == ["0001"]
    away.rename(imaged.store)
    assert prefix(imaged).startswith(f"{imaged.stage}/0/")
    assert "all staged images are mounted" in imaged.run("conda", "stage", "--mount").stderr
    assert "SF535" not in imaged.run("status", expect=None).stderr
    imaged.run("umount", "--all", "--yes")
    assert staged_mounts(imaged) == [] and copies(imaged) == ONE
    imaged.run("mount", "--all", "--yes")
    imaged.run("down", "--yes")
    assert staged_mounts(imaged) == []


def test_all_environments(imaged: Shared) -> None:
    assert "env:" in imaged.run("conda", "stage", "--all", "--yes").stderr and staged_mounts(imaged) == ["0001"]
    assert imaged.run("conda", "stage", "--all", "--check").returncode == 0
    imaged.run("conda", "stage", "--all", "env", expect=2)
    imaged.run("conda", "stage", expect=2)


def test_a_copy_is_good_when_the_image_on_the_share_is_made_anew(imaged: Shared) -> None:
    """mksquashfs orders its blocks as it likes, so that the new one has another checksum."""
    stage(imaged)
    image = Path(f"{imaged.generation}.sqfs")
    image.unlink()
    imaged.run("conda", "image", "env", "--yes")
    with image.open("ab") as file:  # surely another one
        file.write(bytes(4096))
    note = json.loads(Path(f"{image}.json").read_text())
    content = image.read_bytes()
    Path(f"{image}.json").write_text(json.dumps(note | {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}))
    assert imaged.run("conda", "verify", "env").stderr.count("as it was made") == 2
    copy = copy_of(imaged)
    with copy.open("r+b") as file:
        file.seek(100)
        file.write(b"damaged")
    assert "SF536" in imaged.run("conda", "verify", "env", expect=1).stderr


def test_a_damaged_image_on_this_disk_is_no_environment(imaged: Shared) -> None:
    """Its superblock is gone: the mount fails, is named, and commands run from the share."""
    stage(imaged)
    unmount_all(imaged)
    image = copy_of(imaged)
    with image.open("r+b") as file:
        file.write(bytes(4096))
    assert str(image) in imaged.run("conda", "stage", "--mount", "--yes", expect=1).stderr
    assert prefix(imaged) == str(imaged.generation)
    stage(imaged, "--remove")
    stage(imaged)
    assert staged_mounts(imaged) == ["0001"]


@pytest.mark.parametrize("what", ["a byte", "the end"])
def test_an_image_that_was_written_into_is_named_before_it_is_mounted_and_comes_again(imaged: Shared, what: str) -> None:
    """squashfs mounts most of what has another byte, and programs would read it."""
    stage(imaged)
    unmount_all(imaged)
    image = copy_of(imaged)
    good = image.read_bytes()
    with image.open("r+b") as file:
        if what == "the end":
            file.truncate(len(good) - 4096)
        else:
            file.seek(len(good) // 2)
            file.write(bytes([good[len(good) // 2] ^ 1]))
    for command, code in ((["conda", "stage", "--mount", "--yes"], 1), (["mount", "--all", "--yes"], 0)):
        said = imaged.run(*command, expect=code).stderr
        assert "SF536" in said and str(image) in said and " conda stage env` brings it again" in said, said
        assert staged_mounts(imaged) == [] and prefix(imaged) == str(imaged.generation)
    stage(imaged)
    assert image.read_bytes() == good and staged_mounts(imaged) == ["0001"] and copies(imaged) == ONE


def test_an_image_that_was_only_touched_is_mounted(imaged: Shared) -> None:
    stage(imaged)
    unmount_all(imaged)
    os.utime(copy_of(imaged))
    imaged.run("conda", "stage", "--mount", "--yes")
    assert staged_mounts(imaged) == ["0001"]


def test_a_kernel_that_can_no_more_gets_files_in_place_of_a_staged_image(imaged: Shared, tmp_path: Path) -> None:
    stage(imaged)
    unmount_all(imaged)
    (tmp_path / "list").write_text("".join(line for line in Path("/proc/filesystems").read_text().splitlines(True) if "squashfs" not in line))
    kernel = f'mount --bind {tmp_path}/list /proc/filesystems; mount --bind /bin/false "$(readlink -f "$(command -v modprobe)")"'
    said = in_own_mounts(imaged, kernel, "stage", "env", "--yes")
    assert said.returncode == 0 and "this kernel has no squashfs" in said.stderr, said
    assert copies(imaged) == ONE[:2] and prefix(imaged).startswith(f"{imaged.stage}/0/")
