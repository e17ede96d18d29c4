"""The real conda, from PyPI: no index that pip reads has it, but conda-lock carries all of it, save for what it depends on and
the text that `conda init` writes into shells."""

from __future__ import annotations

import fcntl
from pathlib import Path

from .paths import PROJECT_ROOT
from .python_packages import PackageSet, interpreter

_CONDA = PackageSet(
    "conda-lock", "4.0.3",
    ("archspec==0.2.7", "boltons==26.2.0", "conda-package-handling==2.6.0", "conda-package-streaming==0.13.0", "distro==1.9.0",
     "frozendict==2.5.1", "pluggy==1.7.0", "pycosat==0.6.6", "tqdm==4.70.1", "truststore==0.10.5"),
)  # fmt: skip
# For the shell the first lines start the interpreter beside it, on whichever host the tree is seen.
_PROGRAM = """#!/bin/sh
'''exec' "$(dirname "$(readlink -f "$0")")/python" "$0" "$@"
' '''
import site, sys
sys.path.insert(0, site.getsitepackages()[0] + "/conda_lock/_vendor")
from conda.cli import main
if __name__ == "__main__":
    sys.exit(main())
"""

# It asks nobody, and solves by itself.
ENVIRONMENT = {"CONDA_SOLVER": "classic", "CONDA_OFFLINE": "true"}


def conda_program() -> Path:
    """conda 24.7.1, with its classic solver."""
    directory = interpreter(_CONDA).directory
    program = directory / "bin" / "conda"
    with open(directory.with_name("conda.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists() or program.read_text() != _PROGRAM:
            (directory / "conda-meta").mkdir(exist_ok=True)
            (directory / "conda-meta" / "history").touch()  # else conda takes itself for no environment, and stops
            new = program.with_suffix(".new")
            new.write_text(_PROGRAM)
            new.chmod(0o755)
            new.rename(program)
    return program


def conda_on_hosts() -> str:
    return f"/project/{conda_program().relative_to(PROJECT_ROOT)}"
