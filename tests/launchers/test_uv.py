"""uv run, uv tool run and uvx: the real program of PyPI."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from launcherslab.comparison import misread_options
from launcherslab.getopt import NO_VALUE, VALUE, RealOption
from launcherslab.isolation import SHARED
from launcherslab.printer import printed
from launcherslab.sharefs import Sharefs
from launcherslab.training_python import training_python

# Options with which another program runs than the word behind them: see the lines.
OTHERWISE = {"-m", "--module", "-s", "--script", "--gui-script", "--directory"}

# ./p stands for the program that prints its arguments.
LINES = [
    "./p a", "-- ./p a", "train.py a", "./train.py -p x", "python3 train.py x", "python3 -m lab.train -q", "-m lab.train -m",
    "--module lab.train a", "-s train.py b", "--script ./p -s", "-p /usr/bin/python3 train.py -p x",
    "-p=/usr/bin/python3 train.py", "-p/usr/bin/python3 ./p a", "--python /usr/bin/python3 ./p", "-nq ./p --x", "-nqq ./p",
    "--directory lab ../p x", "--env-file e.env ./p --env-file", "--with= ./p a", "-w '' ./p", "--no-cache ./p --no-cache",
    "--isolated ./p", "./p -- b", "-- python3 ./p -- b", "env A=1 ./p",
]  # fmt: skip
REFUSED = ["--pyth /usr/bin/python3 ./p", "-mlab.train a", "--no-cache=true ./p", "--no-such-option ./p"]


@pytest.fixture(scope="module")
def job(sharefs: Sharefs) -> Iterator[Sharefs]:
    """With uv in PATH, which asks no index and starts Debian's Python."""
    (sharefs.directory / "e.env").write_text("LAB_UV=1\n")
    path = f"{training_python() / 'bin'}:{sharefs.environment['PATH']}"
    settings = {"UV_OFFLINE": "1", "UV_NO_PROJECT": "1", "UV_PYTHON": "/usr/bin/python3", "UV_NO_MANAGED_PYTHON": "1"}
    yield replace(sharefs, environment={**sharefs.environment, "PATH": path, **settings})


def words_of(line: str) -> list[str]:
    return ["uv", "run", *(re.sub(r"^(\.\.?)/p$", r"\1/print_arguments", word) for word in shlex.split(line))]


def options_of(text: str) -> list[RealOption]:
    """From its help, where a line is `-w, --with <WITH>` or `-q, --quiet...`, with what it is for behind."""
    options = []
    for line in text.splitlines():
        names = re.match(r" +(-\w, )?(--[\w-]+)(\.\.\.)?( <\w+>)?( |$)", line)
        if names:
            takes = VALUE if names[4] else NO_VALUE
            options += [RealOption(name.rstrip(", "), takes) for name in names.group(1, 2) if name]
    return options


@pytest.mark.parametrize("command", [["uv", "run"], ["uv", "tool", "run"], ["uvx"]], ids=" ".join)
def test_every_option_of_the_real_program_is_in_the_table(job: Sharefs, command: list[str]) -> None:
    options = options_of(job.run([*command, "--help"]).stdout)
    assert len(options) > 60
    asked = [option for option in options if option.name not in OTHERWISE]
    wrong = misread_options(job, command, asked, {"-h", "--help", "-V", "--version"})
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("line", LINES)
def test_the_program_gets_what_sharefs_says(job: Sharefs, line: str) -> None:
    answer = job.ask([*words_of(line), "--cache_dir", str(SHARED / "c"), "--output_dir", str(SHARED / "o")])
    real = job.run(answer.final)
    assert real.returncode == 0, real.stderr
    (seen,) = printed(real.stdout)
    assert answer.passed is not None, answer.document
    assert answer.passed[1:] == seen.argv[1:]
    assert (str(SHARED / "c") in seen.argv) == ("--" in answer.passed)
    if "--directory" in line:
        assert Path(seen.directory) == job.directory / "lab"


@pytest.mark.parametrize("line", REFUSED)
def test_what_uv_refuses_is_left(job: Sharefs, line: str) -> None:
    answer = job.ask([*words_of(line), "--cache_dir", str(SHARED / "c")])
    assert job.run(answer.final).returncode != 0
    assert answer.final == answer.argv
    assert answer.warned
