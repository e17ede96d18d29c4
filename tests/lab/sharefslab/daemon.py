"""The process behind `lab up`: it holds the cluster, and serves commands over a socket.

A client sends one line of JSON, {"do": NAME, ...}. The answer is lines of JSON: {"out": BASE64} and
{"err": BASE64} as they come, then {"exit": CODE}, or {"error": TEXT}. After {"shell": true} the connection
carries the bytes of a terminal both ways.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shlex
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .cluster import BaseCluster
from .errors import LabError
from .guest import SHELL_LINES
from .host import Job

Request = dict[str, Any]

STREAM_INTERVAL = 0.3
KILL_PATIENCE = 5.0


class Daemon:
    """Serves until the process is told to end."""

    def __init__(self, cluster: BaseCluster, socket_path: Path) -> None:
        self._cluster = cluster
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(socket_path))
        self._listener.listen()
        self._changes = threading.Lock()
        self._shells = threading.Lock()
        self._shells_in_use: set[tuple[int, int]] = set()

    def serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(ConnectionError):
            try:
                request = json.loads(connection.makefile("rb").readline())
                operations: dict[str, Callable[[socket.socket, Request], None]] = {
                    "run": self._run,
                    "fault": self._fault,
                    "status": self._status,
                    "shell": self._shell,
                }
                operations[request["do"]](connection, request)
            except (LabError, TimeoutError, ValueError) as error:
                _send(connection, {"error": str(error)})

    def _run(self, connection: socket.socket, request: Request) -> None:
        job = self._cluster[request["host"]].start(request["argv"], user=request.get("user"))
        sent = {"out": 0, "err": 0}
        while True:
            running = job.running()
            for name, output in (("out", job.stdout()), ("err", job.stderr())):
                _send_output(connection, name, output[sent[name] :])
                sent[name] = len(output)
            if not running:
                break
            if not _still_there(connection, STREAM_INTERVAL):
                _end_job(job)
                return
        _send(connection, {"exit": job.wait().returncode})

    def _fault(self, connection: socket.socket, request: Request) -> None:
        cluster, host = self._cluster, request["host"]
        actions: dict[str, Callable[[], None]] = {
            "kill": lambda: cluster.kill(host),
            "freeze": lambda: cluster.freeze(host),
            "resume": lambda: cluster.resume(host),
            "reboot": lambda: cluster.reboot(host),
            "drop": lambda: cluster.drop_traffic(host),
            "restore": lambda: cluster.restore_traffic(host),
            "latency": lambda: cluster.latency(host, float(request["milliseconds"])),
            "remake": lambda: cluster.remake_filesystem(host),
            "unexport": lambda: cluster.remove_export(host),
        }
        with self._changes:
            actions[request["fault"]]()
        _send(connection, {"exit": 0})

    def _status(self, connection: socket.socket, request: Request) -> None:
        lines = [f"{host.name:10} {host.address:12} {'on' if host.powered else 'off'}\n" for host in self._cluster]
        lines.append(f"processes {' '.join(map(str, self._cluster.pids()))}, driver {os.getpid()}\n")
        _send_output(connection, "out", "".join(lines).encode())
        _send(connection, {"exit": 0})

    def _shell(self, connection: socket.socket, request: Request) -> None:
        host = self._cluster[request["host"]]
        with self._shells:
            taken = {index for guest, index in self._shells_in_use if guest == id(host.guest)}
            free = sorted(set(range(SHELL_LINES)) - taken)
            if not free:
                raise LabError(f"{SHELL_LINES} shells are open in this guest already")
            place = (id(host.guest), free[0])
            self._shells_in_use.add(place)
        try:
            line = host.guest.shell_line(free[0])
            size = f"stty sane rows {int(request['rows'])} cols {int(request['columns'])}"
            prompt = shlex.quote("PS1=" + shlex.quote(f"{host.name}:\\w\\$ "))
            job = host.start(
                f"{size}; cd; exec bash --rcfile <(echo {prompt}) -i",
                env={"TERM": request["term"]},
                terminal=f"/dev/ttyS{free[0] + 1}",
            )
            _send(connection, {"shell": True})
            _relay(connection, line, job)
            _end_job(job)
        finally:
            with self._shells:
                self._shells_in_use.discard(place)


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def _send_output(connection: socket.socket, name: str, output: bytes) -> None:
    if output:
        _send(connection, {name: base64.b64encode(output).decode()})


def _still_there(connection: socket.socket, seconds: float) -> bool:
    """Waits; a client that has gone away ends the wait and gives False. Clients send nothing after a request."""
    readable, _, _ = select.select([connection], [], [], seconds)
    return not readable or bool(connection.recv(1, socket.MSG_PEEK))


def _end_job(job: Job) -> None:
    """First politely, as by a terminal that hangs up."""
    for number in (signal.SIGHUP, signal.SIGKILL):
        deadline = time.monotonic() + KILL_PATIENCE
        job.kill(number)
        while job.running() and time.monotonic() < deadline:
            time.sleep(0.05)


def _relay(connection: socket.socket, line: socket.socket, job: Job) -> None:
    """Passes bytes both ways until the shell ends or the client goes away."""
    ended = False
    while not ended:
        ended = not job.running()
        readable, _, _ = select.select([connection, line], [], [], 0.1)
        for source, target in ((connection, line), (line, connection)):
            if source not in readable:
                continue
            received = source.recv(65536)
            if not received:
                return
            target.sendall(received)
