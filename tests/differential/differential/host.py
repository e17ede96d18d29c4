"""A host of its own for exportfs: mounts, network, names, and the NFS state of this process are nobody else's."""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from differential.grammar import Lying

SHAREFS = os.environ.get("SHAREFS_BIN", "")
ETAB = Path("/var/lib/nfs/etab")
ETC = Path("/etc")
MAIN = "/etc/exports"
DATA = Path("/mnt")
PROC = Path("/proc/fs")
WORKERS = 2  # processes that have a host each

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWNET = 0x00020000, 0x04000000, 0x40000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000

# Hosts with one address and with several, one under two names, one in two spellings.
HOSTS = """\
127.0.0.1 localhost
10.77.0.1 server server.lab
10.77.0.2 node1 node1.lab
10.77.0.3 both.lab
10.77.0.4 both.lab
10.77.0.5 dual.lab
fd00:77::5 dual.lab
10.77.0.6 chain.lab
10.77.0.5 chain.lab
"""
# What nfsd of Linux 6.1 says; without nfsd exportfs takes less for what may differ between flavours.
FEATURES = "0x3feff 0xf\n"

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _tmpfs(at: Path) -> None:
    _check(_libc.mount(b"tmpfs", os.fsencode(at), b"tmpfs", 0, b"mode=755"), f"mount {at}")


def isolate() -> None:
    """Moves this process into namespaces of its own. They are gone with it."""
    kept = {name: (ETC / name).read_bytes() for name in ("ld.so.cache", "passwd", "group", "protocols", "services")
            if (ETC / name).exists()}
    _check(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWUTS | _CLONE_NEWNET), "unshare")
    _check(_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "make / private")
    for directory in (ETC, ETAB.parent, DATA, PROC):
        _tmpfs(directory)
    (PROC / "nfsd").mkdir()
    (PROC / "nfsd/export_features").write_text(FEATURES)
    for name, content in kept.items():
        (ETC / name).write_bytes(content)
    (ETC / "nsswitch.conf").write_text("hosts: files\npasswd: files\ngroup: files\nnetgroup: files\n")
    (ETC / "hosts").write_text(HOSTS)
    (ETC / "host.conf").write_text("multi on\n")
    (ETC / "exports.d").mkdir()
    for name in ("share", "share/part", "data", "sp ace", "mounted"):
        (DATA / name).mkdir()
    _tmpfs(DATA / "mounted")
    (DATA / "link").symlink_to("share")
    (DATA / "loop").symlink_to("loop")
    (DATA / "file").write_text("")


def on_hosts(function: Callable[[int], Any]) -> list[Any]:
    """What the function makes of each worker's number, on a host of its own."""
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("fork"), initializer=isolate) as pool:
        return list(pool.map(function, range(WORKERS)))


def remove(path: Path) -> None:
    if not path.is_symlink() and path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_exports(files: Mapping[str, bytes]) -> None:
    """By path; /etc/exports and everything in /etc/exports.d is replaced."""
    for name in ("exports", "exports.d"):
        remove(ETC / name)
    (ETC / "exports.d").mkdir()
    for path, content in files.items():
        Path(path).write_bytes(content)


def lay(lying: Mapping[str, Lying]) -> None:
    """As write_exports(), of anything that may lie there."""
    write_exports({})
    for path, one in lying.items():
        if one.kind == "file":
            Path(path).write_bytes(one.content)
            Path(path).chmod(one.mode)
        elif one.kind == "link":
            Path(path).symlink_to(os.fsdecode(one.content))
        elif one.kind == "directory":
            Path(path).mkdir()
        else:
            os.mkfifo(path)


class Taken:
    """What exportfs makes of the files: the lines of etab, as mountd takes them."""

    def __init__(self) -> None:
        ETAB.write_bytes(b"")
        done = subprocess.run(["exportfs", "-r"], capture_output=True, timeout=60, check=False, cwd="/")
        self.said = done.stderr.decode(errors="replace")
        self.exit_code = done.returncode
        self.etab = ETAB.read_bytes()


def checked() -> dict[str, Any]:
    """The document of `export check` for the same host."""
    done = subprocess.run([SHAREFS, "export", "check", "--json"], capture_output=True, timeout=60, check=False, cwd="/")
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)
