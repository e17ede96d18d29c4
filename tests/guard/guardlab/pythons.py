"""Interpreters with `datasets` of PyPI, each in a virtual environment below build/guard-python."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

_TESTS = Path(__file__).parents[2]
DIRECTORY = _TESTS.parent / "build" / "guard-python"

# What each is installed together with: old releases accept newer versions, which they do not work with. The Python
# where it is not the system's.
_OLD = ("numpy<2", "pandas<3", "huggingface_hub<0.24")
NEWEST = "newest"
VERSIONS: dict[str, tuple[str, ...]] = {
    "2.5.2": ("numpy<2", "pandas<2", "pyarrow==10.*", "huggingface_hub<0.14", "fsspec<2023", "dill<0.3.6", "evaluate<0.4.1"),
    "2.14.7": (*_OLD, "pyarrow<15", "fsspec<2023.11", "evaluate==0.4.2"),
    "2.19.2": (*_OLD, "pyarrow<16", "evaluate==0.4.2"),
    "2.21.0": (*_OLD, "pyarrow<18", "evaluate==0.4.2"),
    "3.6.0": ("numpy<2", "pandas<3", "pyarrow<20", "evaluate"),
    "4.8.5": ("evaluate",),
    NEWEST: ("evaluate",),
}
_NEEDS_PYTHON = {"2.5.2": "3.10"}
IN_EACH_RUN = ("2.14.7", "2.19.2", "3.6.0", NEWEST)


def versions() -> tuple[str, ...]:
    """Those that are tested: SHAREFS_GUARD_VERSIONS=all, or names with commas between them."""
    asked = os.environ.get("SHAREFS_GUARD_VERSIONS", "")
    if asked == "all":
        return tuple(VERSIONS)
    return tuple(asked.split(",")) if asked else IN_EACH_RUN


def _base(version: str) -> Path:
    needed = _NEEDS_PYTHON.get(version)
    if needed is None:
        return Path("/usr/bin/python3")
    named = shutil.which(f"python{needed}")
    candidates = sorted(Path.home().glob(f".pyenv/versions/{needed}.*/bin/python"))
    if not candidates and named is None:
        raise RuntimeError(f"datasets {version} needs Python {needed}, which is not here")
    return candidates[-1] if candidates else Path(str(named))


def python(version: str) -> Path:
    """An interpreter that has this version; it is installed the first time, by one process at a time."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with open(DIRECTORY / f"{version}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _installed(version)


def _installed(version: str) -> Path:
    directory = DIRECTORY / version
    done = directory / "finished"
    wanted = ["datasets" if version == NEWEST else f"datasets=={version}", *VERSIONS[version]]
    if not done.exists() or done.read_text() != "\n".join(wanted):
        shutil.rmtree(directory, ignore_errors=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        install = ["-m", "pip", "install", "-q", "--no-input", "--timeout=30", *wanted]
        for command in ([_base(version), "-m", "venv", directory], [directory / "bin/python", *install]):
            subprocess.run([str(word) for word in command], env=environment, check=True, timeout=900, stdout=sys.stderr)
        done.write_text("\n".join(wanted))
    return directory / "bin" / "python"
