"""Root works in a store that belongs to a user: attacks by that user on root's process, and honest use beside them.

An attack runs $SHAREFS_ATTACKS times, by default 3. What the user's programs find is written to a file of theirs.
"""

from __future__ import annotations

import os
import pty
import pwd
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from environmentslab.environment import let_others_through
from environmentslab.store import Store

_USER = "nobody"
_RUNS = int(os.environ.get("SHAREFS_ATTACKS", "3"))

# Run by root's sharefs in the user's name: it looks for whatever is root's.
_ATTACK = """
import fcntl, os, sys, termios
found = []
if any("secret" in value for value in os.environ.values()):
    found.append("a variable")
pid = os.getpid()
while pid > 1:
    for name in ("environ", "mem", "maps"):
        try:
            text = open(f"/proc/{pid}/{name}", "rb").read(1 << 20) if name != "mem" else b""
            if b"secret" in text:
                found.append(f"{name} of {pid}")
        except OSError:
            pass
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            where = os.readlink(f"/proc/{pid}/fd/{fd}")
            if where.endswith("root.log") or (where.startswith("/dev/pts/") and where == sys.argv[2]):
                found.append(f"{where} of {pid}")
            if where.endswith("root.log"):
                open(f"/proc/{pid}/fd/{fd}", "w").write("forged")
    except OSError:
        pass
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
for path in ("/dev/tty", "/proc/self/fd/0", sys.argv[2]):
    try:
        for key in b"touch typed\\n":
            fcntl.ioctl(os.open(path, os.O_RDWR | os.O_NOCTTY), termios.TIOCSTI, bytes([key]))
    except OSError:
        pass
open(sys.argv[1], "a").write(f"{os.getuid()} found {found}\\n")
"""


@pytest.fixture
def attacked(store: Store) -> Iterator[Store]:
    """The store is the user's, who has put a program of theirs into the environment."""
    let_others_through(store.path)
    (store.config.parent / "attack.py").write_text(_ATTACK)
    said = store.config.parent / "said"
    said.touch()
    subprocess.run(["chown", "-Rh", f"{_USER}:", store.path, said], check=True)
    yield store


def in_terminal(store: Store, *words: str, log: Path) -> tuple[int, str, bool]:
    """Root's shell has a terminal, a secret, and a log that is open in the command. Exit code, screen, and whether
    somebody has typed there."""
    master, slave = pty.openpty()
    environment = os.environ | {"HF_TOKEN": "secret", "AWS_SECRET_ACCESS_KEY": "secret"}
    command = [os.environ["SHAREFS_BIN"], "--config", str(store.config), *words]
    child = os.fork()
    if child == 0:
        os.setsid()
        os.open(os.ttyname(slave), os.O_RDWR)  # it controls the session
        for stream in (0, 1, 2):
            os.dup2(slave, stream)
        os.dup2(os.open(log, os.O_RDWR | os.O_CREAT, 0o600), 9)
        os.execve(command[0], command, environment)
    screen = b""
    end = time.monotonic() + 300
    status = None
    while status is None and time.monotonic() < end:
        if select.select([master], [], [], 0.1)[0]:
            screen += os.read(master, 65536)
        ended, code = os.waitpid(child, os.WNOHANG)
        status = os.waitstatus_to_exitcode(code) if ended else None
    while select.select([master], [], [], 0.1)[0]:
        screen += os.read(master, 65536)
    typed = bool(select.select([slave], [], [], 0.2)[0])
    name = os.ttyname(slave)
    os.close(master)
    os.close(slave)
    assert status is not None, f"it hangs: {screen.decode()} ({name})"
    return status, screen.decode(), typed


def test_attack_the_command_of_an_update_finds_nothing_of_roots(attacked: Store, tmp_path: Path) -> None:
    said = attacked.config.parent / "said"
    for _ in range(_RUNS):
        log = tmp_path / "root.log"
        script = f"python {attacked.config.parent}/attack.py {said} /dev/pts/0"
        code, screen, typed = in_terminal(attacked, "conda", "update", "--yes", "llm", "--", "sh", "-c", script, log=log)
        assert code == 0, screen
        assert not typed
        assert log.read_text() == ""
    uid = pwd.getpwnam(_USER).pw_uid
    assert said.read_text().splitlines() == [f"{uid} found []"] * _RUNS


def test_attack_on_the_process_that_asks_for_consent(attacked: Store) -> None:
    """While the question stands, its user reads and traces what runs in the user's name, and kills it."""
    attacked.update("true")
    master, slave = pty.openpty()
    command = [os.environ["SHAREFS_BIN"], "--config", str(attacked.config), "conda", "rollback", "llm"]
    job = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env=os.environ | {"HF_TOKEN": "secret"}
    )
    screen = b""
    while b"Proceed?" not in screen:
        assert select.select([master], [], [], 60)[0], screen
        screen += os.read(master, 65536)
    own = subprocess.run(["pgrep", "-u", _USER, "-P", str(job.pid)], capture_output=True, text=True).stdout.split()
    assert own, "nobody works in the user's name"
    look = "grep -al secret /proc/[0-9]*/environ 2>/dev/null; readlink /proc/[0-9]*/fd/* 2>/dev/null | grep -x " + os.ttyname(slave)
    seen = subprocess.run(["setpriv", "--reuid", _USER, "--clear-groups", "sh", "-c", look], capture_output=True, text=True)
    assert seen.stdout == ""
    os.write(master, b"y\n")
    end = time.monotonic() + 60
    while job.poll() is None and time.monotonic() < end:
        if select.select([master], [], [], 0.1)[0]:
            screen += os.read(master, 65536)
    while select.select([master], [], [], 0.1)[0]:
        screen += os.read(master, 65536)
    assert job.returncode == 0, screen
    assert attacked.current() == 1
    assert f"sudo -u {_USER} sharefs undo" in screen.decode()
    os.close(master)
    os.close(slave)


def test_output_json_and_exit_code_are_those_of_the_worker(attacked: Store) -> None:
    refused = attacked.sharefs("conda", "rollback", "llm", "--to", "7", "--yes", "--json", expect=1)
    assert refused.stdout.count('"schema"') == 1 and "generation 7" in refused.stdout
    assert "working as `nobody`" in attacked.update("true")


def test_a_command_of_roots_path_is_found_and_reads_roots_input(attacked: Store, tmp_path: Path) -> None:
    let_others_through(tmp_path)
    tmp_path.chmod(0o755)
    program = tmp_path / "lab-tool"
    program.write_text(f"#!/bin/sh\ncat > {attacked.config.parent}/said; echo $https_proxy >&2\n")
    program.chmod(0o755)
    command = [os.environ["SHAREFS_BIN"], "--config", attacked.config, "conda", "update", "--yes", "llm", "--", "lab-tool"]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "https_proxy": "http://proxy:3128"}
    done = subprocess.run(command, input="from root\n", capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    assert (attacked.config.parent / "said").read_text() == "from root\n"
    assert "http://proxy:3128" in done.stderr


def test_a_configuration_that_only_root_may_read(attacked: Store) -> None:
    attacked.config.chmod(0o600)
    assert "working as `nobody`" in attacked.update("true")
    assert attacked.current() == 2
