"""One environment: installed, looked at, worked on by sharefs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_BUILDER = Path(__file__).with_name("build_packages.py")


@dataclass(frozen=True)
class Workshop:
    """A channel, a package cache and the programs."""

    python: Path  # conda_python()
    directory: Path

    def _run(self, *words: str | Path) -> None:
        subprocess.run([self.python / "bin/python", _BUILDER, *words], check=True, timeout=240)

    def build(self) -> None:
        self._run(self.directory / "channel")

    def install(self, prefix: Path) -> Path:
        """By rattler, as its users would get it: readable for all."""
        prefix.parent.mkdir(parents=True, exist_ok=True)
        self._run("install", prefix, self.directory / "pkgs", self.directory / "channel")
        for record in (prefix / "conda-meta").glob("*.json"):  # rattler leaves them at 0600
            record.chmod(0o644)
        return prefix

    def sharefs(self, *words: str | Path, expect: int | None = 0) -> subprocess.CompletedProcess[str]:
        command = [os.environ["SHAREFS_BIN"], *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL)
        assert expect is None or done.returncode == expect, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def opened(self, trace: Path, *words: str | Path) -> set[str]:
        """The names of the files that sharefs opens to read them. `trace`: a file to write."""
        traced = ["strace", "-f", "-o", trace, "-e", "trace=open,openat,openat2", os.environ["SHAREFS_BIN"], *words]
        subprocess.run(traced, check=True, capture_output=True, timeout=240, stdin=subprocess.DEVNULL)
        calls = [line for line in trace.read_text().splitlines() if '"' in line and "O_DIRECTORY" not in line and "O_PATH" not in line]
        return {call.split('"')[1].rpartition("/")[2] for call in calls}

    def verify(self, prefix: Path, *words: str, expect: int = 0) -> dict[str, Any]:
        return json.loads(self.sharefs("conda", "verify", prefix, "--json", *words, expect=expect).stdout)

    def relocate(self, prefix: Path, *words: str | Path) -> str:
        return self.sharefs("conda", "relocate", prefix, prefix, "--yes", *words).stderr


def made_generations(*numbers: int) -> set[str]:
    """The names of generations that sharefs has made: trees, records, and images where mksquashfs is installed."""
    images = [".sqfs", ".sqfs.json"] if shutil.which("mksquashfs") else []
    return {f"{number:04}{ending}" for number in numbers for ending in ["", ".json", *images]}


def let_others_through(path: Path) -> None:
    """pytest's own directories are closed to all other users."""
    for above in path.parents:
        if above.stat().st_mode & 0o011 != 0o011:
            above.chmod(above.stat().st_mode | 0o011)


@contextmanager
def killed_at(step: str) -> Iterator[None]:
    """sharefs is killed at this step of its plan, `0+` behind step 0."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAREFS_TEST_KILL_AT", step)
        yield


def kinds(document: dict[str, Any]) -> dict[str, list[str]]:
    """Of what `conda verify --json` has found: the paths by kind, without the information."""
    found: dict[str, list[str]] = {}
    for one in document["environment"]["found"]:
        if one["kind"] != "unmanaged":
            found.setdefault(one["kind"], []).append(one["path"])
    return found


def contents(prefix: Path, skip: Sequence[str] = ()) -> dict[str, bytes]:
    """What every file holds or every link says, by path; without compiled Python."""
    found = {}
    for path in sorted(prefix.rglob("*")):
        name = str(path.relative_to(prefix))
        if path.is_symlink():
            found[name] = os.fsencode(os.readlink(path))
        elif path.is_file() and path.suffix != ".pyc" and not name.startswith(tuple(skip)):
            found[name] = path.read_bytes()
    return found


def differences(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def holders(prefix: Path, old: Path) -> list[str]:
    """Files that name another prefix in any encoding, as grep would find it."""
    needles = [str(old).encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")]
    found = []
    for path in sorted(prefix.rglob("*")):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            if any(needle in content for needle in needles):
                found.append(str(path.relative_to(prefix)))
    return found
