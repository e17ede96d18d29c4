"""A cluster that is played by a stand-in for ssh: for each node a shell text says what it does with a command."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
import zlib
from pathlib import Path
from typing import Any

SHAREFS = os.environ["SHAREFS_BIN"]
_SSH = """#!/bin/sh
while :; do
    case $1 in --) shift; break ;; -[oFlpiES]) shift 2 ;; -*) shift ;; *) break ;; esac
done
node=$1
shift
sleep "${LATENCY:-0.05}"
echo "$node $*" >>"$NETWORK/log"
. "$NETWORK/$node.sh"
"""

KILLED = "kill -KILL $(ps -o ppid= -p $PPID)"  # the script of the engine, as when memory runs out on the launching machine


def frames(node: str, document: dict[str, Any], code: int = 0, protocol: int = 1) -> str:
    """What sharefs prints there: the format of fleet/frames.hpp, written once more."""

    def line(place: str, payload: str) -> str:
        content = f"{node} {place} {payload}"
        return f"@sf1 {node} {place} {zlib.crc32(content.encode()):08x} {payload}\n"

    text = json.dumps({"exit": code, "document": document}, separators=(",", ":")).replace("@", "\\u0040")
    pieces = [text[at : at + 800] for at in range(0, len(text), 800)]
    hello = line("0/0", json.dumps({"sharefs": "0.1.0", "protocol": protocol}, separators=(",", ":")))
    return hello + "".join(line(f"{number + 1}/{len(pieces)}", piece) for number, piece in enumerate(pieces))


def document(**fields: Any) -> dict[str, Any]:
    return {"schema": 1, "command": "x", "ok": True, "plan": None, "results": [], "diagnoses": [], "error": None, **fields}


def done(number: int) -> dict[str, Any]:
    """Of a command that has changed something, as its journal's entry of this number."""
    result = {"step": 0, "outcome": "done", "error": None, "took_ms": 1}
    return document(results=[result], journal_id=str(number), interrupted=False)


def pending(what: str) -> dict[str, Any]:
    step = {"group": "", "why": "", "description": what, "undoable": True, "action": {}}
    return document(plan={"steps": [step], "notes": []})


class Network:
    def __init__(self, place: Path) -> None:
        self.place = place
        programs = place / "bin"
        programs.mkdir(parents=True)
        programs.joinpath("ssh").write_text(_SSH)
        programs.joinpath("ssh").chmod(0o755)
        programs.joinpath("sharefs").symlink_to(SHAREFS)
        self.log = place / "log"
        self.log.write_text("")
        self.config = place / "sharefs.yaml"
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:/usr/bin:/bin",
            "NETWORK": str(place),
            "HOME": str(place),
        }

    def nodes(self, patterns: list[str], servers: list[str] = []) -> None:
        text = "version: 1\nservers:\n" + "".join(f"  {name}: {{address: {name}}}\n" for name in servers) if servers else "version: 1\n"
        self.config.write_text(text + f"nodes:\n  list: {json.dumps(patterns)}\n")

    def does(self, node: str, text: str) -> None:
        self.place.joinpath(f"{node}.sh").write_text(text + "\n")

    def prints(self, node: str, text: str, code: int = 0) -> None:
        answer = self.place / f"{node}.answer"
        answer.write_text(text)
        self.does(node, f"cat {shlex.quote(str(answer))}; exit {code}")

    def changes(self, node: str, number: int, then: str = "") -> None:
        """Has one step to do, and does it. `then` is done before the answer."""
        checked, changed = self.place / f"{node}.check", self.place / f"{node}.done"
        checked.write_text(frames(node, pending("write /x"), 3))
        changed.write_text(frames(node, done(number)))
        self.does(node, f'case "$*" in *--check*) cat {checked} ;; *lease*) eval "$*" ;; *) {then}\ncat {changed} ;; esac')

    def command(self, *words: str) -> list[str]:
        return [SHAREFS, "--config", str(self.config), *words]

    def run(self, *words: str, code: int | None = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False,
            env={**self.environment, **environment},
        )
        assert code is None or ran.returncode == code, f"{ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        return ran

    def json(self, *words: str, code: int | None = 0) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.run(*words, "--json", code=code).stdout)
        return answer

    def states(self, *words: str, code: int | None = 0) -> dict[str, str]:
        return {node["name"]: node["state"] for node in self.json(*words, code=code)["nodes"]}

    def changed(self) -> list[str]:
        return [line.split()[0] for line in self.log.read_text().splitlines() if "--yes" in line]

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment,
            stdin=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )


def wait_for(condition: object, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def cluster(network: Network, count: int = 40, servers: tuple[str, ...] = ("storage1",)) -> list[str]:
    names = [f"gpu{number:02}" for number in range(1, count + 1)]
    network.nodes([f"gpu[01-{count:02}]"], list(servers))
    for number, name in enumerate([*servers, *names]):
        network.changes(name, number + 100)
    return names
