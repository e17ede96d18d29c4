"""mpirun of Debian's Open MPI and mpiexec of Debian's MPICH."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import need_programs
from launcherslab.comparison import misread_options
from launcherslab.getopt import NO_VALUE, VALUE, RealOption
from launcherslab.hosts import SshHosts
from launcherslab.isolation import SHARED
from launcherslab.printer import is_guarded, printed
from launcherslab.sharefs import Sharefs

OPEN_MPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]
CACHES = ["--cache_dir", str(SHARED / "c"), "--output_dir", str(SHARED / "o")]

# Their file holds the commands; help and version run nothing.
LEFT = {"-app", "-configfile", "-h", "-help", "-V", "-version"}
# Options that its help lists with their values left out.
MPICH_TAKES_NONE = {
    "-genvnone", "-genvall", "-envnone", "-envall", "-enable-x", "-disable-x", "-verbose", "-info", "-profile",
    "-print-all-exitcodes", "-prepend-rank", "-disable-auto-cleanup", "-disable-hostname-propagation", "-pmi-port",
    "-skip-launch-node",
}  # fmt: skip
MPICH_TAKES_TWO = {"-genv", "-env"}

# ./p stands for the program that prints its arguments.
OPEN_MPI_LINES = [
    "{m} -np 2 ./p a", "{m} --np 1 ./p -np 3", "{m} -n 1 ./p", "{m} -c 1 ./p a", "{m} -np 1 --bind-to none ./p a",
    "{m} -np 1 -bind-to none -map-by slot -mca pml ob1 --mca btl ^openib ./p -mca x y",
    "{m} -np 1 -x LAB_A=1 -x PATH -gmca btl self,vader ./p -x B=1", "{m} -H head -np 1 ./p a",
    "{m} --host head:2 -N 1 ./p a", "{m} -np 1 --wdir / {p} a", "{m} -wd / -np 1 {p} -wd", "{m} -np 1 -q ./p -- a",
    "{m} -np 1 --tag-output ./p a", "{m} -np 1 -display-map --report-bindings ./p x", "{m} -np 1 --timeout 20 ./p",
    "{m} -np 1 ./p a : -np 1 ./p b", "{m} -np 1 -x LAB_A=1 ./p a : -np 1 -x LAB_A=2 ./p b : -np 1 ./p c",
    "{m} -np 1 env LAB_A=1 nice -n 3 ./p -n", "env LAB_A=1 {m} -np 1 python3 -u ./p -u",
]  # fmt: skip
MPICH_LINES = [
    "mpiexec.hydra -n 2 ./p a", "mpiexec.hydra -np 1 ./p -np 3", "mpiexec.hydra --np 1 ./p a", "mpiexec.hydra ./p a",
    "mpiexec.hydra -genv LAB_A 1 -n 1 ./p -genv", "mpiexec.hydra -n 1 -env LAB_A 1 ./p a",
    "mpiexec.hydra -genvnone -n 1 ./p a", "mpiexec.hydra -genvlist PATH,HOME -n 1 ./p", "mpiexec.hydra -l -n 2 ./p -l",
    "mpiexec.hydra -n 1 -envlist PATH ./p a", "mpiexec.hydra -wdir / -n 1 {p} a", "mpiexec.hydra -ppn 1 -n 1 ./p a",
    "mpiexec.hydra -bind-to none -map-by core -n 1 ./p a", "mpiexec.hydra -hosts localhost -n 1 ./p a",
    "mpiexec.hydra -n 1 ./p a : -n 1 ./p b", "mpiexec.hydra -genv LAB_A 1 -n 1 ./p a : -n 1 -env LAB_A 2 ./p b",
    "mpirun.mpich -launcher fork -n 1 ./p -- a", "mpiexec.mpich -prepend-pattern %r, -n 1 ./p a",
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    need_programs("mpirun.openmpi", "mpiexec.hydra", "sshd", "ssh")


@pytest.fixture(scope="module")
def hosts(sharefs: Sharefs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    cluster = SshHosts(tmp_path_factory.mktemp("hosts"))
    yield cluster
    cluster.close()


def words_of(line: str, sharefs: Sharefs) -> list[str]:
    printer = str(sharefs.directory / "print_arguments")
    line = line.replace("{m}", " ".join(OPEN_MPI)).replace("{p}", printer).replace("./p", "./print_arguments")
    return shlex.split(line)


def open_mpi_options(sharefs: Sharefs) -> list[RealOption]:
    """From `--help full`: lines of NAME|NAME with <arg0> <arg1> for the values."""
    text = sharefs.run([*OPEN_MPI, "--help", "full"]).stdout
    found = []
    for line in text.splitlines():
        if match := re.match(r" {0,3}(-\S+)((?: <arg\d>)*)", line):
            takes = match[2].count("<")
            found += [RealOption("-" + name.lstrip("-"), takes) for name in match[1].split("|")]
    return found


def mpich_options(sharefs: Sharefs) -> list[RealOption]:
    found = []
    for line in sharefs.run(["mpiexec.hydra", "-help"]).stdout.splitlines():
        if match := re.match(r" {4}(-\S+)(?: |$)", line):
            for name in match[1].split("/"):
                takes = NO_VALUE if name in MPICH_TAKES_NONE else 2 if name in MPICH_TAKES_TWO else VALUE
                found.append(RealOption(name, takes))
    return found


@pytest.mark.parametrize("launcher", [OPEN_MPI[:1], ["mpiexec.hydra"]])
def test_every_option_of_the_real_program_is_in_the_table(sharefs: Sharefs, launcher: list[str]) -> None:
    options = (mpich_options if launcher == ["mpiexec.hydra"] else open_mpi_options)(sharefs)
    assert len(options) > 40
    wrong = misread_options(sharefs, launcher, options, LEFT, attaches=False)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("line", OPEN_MPI_LINES + MPICH_LINES)
def test_the_program_gets_what_sharefs_says(sharefs: Sharefs, line: str) -> None:
    words: list[str] = []
    for word in words_of(line, sharefs):
        words += [*CACHES, ":"] if word == ":" else [word]
    answer = sharefs.ask([*words, *CACHES])
    real = sharefs.run([*sharefs.command("-q"), *answer.argv])
    assert real.returncode == 0, real.stderr
    seen = printed(real.stdout)
    assert answer.passed is not None, answer.document
    commands = contexts_of(answer.passed)
    assert seen and {tuple(process.argv[1:]) for process in seen} == {tuple(command) for command in commands}
    assert all(is_guarded(process) for process in seen)


def contexts_of(passed: list[str]) -> list[list[str]]:
    """The arguments of the program in each context of `./p ARGUMENTS : OPTIONS ./p ARGUMENTS`."""
    contexts: list[list[str]] = [[]]
    for word in passed:
        if word == ":":
            contexts.append([])
        else:
            contexts[-1].append(word)
    programs = [max(at for at, word in enumerate(part) if word.endswith("print_arguments")) for part in contexts]
    return [part[at + 1 :] for part, at in zip(contexts, programs)]


REMOTE = [
    (f"{' '.join(OPEN_MPI)} -H node1,node2 -np 2", ""),
    (f"{' '.join(OPEN_MPI)} --hostfile hosts -N 1 -np 2 -x LAB_A=1", ""),
    (f"{' '.join(OPEN_MPI)} -H node1 -np 1", "-H node2 -np 1"),
    ("mpiexec.hydra -hosts node1,node2 -n 2", ""),
    ("mpiexec.hydra -f hosts -n 1", "-n 1"),
    ("mpiexec.hydra -hosts node1,node2 -genvlist PATH,HOME -n 2", ""),
    ("mpiexec.hydra -hosts node1,node2 -n 1 -env LAB_A 1", "-n 1 -envnone"),
    ("mpiexec.hydra -hosts node1,node2 -genvnone -n 1", "-n 1 -env LAB_A 1"),
]


@pytest.mark.parametrize(("first", "second"), REMOTE)
def test_variables_reach_every_rank_on_other_hosts(
    sharefs: Sharefs, hosts: SshHosts, first: str, second: str
) -> None:
    """Also where only one of the commands between `:` has options for the environment."""
    (sharefs.directory / "hosts").write_text("node1\nnode2\n")
    program = ["/usr/bin/python3", "./train.py", *CACHES]
    words = [*first.split(), *program, *([":", *second.split(), *program] if second else [])]
    real = sharefs.run([*sharefs.command("-q"), *words])
    assert real.returncode == 0, real.stderr
    seen = printed(real.stdout)
    assert {process.host for process in seen} == {"node1", "node2"}
    assert all(is_guarded(process) for process in seen), seen


def test_a_program_of_the_working_directory_starts_all_the_same(sharefs: Sharefs) -> None:
    """Open MPI finds it there, env would not."""
    words = [*OPEN_MPI, "-n", "1", "print_arguments", *CACHES]
    real = sharefs.run([*sharefs.command("-q"), *words])
    assert real.returncode == 0, real.stderr
    (process,) = printed(real.stdout)
    assert is_guarded(process) and process.argv[1:] == CACHES
