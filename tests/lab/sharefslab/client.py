"""Talking to the daemon of `lab up`."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import socket
import struct
import sys
import termios
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import LabError

CTRL_RIGHT_BRACKET = b"\x1d"


def connect(socket_path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(socket_path))
    except (FileNotFoundError, ConnectionRefusedError):
        raise LabError("no lab is up; start one with `lab up`") from None
    return connection


def request(socket_path: Path, message: dict[str, Any]) -> int:
    """Carries out a request and passes its output on. Returns the exit code, as a shell gives it."""
    with connect(socket_path) as connection:
        connection.sendall(json.dumps(message).encode() + b"\n")
        for line in connection.makefile("rb"):
            answer = json.loads(line)
            for name, stream in (("out", sys.stdout.buffer), ("err", sys.stderr.buffer)):
                if name in answer:
                    stream.write(base64.b64decode(answer[name]))
                    stream.flush()
            if "error" in answer:
                raise LabError(answer["error"])
            if "exit" in answer:
                code = int(answer["exit"])
                return code if code >= 0 else 128 - code
    raise LabError("the lab has ended")


def shell(socket_path: Path, host: str) -> int:
    """An interactive shell on the host, over this terminal."""
    if not sys.stdin.isatty():
        raise LabError("a shell needs a terminal; use `lab run`")
    rows, columns = struct.unpack("HHHH", fcntl.ioctl(sys.stdin, termios.TIOCGWINSZ, b"\0" * 8))[:2]
    message = {
        "do": "shell",
        "host": host,
        "rows": rows or 24,
        "columns": columns or 80,
        "term": os.environ.get("TERM", "dumb"),
    }
    with connect(socket_path) as connection:
        connection.sendall(json.dumps(message).encode() + b"\n")
        answer = json.loads(_read_line(connection))
        if "error" in answer:
            raise LabError(answer["error"])
        with _raw_terminal():
            _relay(connection)
    return 0


def _read_line(connection: socket.socket) -> bytes:
    # Unbuffered: what follows the line belongs to the terminal.
    line = b""
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            raise LabError("the lab has ended")
        line += byte
    return line


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _relay(connection: socket.socket) -> None:
    """Until the shell ends, or Ctrl-] is pressed, which also leaves a shell that hangs."""
    standard_input = sys.stdin.fileno()
    with contextlib.suppress(ConnectionError):
        while True:
            readable, _, _ = select.select([standard_input, connection], [], [])
            if connection in readable:
                received = connection.recv(65536)
                if not received:
                    return
                os.write(sys.stdout.fileno(), received)
            if standard_input in readable:
                typed = os.read(standard_input, 4096)
                if not typed or CTRL_RIGHT_BRACKET in typed:
                    return
                connection.sendall(typed)
