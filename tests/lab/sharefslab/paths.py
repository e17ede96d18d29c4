"""Where things are on the outer machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .errors import LabError

LAB_DIRECTORY = Path(__file__).resolve().parent.parent
PROJECT_ROOT = LAB_DIRECTORY.parent.parent
STATE_PREFIX = "sharefs-lab-"


def program_under_test() -> Path | None:
    """$SHAREFS_BIN, or else the newest build/*/sharefs of the project; None if nothing was built yet."""
    named = os.environ.get("SHAREFS_BIN")
    if named:
        program = Path(named).absolute()
        if not program.is_file():
            raise LabError(f"SHAREFS_BIN: no such file: {program}")
        return program
    built = [path for path in PROJECT_ROOT.glob("build/*/sharefs") if path.is_file()]
    return max(built, key=lambda path: path.stat().st_mtime, default=None)


def program_for_hosts(directory: Path) -> Path | None:
    """The same where only root can change it, as sharefs wants it of what runs at boot: copied into `directory` if need
    be, and then hosts do not see what is built later."""
    program = program_under_test()
    if program is None or os.geteuid() != 0:
        return program
    if all(status.st_uid == 0 and not status.st_mode & 0o022 for status in (program.stat(), program.parent.stat())):
        return program
    directory.mkdir(mode=0o755)
    copy = shutil.copyfile(program, directory / program.name)
    copy.chmod(0o755)
    return copy


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sharefs-lab"


def guest_program() -> Path:
    """The compiled labguest."""
    return _compiled("guest", "labguest", ["-static"])


def register_library() -> Path:
    """What is loaded into the guests' kernel: see host/registers.c."""
    return _compiled("host", "registers.so", ["-shared", "-fPIC"])


def _compiled(directory: str, name: str, options: list[str]) -> Path:
    """Of the C files of a directory. The name contains a digest of the sources, so a change makes a new one."""
    sources = sorted((LAB_DIRECTORY / directory).glob("*.[ch]"))
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    program = cache_directory() / f"{digest}-{name}"
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    # Two test runs may compile at once: each writes its own file, and the rename of the last one wins.
    with tempfile.NamedTemporaryFile(dir=program.parent, prefix=program.name, delete=False) as temporary:
        pass
    files = [str(source) for source in sources if source.suffix == ".c"]
    command = ["gcc", "-std=gnu17", "-O2", "-Wall", "-Wextra", *options, "-o", temporary.name, *files]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        os.unlink(temporary.name)
        raise LabError(f"{directory} of the lab does not compile:\n{result.stderr}")
    os.chmod(temporary.name, 0o755)
    os.replace(temporary.name, program)
    return program


def new_state_directory() -> Path:
    """A directory for one guest or cluster; the caller removes it.

    Not below /dev, which a guest's kernel covers with devices of its own before it starts init.
    """
    remove_orphans()
    return Path(tempfile.mkdtemp(prefix=f"{STATE_PREFIX}{os.getpid()}-"))


def remove_orphans() -> None:
    """Removes our state directories whose process was killed before it could."""
    for path in Path(tempfile.gettempdir()).glob(f"{STATE_PREFIX}*-*"):
        owner = path.name.removeprefix(STATE_PREFIX).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            shutil.rmtree(path, ignore_errors=True)  # another user's stays


def missing_prerequisites() -> list[str]:
    """What the lab needs and this machine lacks, as texts for people."""
    programs = {
        "linux.uml": "user-mode-linux",
        "taskset": "util-linux",
        "gcc": "gcc",
        "exportfs": "nfs-kernel-server",
        "mount.nfs": "nfs-common",
        "rpcbind": "rpcbind",
        "ip": "iproute2",
        "modprobe": "kmod",
        "mkfs.ext4": "e2fsprogs",
    }
    places = ["/usr/sbin", "/usr/bin"]
    missing = [
        f"{program} (package {package})"
        for program, package in programs.items()
        if not any(os.access(os.path.join(place, program), os.X_OK) for place in places)
    ]
    if not any(Path("/lib/modules").glob("*/kernel/fs/nfsd/nfsd.ko*")):
        missing.append("/lib/modules without the modules of User Mode Linux")
    return missing
