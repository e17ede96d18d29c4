"""One simulated machine: run commands, read and write files."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from .errors import CommandFailed, CommandTimeout, LabError
from .guest import Guest

DEFAULT_TIMEOUT = 120.0
KILL_PATIENCE = 20.0
MOST_HISTORY = 3000  # characters of one command in the report of a failed test

Command = str | Sequence[str | os.PathLike[str] | bytes]


@dataclass(frozen=True)
class Completed:
    """A command that has ended. A negative return code is the signal that ended it, as in subprocess."""

    command: str
    returncode: int
    stdout: bytes
    stderr: bytes
    duration: float

    @property
    def ok(self) -> bool:
        return self.returncode == 0

    @property
    def out(self) -> str:
        """Standard output as text."""
        return self.stdout.decode(errors="replace")

    @property
    def err(self) -> str:
        """Standard error as text."""
        return self.stderr.decode(errors="replace")

    def check(self) -> Completed:
        """Returns itself if the command succeeded; raises CommandFailed otherwise."""
        if self.ok:
            return self
        raise CommandFailed(f"exit code {self.returncode}: {self.command}\n{self.out}{self.err}", self)

    def answer(self) -> tuple[str, int, bytes, bytes]:
        """Everything but the time it took."""
        return self.command, self.returncode, self.stdout, self.stderr

    def __str__(self) -> str:
        return f"$ {self.command}\n{self.out}{self.err}[{self.returncode}, {self.duration:.2f} s]"


class Job:
    """A command that was started and may still run."""

    def __init__(self, guest: Guest, number: int, command: str, log: list[Completed]) -> None:
        self.command = command
        self._guest = guest
        self._number = number
        self._started = time.monotonic()
        self._log = log
        self._completed: Completed | None = None

    def running(self) -> bool:
        return self._completed is None and self._guest.wait(self._number, 0) is None

    def stdout(self) -> bytes:
        """Standard output so far."""
        return self._completed.stdout if self._completed else self._guest.output(self._number)[0]

    def stderr(self) -> bytes:
        """Standard error so far."""
        return self._completed.stderr if self._completed else self._guest.output(self._number)[1]

    def kill(self, signal_number: int = signal.SIGKILL) -> None:
        """Signals the command and the processes of its group."""
        self._guest.signal(self._number, signal_number)

    def wait(self, timeout: float = DEFAULT_TIMEOUT) -> Completed:
        """The command's end. Raises CommandTimeout if it goes on after `timeout` seconds, and lets it."""
        if self._completed:
            return self._completed
        status = self._guest.wait(self._number, timeout)
        if status is None:
            raise self._timeout(timeout, stuck=False)
        self._completed = self._result(os.waitstatus_to_exitcode(status))
        self._guest.forget(self._number)
        self._log.append(self._completed)
        return self._completed

    def wait_or_kill(self, timeout: float = DEFAULT_TIMEOUT) -> Completed:
        """As `wait`, but a command that is late is killed before CommandTimeout is raised."""
        try:
            return self.wait(timeout)
        except CommandTimeout:
            self.kill(signal.SIGKILL)
            stuck = self._guest.wait(self._number, KILL_PATIENCE) is None
            late = self._timeout(timeout, stuck)
            self._log.append(late.completed)
            raise late from None

    def _timeout(self, timeout: float, stuck: bool) -> CommandTimeout:
        after = " and cannot be killed" if stuck else ""
        message = f"still running after {timeout:g} s{after}: {self.command}"
        return CommandTimeout(message, self._result(-signal.SIGKILL), stuck)

    def _result(self, returncode: int) -> Completed:
        stdout, stderr = self._guest.output(self._number)
        return Completed(self.command, returncode, stdout, stderr, time.monotonic() - self._started)


@dataclass
class Host:
    """A machine of the cluster. `place` is its name in the guest, or "-" if the guest is the machine."""

    name: str
    address: str
    guest: Guest
    place: str
    powered: bool = True
    boots: int = 1
    log: list[Completed] = field(default_factory=list)

    def start(
        self,
        command: Command,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        input: bytes | str | None = None,  # noqa: A002 - as in subprocess
        terminal: str | None = None,
    ) -> Job:
        """Starts a command and returns at once. A string is a script for bash; a sequence is run as it is.

        Without `user` it runs as root, without `cwd` in `/`. The environment has PATH, HOME, USER, LOGNAME,
        SHELL and LC_ALL, and what `env` adds. Standard input is empty without `input`.
        """
        words: list[str | bytes] = []
        if user:
            words += ["--user", user]
        if cwd:
            words += ["--directory", cwd]
        if terminal:
            words += ["--terminal", terminal]
        for key, value in (env or {}).items():
            words += ["--set", f"{key}={value}"]
        argv = ["bash", "-c", command] if isinstance(command, str) else [os.fspath(word) for word in command]
        text = command if isinstance(command, str) else shlex.join(os.fsdecode(word) for word in argv)
        return self._ask([*words, "--", *argv], text, input)

    def _ask(self, words: Sequence[str | bytes], text: str, content: bytes | str | None) -> Job:
        """`words` are as for parse_command() in guest/spawn.c, without the host."""
        if not self.powered:
            raise LabError(f"host {self.name} is powered off")
        stdin = content.encode() if isinstance(content, str) else content
        return Job(self.guest, self.guest.start([self.place, *words], stdin), text, self.log)

    def run(
        self,
        command: Command,
        timeout: float = DEFAULT_TIMEOUT,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        input: bytes | str | None = None,  # noqa: A002 - as in subprocess
        check: bool = False,
    ) -> Completed:
        """Runs a command to its end (see `start`). With `check`, a failure raises CommandFailed.

        After `timeout` seconds the command is killed and CommandTimeout raised.
        """
        completed = self.start(command, user=user, env=env, cwd=cwd, input=input).wait_or_kill(timeout)
        return completed.check() if check else completed

    def kill(self, job: Job, signal_number: int = signal.SIGKILL) -> None:
        job.kill(signal_number)

    def write_file(self, path: str, content: bytes | str, mode: int | None = None, owner: str | None = None) -> None:
        """Writes a file, and makes the directories above it. `owner` is USER or USER:GROUP."""
        # By the agent itself: three programs, one after the other, would take ten times as long.
        words = ["--write", path, "--", "" if mode is None else f"{mode:o}"]
        self._ask(words, f"write {path}", content).wait_or_kill().check()
        if owner:
            self.run(["chown", owner, path], check=True)

    def read_file(self, path: str) -> bytes:
        return self.run(["cat", "--", path], check=True).stdout

    def read_text(self, path: str) -> str:
        return self.read_file(path).decode()

    def exists(self, path: str) -> bool:
        """Whether there is anything at `path`; a broken link counts."""
        return self.run(["test", "-e", path, "-o", "-L", path]).ok

    def history(self, entries: int = 40) -> str:
        """The last commands and their output, for the report of a failed test."""
        # A condition that was polled shows once, with the number of times it gave the same answer.
        runs = [list(run) for _, run in groupby(self.log, key=Completed.answer)]
        return "\n".join(
            f"{str(run[-1])[:MOST_HISTORY]}{f' ({len(run)} times)' if run[1:] else ''}" for run in runs[-entries:]
        )
