"""A Python with conda's package format, rattler's installer and conda-pack, kept in the tree's build directory."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

_PACKAGES = ["conda-package-handling==2.6.0", "py-rattler==0.28.0", "conda-pack==0.9.2", "setuptools==80.9.0"]
_DIRECTORY = Path(__file__).resolve().parents[3] / "build" / "lab-python"


def conda_python() -> Path:
    """Its directory. Made once."""
    _DIRECTORY.mkdir(parents=True, exist_ok=True)
    name = "-".join(package.replace("==", "-") for package in _PACKAGES)
    place, lock_file = _DIRECTORY / name, _DIRECTORY / f"{name}.lock"
    with open(lock_file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "finished").exists():
            shutil.rmtree(place, ignore_errors=True)  # of a run that was killed
            subprocess.run(["/usr/bin/python3", "-m", "venv", place], check=True, timeout=60)
            subprocess.run([place / "bin/pip", "install", "-q", "--disable-pip-version-check", *_PACKAGES], check=True, timeout=300)
            (place / "finished").touch()
    return place
