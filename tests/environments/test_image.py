"""Images of generations: made beside them, by share, update and image, and taken away by gc."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from environmentslab.shared import Shared


def image_of(shared: Shared, number: int = 1) -> Path:
    return shared.generation.parent / f"{number:04}.sqfs"


def beside(shared: Shared) -> list[str]:
    return sorted(path.name for path in shared.generation.parent.iterdir() if ".sqfs" in path.name)


def note_of(image: Path) -> dict[str, object]:
    note = json.loads(Path(f"{image}.json").read_text())
    assert isinstance(note, dict)
    return note


def unpacked(image: Path, to: Path) -> Path:
    subprocess.run(["unsquashfs", "-q", "-n", "-f", "-d", to, image], check=True, capture_output=True)
    return to


def differences(one: Path, other: Path) -> list[str]:
    done = subprocess.run(["diff", "-r", "--no-dereference", one, other], capture_output=True, text=True)
    return (done.stdout + done.stderr).splitlines()


def modes(tree: Path) -> dict[str, tuple[int, int, int]]:
    found = {}
    for path in [tree, *tree.rglob("*")]:
        status = path.lstat()
        found[str(path.relative_to(tree))] = (status.st_mode, status.st_gid, int(status.st_mtime) if path.is_file() else 0)
    return found


def check(image: Path, generation: Path, to: Path) -> None:
    """The image is the one that its note says, and has what the generation has."""
    note = note_of(image)
    content = image.read_bytes()
    assert note["sha256"] == hashlib.sha256(content).hexdigest() and note["bytes"] == len(content)
    assert note["created"] == json.loads(Path(f"{generation}.json").read_text())["created"]
    tree = unpacked(image, to)
    assert differences(generation, tree) == []
    assert modes(generation) == modes(tree)
    assert list(tree.glob("lib/python3.*/EXTERNALLY-MANAGED"))
    directory, file = generation.stat(), image.stat()
    assert file.st_mode & 0o777 == directory.st_mode & 0o444 and file.st_gid == directory.st_gid


def test_share_makes_the_image_and_update_that_of_the_next(shared: Shared, tmp_path: Path) -> None:
    shared.share()
    assert beside(shared) == ["0001.sqfs", "0001.sqfs.json"]
    check(image_of(shared), shared.generation, tmp_path / "first")
    before = image_of(shared).read_bytes()
    shared.run("conda", "update", "--yes", "env", "sh", "-c", "echo new >$CONDA_PREFIX/share/new")
    assert beside(shared) == ["0001.sqfs", "0001.sqfs.json", "0002.sqfs", "0002.sqfs.json"]
    check(image_of(shared, 2), shared.generation.parent / "0002", tmp_path / "second")
    assert image_of(shared).read_bytes() == before
    listed = json.loads(shared.run("conda", "generations", "env", "--json").stdout)["generations"]
    assert [one["image"] for one in listed] == [len(before), image_of(shared, 2).stat().st_size]
    assert json.loads(shared.run("conda", "list", "--json").stdout)["environments"][0]["image"] == listed[1]["image"]


def contents(image: Path, directory: Path) -> dict[str, tuple[str, int, int, object]]:
    """All that an image holds. (mksquashfs 4.5.1 orders the blocks of one tar differently from run to run.)"""
    subprocess.run(["unsquashfs", "-q", "-n", "-d", directory, image], check=True, stdout=subprocess.DEVNULL)
    held = {}
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        held[str(path.relative_to(directory))] = (oct(status.st_mode), status.st_uid, int(status.st_mtime), content)
    return held


def test_an_image_holds_the_same_wherever_its_files_are_read(shared: Shared, tmp_path: Path) -> None:
    """What share makes from the original holds what is made from the generation itself."""
    shared.share()
    image = image_of(shared)
    made = contents(image, tmp_path / "of the original")
    image.unlink()
    Path(f"{image}.json").unlink()
    shared.run("conda", "image", "env", "--yes")
    assert len(made) > 100 and contents(image, tmp_path / "of the generation") == made


def test_an_image_is_made_once_and_only_where_it_is_wanted(shared: Shared) -> None:
    shared.configure("  image: off\n")
    shared.share()
    assert beside(shared) == []
    assert shared.run("conda", "image", "env", "--check", expect=3) and beside(shared) == []
    shared.run("conda", "image", "env", "--yes")
    assert beside(shared) == ["0001.sqfs", "0001.sqfs.json"]
    inode = image_of(shared).stat().st_ino
    assert "has an image" in shared.run("conda", "image", "env", "--yes").stderr
    assert image_of(shared).stat().st_ino == inode


def test_no_stale_compiled_python_and_no_pip_into_homes(shared: Shared, tmp_path: Path) -> None:
    (shared.source / "lib/python3.11/EXTERNALLY-MANAGED").unlink(missing_ok=True)
    shared.configure("  protect: false\n")
    shared.share()
    site = next(shared.generation.glob("lib/python3.*/site-packages"))
    package = site / "stalepackage"
    package.mkdir()
    for name in ("fresh", "stale"):
        (package / f"{name}.py").write_text("x = 1\n")
        subprocess.run(["python3", "-m", "compileall", "-q", package / f"{name}.py"], check=True)
    os.utime(package / "stale.py", (1_000_000_000, 1_000_000_000))
    image_of(shared).unlink()
    shared.run("conda", "image", "env", "--yes")
    tree = unpacked(image_of(shared), tmp_path / "tree")
    compiled = [path.name.split(".")[0] for path in tree.rglob("stalepackage/__pycache__/*")]
    assert compiled == ["fresh"]
    assert len(list(tree.glob("lib/python3.*/EXTERNALLY-MANAGED"))) == 1


def test_gc_takes_the_image_with_its_generation(shared: Shared) -> None:
    shared.share()
    shared.run("conda", "update", "--yes", "env", "sh", "-c", "echo new >$CONDA_PREFIX/share/new")
    (shared.generation.parent / "0099.sqfs").write_bytes(b"hsqs, of a generation that is gone")
    (shared.generation.parent / "new-0099.abcdef.sqfs").write_bytes(b"years of work of somebody")
    shared.run("conda", "gc", "env", "--keep", "1", "--yes")
    assert beside(shared) == ["0002.sqfs", "0002.sqfs.json", "new-0099.abcdef.sqfs"]
    assert not shared.generation.exists()


@pytest.mark.parametrize("what", ["no mksquashfs", "mksquashfs fails"])
def test_a_generation_without_an_image_is_one_all_the_same(shared: Shared, tmp_path: Path, what: str) -> None:
    programs = tmp_path / "usr/bin"
    programs.mkdir(parents=True)
    mask = programs / "mksquashfs"
    mask.write_text("#!/bin/sh\necho the disk is on fire >&2\nexit 1\n")
    mask.chmod(0o755 if what == "mksquashfs fails" else 0o644)
    script = f"mount --bind {mask} $(command -v mksquashfs) && exec \"$@\""
    command = ["unshare", "--mount", "sh", "-c", script, "sh", os.environ["SHAREFS_BIN"], "--config", shared.config]
    done = subprocess.run([*command, "conda", "share", "env", "--yes"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "it gets no image: " in done.stderr and beside(shared) == [] and shared.stable.is_symlink()
    assert "sharefs conda image env" in done.stderr


@pytest.mark.parametrize("name", ["0001.sqfs", "0001.sqfs.json"])
@pytest.mark.parametrize("what", ["cut off", "damaged", "of another user", "a link", "a FIFO"])
def test_what_is_no_good_image_is_made_anew(shared: Shared, tmp_path: Path, name: str, what: str) -> None:
    """As SF536 says: `sharefs conda image` is the cure of each."""
    shared.share()
    path, elsewhere = shared.generation.with_name(name), tmp_path / "elsewhere"
    elsewhere.write_text("of somebody")
    if what == "of another user":
        if os.geteuid() != 0:
            pytest.skip("only root gives files to others")
        os.chown(path, 4321, 4321)
    elif what in ("cut off", "damaged"):
        content = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(content[:20] if what == "cut off" else content.replace(content[-30:-20], b"0123456789"))
    else:
        path.unlink()
        path.symlink_to(elsewhere) if what == "a link" else os.mkfifo(path)
    shared.run("conda", "image", "env", "--yes")
    check(image_of(shared), shared.generation, tmp_path / "tree")
    assert elsewhere.read_text() == "of somebody" and len(beside(shared)) == 2
    assert "the present generation has an image" in shared.run("conda", "image", "env", "--yes").stderr


def test_a_directory_in_the_place_of_an_image_is_named_and_stays(shared: Shared) -> None:
    shared.share()
    image_of(shared).unlink()
    image_of(shared).mkdir()
    (image_of(shared) / "work").write_text("of somebody")
    said = shared.run("conda", "image", "env", "--yes", expect=1).stderr
    assert "0001.sqfs is a directory" in said and "`mv " in said, said
    assert (image_of(shared) / "work").read_text() == "of somebody"


def test_attack_a_link_takes_the_name_of_the_image_while_it_is_made(shared: Shared, tmp_path: Path) -> None:
    """Whoever may make names in the store could have done so between two calls."""
    shared.configure("  image: off\n")
    shared.share()
    shared.configure()
    victim = tmp_path / "victim"
    victim.write_text("of root")
    real, program = tmp_path / "real", tmp_path / "mksquashfs"
    shutil.copy(shutil.which("mksquashfs") or "", real)
    beside = f"{shared.generation.parent}/new-*.sqfs"
    program.write_text(f'#!/bin/sh\nfor file in {beside}; do mv "$file" "$file.away" && ln -s {victim} "$file"; done\nexec {real} "$@"\n')
    program.chmod(0o755)
    script = f"mount --bind {program} $(command -v mksquashfs) && exec \"$@\""
    command = ["unshare", "--mount", "sh", "-c", script, "sh", os.environ["SHAREFS_BIN"], "--config", shared.config]
    done = subprocess.run([*command, "conda", "image", "env", "--yes"], capture_output=True, text=True)
    assert victim.read_text() == "of root", done.stderr


def test_killed_at_any_moment_nothing_is_half_an_image(shared: Shared, tmp_path: Path) -> None:
    shared.configure("  image: off\n")
    shared.share()
    shared.configure()
    command = [os.environ["SHAREFS_BIN"], "--config", shared.config, "conda", "image", "env", "--yes"]
    for patience in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 60):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if image_of(shared).exists():
            break
    check(image_of(shared), shared.generation, tmp_path / "tree")
    shared.run("conda", "gc", "env", "--yes")
    end = time.monotonic() + 30
    while len(beside(shared)) != 2 and time.monotonic() < end:  # a killed command's mksquashfs may write its last
        shared.run("conda", "gc", "env", "--yes")
    assert beside(shared) == ["0001.sqfs", "0001.sqfs.json"]


def test_two_at_once_make_one(shared: Shared) -> None:
    shared.configure("  image: off\n")
    shared.share()
    command = [os.environ["SHAREFS_BIN"], "--config", shared.config, "conda", "image", "env", "--yes", "--wait", "60s"]
    both = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    ends = [process.communicate(timeout=120)[1] for process in both]
    assert beside(shared) == ["0001.sqfs", "0001.sqfs.json"], ends
    assert 0 in [process.returncode for process in both]
