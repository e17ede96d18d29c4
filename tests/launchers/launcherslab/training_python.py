"""A Python with the launchers of PyPI over Debian's torch, kept in the tree's build directory."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

from .isolation import rejoin_machine

# Debian's torch is 1.13 and its Python 3.11: the last releases that work with both. Dependencies are named, because
# pip would resolve them to a torch of its own, which brings gigabytes of CUDA.
DEEPSPEED = "deepspeed==0.14.4"
ACCELERATE = "accelerate==0.27.2"
UV = "uv==0.13.9"
# Profilers and debuggers, none of which needs another package.
TOOLS = ["coverage==7.17.3", "debugpy==1.8.22", "line_profiler==5.1.0", "py-spy==0.4.3"]
# It does not work with torch 1.13, but its source says what options it has.
NEWER_ACCELERATE = "accelerate==1.12.0"
# They fill caches and train nothing. Each lies apart: two of them are one library, and none is run.
HUB_CLIENTS = ["huggingface_hub==0.36.2", "huggingface_hub==2.4.0", "modelscope==1.29.2", "modelscope-hub==0.5.1",
               "kaggle==2.2.5", "openxlab==0.1.3", "gdown==6.5.1"]  # fmt: skip
# Its wheel takes half an hour to build; what reads its command line is Python.
HOROVOD = "horovod==0.28.1"
_OTHERS = """
    hjson==3.1.0 py-cpuinfo==9.0.0 pydantic==2.8.2 pydantic-core==2.20.1 annotated-types==0.7.0 psutil==6.0.0
    safetensors==0.4.5 huggingface_hub==0.23.5 tqdm==4.66.5 filelock==3.15.4 fsspec==2024.6.1 pyyaml==6.0.2
    requests==2.32.3 charset-normalizer==3.3.2 idna==3.8 urllib3==2.2.2 certifi==2024.8.30 packaging==24.1
    typing-extensions==4.12.2 cloudpickle==3.0.0
""".split()
_NAME = "-".join(package.replace("==", "-") for package in (DEEPSPEED, ACCELERATE, UV, HOROVOD, NEWER_ACCELERATE, *TOOLS))
_CLIENTS_NAME = "-".join(package.replace("==", "-") for package in HUB_CLIENTS)
_DIRECTORY = Path(__file__).resolve().parents[3] / "build" / "lab-python"
_MAKE_TIMEOUT = 300


def _run(command: Sequence[str | Path]) -> None:
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    ran = subprocess.run(
        command, env=environment, preexec_fn=rejoin_machine, capture_output=True, text=True, timeout=_MAKE_TIMEOUT
    )
    if ran.returncode != 0:
        raise RuntimeError(f"{command}: {ran.stdout}{ran.stderr}")


def _unpack_source(pip: Path, package: str, place: Path) -> None:
    """The Python package in a source distribution, as it is."""
    name, version = package.split("==")
    options = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
    _run([pip, "download", "-q", *options, "-d", place, package])
    packages = sysconfig.get_path("purelib", "venv", {"base": str(place)})
    archive = f"{name}-{version}"
    _run(["tar", "-xzf", place / f"{archive}.tar.gz", "-C", packages, "--strip-components=1", f"{archive}/{name}"])


def newer_accelerate_launch() -> Path:
    """The source of `accelerate launch`, to be read only."""
    return training_python() / "newer" / "accelerate" / "commands" / "launch.py"


def _made_once(name: str, make: Callable[[Path], None]) -> Path:
    _DIRECTORY.mkdir(parents=True, exist_ok=True)
    place = _DIRECTORY / name
    finished = place / "finished"
    with open(_DIRECTORY / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not finished.exists():
            shutil.rmtree(place, ignore_errors=True)  # of a run that was killed
            make(place)
            finished.touch()
    return place


def training_python() -> Path:
    """Its directory. Made once, in about 30 s."""

    def make(place: Path) -> None:
        _run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", place])
        pip = place / "bin" / "pip"
        options = ["-q", "--no-deps", "--no-build-isolation", "--ignore-installed"]
        _run([pip, "install", *options, DEEPSPEED, ACCELERATE, UV, *TOOLS, *_OTHERS])
        _run([pip, "install", *options, "--target", place / "newer", NEWER_ACCELERATE])
        _unpack_source(pip, HOROVOD, place)

    return _made_once(_NAME, make)


def hub_clients() -> list[Path]:
    """Their directories, to be read only."""
    pip = training_python() / "bin" / "pip"

    def make(place: Path) -> None:
        for package in HUB_CLIENTS:
            _run([pip, "install", "-q", "--no-deps", "--only-binary", ":all:", "--target", place / package, package])

    place = _made_once(_CLIENTS_NAME, make)
    return [place / package for package in HUB_CLIENTS]
