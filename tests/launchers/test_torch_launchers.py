"""torchrun of Debian's torch; deepspeed and accelerate of PyPI; deepspeed over pdsh and ssh."""

from __future__ import annotations

import ast
import os
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import need_programs
from launcherslab.comparison import misread_options
from launcherslab.driver import Driver
from launcherslab.getopt import NO_VALUE, VALUE, RealOption
from launcherslab.hosts import SshHosts
from launcherslab.isolation import SHARED
from launcherslab.printer import is_guarded, printed
from launcherslab.sharefs import Sharefs
from launcherslab.training_python import newer_accelerate_launch, training_python

CACHES = ["--cache_dir", str(SHARED / "c"), "--output_dir", str(SHARED / "o")]

# How the launchers are called, and the parser of the driver that is theirs.
LAUNCHERS = {
    "torchrun": "torchrun",
    "python3 -m torch.distributed.run": "torchrun",
    "python3 -m torch.distributed.launch": "torch.distributed.launch",
    "deepspeed": "deepspeed",
    "accelerate launch": "accelerate",
    "accelerate-launch": "accelerate",
    "python3 -m accelerate.commands.launch": "accelerate",
}

# What all of them understand.
COMMON = ["train.py a", "./train.py --nnodes 3 -m", "train.py --num_gpus 2 --module x --help", "-- train.py --x"]
TORCH = [
    "--nnodes=1 --nproc_per_node=8 train.py --x 1", "--nnodes 1:4 --nproc_per_node 2 --rdzv_backend c10d train.py -m",
    "--nproc_per 2 --rdzv_e localhost:29400 --rdzv_id=7 train.py", "--standalone --nproc_per_node=2 train.py --nnodes",
    "-m lab.train --x", "--module lab.train a", "--no_python ./print_arguments -x", "--no_py ./train.py a",
    "-t 3 -r=3 --log_dir /tmp/l train.py -t 5", "-t3 -r 0:1 train.py -r", "--master_port=29501 --master_addr h train.py",
    "--node_rank 0 --max_restarts=3 --monitor_interval 2 --start_method spawn --role r train.py --role s",
    "--rdzv_conf timeout=10,read_timeout=20 train.py --rdzv_conf x", "--nproc_per_node=2 -m lab.train -- --x",
    "--run_path /srv/train.py x", "--max_restarts -1 train.py", "--nnodes=1 train.py -- --y", "--nnodes train.py --x",
]  # fmt: skip
LINES = {
    "torchrun": COMMON + TORCH,
    "python3 -m torch.distributed.run": TORCH[:6],
    "python3 -m torch.distributed.launch": ["--use_env --nproc_per_node=4 train.py a", "--nproc_per_node 2 train.py b",
                                            "--use_e -m lab.train --use_env", "--no_python --use_env ./train.py"],
    "deepspeed": [
        *COMMON, "--num_gpus 2 train.py --deepspeed ds.json", "--num_gpus=2 --master_port 29501 train.py --num_gpus 3",
        "--num_acc 1 train.py", "--include localhost:0,1 train.py -i x", "-i localhost:1 train.py -e",
        "-e localhost:1 train.py", "-elocalhost:1 train.py", "--module lab.train a", "--no_python ./print_arguments -m",
        "--no_l --num_gpus 1 train.py", "--no_python --no_local_rank ./run.sh x", "--save_pid --force_multi train.py",
        "--launcher_args '-x y' --num_gpus 1 train.py", "--launcher_args=-x --num_gpus 1 train.py", "--num_g 2 train.py",
        "--enable_each_rank_log /tmp/l train.py x", "--bind_core_list 0-3 --bind_cores_to_rank train.py",
        "--hostfile none -n 1 train.py", "--master 29500 train.py", "--num_nodes train.py x", "--num_gpus 2 train.py -- -x",
    ],
    "accelerate launch": [
        *COMMON, "--cpu --num_processes 1 train.py --num_processes 3", "--cpu -m lab.train -m", "--no_python ./train.py x",
        "--cpu --module lab.train --debug", "--mixed_precision no --num_machines=1 train.py", "-q --cpu train.py -q",
        "--config_file c.yaml --cpu train.py", "--num_cpu_threads_per_process 2 --cpu train.py --gpu_ids x",
        "--cpu --main_process_port 29501 --tee 3 train.py", "--num_proc 2 train.py", "--cpu -t 3 train.py",
        "--gradient_accumulation_steps 4 --cpu --use_fsdp train.py --zero_stage 3", "--cpu train.py -- --x",
    ],
    "accelerate-launch": ["--cpu train.py -q"],
    "python3 -m accelerate.commands.launch": ["--cpu -m lab.train --cpu"],
}  # fmt: skip


@pytest.fixture(scope="session", autouse=True)
def python() -> Path:
    need_programs("pdsh", "ssh", "sshd", "numactl", "torchrun")
    return training_python()


@pytest.fixture(scope="module")
def driver(sharefs: Sharefs, python: Path) -> Iterator[Driver]:
    (sharefs.directory / "c.yaml").write_text("compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nnum_processes: 1\n")
    driver = Driver(sharefs, python, "torch_driver.py")
    yield driver
    driver.close()


@pytest.mark.parametrize("launcher", ["torchrun", "python3 -m torch.distributed.launch", "deepspeed", "accelerate launch"])
def test_every_option_of_the_real_program_is_in_the_table(sharefs: Sharefs, driver: Driver, launcher: str) -> None:
    known = {0: NO_VALUE, 1: VALUE, 2: 2}
    options = [
        RealOption(name, known[takes])
        for names, takes in driver.ask(options=LAUNCHERS[launcher])
        for name in names
        if name not in ("-m", "--module", "--no_python")  # the program is another one then: see the lines
    ]
    assert len(options) > 20
    wrong = misread_options(sharefs, launcher.split(), options, {"-h", "--help"})
    assert not wrong, "\n".join(wrong)


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


@pytest.mark.parametrize(("launcher", "line"), [(name, line) for name, lines in LINES.items() for line in lines])
def test_the_program_gets_what_sharefs_says(sharefs: Sharefs, driver: Driver, launcher: str, line: str) -> None:
    answer = sharefs.ask([*launcher.split(), *shlex.split(line), *CACHES])
    real = driver.ask(launcher=LAUNCHERS[launcher], argv=answer.final[len(launcher.split()) :])
    passed = answer.passed
    if real is None:  # the launcher refuses the line: there is nothing to be right or wrong about
        assert answer.final == answer.argv or passed is not None
        return
    assert passed is not None, answer.document
    if passed[1:2] == ["--"] and real[1:2] != ["--"]:
        del passed[1]  # argparse before Python 3.13 eats a `--` behind the script
    assert real == passed


def test_some_lines_are_refused(driver: Driver) -> None:
    """Else the comparison would compare nothing."""
    refused = [
        (launcher, line) for launcher, lines in LINES.items() for line in lines
        if driver.ask(launcher=LAUNCHERS[launcher], argv=shlex.split(line)) is None
    ]  # fmt: skip
    assert ("torchrun", "--nnodes train.py --x") in refused
    assert len(refused) < 12, refused


@pytest.fixture(scope="module")
def trainer(sharefs: Sharefs, python: Path) -> Sharefs:
    """With the launchers in PATH, and a user whose .deepspeed_env files have lines of their own."""
    home = Path(sharefs.environment["HOME"])
    (home / ".deepspeed_env").write_text("LAB_HOME=of home\nLAB_BOTH=home\nHF_DATASETS_CACHE=/nowhere\n".replace(" ", "_"))
    (sharefs.directory / ".deepspeed_env").write_text("LAB_BOTH=job\nLAB_JOB=a=b\nLAB_LAST=no_newline")
    path = f"{python / 'bin'}{os.pathsep}{sharefs.environment['PATH']}"
    return replace(sharefs, environment={**sharefs.environment, "PATH": path})


def test_deepspeed_on_other_hosts(trainer: Sharefs, tmp_path_factory: pytest.TempPathFactory) -> None:
    (trainer.directory / "hosts").write_text("node1 slots=1\nnode2 slots=1\n")
    words = ["deepspeed", "--hostfile", "hosts", "--master_addr", "node1", "train.py", *CACHES]
    answer = trainer.ask(words)
    hosts = SshHosts(tmp_path_factory.mktemp("hosts"))
    try:
        real = trainer.run([*trainer.command("-q"), *words], timeout=300)
    finally:
        hosts.close()
    seen = printed(real.stdout)
    assert {process.host for process in seen} == {"node1", "node2"}, real.stderr
    for process in seen:
        assert process.argv[1:] == ["--local_rank=0", *(answer.passed or [])[1:]]
        assert is_guarded(process), process
        lines = {name: value for name, value in process.environment.items() if name.startswith("LAB_")}
        assert lines == {"LAB_HOME": "of_home", "LAB_BOTH": "job", "LAB_JOB": "a=b", "LAB_LAST": "no_newline"}


def test_accelerate_starts_it(trainer: Sharefs) -> None:
    words = ["accelerate", "launch", "--cpu", "--num_processes=1", "train.py", *CACHES, "x"]
    real = trainer.run([*trainer.command("-q"), *words])
    (process,) = printed(real.stdout)
    assert process.argv[1:] == (trainer.ask(words).passed or [])[1:] and process.argv[-1] == "x"
    assert is_guarded(process)
