"""One User Mode Linux guest: boot, requests to its agent, and the ways it can end."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from . import paths
from .errors import GuestDied, LabError
from .wait import wait_until

BOOT_TIMEOUT = 120.0
SHELL_LINES = 3


def default_core() -> int:
    """Guests are pinned to one core, which makes fork and exec in them about three times faster."""
    chosen = os.environ.get("SHAREFS_LAB_CPU")
    return int(chosen) if chosen else max(os.sched_getaffinity(0))


class Guest:
    """A guest kernel with its agent. Made powered off; `boot` may be called again after each end.

    `disks` are outer image files, which become /dev/ubda and so on; with any, the first one is the root file
    system; `COW,IMAGE` keeps what the guest writes in COW. `command_prefix` is put before the kernel's command line,
    to start it in a network namespace.
    `share` is the outer directory that the guest has at /share; without it, the guest gets one of its own.
    `init` is for a disk with a whole system: what that starts as process 1, beside which the agent then runs.
    """

    def __init__(
        self,
        name: str = "guest",
        memory: str = "1G",
        core: int | None = None,
        disks: Sequence[Path | str] = (),
        command_prefix: Sequence[str] = (),
        kernel_arguments: Sequence[str] = (),
        share: Path | None = None,
        init: str = "",
    ) -> None:
        self.name = name
        self.directory = paths.new_state_directory()
        self.exchange = self.directory / "exchange"
        self.share = share or self.directory / "share"
        self._memory = memory
        self._core = default_core() if core is None else core
        self._disks = list(disks)
        self._init = init
        self._command_prefix = list(command_prefix)
        self._kernel_arguments = list(kernel_arguments)
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._shell_lines: list[socket.socket] = []
        self._changed = threading.Condition()
        self._ids = itertools.count(1)
        self._ready = False
        self._gone = True
        self._finished: dict[int, int] = {}
        self._synced: set[int] = set()
        self._prepare_exchange()

    def _prepare_exchange(self) -> None:
        (self.exchange / "jobs").mkdir(parents=True)
        self.share.mkdir(exist_ok=True)
        self.share.chmod(0o1777)
        # A copy: the kernel's command line cannot quote blanks, and scripts in the guest call it, too.
        shutil.copy(paths.guest_program(), self.exchange / "labguest")
        settings = {
            "project": paths.PROJECT_ROOT,
            "share": self.share,
            "binary": paths.program_for_hosts(self.directory / "binary") or "",
            "hostname": self.name,
            "disk": "ubda" if self._disks else "",
            "init": self._init,
        }
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        (self.exchange / "guest.conf").write_text(text, encoding="utf-8")

    # The life of the guest

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def running(self) -> bool:
        return not self._gone

    def boot(self, wait: bool = True) -> None:
        lines = [socket.socketpair() for _ in range(1 + SHELL_LINES)]
        inner = [pair[1].fileno() for pair in lines]
        self._line = lines[0][0]
        self._shell_lines = [pair[0] for pair in lines[1:]]
        self._ready, self._gone = False, False
        self._finished, self._synced = {}, set()
        with open(self.directory / "console", "ab") as console:
            self._process = subprocess.Popen(
                self._command(inner),
                env=os.environ | {"LD_PRELOAD": str(paths.register_library())},
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                pass_fds=inner,
                start_new_session=True,
            )
        for _, end in lines:
            end.close()
        threading.Thread(target=self._listen, args=(self._line,), daemon=True).start()
        if wait:
            self.wait_booted()

    def _command(self, lines: Sequence[int]) -> list[str]:
        return [
            *self._command_prefix,
            *("taskset", "-c", str(self._core), "linux.uml"),
            f"mem={self._memory}",
            *("rootfstype=hostfs", "rootflags=/", "ro", f"init={self.exchange}/labguest"),
            f"LAB_EXCHANGE={self.exchange}",
            *("con0=null,fd:1", "con=null", "ssl=null"),
            *(f"ssl{number}=fd:{fd},fd:{fd}" for number, fd in enumerate(lines)),
            *(f"ubd{number}={image}" for number, image in enumerate(self._disks)),
            *("quiet", "loglevel=3", "noreboot"),
            # Nothing here has a RAID, but the kernel would measure for most of a second how it could best compute one.
            "initcall_blacklist=raid6_select_algo",
            *(f"uml_dir={self.directory}/uml", f"umid={self.name}"),
            *self._kernel_arguments,
        ]

    def wait_booted(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._gone, BOOT_TIMEOUT)
            if self._ready and not self._gone:
                return
        console = self.console()
        self.kill()
        raise GuestDied(f"guest {self.name} did not boot:\n{console}")

    def kill(self) -> None:
        """Ends the guest at once, as by a power loss."""
        if not self._process:
            return
        group = self._process.pid
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        self._process.wait()
        # The processes that the guest's user space ran in end a moment later, and until then they hold its
        # network device and disks.
        wait_until(lambda: not _group_lives(group), 60.0, 0.01, f"the processes of guest {self.name} end")
        self._close_lines()

    def power_off(self, timeout: float = 10.0) -> bool:
        """Shuts the guest down, by force if that takes too long. Returns whether it ended by itself."""
        try:
            self._send("HALT")
            assert self._process
            self._process.wait(timeout)
            return True
        except (LabError, subprocess.TimeoutExpired):
            return False
        finally:
            self.kill()

    def freeze(self) -> None:
        assert self._process
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process
        os.kill(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        """Ends the guest and removes its state directory."""
        try:
            self.kill()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def console(self, length: int = 4000) -> str:
        """The end of what the kernel printed."""
        try:
            return (self.directory / "console").read_text(errors="replace")[-length:]
        except FileNotFoundError:
            return ""

    def _close_lines(self) -> None:
        with self._changed:
            self._gone = True
            self._changed.notify_all()
        for line in [self._line, *self._shell_lines]:
            if line:
                line.close()
        self._shell_lines = []

    # Requests to the agent

    def start(self, words: Sequence[str | bytes], stdin: bytes | None = None) -> int:
        """Starts a command; `words` are as for parse_command() in guest/spawn.c. Returns its number."""
        number = next(self._ids)
        jobs = self.exchange / "jobs"
        if stdin is not None:
            (jobs / f"{number}.in").write_bytes(stdin)
        encoded = [word if isinstance(word, bytes) else os.fsencode(word) for word in words]
        if any(b"\0" in word for word in encoded):
            raise ValueError("an argument contains a NUL")
        (jobs / f"{number}.request").write_bytes(b"".join(word + b"\0" for word in encoded))
        self._send(f"RUN {number}")
        return number

    def wait(self, number: int, timeout: float) -> int | None:
        """The wait(2) status of a request, or None if it goes on after `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: number in self._finished or self._gone, timeout)
            if number in self._finished:
                return self._finished[number]
            if self._gone:
                raise GuestDied(f"guest {self.name} is gone:\n{self.console()}")
            return None

    def signal(self, number: int, signal_number: int) -> None:
        self._send(f"KILL {number} {int(signal_number)}")

    def output(self, number: int, sync: bool = True) -> tuple[bytes, bytes]:
        """Standard output and error of a request so far. Only a running job needs `sync`."""
        if sync and number not in self._finished and not self._gone:
            with self._changed:
                self._synced.discard(number)
                self._send(f"SYNC {number}")
                self._changed.wait_for(lambda: number in self._synced or self._gone, 10.0)
        return self._read(number, "out"), self._read(number, "err")

    def forget(self, number: int) -> None:
        """Removes the files of a finished request."""
        for suffix in ("request", "in", "out", "err"):
            (self.exchange / "jobs" / f"{number}.{suffix}").unlink(missing_ok=True)

    def shell_line(self, index: int) -> socket.socket:
        """Our end of the serial line /dev/ttyS(index + 1), for an interactive shell."""
        return self._shell_lines[index]

    def _read(self, number: int, suffix: str) -> bytes:
        try:
            return (self.exchange / "jobs" / f"{number}.{suffix}").read_bytes()
        except FileNotFoundError:
            return b""

    def _send(self, line: str) -> None:
        if self._gone or not self._line:
            raise GuestDied(f"guest {self.name} is not running")
        try:
            self._line.sendall(line.encode() + b"\n")
        except OSError as error:
            raise GuestDied(f"guest {self.name} is gone: {error}") from error

    def _listen(self, line: socket.socket) -> None:
        rest = b""
        while True:
            try:
                received = line.recv(65536)
            except OSError:
                received = b""
            with self._changed:
                if line is not self._line:
                    return  # of an earlier boot
                if not received:
                    self._gone = True
                    self._changed.notify_all()
                    return
                *complete, rest = (rest + received).split(b"\n")
                for answer in complete:
                    self._note(answer.decode(errors="replace").split())
                self._changed.notify_all()

    def _note(self, answer: Sequence[str]) -> None:
        match answer:
            case ["READY"]:
                self._ready = True
            case ["DONE", number, status]:
                self._finished[int(number)] = int(status)
            case ["SYNCED", number]:
                self._synced.add(int(number))


def _group_lives(group: int) -> bool:
    """Whether a process of the group holds anything still; one that waits to be reaped does not."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state, _, its_group = path.read_text(errors="replace").rpartition(")")[2].split()[:3]
            if int(its_group) == group and state not in "ZX":
                return True
    return False
