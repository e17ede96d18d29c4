"""Runs in a Python that has click: lines of JSON in, lines of JSON out, as torch_driver.py.

Its argument is the directory with the launchers' own sources. What these import and is not installed is a stand-in that
does nothing; the command line is read by their own parser.

{"options": LAUNCHER} is answered with [[NAMES, TAKES], ...]: TAKES is the number of values.
{"launcher": LAUNCHER, "argv": [...]} is answered with the program and its arguments, or null if the launcher refuses.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import click

SOURCES = Path(sys.argv[1])


class Nothing(MagicMock):
    """Anything; as a decorator it leaves the function as it is."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) and not options else super().__call__(*args, **options)


class StandIn(ModuleType):
    __version__ = "0"  # composer prints it
    LOGGER_FORMAT = "%(message)s"  # ray begins to log

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


class StandIns(MetaPathFinder, Loader):
    """The last to be asked: whatever nobody else has."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname == "colorful":  # ray has a stand-in of its own
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def source(file: str) -> Any:
    """The module in a file of SOURCES, under its own name; its package is a stand-in."""
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    spec = importlib.util.spec_from_file_location(name, SOURCES / file)
    assert spec and spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands() -> dict[str, Any]:
    """The parser of each launcher, and where it puts the program and its arguments."""
    click.Choice = lambda *_, **__: str  # the choices are those of a library that is not here
    source("ray/dashboard/modules/job/cli_utils.py")
    source("ray/autoscaler/_private/cli_logger.py")
    return {
        "composer": (source("composer/cli/launcher.py")._get_parser(), "training_script", "training_script_args"),
        "colossalai run": (source("colossalai/cli/launcher/__init__.py").run, "m", "user_script", "user_args"),
        "fabric run": (source("lightning_fabric/cli.py")._main.commands["run"], "script", "script_args"),
        "ray job submit": (source("ray/dashboard/modules/job/cli.py").submit, "entrypoint"),
    }


def options_of(parser: Any) -> list[list[Any]]:
    if isinstance(parser, argparse.ArgumentParser):
        return [[action.option_strings, 1 if action.nargs is None else action.nargs] for action in parser._actions
                if action.option_strings]  # fmt: skip
    options = [one for one in parser.get_params(click.Context(parser)) if isinstance(one, click.Option)]
    return [[one.opts + one.secondary_opts, 0 if one.is_flag or one.count else one.nargs] for one in options]


def program_of(parser: Any, fields: Sequence[str], argv: list[str]) -> list[str] | None:
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            if isinstance(parser, argparse.ArgumentParser):
                found = vars(parser.parse_args(argv))
            else:
                found = parser.make_context("launcher", list(argv)).params
        except (click.ClickException, click.exceptions.Exit, SystemExit):
            return None
    words: list[str] = []
    for field in fields:
        if found[field] is not None:
            words += [found[field]] if isinstance(found[field], str) else found[field]
    return words


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.meta_path.append(StandIns())
    known = commands()
    for line in sys.stdin:
        question = json.loads(line)
        parser, *fields = known[question.get("options") or question["launcher"]]
        answer = options_of(parser) if "options" in question else program_of(parser, fields, question["argv"])
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
