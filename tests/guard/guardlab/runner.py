"""A Python on a host that has imported `datasets` and is forked for each program, because importing takes a second."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .cases import PRELUDE
from .hosts import Host

_LOOP = (
    PRELUDE
    + """
import atexit, json, traceback
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        for number, name in (1, "out"), (2, "err"):
            os.dup2(os.open("/mnt/local/" + name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        code = 0
        try:
            exec(compile(json.loads(line), "case", "exec"), globals())
        except BaseException:
            traceback.print_exc()
            code = 1
        atexit._run_exitfuncs()
        sys.stdout.flush(); sys.stderr.flush()
        os._exit(code)
    print(os.waitpid(child, 0)[1], flush=True)
"""
)


@dataclass(frozen=True)
class Answer:
    """`status` is that of wait(2); `results` are the lines that the program shows."""

    status: int
    results: list[str]
    said: str


def _results(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith("RESULT")]


def run_alone(host: Host, interpreter: Path, program: str, guarded: bool, environment: Mapping[str, str]) -> Answer:
    """By a Python of its own."""
    done = host.run([interpreter, "-c", PRELUDE + program], guarded, environment)
    return Answer(done.returncode, _results(done.stdout), done.stderr)


class Runner:
    def __init__(self, host: Host, interpreter: Path, guarded: bool, environment: Mapping[str, str] = {}) -> None:
        self._host = host
        self._process = host.start([interpreter, "-c", _LOOP], guarded, environment, text=None)

    def run(self, program: str) -> Answer:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(program) + "\n")
        self._process.stdin.flush()
        status = self._process.stdout.readline().strip()
        if not status:
            raise AssertionError(f"the runner has ended: {self._process.communicate()[1]}")
        out, err = ((self._host.disk / name).read_text() for name in ("out", "err"))
        return Answer(int(status), _results(out), err)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
