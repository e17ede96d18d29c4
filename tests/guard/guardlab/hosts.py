"""Hosts with a share: namespaces with a host name, a disk and a mount of their own of one directory.

The share is a FUSE file system that counts as shared storage. Its locks exclude within one mount only, as those of an
NFS mount with `nolock` do.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_TESTS = Path(__file__).parents[2]
sys.path[:0] = [str(_TESTS / "corpus"), str(_TESTS / "launchers")]

from corpuslab.share import mount_share  # noqa: E402
from launcherslab.isolation import bind_mount, mount_tmpfs  # noqa: E402

GUARD = _TESTS.parent / "cachefix" / "guard"
ROOT = Path("/mnt")
SHARE = ROOT / "share"
LOCAL = ROOT / "local"
HOME = ROOT / "home"

_NEWNS, _NEWUTS = 0x00020000, 0x04000000
_libc = ctypes.CDLL(None, use_errno=True)

# Stands in for `sharefs cache place PATH --json`: every cache has a directory on the host's disk. What a test wants
# answered instead lies in a file.
_PLACE = """#!/usr/bin/python3 -IS
import hashlib, os, sys
path = sys.argv[3]
with open("%(log)s", "a") as log:
    log.write(path + "\\n")
if os.path.exists("%(answer)s"):
    sys.exit(os.system("cat %(answer)s"))
directory = "%(local)s/caches/" + hashlib.sha256(path.encode()).hexdigest()[:12]
os.makedirs(directory, 0o700, exist_ok=True)
print('{"place": "local", "directory": "%%s", "reason": "", "shared": true, "excludes": false}' %% directory)
"""


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


class Host:
    """A host. `share` is the directory on this machine whose content all hosts see at /mnt/share."""

    def __init__(self, name: str, share: Path, disk: Path) -> None:
        self.name, self.share, self.disk = name, share, disk
        disk.mkdir(parents=True, exist_ok=True)
        reads, writes = os.pipe()
        self._holder = os.fork()
        if self._holder == 0:
            os.close(reads)
            try:
                self._become()
                os.write(writes, b"1")
                os.close(writes)
                signal.pause()
            finally:
                os._exit(1)
        os.close(writes)
        is_ready = os.read(reads, 1)  # not to its end: the server of the share inherits the other one
        os.close(reads)
        if not is_ready:
            raise OSError(f"host {name} cannot be made; are you root?")
        self._namespaces = [os.open(f"/proc/{self._holder}/ns/{kind}", os.O_RDONLY) for kind in ("uts", "mnt")]

    def _become(self) -> None:
        _libc.prctl(1, 9)  # PR_SET_PDEATHSIG
        _check(_libc.unshare(_NEWNS | _NEWUTS), "unshare")
        _check(_libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None), "make / private")
        socket.sethostname(self.name)
        mount_tmpfs(ROOT)
        for directory in (SHARE, LOCAL, HOME):
            directory.mkdir()
        bind_mount(self.disk, LOCAL)
        mount_share(SHARE, self.share)
        program = LOCAL / "sharefs"
        values = {"log": LOCAL / "asked", "answer": LOCAL / "answer", "local": LOCAL}
        program.write_text(_PLACE % values)
        program.chmod(0o755)

    def close(self) -> None:
        os.kill(self._holder, signal.SIGKILL)
        os.waitpid(self._holder, 0)
        for descriptor in self._namespaces:
            os.close(descriptor)

    def _enter(self) -> None:
        for namespace in self._namespaces:
            _check(_libc.setns(namespace, 0), "setns")
        _libc.prctl(1, 9)

    def environment(self, guarded: bool, more: Mapping[str, str] = {}) -> dict[str, str]:
        base = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(HOME),
            "HF_HOME": str(HOME / "hf"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TQDM_DISABLE": "1",
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
        }
        if guarded:
            base |= {"PYTHONPATH": str(GUARD), "SHAREFS_GUARD": "1", "SHAREFS_BIN": str(LOCAL / "sharefs")}
        return base | dict(more)

    def start(
        self,
        command: Sequence[str | Path],
        guarded: bool = True,
        environment: Mapping[str, str] = {},
        text: str | None = "",
    ) -> subprocess.Popen[str]:
        """Starts a command on this host; `text` is its standard input, which stays open where there is none."""
        process = subprocess.Popen(
            [str(word) for word in command],
            env=self.environment(guarded, environment),
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            preexec_fn=self._enter,
            start_new_session=True,
        )
        if text is not None:
            assert process.stdin
            process.stdin.write(text)
            process.stdin.close()
            process.stdin = None
        return process

    def run(
        self, command: Sequence[str | Path], guarded: bool = True, environment: Mapping[str, str] = {}, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        process = self.start(command, guarded, environment, text)
        try:
            out, err = process.communicate(timeout=180)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def answers(self, answer: Mapping[str, object] | None) -> None:
        """What `sharefs cache place` says from now on; None for a directory on the disk."""
        file = self.disk / "answer"
        file.unlink(missing_ok=True)
        if answer is not None:
            file.write_text(json.dumps(answer))

    @property
    def asked(self) -> list[str]:
        log = self.disk / "asked"
        return log.read_text().split() if log.exists() else []


def files_below(directory: Path) -> list[str]:
    """Relative paths of all files, without those that are only locks."""
    found = (path.relative_to(directory) for path in sorted(directory.rglob("*")) if not path.is_dir())
    return [str(path) for path in found if path.suffix != ".lock"]
