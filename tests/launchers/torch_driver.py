"""Runs in the Python of the real launchers: lines of JSON in, lines of JSON out. One process answers all questions.

{"options": LAUNCHER} is answered with [[NAMES, TAKES], ...]: TAKES is 0, 1 or "?" (an optional value).
{"launcher": LAUNCHER, "argv": [...]} is answered with the program and its arguments, or null if the launcher refuses.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any


class Rejected(Exception):
    """The launcher does not take this command line."""


class Started(Exception):
    """Carries the command instead of starting it."""


def torchrun_parser() -> argparse.ArgumentParser:
    from torch.distributed import run

    return run.get_args_parser()


def launch_parser() -> argparse.ArgumentParser:
    from torch.distributed import launch, run

    taken: list[argparse.ArgumentParser] = []
    original = run.get_args_parser
    launch.get_args_parser = lambda: taken.append(original()) or taken[-1]
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
        launch.parse_args(["x"])
    return taken[0]


@contextlib.contextmanager
def parsers_in_use() -> Iterator[list[argparse.ArgumentParser]]:
    """The parsers that parse_args() of some module makes and does not give away."""
    taken: list[argparse.ArgumentParser] = []
    original = argparse.ArgumentParser.parse_args

    def keep(parser: argparse.ArgumentParser, *arguments: Any, **options: Any) -> Any:
        taken.append(parser)
        return original(parser, *arguments, **options)

    argparse.ArgumentParser.parse_args = keep  # type: ignore[method-assign, assignment]
    try:
        yield taken
    finally:
        argparse.ArgumentParser.parse_args = original  # type: ignore[method-assign]


def deepspeed_parser() -> argparse.ArgumentParser:
    from deepspeed.launcher import runner

    with parsers_in_use() as taken:
        runner.parse_args(["x"])
    return taken[0]


def horovod_arguments(argv: list[str]) -> argparse.Namespace:
    from horovod.runner import launch

    sys.argv = ["horovodrun", *argv]
    return launch.parse_args()


def horovod_parser() -> argparse.ArgumentParser:
    with parsers_in_use() as taken:
        horovod_arguments(["-np", "1", "x"])
    return taken[0]


def accelerate_parser() -> argparse.ArgumentParser:
    from accelerate.commands import launch

    return launch.launch_command_parser()


def torchrun_program(argv: list[str]) -> list[str]:
    from torch.distributed import run

    return _of_torch(run.parse_args(argv))


def launch_program(argv: list[str]) -> list[str]:
    from torch.distributed import launch

    return _of_torch(launch.parse_args(argv))


def _ends_with(command: list[str], program: list[str]) -> list[str]:
    """The program as it stands at the end of the command that is started; its first argument may be a rank's number."""
    assert command[len(command) - len(program) + 1 :] == program[1:] and program[0] in command, command
    return program


def _of_torch(arguments: argparse.Namespace) -> list[str]:
    from torch.distributed import run

    _, command, rest = run.config_from_args(arguments)
    program = [arguments.training_script, *arguments.training_script_args]
    return _ends_with([command if isinstance(command, str) else command.__name__, *rest], program)


def deepspeed_program(argv: list[str]) -> list[str]:
    """From what its main() hands to Popen: for one node, the command line of its own launcher on that node."""
    from deepspeed.launcher import runner

    def start(command: list[str], **_: Any) -> None:
        raise Started(command)

    class Accelerator:
        device_count = staticmethod(lambda: 2)
        export_envs = staticmethod(lambda: ["NCCL"])

    popen, accelerator = runner.subprocess.Popen, runner.get_accelerator
    runner.subprocess.Popen, runner.get_accelerator = start, Accelerator
    try:
        runner.main(argv)
    except Started as started:
        arguments = runner.parse_args(argv)
        return _ends_with(started.args[0], [arguments.user_script, *arguments.user_args])
    except (ValueError, RuntimeError, AssertionError) as error:
        raise Rejected(error) from error
    finally:
        runner.subprocess.Popen, runner.get_accelerator = popen, accelerator
    raise Rejected("nothing was started")


def accelerate_program(argv: list[str]) -> list[str]:
    from accelerate.commands import launch
    from accelerate.utils import launch as commands

    arguments, _, _ = launch._validate_launch_command(accelerate_parser().parse_args(argv))
    command = commands.prepare_simple_launcher_cmd_env(arguments)[0]
    return _ends_with(command, [arguments.training_script, *arguments.training_script_args])


def horovod_program(argv: list[str]) -> list[str]:
    return horovod_arguments(argv).command


PARSERS: dict[str, Callable[[], argparse.ArgumentParser]] = {
    "torchrun": torchrun_parser,
    "torch.distributed.launch": launch_parser,
    "deepspeed": deepspeed_parser,
    "accelerate": accelerate_parser,
    "horovodrun": horovod_parser,
}
PROGRAMS: dict[str, Callable[[list[str]], list[str]]] = {
    "torchrun": torchrun_program,
    "torch.distributed.launch": launch_program,
    "deepspeed": deepspeed_program,
    "accelerate": accelerate_program,
    "horovodrun": horovod_program,
}


def options_of(parser: argparse.ArgumentParser) -> list[list[Any]]:
    found: list[list[Any]] = []
    for action in parser._actions:
        if action.option_strings:
            takes = 1 if action.nargs is None else action.nargs
            found.append([list(action.option_strings), takes])
    return found


def program_of(launcher: str, argv: list[str]) -> list[str] | None:
    # torch.distributed.launch and its parser say what they think of the line; that is for people.
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            return PROGRAMS[launcher](argv)
        except (Rejected, SystemExit, ValueError, AssertionError) as error:
            if isinstance(error, AssertionError) and str(error).startswith("["):
                raise  # of _ends_with
            return None


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the launchers print is no answer
    for line in sys.stdin:
        question = json.loads(line)
        if "options" in question:
            answer: Any = options_of(PARSERS[question["options"]]())
        else:
            try:
                answer = program_of(question["launcher"], question["argv"])
            except Exception:
                answer = {"failed": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
