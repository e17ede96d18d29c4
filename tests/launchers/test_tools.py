"""coverage, debugpy, kernprof and py-spy of PyPI; the options of an accelerate that does not run here."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator
from dataclasses import replace

import pytest

from launcherslab.comparison import misread_options, options_of_help
from launcherslab.getopt import NO_VALUE, VALUE, RealOption
from launcherslab.isolation import SHARED
from launcherslab.printer import printed
from launcherslab.sharefs import Sharefs
from launcherslab.training_python import newer_accelerate_launch, training_python

# ./p stands for the program that prints its arguments.
LINES = [
    "coverage run ./p a", "coverage run -p --branch ./p -p", "coverage run --rcfile=/dev/null --omit x,y ./p -- b",
    "coverage run -am lab.train -m", "coverage run --sour lab --module lab.train x", "coverage run -- ./p --x",
    "python3 -m coverage run -p ./p x", "nice -n 3 coverage run -a ./p --append",
    "kernprof -lq ./p -l x", "kernprof -l -q -o o.lprof -p json,re ./p a", "kernprof -lq -m lab.train -m x",
    "kernprof -q -o/dev/null --unit 1e-6 ./p x -- y", "kernprof --outf o.lprof -q ./p a", "python3 -m kernprof -lq ./p -q",
    "python3 -m debugpy --listen 127.0.0.1:0 ./p --listen x", "debugpy --listen 0 --log-to . -m lab.train -m -- x",
    "debugpy --configure-subProcess false --listen 0 ./p -c x",
]  # fmt: skip
REFUSED = ["coverage run --no-such ./p", "kernprof --no-such ./p", "debugpy --listen ./p", "debugpy --list 0 ./p"]

# With these another program runs than the word behind them, or none does.
OTHERWISE = {"-m", "--module", "-c", "--pid", "-p"}
PRINTS = {"-h", "--help", "-V", "--version"}
# Their value may be left out, and what is then the next word is up to it: sharefs does not guess.
KERNPROF_LEFT = {"--line-by-line", "--builtin", "--preimports", "--prof-imports", "--rich", "--skip-zero", "--summarize",
                 "-i", "--output-interval"}  # fmt: skip


@pytest.fixture(scope="module")
def job(sharefs: Sharefs) -> Iterator[Sharefs]:
    # print_arguments is not of the interpreter's package directory; Debian's python3 would not find these modules.
    path = f"{training_python() / 'bin'}:{sharefs.environment['PATH']}"
    yield replace(sharefs, environment={**sharefs.environment, "PATH": path, "PYDEVD_DISABLE_FILE_VALIDATION": "1"})


def words_of(line: str) -> list[str]:
    return shlex.split(line.replace("./p", "./print_arguments"))


def coverage_options(job: Sharefs) -> list[RealOption]:
    return options_of_help(job.run(["coverage", "run", "--help"]).stdout)


def py_spy_options(job: Sharefs) -> list[RealOption]:
    return options_of_help(job.run(["py-spy", "record", "--help"]).stdout)


def kernprof_options(job: Sharefs) -> list[RealOption]:
    return options_of_help(job.run(["kernprof", "--help"]).stdout)


def debugpy_options(job: Sharefs) -> list[RealOption]:
    source = "import debugpy.__main__, debugpy.server.cli as c; print([(p, bool(v)) for p, v, _ in c.switches if p])"
    ran = job.run(["python3", "-c", source])
    names = {"-(\\?|h|-help)": ["-?", "-h", "--help"], "-(V|-version)": ["-V", "--version"],
             "--configure-.+": ["--configure-qt", "--configure-subProcess"]}  # fmt: skip
    return [
        RealOption(name, VALUE if takes else NO_VALUE)
        for pattern, takes in ast.literal_eval(ran.stdout)
        for name in names.get(pattern, [pattern])
    ]


@pytest.mark.parametrize(
    ("command", "options", "left", "at_least"),
    [
        (["coverage", "run"], coverage_options, PRINTS, 15),
        (["py-spy", "record"], py_spy_options, PRINTS, 15),
        (["kernprof"], kernprof_options, PRINTS | KERNPROF_LEFT, 15),
        (["debugpy"], debugpy_options, PRINTS | {"-?"}, 12),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_option_of_the_real_program_is_in_the_table(job, command, options, left, at_least) -> None:  # type: ignore[no-untyped-def]
    found = options(job)
    assert len(found) >= at_least, found
    otherwise = OTHERWISE - ({"-p"} if command[0] in ("coverage", "kernprof") else set())
    attaches = command[0] != "debugpy"
    wrong = misread_options(job, command, [one for one in found if one.name not in otherwise], left, attaches=attaches)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("line", LINES)
def test_the_program_gets_what_sharefs_says(job: Sharefs, line: str) -> None:
    answer = job.ask([*words_of(line), "--cache_dir", str(SHARED / "c"), "--output_dir", str(SHARED / "o")])
    real = job.run(answer.final)
    assert real.returncode == 0, real.stderr
    assert answer.passed is not None, answer.document
    seen = printed(real.stdout)  # kernprof imports a module before it runs it
    assert seen and all(answer.passed[1:] == process.argv[1:] for process in seen)
    assert all((str(SHARED / "c") in process.argv) == ("--" in process.argv) for process in seen)


@pytest.mark.parametrize("line", REFUSED)
def test_what_they_refuse_is_left(job: Sharefs, line: str) -> None:
    answer = job.ask([*words_of(line), "--cache_dir", str(SHARED / "c")])
    assert job.run(answer.final).returncode != 0
    assert answer.final == answer.argv


def test_kernprof_drops_dashes_right_behind_the_script(job: Sharefs) -> None:
    answer = job.ask(words_of(f"kernprof -q ./p -- --cache_dir {SHARED}/c"))
    (seen,) = printed(job.run(answer.final).stdout)
    assert "--" not in seen.argv
    assert answer.final == answer.argv and answer.codes == ["SF401"]


def test_every_option_of_the_newest_accelerate_is_in_the_table(sharefs: Sharefs) -> None:
    """Its parser is made of calls add_argument("--name", "-n", action=...)."""
    options = []
    for node in ast.walk(ast.parse(newer_accelerate_launch().read_text())):
        if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "add_argument":
            continue
        names = [word.value for word in node.args if isinstance(word, ast.Constant)]
        acts = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg == "action"}
        takes = NO_VALUE if acts.get("action", "append") != "append" else VALUE
        options += [RealOption(name, takes) for name in names if name.startswith("-")]
    assert len(options) > 90
    otherwise = {"-m", "--module", "--no_python"}
    asked = [option for option in options if option.name not in otherwise]
    wrong = misread_options(sharefs, ["accelerate", "launch"], asked, {"-h", "--help"})
    assert not wrong, "\n".join(wrong)
