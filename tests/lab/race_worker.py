"""What runs on the hosts of a race (sharefslab/race.py).

    serve PORT OUTPUTS MODULES    a warm interpreter: runs the scripts that race_python.sh is started with
    barrier PORT PARTIES          lets the hosts of a launch go on together

Starting Python and importing `datasets` takes seconds of the lab's only core, and a thousand launches would take
hours. So a process that has imported it is forked for each launch. What `datasets` and `huggingface_hub` take from
their environment they take when they are imported: for every environment that a launch comes with there is a process
that imported them in exactly this environment. Nothing of a launch is put in by hand: the script gets the arguments
and the environment that the exec of its `python3` got.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import os
import runpy
import signal
import socket
import sys
import traceback
from collections.abc import Mapping

READ_THE_ENVIRONMENT = ("datasets", "huggingface_hub")
NOT_TO_IMPORT = (*READ_THE_ENVIRONMENT, "evaluate", "datasets_modules", "__main__", "__mp_main__")
OF_THE_RACE = "RACE_"  # variables that the script reads, and nothing that it imports
LONGEST_LAUNCH = 240  # seconds
MOST_ENVIRONMENTS = 8


def main() -> None:
    commands = {"serve": serve, "barrier": barrier}
    commands[sys.argv[1]](*sys.argv[2:])


# The warm interpreter: one process with all modules but two, one child of it for each environment with these, too,
# and one child of that for each launch. A host has one launch at a time.


def serve(port: str, outputs: str, modules: str) -> None:
    """`modules` is a file with the names of what a launch imports, in that order."""
    with open(modules, encoding="utf-8") as file:
        names = file.read().split()
    _import([name for name in names if name.partition(".")[0] not in NOT_TO_IMPORT])
    too_early = [name for name in READ_THE_ENVIRONMENT if name in sys.modules]
    if too_early:
        sys.exit(f"imported before any launch: {too_early}")
    _keep_memory_shared()
    of_environment: dict[str, socket.socket] = {}
    with socket.create_server(("127.0.0.1", int(port))) as listener:
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            with connection, connection.makefile("rw", encoding="utf-8") as stream:
                pid = int(stream.readline())
                arguments, environment, directory = _started_with(pid)
                imported_in = {k: v for k, v in environment.items() if not k.startswith(OF_THE_RACE)}
                key = repr(sorted(imported_in.items()))
                if key not in of_environment:
                    if len(of_environment) == MOST_ENVIRONMENTS:
                        of_environment.pop(next(iter(of_environment))).close()  # which ends its process
                    ours = [listener, connection, *of_environment.values()]
                    of_environment[key] = _start_for_environment(imported_in, names, ours)
                output = f"{outputs}/{pid}"
                of_environment[key].sendall(repr((arguments, environment, directory, output)).encode())
                status = of_environment[key].recv(64)
                code = os.waitstatus_to_exitcode(int(status)) if status else 1
                stream.write(f"{code} {output}\n")


def _started_with(pid: int) -> tuple[list[str], dict[str, str], str]:
    """Arguments, environment and directory of `python3`, as its exec got them."""
    arguments = _strings(f"/proc/{pid}/cmdline")[2:]  # behind bash and race_python.sh
    environment = dict(entry.split("=", 1) for entry in _strings(f"/proc/{pid}/environ"))
    if arguments[0].startswith("-"):
        sys.exit("the warm interpreter runs scripts, and knows no options")
    return arguments, environment, os.readlink(f"/proc/{pid}/cwd")


def _strings(path: str) -> list[str]:
    with open(path, "rb") as file:
        return [os.fsdecode(text) for text in file.read().split(b"\0")[:-1]]


def _import(names: list[str]) -> None:
    for name in names:
        # Some are no modules of their own: a launch imports what is missing.
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _keep_memory_shared() -> None:
    """A garbage collection would write into every object, and so copy every page of a forked process."""
    gc.collect()
    gc.freeze()


def _start_for_environment(
    environment: Mapping[str, str], names: list[str], inherited: list[socket.socket]
) -> socket.socket:
    """A child that imports everything in this environment, and forks for each launch that it is sent."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() != 0:
        theirs.close()
        return ours
    for connection in (ours, *inherited):
        connection.close()
    os.environ.clear()
    os.environ.update(environment)
    # As Python does at its start, which lies behind this process: what stands in PYTHONPATH, and its sitecustomize.
    sys.path[:0] = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if "PYTHONPATH" in environment:
        sys.modules.pop("sitecustomize", None)
        _import(["sitecustomize"])
    _import([name for name in names if name.partition(".")[0] in READ_THE_ENVIRONMENT])
    _keep_memory_shared()
    while request := theirs.recv(1 << 17):
        child = os.fork()
        if child == 0:
            theirs.close()
            _run(*ast.literal_eval(request.decode()))
        _, status = os.waitpid(child, 0)
        theirs.sendall(str(status).encode())
    os._exit(0)


def _run(arguments: list[str], environment: Mapping[str, str], directory: str, output: str) -> None:
    """Becomes the script. Ends the process."""
    signal.alarm(LONGEST_LAUNCH)
    code = 1
    try:
        for number, suffix in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{output}.{suffix}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        os.chdir(directory)
        os.environ.update(environment)
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


# Starting together


def barrier(port: str, parties: str) -> None:
    """Each launch has a name, which its hosts send. When the last has, all get an answer."""
    waiting: dict[bytes, list[socket.socket]] = {}
    with socket.create_server(("", int(port)), backlog=64) as listener:
        while True:
            connection, _ = listener.accept()
            connection.settimeout(60)
            with contextlib.suppress(OSError):
                launch = connection.recv(256)
                waiting.setdefault(launch, []).append(connection)
                if len(waiting[launch]) == int(parties):
                    for party in waiting.pop(launch):
                        with contextlib.suppress(OSError), party:
                            party.sendall(b"go")


if __name__ == "__main__":
    main()
