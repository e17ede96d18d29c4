"""composer, colossalai, fabric, ray, tune, litgpt, trl and llamafactory-cli, by the files that read their command lines.

None of them runs here: they need gigabytes, or another torch.
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest

from launcherslab.comparison import misread_options
from launcherslab.driver import Driver
from launcherslab.getopt import RealOption
from launcherslab.isolation import SHARED
from launcherslab.sharefs import Sharefs
from launcherslab.training_python import launcher_sources, project_python

CACHES = ["--cache_dir", str(SHARED / "c"), "--output_dir", str(SHARED / "o")]

LINES = {
    "composer": [
        "train.py a", "-n 2 ./train.py -n 3", "-n2 train.py --nproc x", "--npr=2 --stdout o --stderr e train.py -v",
        "--world_size 2 --node_rank=0 --master_addr h --master_port 1 train.py", "--base_rank 0 -v -m lab.train -m",
        "--module_mode lab.train x", "-c ./print_arguments -c", "--command_mode ./print_arguments x", "-- train.py --x",
        "-n 2 train.py -- -x", "train.py a -- b",
    ],
    "colossalai run": [
        "train.py a", "--nproc_per_node 2 ./train.py -x --y z", "--nproc_per_node=2 --master_port 1 train.py --lr 3",
        "--num_nodes 1 --master_addr h --extra_launch_args a=1,b=2 train.py", "--include h --ssh-port 22 -- train.py --x",
        "train.py -- -x -- y", "train.py a -- -x", "--exclude h -- train.py -- x", "-m lab.train a", "-m lab.train -x",
    ],
    "fabric run": [
        "train.py a", "--devices 2 ./train.py -x --y z", "--devices=2 --accelerator cpu --strategy ddp train.py --lr 3",
        "--num-nodes 1 --num_nodes=1 --node_rank 0 --node-rank 0 train.py x", "--precision 32 -- train.py --x",
        "--main-address h --main_port 1 train.py -m", "train.py -- -x -- y", "train.py a -- -x", "-- train.py -- x",
    ],
    "ray job submit": [
        "-- python3 train.py a", "--no-wait -v -- python3 train.py --x", "python3 -- train.py x", "python3 train.py -- x", "-- python3 -m lab.train -q",
        "--submission-id=s --entrypoint-num-gpus 1 -- python3 ./train.py -- b", "--log-style record -- torchrun train.py -x",
        "--entrypoint-num-cpus=1 --metadata-json {} --verify 0 --headers {} -- python3 train.py",
    ],
}  # fmt: skip
REFUSED = [
    "composer -n ./train.py", "composer --no-such train.py", "composer --m 1 train.py", "fabric run --dev 2 train.py",
    "fabric run --devices", "ray job submit --no-such x",
]  # fmt: skip

# click reads on behind the script, up to a `--`.
NOTHING_RUNS = ["fabric run train.py --help", "fabric run train.py -x --devices 2 --help", "colossalai run train.py a --help"]
RUNS = ["fabric run train.py -- --help", "colossalai run train.py -- --help", "colossalai run -- train.py --help"]

# Verbs that are no trainings, and those that the source has, by what finds them in it.
OTHERS = {
    "litgpt": {"download", "chat", "serve", "merge_lora", "generate", "generate_full", "generate_adapter",
               "generate_adapter_v2", "generate_sequentially", "generate_speculatively", "generate_tp",
               "convert_to_litgpt", "convert_from_litgpt", "convert_pretrained_checkpoint"},
    "llamafactory-cli": {"api", "chat", "eval", "export", "webchat", "webui", "env", "version", "help"},
}  # fmt: skip


def words_in(nodes: Iterable[ast.AST | None]) -> set[str]:
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def keys_of_parser_data(node: ast.AST) -> set[str]:
    named = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PARSER_DATA"
    return words_in(node.value.keys) if named and isinstance(node.value, ast.Dict) else set()


def names_of_training_commands(node: ast.AST) -> set[str]:
    return words_in(node.args) if isinstance(node, ast.Call) and ast.unparse(node.func) == "TrainingCommand" else set()


def names_of_subparsers(node: ast.AST) -> set[str]:
    return words_in(node.args) if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("add_parser") else set()


def compared_commands(node: ast.AST) -> set[str]:
    return words_in(node.comparators) if isinstance(node, ast.Compare) and ast.unparse(node.left) == "command" else set()


VERBS: dict[str, tuple[str, Callable[[ast.AST], set[str]], int]] = {
    "litgpt": ("litgpt/__main__.py", keys_of_parser_data, 22),
    "trl": ("trl/cli/commands/__init__.py", names_of_training_commands, 7),
    "tune": ("torchtune/_cli/run.py", names_of_subparsers, 1),
    "llamafactory-cli": ("llamafactory/launcher.py", compared_commands, 10),
}


@pytest.fixture(scope="module")
def driver(sharefs: Sharefs) -> Iterator[Driver]:
    driver = Driver(sharefs, project_python(), "source_driver.py", launcher_sources())
    yield driver
    driver.close()


def without_launcher(argv: list[str], launcher: str) -> list[str]:
    return argv[len(launcher.split()) :]


@pytest.mark.parametrize(
    ("launcher", "left", "at_least"),
    [
        ("composer", {"--version"}, 13),
        ("colossalai run", set(), 12),
        ("fabric run", set(), 12),
        ("ray job submit", {"--address", "--runtime-env", "--runtime-env-json", "--working-dir"}, 18),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_option_of_the_source_is_in_the_table(
    sharefs: Sharefs, driver: Driver, launcher: str, left: set[str], at_least: int
) -> None:
    options = [RealOption(name, takes) for names, takes in driver.ask(options=launcher) for name in names]
    assert len(options) >= at_least, options
    asked = [option for option in options if option.name not in ("-m", "--module_mode", "-c", "--command_mode", "-host")]
    wrong = misread_options(sharefs, launcher.split(), asked, left | {"-h", "--help"})
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("launcher", "line"), [(name, line) for name, lines in LINES.items() for line in lines])
def test_the_program_gets_what_sharefs_says(sharefs: Sharefs, driver: Driver, launcher: str, line: str) -> None:
    answer = sharefs.ask([*launcher.split(), *shlex.split(line), *CACHES])
    real = driver.ask(launcher=launcher, argv=without_launcher(answer.final, launcher))
    passed = answer.passed
    assert real is not None
    assert passed is not None, answer.document
    if real[-len(passed) :] != passed:
        assert answer.codes == ["SF401"] and answer.final == answer.argv
        passed.remove("--")
    assert real[-len(passed) :] == passed


@pytest.mark.parametrize("line", REFUSED)
def test_what_they_refuse_is_left(sharefs: Sharefs, driver: Driver, line: str) -> None:
    answer = sharefs.ask([*shlex.split(line), *CACHES])
    launcher = next(name for name in LINES if line.startswith(name))
    assert driver.ask(launcher=launcher, argv=without_launcher(answer.final, launcher)) is None
    assert answer.final == answer.argv


@pytest.mark.parametrize("line", [*NOTHING_RUNS, *RUNS])
def test_options_behind_the_script_are_the_launchers(sharefs: Sharefs, driver: Driver, line: str) -> None:
    argv = line.split()
    assert (driver.ask(launcher=" ".join(argv[:2]), argv=argv[2:]) is not None) == (line in RUNS)
    assert (sharefs.ask(argv).index is not None) == (line in RUNS)


@pytest.mark.parametrize("program", VERBS)
def test_every_training_of_the_source_is_in_the_table(sharefs: Sharefs, program: str) -> None:
    file, verbs_in, at_least = VERBS[program]
    verbs = {verb for node in ast.walk(ast.parse((launcher_sources() / file).read_text())) for verb in verbs_in(node)}
    others = OTHERS.get(program, set())
    assert len(verbs) >= at_least and others <= verbs, verbs
    known = {verb for verb in verbs if sharefs.ask([program, verb, *CACHES]).document["chain"]}
    assert known == verbs - others


def test_ray_submits_what_starts_on_other_nodes(sharefs: Sharefs, driver: Driver) -> None:
    """`sharefs run --node --` is put in front of its command, whose options ray would take for its own."""
    there = replace(sharefs, environment={**sharefs.environment, "HF_DATASETS_CACHE": str(SHARED / "c")})
    bare = ["ray", "job", "submit", "python3", "train.py", "x"]
    answer = there.ask(bare)
    assert "--node" in answer.final
    assert driver.ask(launcher="ray job submit", argv=answer.final[3:])[-3:] == bare[3:]
