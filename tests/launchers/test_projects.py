"""Programs that have no row in the table of launchers, because what they start gets their environment: poetry, pdm, hatch,
pipenv, memray, uv, coverage, kernprof and debugpy, the real ones of PyPI, in a project that needs no network."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from launcherslab.isolation import SHARED
from launcherslab.printer import is_guarded, printed, write_printers
from launcherslab.sharefs import Sharefs
from launcherslab.training_python import project_python, training_python

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
    "uv run": ["./p a", "-- ./p a", "train.py a", "python3 -m lab.train -q", "-m lab.train -m", "-p /usr/bin/python3 train.py -p x"],
    "coverage run": ["./p a", "-p --branch ./p -p", "-am lab.train -m"],
    "kernprof": ["-lq ./p -l x", "-lq -m lab.train -m x"],
    "debugpy": ["--listen 127.0.0.1:0 ./p --listen x"],
}  # fmt: skip
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
    path = f"{project_python() / 'bin'}:{training_python() / 'bin'}:{sharefs.environment['PATH']}"
    settings = {
        "UV_OFFLINE": "1", "UV_NO_PROJECT": "1", "UV_PYTHON": "/usr/bin/python3", "UV_NO_MANAGED_PYTHON": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1", "PDM_CHECK_UPDATE": "0", "PIPENV_VENV_IN_PROJECT": "1", "PIPENV_VERBOSITY": "-1",
    }  # fmt: skip
    yield replace(sharefs, directory=directory, environment={**sharefs.environment, "PATH": path, **settings})


def words_of(line: str) -> list[str]:
    return shlex.split(line.replace("./p", "./print_arguments"))


@pytest.mark.parametrize("line", [f"{command} {line}" for command, lines in LINES.items() for line in lines])
def test_what_they_start_is_guarded_and_no_word_changes(job: Sharefs, line: str) -> None:
    words = [*words_of(line), "--cache_dir", str(SHARED / "c"), "--output_dir", str(SHARED / "o")]
    answer = job.ask(words)
    assert answer.final == words and not answer.warned
    real = job.run([*job.command("-q"), *words])
    assert real.returncode == 0, real.stderr
    seen = printed(real.stdout)  # kernprof imports a module before it runs it
    assert seen and all(is_guarded(process) for process in seen), seen
    assert all(process.argv[-4:] == words[-4:] for process in seen)
    assert all(("LAB_A" in process.environment) == ("LAB_A" in line) for process in seen)
