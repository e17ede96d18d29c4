"""Pythons with the launchers of PyPI, one of them over Debian's torch, kept in the tree's build directory."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sysconfig
import zipfile
from collections.abc import Callable, Iterable, Sequence
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
# What manages a Python project and runs a command in it; memray needs as much beside itself.
PROJECT_PROGRAMS = ["poetry==2.5.1", "pdm==2.29.4", "hatch==1.18.2", "pipenv==2026.10.3", "memray==1.20.0"]
# Far too heavy to install, or not for this torch: the files that read their command lines.
LAUNCHER_SOURCES = {
    "mosaicml==0.32.1": ["composer/cli/launcher.py"],
    "colossalai==0.5.0": ["colossalai/cli/launcher/__init__.py"],
    "lightning-fabric==2.6.6": ["lightning_fabric/cli.py"],
    "ray==2.60.0": ["ray/dashboard/modules/job/cli.py", "ray/dashboard/modules/job/cli_utils.py",
                    "ray/autoscaler/_private/cli_logger.py"],
    "torchtune==0.6.1": ["torchtune/_cli/run.py"],
    "litgpt==0.5.13": ["litgpt/__main__.py"],
    "trl==1.16.0": ["trl/cli/commands/__init__.py"],
    "llamafactory==0.9.5": ["llamafactory/launcher.py"],
}  # fmt: skip
# Its wheel takes half an hour to build; what reads its command line is Python.
HOROVOD = "horovod==0.28.1"
_OTHERS = """
    hjson==3.1.0 py-cpuinfo==9.0.0 pydantic==2.8.2 pydantic-core==2.20.1 annotated-types==0.7.0 psutil==6.0.0
    safetensors==0.4.5 huggingface_hub==0.23.5 tqdm==4.66.5 filelock==3.15.4 fsspec==2024.6.1 pyyaml==6.0.2
    requests==2.32.3 charset-normalizer==3.3.2 idna==3.8 urllib3==2.2.2 certifi==2024.8.30 packaging==24.1
    typing-extensions==4.12.2 cloudpickle==3.0.0
""".split()
_BESIDE_PROJECT_PROGRAMS = """
    argcomplete==3.7.2 blinker==1.9.0 build==1.6.1 CacheControl==0.14.4 certifi==2026.10.19.post1
    charset-normalizer==3.5.2 cleo==2.1.0 click==8.5.1 crashtest==0.4.1 dep-logic==0.7.2 distlib==0.4.4
    dulwich==1.2.21 fastjsonschema==2.22.3 filelock==4.2.12 findpython==0.8.0 hatchling==1.33.0 httpx2==2.16.2
    idna==3.20 installer==1.1.0 Jinja2==3.1.6 MarkupSafe==3.0.4 msgpack==1.2.4 packaging==26.3
    pbs-installer==2026.10.25 pexpect==4.9.0 pkginfo==1.13.3 platformdirs==4.14.8 pluggy==1.7.0 poetry-core==2.5.0
    ptyprocess==0.7.0 Pygments==2.21.0 pyproject_hooks==1.3.3 python-discovery==1.9.6 python-dotenv==1.2.4
    RapidFuzz==3.14.6 requests-toolbelt==1.0.0 requests==2.34.2 resolvelib==1.2.1 rich==15.0.0 setuptools==84.2.1
    shellingham==1.5.4 textual==8.2.8 tomli_w==1.2.0 tomlkit==0.15.2 truststore==0.10.5 typing_extensions==4.16.0
    unearth==0.19.0 urllib3==2.8.0 userpath==1.9.2 virtualenv==21.15.11
""".split()


def _joined(packages: Iterable[str]) -> str:
    return "-".join(package.replace("==", "-") for package in packages)


_NAME = _joined((DEEPSPEED, ACCELERATE, UV, HOROVOD, NEWER_ACCELERATE, *TOOLS))
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

    place = _made_once(_joined(HUB_CLIENTS), make)
    return [place / package for package in HUB_CLIENTS]


def _unpack_files(archive: Path, files: Sequence[str], place: Path) -> None:
    """Some files of a wheel or a source distribution."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(place, files)
    else:
        top = archive.name.removesuffix(".tar.gz")
        _run(["tar", "-xzf", archive, "-C", place, "--strip-components=1", *(f"{top}/{file}" for file in files)])


def project_python() -> Path:
    """Its directory. Made once, in about 15 s."""

    def make(place: Path) -> None:
        _run(["/usr/bin/python3", "-m", "venv", place])
        packages = [*PROJECT_PROGRAMS, *_BESIDE_PROJECT_PROGRAMS]
        _run([place / "bin" / "pip", "install", "-q", "--no-deps", "--no-compile", *packages])

    return _made_once(_joined(PROJECT_PROGRAMS), make)


def launcher_sources() -> Path:
    """The directory with the files of LAUNCHER_SOURCES, to be read only."""
    pip = project_python() / "bin" / "pip"

    def make(place: Path) -> None:
        archives = place / "archives"
        _run([pip, "download", "-q", "--no-deps", "--no-build-isolation", "-d", archives, *LAUNCHER_SOURCES])
        for package, files in LAUNCHER_SOURCES.items():
            (archive,) = archives.glob(package.replace("-", "_").replace("==", "-") + "[-.]*")
            _unpack_files(archive, files, place)
        shutil.rmtree(archives)

    return _made_once(_joined(LAUNCHER_SOURCES), make)
