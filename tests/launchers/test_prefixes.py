"""env, nohup, nice, time, timeout, stdbuf, taskset, numactl, setsid, ionice: the real programs of Debian."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from conftest import need_programs
from launcherslab.comparison import misread_options
from launcherslab.getopt import build_reader, real_options
from launcherslab.isolation import SHARED
from launcherslab.printer import is_guarded, printed
from launcherslab.sharefs import Sharefs

PROGRAMS = ("env", "nohup", "nice", "time", "timeout", "stdbuf", "taskset", "numactl", "setsid", "ionice")

# Options with which nothing of a command line's shape runs: they print and end.
PRINTS = {"--help", "--version", "-h", "-V"}
# Options that sharefs leaves alone on purpose: they split words, act on running processes, or need no command.
LEFT = {
    "env": {"-S", "--split-string"},
    "taskset": {"-p", "--pid", "-a", "--all-tasks"},
    "ionice": {"-p", "--pid", "-P", "--pgid", "-u", "--uid"},
    "numactl": {
        "-S", "--shm", "-f", "--file", "-o", "--offset", "-L", "--length", "-t", "--strict", "-M", "--shmmode", "-d",
        "--dump", "-D", "--dump-nodes", "-I", "--shmid", "-u", "--huge", "-T", "--touch", "--verify", "-s", "--show",
        "-H", "--hardware",
    },
}  # fmt: skip
OPERANDS = {"timeout": ["10"], "taskset": ["1"]}

# ./p stands for the program that prints its arguments.
LINES = [
    "env ./p a", "env A=1 B= ./p a", "env -i A=1 ./p a", "env - A=1 ./p a", "env -u A -uB --unset=C ./p a",
    "env -iu A ./p x", "env --ignore-e --chdir . ./p", "env -C . -- A=1 ./p -- a", "env -v ./p a",
    "env --block-signal=PIPE --default-signal ./p a",
    "env -- ./p -i", "env env nice env -i ./p -i", "env A=./p ./p b",
    "nohup ./p --help", "nohup -- ./p a",
    "nice ./p a", "nice -n 5 ./p a", "nice -n5 ./p a", "nice --adjustment=3 ./p a", "nice --adj 3 ./p a",
    "nice -n -3 ./p a", "nice -5 ./p a", "nice --5 ./p a", "nice -+5 ./p a",
    "time ./p a", "time -p ./p a", "time -f %e ./p -f x", "time -f '%e %M' -o out.txt -a -v ./p a",
    "time --format=%e --output out.txt ./p a", "time -ao out.txt ./p", "time -qf%e ./p a",
    "timeout 10 ./p a", "timeout -k 5 10s ./p -k 3", "timeout -k5 -s KILL 1m ./p a", "timeout --signal=TERM 10 ./p",
    "timeout --foreground --preserve-status 1h ./p a", "timeout --kill-after 3 -v 10 ./p a", "timeout -- 10 ./p a",
    "stdbuf -oL ./p a", "stdbuf -o L -e0 ./p -oL", "stdbuf --output=L --err 0 ./p a", "stdbuf -i 0 -oL -eL ./p",
    "taskset 1 ./p a", "taskset -c 0 ./p -c 1", "taskset --cpu-list 0 ./p", "taskset -ac 0 ./p x",
    "numactl ./p a", "numactl -l ./p a", "numactl -N 0 -m 0 ./p -m 1", "numactl --cpunodebind=0 --membind=0 ./p",
    "numactl --physcpubind 0 --localalloc ./p", "numactl -C 0 -- ./p -C 1", "numactl --cpubind=0 ./p a",
    "numactl --interleave=all ./p a", "numactl -p 0 ./p a", "numactl --preferred-many=0 ./p a", "numactl -c 0 ./p a",
    "setsid -w ./p a", "setsid --wait ./p -w", "setsid -fw ./p a",
    "ionice -c 2 -n 5 ./p a", "ionice -c2 -n5 ./p -c 3", "ionice --class 2 -t ./p a",
    "nohup nice -n 5 time -p timeout -k 5 1h stdbuf -oL taskset -c 0 numactl -N 0 env A=1 ./p --x -n 3",
    "python3 ./p a", "python3 -u -W ignore -X dev ./p -W x", "python3 -Wignore ./p", "python3 -uB ./p --version",
    "python3 -m lab.train -m x", "python3 -mlab.train a", "python3 -um lab.train a", "python3 -X dev -sm lab.train a",
    "python3 --check-hash-based-pycs always ./p a", "python3 -- ./p", "python3 -bb -OO -vu ./p a",
    "bash -x ./run.sh a", "bash -e -o pipefail ./run.sh -x", "bash --norc ./run.sh --norc", "sh -eu ./run.sh",
    "bash -euo pipefail ./run.sh a", "bash +x ./run.sh a", "bash --rcfile /dev/null -- ./run.sh -- a", "bash - ./run.sh",
]  # fmt: skip

# Lines that run although sharefs leaves their words: it does not guess.
LEFT_LINES = {"nice --5 ./p a", "nice -+5 ./p a", "taskset -ac 0 ./p x"}


def words_of(line: str) -> list[str]:
    return [word.replace("./p", "./print_arguments") for word in shlex.split(line)]


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    need_programs(*PROGRAMS, "gcc")


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_option_of_the_real_program_is_in_the_table(
    sharefs: Sharefs, program: str, tmp_path: Path
) -> None:
    options = real_options(f"/usr/bin/{program}", build_reader(tmp_path), sharefs.environment)
    assert options
    left = LEFT.get(program, set()) | PRINTS
    wrong = misread_options(sharefs, [program], options, left, OPERANDS.get(program, ()))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("line", LINES)
def test_the_program_gets_what_sharefs_says(sharefs: Sharefs, line: str) -> None:
    script = sharefs.directory / "run.sh"
    if not script.exists():
        script.write_text('exec ./print_arguments "$@"\n')
    answer = sharefs.ask([*words_of(line), "--cache_dir", str(SHARED / "c"), "--output_dir", str(SHARED / "o")])
    real = sharefs.run([*sharefs.command("-q"), *answer.argv])
    assert real.returncode == 0, real.stderr
    (seen,) = printed(real.stdout)
    assert is_guarded(seen)
    assert str(SHARED / "c") in seen.argv and str(SHARED / "o") in seen.argv
    if line in LEFT_LINES:
        assert answer.passed is None and answer.codes == ["SF401"]
        return
    assert answer.passed is not None, answer.document
    assert answer.passed[1:] == seen.argv[1:]
