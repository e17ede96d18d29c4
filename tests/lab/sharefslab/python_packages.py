"""Python packages from PyPI for lab hosts, each set with an interpreter of its own below build/lab-python.

What a host runs must work at another path there: the source tree is /project on hosts.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import LabError
from .paths import PROJECT_ROOT
from .wait import wait_until

DIRECTORY = PROJECT_ROOT / "build" / "lab-python"
FINISHED = "finished"  # in each directory, with what is installed in it
INSTALL_TIMEOUT = 420.0
SYSTEM_PYTHON = Path("/usr/bin/python3")
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
_PREFIX = "import sys; print(sys.base_prefix)"


@dataclass(frozen=True)
class PackageSet:
    """A package at one version, with what it must be installed together with.

    `python` is the version of the interpreter that it needs, if the system's is too new.
    """

    name: str
    version: str
    beside: tuple[str, ...] = ()
    python: str | None = None

    @property
    def requirements(self) -> list[str]:
        return [f"{self.name}=={self.version}", *self.beside]

    @property
    def label(self) -> str:
        return f"{self.name}-{self.version}"


# Old releases accept newer versions of their dependencies, which they do not work with.
DATASETS = {
    pin.version: pin
    for pin in (
        PackageSet(
            "datasets",
            "2.5.2",
            ("numpy<2", "pandas<2", "pyarrow==10.*", "huggingface_hub<0.14", "fsspec<2023", "dill<0.3.6"),
            python="3.10",
        ),
        PackageSet("datasets", "2.19.2", ("numpy<2", "pyarrow<16", "huggingface_hub<0.24", "evaluate==0.4.2")),
        PackageSet("datasets", "5.2.0"),
    )
}


@dataclass(frozen=True)
class Interpreter:
    """A Python that has the packages, in a directory of the source tree."""

    directory: Path

    @property
    def bin(self) -> str:
        """To be put in front of PATH on a host."""
        return f"{self._on_hosts()}/bin"

    @property
    def environment(self) -> dict[str, str]:
        """What it needs on a host."""
        return self._environment(self._on_hosts())

    def run(self, script: str, *arguments: str, problem: str) -> str:
        """Runs a Python script on this machine. Returns its output; raises LabError if it fails."""
        return self._run(["-c", script, *arguments], problem)

    def install(self, requirements: list[str]) -> None:
        # Bytecode is written for what is imported, not for all there is: it takes a third of the time.
        options = ["--no-compile", "--no-input", "--no-warn-script-location", "--timeout=30", "--retries=3"]
        self._run(["-m", "pip", "install", "-q", *options, *requirements], f"cannot install {' '.join(requirements)}")

    def _run(self, arguments: list[str], problem: str) -> str:
        ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment = ours | self._environment(str(self.directory))
        return _run([f"{self.directory}/bin/python3", *arguments], environment, problem)

    def _on_hosts(self) -> str:
        return f"/project/{self.directory.relative_to(PROJECT_ROOT)}"

    def _environment(self, directory: str) -> dict[str, str]:
        # A copied interpreter may come with a library of its own.
        library = any(self.directory.glob("lib/libpython*.so*"))
        return {"LD_LIBRARY_PATH": f"{directory}/lib"} if library else {}


def find_python(version: str) -> Path | None:
    """An interpreter of this version, like "3.10": the system's, one in PATH, or pyenv's."""
    if _ask(SYSTEM_PYTHON, _VERSION) == version:
        return SYSTEM_PYTHON
    named = shutil.which(f"python{version}")
    candidates = [Path(named)] if named else []
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates += sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    return next((path for path in candidates if _ask(path, _VERSION) == version), None)


def interpreter(packages: PackageSet) -> Interpreter:
    """Installs the packages unless they are installed already. Raises LabError if that cannot be done.

    Several processes may call it at once: one installs, the others wait for it.
    """
    directory = DIRECTORY / packages.label
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with open(DIRECTORY / f"{packages.label}.lock", "w", encoding="utf-8") as lock:
        wait_until(lambda: _try_lock(lock.fileno()), 2 * INSTALL_TIMEOUT, what=f"somebody else installs {directory}")
        if not _is_finished(directory, packages):
            _install(directory, packages)
    return Interpreter(directory)


def _install(directory: Path, packages: PackageSet) -> None:
    # Under another name until it is whole: who is killed here leaves nothing that looks finished.
    shutil.rmtree(directory, ignore_errors=True)
    new = Interpreter(directory.with_name(directory.name + ".new"))
    shutil.rmtree(new.directory, ignore_errors=True)
    if packages.python is None:
        _make_environment(new.directory)
    else:
        _copy(_python_for(packages), new.directory)
    new.install(packages.requirements)
    new.run(f"import {packages.name.replace('-', '_')}", problem=f"{packages.label} is installed, but cannot be imported")
    (new.directory / FINISHED).write_text(_content(packages), encoding="utf-8")
    new.directory.rename(directory)


def _python_for(packages: PackageSet) -> Path:
    assert packages.python
    python = find_python(packages.python)
    if not python:
        raise LabError(f"{packages.label} needs Python {packages.python}, which is neither in PATH nor in ~/.pyenv")
    return python


def _make_environment(directory: Path) -> None:
    """A virtual environment, which works at every path because hosts have the system's /usr."""
    _run(
        [str(SYSTEM_PYTHON), "-m", "venv", str(directory)],
        dict(os.environ),
        "cannot make a virtual environment (package python3-venv)",
    )


def _copy(python: Path, directory: Path) -> None:
    """A copy of an interpreter that hosts do not have. It finds its library by where it lies itself."""
    # Asked, because what lies in PATH may be a wrapper, as pyenv's are.
    prefix, name = Path(_ask(python, _PREFIX)), f"python{_ask(python, _VERSION)}"
    unneeded = shutil.ignore_patterns("test", "tests", "config-*", "*.a", "idlelib", "tkinter")
    (directory / "bin").mkdir(parents=True)
    shutil.copy2(prefix / "bin" / name, directory / "bin" / name)
    (directory / "bin" / "python3").symlink_to(name)
    shutil.copytree(prefix / "lib" / name, directory / "lib" / name, ignore=unneeded, symlinks=True)
    for library in prefix.glob("lib/libpython*.so*"):
        shutil.copy2(library, directory / "lib", follow_symlinks=False)


def _run(command: list[str], environment: dict[str, str], problem: str) -> str:
    try:
        done = subprocess.run(
            command,
            env=environment,
            umask=0o022,  # the hosts' users read what is installed
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=INSTALL_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabError(f"{problem}: not within {INSTALL_TIMEOUT:g} s") from None
    if done.returncode != 0:
        raise LabError(f"{problem}:\n{done.stdout[-2000:]}")
    return done.stdout


def _ask(python: Path, script: str) -> str:
    """What the script prints; nothing if it cannot be run."""
    try:
        done = subprocess.run([str(python), "-c", script], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _content(packages: PackageSet) -> str:
    return "\n".join(packages.requirements) + "\n"


def _is_finished(directory: Path, packages: PackageSet) -> bool:
    try:
        return (directory / FINISHED).read_text(encoding="utf-8") == _content(packages)
    except FileNotFoundError:
        return False


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
