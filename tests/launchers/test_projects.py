"""poetry, pdm, hatch, pipenv and memray: the real programs of PyPI, in a project that needs no network."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from launcherslab.comparison import misread_options, options_of_help
from launcherslab.isolation import SHARED
from launcherslab.printer import printed, write_printers
from launcherslab.sharefs import Sharefs
from launcherslab.training_python import project_python

PROJECT = """
[project]
name = "lab-job"
version = "1"
requires-python = ">=3.9"
[tool.poetry]
package-mode = false
[tool.pdm]
distribution = false
[tool.hatch.envs.default]
skip-install = true
path = ".venv"
"""
PIPFILE = "[packages]\n"

# ./p stands for the program that prints its arguments.
LINES = {
    "poetry run": [
        "./p a -q", "-- ./p -b -- c", "./p a -- -b -- c", "-q ./p -q -P x", "-nP. python3 -m lab.train -m x",
        "--directory=. ./train.py -C x", "--no-plugins --project . env LAB_A=1 ./p", "python3 train.py --version",
    ],
    "pdm run": [
        "./p a -- -b", "./p -- -b", "-- ./p a -- b", "-sv ./p -s", "-p . -k :all train.py -k x",
        "--env LAB_A=1 --proj=. ./p --env x", "--env-file e.env --recreate ./p", "-qk:post python3 -m lab.train -- -m",
        "--working-dir lab python3 train.py x", "-p. env LAB_A=1 ./p",
    ],
    "hatch run": [
        "./p a -b --c", "./p -- a -- b", "./p a -- -b", "-- ./p a -b -- c", "-- ./p -- c", "python3 -m lab.train -m",
        "./p --help", "env LAB_A=1 ./p x", "LAB_A=1 ./p x", "LAB_A=1 LAB_B= python3 train.py -- x",
    ],
    "pipenv run": [
        "./p a -b --c", "./p -- a -- b", "./p a -- -b", "-- ./p a -b -- c", "-- ./p -- c", "--system ./p --system a",
        "python3 -m lab.train -m", "./p --help", "env LAB_A=1 ./p x", "LAB_A=1 ./p x", "LAB_A=1 LAB_B= python3 train.py x",
    ],
    "memray run": [
        "-qfo o.bin ./p a -q", "-q -f --out o.bin train.py -- -o", "-fqo o.bin -m lab.train -m",
        "-fqoo.bin -- ./p x -- -m", "--quiet --force --output=o.bin --aggregate --no-compress ./p -p",
    ],
    "python3 -m memray run": ["-qf -o o.bin ./p a"],
}  # fmt: skip
REFUSED = [
    "poetry run --no-such ./p", "poetry run ./p -b -- c", "pdm run --no-such ./p", "hatch run -version=1 ./p",
    "pipenv run --python 3 ./p", "memray run --no-such ./p",
]  # fmt: skip

# They run, and sharefs says that it does not look through them.
LEFT = [
    "poetry -q run ./p a", "pdm run --venv in-project ./p a", "hatch -e default run ./p a", "pipenv run -v ./p a", "memray -v run -qfo o.bin ./p a",
]  # fmt: skip


@pytest.fixture(scope="module")
def job(sharefs: Sharefs) -> Iterator[Sharefs]:
    """In the project's directory, which has its virtual environment already."""
    directory = sharefs.directory / "project"
    directory.mkdir()
    write_printers(directory)
    (directory / "pyproject.toml").write_text(PROJECT)
    (directory / "Pipfile").write_text(PIPFILE)
    (directory / "e.env").write_text("LAB_PDM=1\n")
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", directory / ".venv"], check=True, timeout=60)
    path = f"{project_python() / 'bin'}:{sharefs.environment['PATH']}"
    settings = {"PDM_CHECK_UPDATE": "0", "PIPENV_VENV_IN_PROJECT": "1", "PIPENV_VERBOSITY": "-1"}
    yield replace(sharefs, directory=directory, environment={**sharefs.environment, "PATH": path, **settings})


def words_of(line: str) -> list[str]:
    return shlex.split(line.replace("./p", "./print_arguments"))


@pytest.mark.parametrize(
    ("command", "left", "at_least"),
    [
        ("poetry run", set(), 15),
        ("pdm run", {"--venv", "-l", "--list", "-j", "--json"}, 18),
        ("pipenv run", set(), 3),
        ("memray run", {"-c"}, 15),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_option_of_the_real_program_is_in_the_table(
    job: Sharefs, command: str, left: set[str], at_least: int
) -> None:
    asks = ["poetry", "help", "run"] if command == "poetry run" else [*command.split(), "--help"]
    found = options_of_help(job.run(asks).stdout.replace("-v|vv|vvv", "-v"))
    assert len(found) >= at_least, found
    asked = [option for option in found if option.name != "-m"]  # see the lines
    wrong = misread_options(job, command.split(), asked, left | {"-h", "--help", "-V", "--version"})
    assert not wrong, "\n".join(wrong)


def test_hatch_run_has_no_option(job: Sharefs) -> None:
    assert {option.name for option in options_of_help(job.run(["hatch", "run", "--help"]).stdout)} <= {"-h", "--help"}


@pytest.mark.parametrize("line", [f"{command} {line}" for command, lines in LINES.items() for line in lines])
def test_the_program_gets_what_sharefs_says(job: Sharefs, line: str) -> None:
    answer = job.ask([*words_of(line), "--cache_dir", str(SHARED / "c"), "--output_dir", str(SHARED / "o")])
    real = job.run(answer.final)
    assert real.returncode == 0, real.stderr
    (seen,) = printed(real.stdout)
    passed = answer.passed
    assert passed is not None, answer.document
    assert (str(SHARED / "c") in seen.argv) == ("--" in passed)
    assert ("LAB_A" in seen.environment) == ("LAB_A" in line)
    if passed[1:] != seen.argv[1:]:
        assert answer.codes == ["SF401"] and answer.final == answer.argv
        passed.remove("--")
    assert passed[1:] == seen.argv[1:]


@pytest.mark.parametrize("line", REFUSED)
def test_what_they_refuse_is_left(job: Sharefs, line: str) -> None:
    answer = job.ask([*words_of(line), "--cache_dir", str(SHARED / "c")])
    real = job.run(answer.final)
    assert real.returncode != 0 and "Traceback" not in real.stderr, real.stderr
    assert answer.final == answer.argv


@pytest.mark.parametrize("line", LEFT)
def test_what_is_not_looked_through_is_left(job: Sharefs, line: str) -> None:
    answer = job.ask([*words_of(line), "--cache_dir", str(SHARED / "c")])
    real = job.run(answer.final)
    (seen,) = printed(real.stdout)
    assert {"a", "--cache_dir", str(SHARED / "c")} <= set(seen.argv)
    assert answer.final == answer.argv and answer.warned


@pytest.mark.parametrize("command", ["poetry run", "poetry run -q", "pdm run", "hatch run", "hatch run --", "pipenv run"])
def test_what_starts_on_other_nodes_still_starts(job: Sharefs, command: str) -> None:
    """`sharefs run --node --` is put behind srun, and some take its `--` for their own."""
    bare = [*command.split(), "./srun", "-N2", "./print_arguments", "a"]
    (job.directory / "srun").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (job.directory / "srun").chmod(0o755)
    there = replace(job, environment={**job.environment, "HF_DATASETS_CACHE": str(SHARED / "c")})
    answer = there.ask(bare)
    assert "--node" in answer.final
    real = there.run(answer.final)
    assert real.returncode == 0, real.stderr
    (seen,) = printed(real.stdout)
    assert seen.argv[1:] == ["a"] and seen.environment["HF_DATASETS_CACHE"] != str(SHARED / "c")
