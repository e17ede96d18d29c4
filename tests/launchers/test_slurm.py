"""srun and sbatch of Debian's Slurm, on two nodes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import need_programs
from launcherslab.comparison import misread_options
from launcherslab.getopt import build_reader, real_options
from launcherslab.isolation import SHARED
from launcherslab.printer import Printed, is_guarded, printed
from launcherslab.sharefs import Sharefs
from launcherslab.slurm import Slurm
from sharefslab.wait import wait_until

# Options with which nothing runs, or with which the file is no program: --multi-prog names a list of programs.
# Of the site's plugin no option is known, and with two of Slurm's own the program starts in a container.
LEFT = {"-h", "--help", "--usage", "-V", "--version", "--multi-prog", "--private-tmp", "--site-queue", "--quotatype",
        "--container", "--container-id"}  # fmt: skip
CACHES = ["--cache_dir", str(SHARED / "c"), "--output_dir", str(SHARED / "o")]

# ./p stands for the program that prints its arguments. Each runs for some tenths of a second.
SRUN_LINES = [
    "srun ./p a",
    "srun -N2 -n 2 -l ./p -n 3",
    "srun --nodes=2 --ntasks-per-node 1 --kill-on-bad-exit=1 -u ./p --nodes",
    "srun -K0 -k -I5 -n1 ./p a",
    "srun --kill-on ./p 1",
    "srun --exclusive --overcommit -O ./p x",
    "srun --job-name=-n -J x --cpu-bind none ./p",
    "srun --tasks-per-node=1 -c1 -t 1 --mem 10 -- ./p -- --x",
    "srun -vvln1 ./p a",
    "srun --chdir / -w node1 {p} a",
    "srun -D/ -x node1 -N1 {p} a",
    "srun --mpi=none --wait 10 -W 20 ./p -W",
    "srun --export=ALL,LAB_A=1 ./p a",
    "srun -n1 env LAB_A=1 nice -n 3 python3 -u ./p -u",
    "srun -n1 bash ./run.sh x",
]
SBATCH_LINES = [
    "sbatch -o {o} ./run.sh a -o x",
    "sbatch -o{o} -N2 --exclusive --job-name y ./run.sh --wrap x",
    "sbatch --output={o} --nice --no-kill --time 1 -- ./run.sh -- y",
    "sbatch --parsable -o {o} -D . --export=ALL ./run.sh",
]

# Where they hand on no variables sharefs is behind them on the node.
EXPORTS = [
    "srun -N2 -n2",
    "srun --export=ALL -n1",
    "srun --export=ALL,LAB_A=1 -n1",
    "srun --export LAB_A=1 -n1",
    "srun --export=LAB_A,HOME -N2",
    "srun --export=NONE -n1",
    "srun --export=NIL -n1",
    "srun --export=LAB_A=1 --export=NONE -n1",
    "srun -n1 /usr/bin/env -i LAB_A=1",
    "srun --export=NONE -n1 /usr/bin/env LAB_A=1",
    "env SLURM_EXPORT_ENV=NONE srun -n1",
    "env SLURM_EXPORT_ENV=ALL srun -n1",
    "env SLURM_EXPORT_ENV=LAB_A srun -n1",
    "env SLURM_EXPORT_ENV=NONE srun --export=ALL -n1",
]


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    need_programs("srun", "sbatch", "slurmctld", "slurmd", "munged", "gcc")


@pytest.fixture(scope="module")
def slurm(sharefs: Sharefs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def cluster(sharefs: Sharefs, slurm: Slurm) -> Sharefs:
    """sharefs in the environment of Slurm's commands."""
    (sharefs.directory / "run.sh").write_text(f'#!/bin/sh\nexec {sharefs.directory}/print_arguments "$@"\n')
    return replace(sharefs, environment={**sharefs.environment, **slurm.environment})


def words_of(line: str, cluster: Sharefs, output: Path) -> list[str]:
    printer = str(cluster.directory / "print_arguments")
    line = line.replace("{p}", printer).replace("{o}", str(output)).replace("./p", "./print_arguments")
    return shlex.split(line)


def output_of_job(path: Path) -> list[Printed]:
    def lines() -> list[Printed]:
        text = path.read_text() if path.exists() else ""
        return printed(text[: text.rfind("\n") + 1])  # of a line that is being written there is a part

    return wait_until(lines, 120, what="output of the job")


@pytest.mark.parametrize("program", ["srun", "sbatch"])
def test_every_option_of_the_real_program_is_in_the_table(
    cluster: Sharefs, slurm: Slurm, program: str, tmp_path: Path
) -> None:
    options = real_options(f"/usr/bin/{program}", build_reader(tmp_path), slurm.environment)
    assert len(options) > 100
    options = [option for option in options if option.name != "--wrap"]  # its value is the program
    wrong = misread_options(cluster, [program], options, LEFT)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("line", SRUN_LINES + SBATCH_LINES)
def test_the_program_gets_what_sharefs_says(cluster: Sharefs, line: str, tmp_path: Path) -> None:
    answer = cluster.ask([*words_of(line, cluster, tmp_path / "out"), *CACHES])
    real = cluster.run([*cluster.command("-q"), *answer.argv])
    assert real.returncode == 0, real.stderr
    seen = output_of_job(tmp_path / "out") if line in SBATCH_LINES else printed(real.stdout)
    assert answer.passed is not None and seen
    assert all(process.argv[1:] == answer.passed[1:] for process in seen)
    assert all(is_guarded(process) for process in seen), seen


@pytest.mark.parametrize("launcher", EXPORTS)
def test_programs_are_guarded_on_every_node(cluster: Sharefs, launcher: str) -> None:
    words = [*launcher.split(), "/usr/bin/python3", "./train.py", *CACHES]
    real = cluster.run([*cluster.command("-q"), *words])
    assert real.returncode == 0, real.stderr
    seen = printed(real.stdout)
    assert len(seen) == (2 if "-N2" in launcher else 1)
    for process in seen:
        assert is_guarded(process), process
        assert process.argv[1:] == CACHES


@pytest.mark.parametrize("options", ["--site-queue=a", "--site-queue a", "--quotatype=spot", "--quotatype"])
def test_options_of_a_sites_plugin_are_left(cluster: Sharefs, options: str) -> None:
    """Nobody is asked what they take: the word behind one may be the program, or not."""
    for program in (["/usr/bin/python3", "./train.py"], ["./print_arguments"]):
        answer = cluster.ask(["srun", *options.split(), *program, *CACHES])
        assert answer.final == answer.argv and answer.codes == ["SF401"]


@pytest.mark.parametrize("option", ["--wrap={}", "--wrap {}", "--export=NONE --wrap={}", "--export=LAB_A=1 --wrap {}"])
def test_wrapped_text_is_a_command_line(cluster: Sharefs, option: str, tmp_path: Path) -> None:
    text = f"cd {cluster.directory} && exec python3 ./train.py " + " ".join(CACHES)
    words = ["sbatch", "-o", str(tmp_path / "out"), *(word.replace("{}", text) for word in option.split())]
    real = cluster.run([*cluster.command("-q"), *words])
    assert real.returncode == 0, real.stderr
    (process,) = output_of_job(tmp_path / "out")
    assert is_guarded(process) == ("--export=NONE" not in option), process  # a list gets the guard's variables
    assert process.argv[1:] == CACHES
