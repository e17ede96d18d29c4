"""sharefs conda verify, on environments that rattler has installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from environmentslab.environment import Workshop, contents, differences, kinds

_SITE = "lib/python3.11/site-packages"


@pytest.fixture
def prefix(workshop: Workshop, place: Path) -> Path:
    return workshop.install(place / "env")


def compile_tool(prefix: Path) -> Path:
    subprocess.run([prefix / "bin/python", "-m", "compileall", "-q", prefix / _SITE / "tool"], check=True)
    return prefix / _SITE / "tool/__pycache__/__init__.cpython-311.pyc"


def test_requirement_15_a_fresh_environment_is_right(workshop: Workshop, prefix: Path) -> None:
    before = contents(prefix)
    document = workshop.verify(prefix)
    assert document["ok"] and kinds(document) == {}
    assert document["environment"]["packages"] == 2 and document["environment"]["managed"] > 500
    assert workshop.sharefs("conda", "verify", prefix).stderr.splitlines()[-1].endswith("0 errors, 0 warnings")
    assert differences(contents(prefix), before) == []


def _truncate_record(prefix: Path) -> None:
    record = next((prefix / "conda-meta").glob("tool*.json"))
    record.write_text(record.read_text()[:100])


def _lead_out(prefix: Path) -> None:
    record = next((prefix / "conda-meta").glob("tool*.json"))
    record.write_text(record.read_text().replace('"bin/tool"', '"../../../etc/passwd"'))


def _stale(prefix: Path) -> None:
    compile_tool(prefix)
    source = prefix / _SITE / "tool/__init__.py"
    os.utime(source, (1, 1))


def _link(path: str, target: str) -> Callable[[Path], None]:
    return lambda prefix: (prefix / path).symlink_to(target)


def _in_place(path: str, make: Callable[[Path], object]) -> Callable[[Path], None]:
    def harm(prefix: Path) -> None:
        (prefix / path).unlink()
        make(prefix / path)

    return harm


def _write(path: str, text: str) -> Callable[[Path], None]:
    def write(prefix: Path) -> None:
        (prefix / path).parent.mkdir(parents=True, exist_ok=True)
        (prefix / path).write_text(text)

    return write


@pytest.mark.parametrize(
    ("harm", "kind", "code"),
    [
        (lambda prefix: (prefix / "share/plain.txt").unlink(), "missing", 1),
        (lambda prefix: shutil.copyfile("/etc/hostname", prefix / "lib/pkgconfig/z.pc"), "altered", 1),
        (_in_place("share/plain.txt", Path.mkdir), "altered", 1),
        (_in_place("share/plain.txt", os.mkfifo), "altered", 1),
        (_in_place("share/plain.txt", lambda path: path.symlink_to("wide.txt")), "altered", 1),
        (_in_place("share/plain.txt", lambda path: path.symlink_to("plain.txt")), "altered", 1),
        (_truncate_record, "bad_record", 1),
        (_lead_out, "bad_record", 1),
        (lambda prefix: (prefix / "bin/perlish").chmod(0o700), "closed", 1),
        (_stale, "stale_pyc", 0),
        (_link("share/out", "/etc/hostname"), "outside_link", 0),
        (_link("share/up", "../../../x"), "outside_link", 0),
        (_write(f"{_SITE}/__editable__.mine.pth", "/home/somebody/mine\n"), "editable", 0),
        (_write(f"{_SITE}/x.pth", "/home/somebody/mine\n"), "editable", 0),
        (_write(f"{_SITE}/x.egg-link", "/home/somebody/mine\n"), "editable", 0),
        (_write(f"{_SITE}/x-1.dist-info/direct_url.json", '{"dir_info": {"editable": true}, "url": "file:///x"}'), "editable", 0),
        (_write(f"{_SITE}/x-1.dist-info/direct_url.json", '{"url":"file:///x","dir_info":{"editable":true}}'), "editable", 0),
        (lambda prefix: (prefix / "bin/perlish").chmod(0o4755), "set_id", 0),
        (lambda prefix: os.chown(prefix / "share/wide.txt", 65534, 65534), "nobody", 0),
        (_write("share/.nfs00000000deadbeef", "x"), "nfs_leftover", 0),
        (_write("bin/mine", "#!/gone/env/bin/python\n"), "old_prefix", 1),
    ],
)  # fmt: skip
def test_requirements_10_and_15_each_harm_is_found(
    workshop: Workshop, prefix: Path, harm: Callable[[Path], None], kind: str, code: int
) -> None:
    harm(prefix)
    assert kind in kinds(workshop.verify(prefix, expect=code))


def test_requirement_15_that_nothing_can_be_compared_is_told(workshop: Workshop, prefix: Path) -> None:
    for record in (prefix / "conda-meta").glob("*.json"):
        record.unlink()
    assert "no record of a package" in workshop.sharefs("conda", "verify", prefix).stderr


def test_requirement_15_hard_links_are_not_written_through_by_a_repair(workshop: Workshop, prefix: Path) -> None:
    shared = prefix / "share/plain.txt"
    assert shared.stat().st_nlink > 1
    shared.chmod(0o600)
    document = workshop.verify(prefix, "--repair", "--yes", expect=1)
    assert kinds(document)["closed"] == ["share/plain.txt"]
    assert shared.stat().st_mode & 0o777 == 0o600
    shared.chmod(0o644)  # of the package cache, too


def test_requirement_5_mixed_prefixes_are_found_and_repaired(workshop: Workshop, prefix: Path, place: Path) -> None:
    (place / "link").symlink_to(prefix)
    for number in range(3):  # as micromamba and conda through a link write them
        _write(f"bin/mixed{number}", f"#!{place / 'link'}/bin/python3.11\n")(prefix)
    assert kinds(workshop.verify(prefix)) == {"second_prefix": ["bin/mixed0", "bin/mixed1", "bin/mixed2"]}
    workshop.verify(prefix, "--repair", "--yes")
    assert kinds(workshop.verify(prefix)) == {}
    assert (prefix / "bin/mixed1").read_text() == f"#!{prefix}/bin/python3.11\n"


def test_requirement_15_another_environment_is_left(workshop: Workshop, prefix: Path, place: Path) -> None:
    other = place / "other"
    (other / "conda-meta").mkdir(parents=True)
    _write("bin/mine", f"#!{other}/bin/python\n")(prefix)
    assert kinds(workshop.verify(prefix)) == {"other_prefix": ["bin/mine"]}
    workshop.verify(prefix, "--repair", "--from", str(other), "--yes")
    assert (prefix / "bin/mine").read_text() == f"#!{prefix}/bin/python\n"


def test_requirement_9_a_copy_names_itself(workshop: Workshop, prefix: Path, place: Path) -> None:
    """The environment that it was copied from is still there."""
    copy = place / "copy"
    subprocess.run(["cp", "-a", prefix, copy], check=True)
    assert "old_prefix" in kinds(workshop.verify(copy, expect=1))
    workshop.verify(copy, "--repair", "--yes")
    assert kinds(workshop.verify(copy)) == {} and kinds(workshop.verify(prefix)) == {}


def test_requirement_15_repair_does_all_it_can(workshop: Workshop, prefix: Path, place: Path) -> None:
    _stale(prefix)
    (prefix / "bin/perlish").chmod(0o700)
    moved = prefix.rename(place / "moved")
    done = workshop.sharefs("conda", "verify", moved, "--repair", "--yes")
    assert "cannot be undone" in done.stderr
    assert kinds(workshop.verify(moved)) == {}
    assert (moved / _SITE / "tool/__pycache__/__init__.cpython-311.pyc").exists()  # compiled again
    assert "nothing that can be repaired" in workshop.sharefs("conda", "verify", moved, "--repair", "--yes").stderr


def test_a_private_environment_is_not_opened(workshop: Workshop, prefix: Path) -> None:
    prefix.chmod(0o700)
    (prefix / "bin/perlish").chmod(0o700)
    assert kinds(workshop.verify(prefix)) == {}


def test_requirement_9_records_without_placeholders(workshop: Workshop, prefix: Path, place: Path) -> None:
    """As libmamba writes them; the package in the cache has what is missing, or the content decides."""
    for cache in (True, False):
        for record in (prefix / "conda-meta").glob("*.json"):
            document = json.loads(record.read_text())
            for path in document["paths_data"]["paths"]:
                path.pop("prefix_placeholder", None)
                path.pop("file_mode", None)
            if not cache:
                document["extracted_package_dir"] = "/nowhere/at/all"
            record.write_text(json.dumps(document))
        assert kinds(workshop.verify(prefix)) == {}
        prefix = prefix.rename(place / ("m" if cache else "n"))
        workshop.relocate(prefix)
        assert kinds(workshop.verify(prefix)) == {}
