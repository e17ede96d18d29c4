"""The command line of `lab`."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from . import client
from .cluster import BaseCluster, host_names
from .daemon import Daemon
from .errors import LabError
from .kernels import KernelCluster
from .namespaces import Cluster
from .paths import missing_prerequisites
from .wait import wait_until

FAULTS = {
    "kill": "power off; what is on the disk stays",
    "reboot": "boot again from the same disk; starts no daemon",
    "freeze": "the host answers nobody any more",
    "resume": "end of freeze",
    "drop": "everything from and to the host is lost",
    "restore": "end of drop",
    "latency": "add MILLISECONDS to each round trip; 0 ends it",
    "remake": "a new file system in place of /srv/share: clients get ESTALE",
    "unexport": "withdraw /srv/share until the next `exportfs -ra`",
}


def state_directory() -> Path:
    """One lab for each user, or for each $SHAREFS_LAB_STATE."""
    chosen = os.environ.get("SHAREFS_LAB_STATE")
    return Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"sharefs-lab-up-{os.getuid()}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lab",
        description="Hosts with kernel NFS to play with, and faults to play tricks on them.",
        epilog="Hosts are server, node1, node2, ... Example: lab up --server-started; lab shell node1",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    up = commands.add_parser("up", help="start a lab")
    up.add_argument("--nodes", type=int, default=2, metavar="N", help="hosts besides the server (2)")
    up.add_argument("--kernels", action="store_true", help="a kernel for each host; needs root")
    up.add_argument("--systemd", action="store_true", help="with --kernels, whose nodes boot a Debian with systemd")
    up.add_argument("--server-started", action="store_true", help="export /srv/share, without sharefs")

    shell = commands.add_parser("shell", help="an interactive shell on a host; Ctrl-] leaves it")
    shell.add_argument("host", metavar="HOST")

    run = commands.add_parser("run", help="run a command on a host; passes its output and exit code on")
    run.add_argument("--user", help="as this user: alice or bob")
    run.add_argument("host", metavar="HOST")
    run.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the command and its arguments")

    fault = commands.add_parser(
        "fault",
        help="let something go wrong",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {name:9} {text}" for name, text in FAULTS.items()),
    )
    fault.add_argument("fault", choices=FAULTS, metavar="FAULT", help="see below")
    fault.add_argument("host", metavar="HOST")
    fault.add_argument("milliseconds", nargs="?", type=float, metavar="MILLISECONDS", help="for latency")

    commands.add_parser("status", help="which hosts there are, and whether they are on")
    commands.add_parser("down", help="end the lab and everything in it")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command == "fault" and (options.fault == "latency") != (options.milliseconds is not None):
        parser.error("MILLISECONDS goes with latency, and latency with MILLISECONDS")
    if options.command == "run" and options.argv in ([], ["--"]):
        parser.error("run needs a COMMAND")
    try:
        return _carry_out(options)
    except (LabError, TimeoutError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141


def _carry_out(options: argparse.Namespace) -> int:
    connection = state_directory() / "socket"
    match options.command:
        case "up":
            return _up(options)
        case "down":
            return _down()
        case "shell":
            return client.shell(connection, options.host)
        case "run":
            argv = options.argv[1:] if options.argv[:1] == ["--"] else options.argv
            message = {"do": "run", "host": options.host, "argv": argv, "user": options.user}
        case "fault":
            message = {"do": "fault", **{key: getattr(options, key) for key in ("fault", "host", "milliseconds")}}
        case _:
            message = {"do": options.command}
    return client.request(connection, message)


def up(arguments: Sequence[str], prepare: Callable[[BaseCluster], None]) -> int:
    """`lab up ARGUMENTS`, and before it is up `prepare`, whose output goes to this terminal."""
    return _up(_parser().parse_args(["up", *arguments]), prepare)


def _up(options: argparse.Namespace, prepare: Callable[[BaseCluster], None] = lambda _: None) -> int:
    missing = missing_prerequisites()
    if missing:
        raise LabError("the lab lacks: " + ", ".join(missing) + "; run scripts/setup.sh --lab")
    directory = state_directory()
    if _driver(directory):
        raise LabError("a lab is up already; end it with `lab down`")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700, parents=True)

    # The driver says in the pipe why it could not start; it closes it without a word when the lab is up.
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        _become_driver(options, directory, writer, prepare)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        problem = pipe.read()
    if problem:
        shutil.rmtree(directory, ignore_errors=True)
        raise LabError(problem.strip())
    return client.request(directory / "socket", {"do": "status"})


def _become_driver(
    options: argparse.Namespace, directory: Path, started: int, prepare: Callable[[BaseCluster], None]
) -> None:
    """Never returns. A session of its own, so that Ctrl-C in the terminal does not reach it or its guests."""
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        (directory / "pid").write_text(f"{os.getpid()} {_start_time(os.getpid())}\n", encoding="utf-8")
        with _make_cluster(options) as cluster:
            if options.server_started:
                cluster.start_nfs_server()
                cluster.start_lock_daemons()
            prepare(cluster)
            daemon = Daemon(cluster, directory / "socket")
            _detach(directory / "log")
            os.close(started)
            daemon.serve()
    except SystemExit:
        pass
    except BaseException as error:  # noqa: BLE001 - the end of this process
        with contextlib.suppress(OSError):
            os.write(started, str(error).encode() or b"failed")
        traceback.print_exc()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os._exit(0)


def _make_cluster(options: argparse.Namespace) -> BaseCluster:
    names = host_names(options.nodes)
    if options.kernels or options.systemd:
        return KernelCluster(names, systemd=names[1:] if options.systemd else ())
    return Cluster(names)


def _detach(log: Path) -> None:
    """Lets go of the terminal: whoever waits for its end must not wait for us."""
    null = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)


def _start_time(pid: int) -> str:
    """When the process began, in clock ticks since boot: with its number it is unique (proc(5), stat, field 22)."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]


def _driver(directory: Path) -> int | None:
    """The driver's process number, if it is alive and no other process has got that number since."""
    try:
        pid, started = (directory / "pid").read_text(encoding="utf-8").split()
        return int(pid) if _start_time(int(pid)) == started else None
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return None


def _down() -> int:
    directory = state_directory()
    pid = _driver(directory)
    if not pid:
        shutil.rmtree(directory, ignore_errors=True)
        raise LabError("no lab is up")
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not _driver(directory), timeout=60, what=f"the lab's driver, process {pid}, ends")
    return 0
