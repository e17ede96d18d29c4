"""sharefs conda relocate, on environments that rattler has installed."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from environmentslab.environment import Workshop, contents, differences, holders, killed_at, kinds
from environmentslab.store import read_until

# What is left of an old prefix has no function: the history of commands, and where the packages came from.
_RECORDS = "conda-meta/"


def move(prefix: Path, to: Path) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    return prefix.rename(to)


def without_sizes(files: dict[str, bytes]) -> dict[str, bytes]:
    """rattler notes the sizes in the prefix, conda those in the package: nobody compares them."""
    return {
        name: re.sub(rb'"size_in_bytes": \d+', b"", content) if name.startswith(_RECORDS) else content
        for name, content in files.items()
    }


def run_tool(prefix: Path) -> str:
    return subprocess.run([prefix / "bin/tool"], check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.parametrize("target", ["b", "longer/by/some/directories/env", "x" * 90 + "/env", "with space/env"])
def test_requirement_9_the_result_is_what_an_installation_there_would_be(workshop: Workshop, place: Path, target: str) -> None:
    fresh = without_sizes(contents(workshop.install(place / target)))
    shutil.rmtree(place / target)
    prefix = move(workshop.install(place / "env-a"), place / target)
    workshop.relocate(prefix)
    assert differences(without_sizes(contents(prefix)), fresh) == []
    assert [name for name in holders(prefix, place / "env-a") if not name.startswith(_RECORDS)] == []
    assert run_tool(prefix) == f"tool -I{prefix}/include\n"
    assert kinds(workshop.verify(prefix)) == {}


def test_a_script_is_judged_by_where_it_leads(workshop: Workshop, place: Path) -> None:
    """Not by a checksum that agrees with what it says: the record was made of the text of the old place."""
    prefix = move(workshop.install(place / "env"), place / "b")
    old = place / "env"
    script = prefix / "bin/own"
    script.write_text(f"#!{old}/bin/python3.11\nprint('own')\n")
    script.chmod(0o755)
    words = prefix / "share/words.txt"
    words.write_text(f"made at {old}\n")
    record_path = next((prefix / _RECORDS).glob("tool-*.json"))
    record = json.loads(record_path.read_text())
    for path in (script, words):
        content = path.read_bytes()
        record["paths_data"]["paths"].append(
            {"_path": str(path.relative_to(prefix)), "path_type": "hardlink", "sha256": hashlib.sha256(content).hexdigest(), "size_in_bytes": len(content)}
        )
    record_path.write_text(json.dumps(record))
    assert "bin/own" in kinds(workshop.verify(prefix, expect=1))["old_prefix"]
    workshop.relocate(prefix)
    assert script.read_text().splitlines()[0] == f"#!{prefix}/bin/python3.11"
    assert words.read_text() == f"made at {old}\n"  # the package's own words
    assert subprocess.run([script], check=True, capture_output=True, text=True).stdout == "own\n"
    assert kinds(workshop.verify(prefix)) == {}


def test_requirement_9_there_and_back_is_byte_identical(workshop: Workshop, place: Path) -> None:
    prefix = workshop.install(place / "env")
    subprocess.run([prefix / "bin/python", "-m", "compileall", "-q", prefix / "lib/python3.11/site-packages"], check=True)
    pip_script = prefix / "bin/of-pip"  # unmanaged
    pip_script.write_text(f"#!{prefix}/bin/python3.11\nprint('pip')\n")
    pip_script.chmod(0o755)
    before = contents(prefix)
    long = place / ("x" * 90) / "with space" / "env"
    for there in (place / "b", place / "much/longer/than/before/env", long):
        moved = move(prefix, there)
        workshop.relocate(moved)
        assert [name for name in holders(moved, prefix) if not name.startswith(_RECORDS)] == []
        assert run_tool(moved) == f"tool -I{moved}/include\n"
        assert subprocess.run([moved / "bin/of-pip"], check=True, capture_output=True, text=True).stdout == "pip\n"
        assert kinds(workshop.verify(moved)) == {}
        workshop.relocate(move(moved, prefix))
        assert differences(contents(prefix), before) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small file system")
def test_on_a_full_disk_no_file_is_changed_and_the_same_command_does_all_of_it_later(workshop: Workshop, place: Path) -> None:
    """Also while the environment that it was copied from exists: what names it is then known by conda's records alone."""
    disk = place / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", disk], check=True)
    try:
        prefix = disk / "b"
        subprocess.run(["cp", "-a", workshop.install(place / "env"), prefix], check=True)
        before = contents(prefix)
        used = os.statvfs(disk)
        room = (used.f_blocks - used.f_bfree + 3) * used.f_frsize
        subprocess.run(["mount", "-o", f"remount,size={room}", disk], check=True)
        said = workshop.sharefs("conda", "relocate", prefix, prefix, "--yes", expect=1).stderr
        assert "No space left on device" in said and "make room" in said
        assert differences(contents(prefix), before) == []
        subprocess.run(["mount", "-o", "remount,size=0", disk], check=True)
        workshop.relocate(prefix)
        assert kinds(workshop.verify(prefix)) == {}
    finally:
        subprocess.run(["umount", disk], check=True)


def test_requirement_9_the_package_cache_is_not_written_through(workshop: Workshop, place: Path) -> None:
    prefix = workshop.install(place / "env")
    linked = prefix / "share/plain.txt"
    assert linked.stat().st_nlink > 1
    cache = contents(workshop.directory / "pkgs")
    twin = place / "twin"
    subprocess.run(["cp", "-al", prefix, twin], check=True)
    as_it_was = contents(twin)
    workshop.relocate(move(prefix, place / "b"))
    assert contents(workshop.directory / "pkgs") == cache
    assert differences(contents(twin), as_it_was) == []


def test_requirement_9_undo_gives_back_every_byte(workshop: Workshop, place: Path) -> None:
    prefix = move(workshop.install(place / "env"), place / "b")
    before = contents(prefix)
    said = workshop.relocate(prefix)
    assert differences(contents(prefix), before)
    number = said.rsplit("sharefs undo ", 1)[1].split("`")[0]
    workshop.sharefs("undo", number, "--yes")
    assert differences(contents(prefix), before) == []


def test_requirement_9_records_of_conda_unpack_are_corrected(workshop: Workshop, place: Path) -> None:
    """Compares with conda-pack's own result on the same tree, but for the scripts: it writes `env` into all of them."""
    prefix, archive, unpacked = workshop.install(place / "env"), place / "env.tar", place / "unpacked"
    pack = "import conda_pack, sys; conda_pack.pack(prefix=sys.argv[1], output=sys.argv[2], ignore_missing_files=True)"
    subprocess.run([workshop.python / "bin/python", "-c", pack, prefix, archive], check=True, timeout=120, capture_output=True)
    unpacked.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", unpacked], check=True)
    subprocess.run([unpacked / "bin/python", unpacked / "bin/conda-unpack"], check=True, timeout=120)
    of_conda_pack = contents(unpacked, skip=[_RECORDS])
    move(prefix, place / "moved")
    workshop.relocate(place / "moved")
    shutil.rmtree(unpacked)
    workshop.relocate(move(place / "moved", unpacked))
    ours = contents(unpacked, skip=[_RECORDS])
    scripts = {"bin/activate", "bin/activate.fish", "bin/deactivate", "bin/conda-unpack", "bin/conda_unpack_progress.py",
               "bin/pydoc3", "bin/tool", "bin/perlish", "bin/optioned"}  # fmt: skip
    wide = {"share/wide.txt", "lib/libwide.so"}  # facts: five encodings; conda-pack knows one
    assert set(differences(of_conda_pack, ours)) <= scripts | wide


def test_requirement_9_records_follow(workshop: Workshop, place: Path) -> None:
    prefix = move(workshop.install(place / "env"), place / "b")
    workshop.relocate(prefix)
    for record in (prefix / _RECORDS).glob("*.json"):
        for path in json.loads(record.read_text())["paths_data"]["paths"]:
            if path["path_type"] == "hardlink":
                content = (prefix / path["_path"]).read_bytes()
                assert hashlib.sha256(content).hexdigest() == path.get("sha256_in_prefix", path["sha256"]), path["_path"]


def test_requirement_9_packaged_files_that_somebody_changed_are_looked_into(workshop: Workshop, place: Path) -> None:
    """What is as its package has it is not read; size and time tell the others."""
    prefix = workshop.install(place / "env")
    paths = [path for record in (prefix / _RECORDS).glob("*.json") for path in json.loads(record.read_text())["paths_data"]["paths"]]
    plain = [path for path in paths if path["path_type"] == "hardlink" and "prefix_placeholder" not in path and path["_path"].endswith(".py")]
    other, same = [prefix / path["_path"] for path in plain if path["size_in_bytes"] > 300][:2]
    size = same.stat().st_size
    other.unlink()
    other.write_text(f"# {prefix}/lib\n")
    os.utime(other, (1, 1))  # another size, and old
    same.unlink()
    same.write_text(f"# {prefix}/lib\n".ljust(size))  # of the same size, and new
    for name in ("b", "c"):
        old, prefix = prefix, move(prefix, place / name)
        workshop.relocate(prefix)
        assert [name for name in holders(prefix, old) if not name.endswith(".pyc")] == []


def test_what_is_as_its_package_has_it_is_not_read(workshop: Workshop, place: Path) -> None:
    """Its record is newer, by less than a second where packages are small."""
    prefix = move(workshop.install(place / "env-a"), place / "b")
    record = next((prefix / "conda-meta").glob("python-*.json")).stat()
    plain, newer = prefix / "share/plain.txt", prefix / "lib/python3.11/ast.py"
    os.utime(plain, ns=(0, record.st_mtime_ns - 1))
    os.utime(newer, ns=(0, record.st_mtime_ns))
    names = workshop.opened(place / "trace", "conda", "relocate", prefix, prefix, "--yes")
    assert "plain.txt" not in names and {"ast.py", "perlish"} <= names


def test_requirement_11_no_bytecode_is_stale(workshop: Workshop, place: Path) -> None:
    prefix = workshop.install(place / "env")
    subprocess.run([prefix / "bin/python", "-m", "compileall", "-q", prefix / "lib/python3.11"], check=False)
    workshop.relocate(move(prefix, place / "b"))
    moved = place / "b"
    ran = subprocess.run([moved / "bin/python", "-v", "-c", "import tool, json, asyncio"], capture_output=True, text=True, check=True)
    assert "bytecode is stale" not in ran.stderr
    cached = moved / "lib/python3.11/__pycache__/_sysconfigdata_x.cpython-311.pyc"
    assert str(moved).encode() in cached.read_bytes()
    assert str(prefix).encode() + b"/" not in cached.read_bytes()


def test_requirement_9_no_room_changes_nothing(workshop: Workshop, place: Path) -> None:
    far = place / ("y" * 230) / "env"
    prefix = move(workshop.install(place / "env"), far)
    before = contents(prefix)
    done = workshop.sharefs("conda", "relocate", prefix, prefix, "--yes", expect=1)
    assert "SF509" in done.stderr and "room for a prefix of 255 bytes" in done.stderr
    assert differences(contents(prefix), before) == []


def test_requirement_9_it_does_not_move(workshop: Workshop, place: Path) -> None:
    prefix = workshop.install(place / "env")
    done = workshop.sharefs("conda", "relocate", prefix, place / "b", "--yes", expect=1)
    assert f"mv {prefix} {place / 'b'}" in done.stderr
    (place / "b").mkdir()
    assert "something else lies there" in workshop.sharefs("conda", "relocate", prefix, place / "b", "--yes", expect=2).stderr
    assert "NEW_PREFIX is empty" in workshop.sharefs("conda", "relocate", prefix, "", "--yes", expect=2).stderr


def test_requirement_5_a_path_through_a_link(workshop: Workshop, place: Path) -> None:
    prefix = workshop.install(place / "store/env")
    (place / "envs").symlink_to(place / "store")
    stable = place / "envs/env"
    workshop.sharefs("conda", "relocate", prefix, stable, "--yes")
    assert (prefix / "bin/tool").read_text().startswith(f"#!{stable}/bin/python")
    assert kinds(workshop.verify(prefix)) == {}  # the stable path leads here
    assert kinds(workshop.verify(stable)) == {}


@pytest.mark.parametrize("step", ["0", "0+"])
def test_requirement_9_killed_at_any_time(workshop: Workshop, place: Path, step: str) -> None:
    """What was cut off goes on when run again."""
    prefix = move(workshop.install(place / "env"), place / "b")
    with killed_at(step):
        workshop.sharefs("conda", "relocate", prefix, prefix, "--yes", expect=-9)
    workshop.sharefs("conda", "relocate", prefix, prefix, "--yes")
    assert kinds(workshop.verify(prefix)) == {}


def test_a_file_that_changes_at_the_question_is_done_by_the_same_command_later(workshop: Workshop, place: Path) -> None:
    """As long as one file names the old place, those stay by which that is found."""
    prefix = move(workshop.install(place / "env"), place / "b")
    mine = prefix / "etc/mine.conf"  # no script, so that nothing but the others shows which prefix is old
    mine.parent.mkdir(exist_ok=True)
    mine.write_text(f"from {place}/env/share\n")
    (prefix / "etc/link").symlink_to(place / "env/share")
    master, terminal = pty.openpty()
    command = [os.environ["SHAREFS_BIN"], "conda", "relocate", prefix, prefix]
    relocate = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, preexec_fn=os.setsid)
    os.close(terminal)
    said = read_until(master, "Proceed?")
    mine.write_text(f"from {place}/env/share, edited\n")
    os.write(master, b"y\n")
    said += read_until(master, None)
    os.close(master)
    assert relocate.wait() == 4, said
    workshop.relocate(prefix)
    assert mine.read_text() == f"from {prefix}/share, edited\n"
    assert [name for name in holders(prefix, place / "env") if not name.startswith(_RECORDS)] == []
    assert "names" in workshop.relocate(prefix)
    assert kinds(workshop.verify(prefix)) == {}


@pytest.mark.parametrize("again", ["relocate", "undo"])
def test_a_directory_that_cannot_be_opened_for_once(workshop: Workshop, place: Path, again: str) -> None:
    """Whichever it is: the same command does the rest, or undo takes all of it back."""
    original = move(workshop.install(place / "env"), place / "original")
    prefix, trace = place / "b", place / "trace"
    for number in range(1, 40):
        shutil.rmtree(prefix, ignore_errors=True)
        subprocess.run(["cp", "-a", original, prefix], check=True)
        fails = ["-e", "trace=openat2", "-e", f"inject=openat2:error=EIO:when={number}"]
        command = [os.environ["SHAREFS_BIN"], "conda", "relocate", prefix, prefix, "--yes"]
        done = subprocess.run(["strace", "-f", "-o", trace, *fails, *command], capture_output=True, text=True, timeout=240)
        if "INJECTED" not in trace.read_text():
            return
        if done.returncode != 0 and again == "undo" and "undo" in done.stderr:
            assert "not as planned" not in done.stderr, (number, done.stderr)
            workshop.sharefs("undo", "--yes")
            assert differences(contents(prefix), contents(original)) == [], number
            continue
        workshop.relocate(prefix)
        left = [name for name in holders(prefix, place / "env") if not name.startswith(_RECORDS)]
        assert left == [] and list(prefix.rglob("*.sharefs-*")) == [], (number, done.stderr)
