"""Looking never runs what is looked at: root reads a script, or asks what `run` would do, and alice put programs where
the text, PATH, or the environment names them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sharefslab import Cluster, Host
from sharefslab.attack import LATE, successes
from sharefslab.host import Completed
from sharefslab.product import SHARE, sharefs, write_training

BIN = f"{SHARE}/al"
RAN = "/tmp/ran"
PLANTED = f"#!/bin/sh\nid -u >>{RAN}\n"
NAMES = ("srun", "sbatch", "python", "python3", "torchrun", "docker", "env", "sh", "bash")


@pytest.fixture
def node(attacked: Cluster) -> Iterator[Host]:
    """Her programs, each of which tells that it ran, and code for any Python and any shell that takes it."""
    host = attacked["node1"]
    host.run(f"mkdir -p {BIN}", user="alice", check=True)
    for name in NAMES:
        host.run(f"cat >{BIN}/{name}; chmod 755 {BIN}/{name}", input=PLANTED, user="alice", check=True)
    for name in ("sitecustomize", "json", "ast"):
        host.run(f"cat >{BIN}/{name}.py", input=f"open({RAN!r}, 'a').write('python')\n", user="alice", check=True)
    host.run(f"cat >{BIN}/env.sh", input=f"echo shell >>{RAN}\n", user="alice", check=True)
    write_training(host)
    yield host
    host.run(f"rm -rf {BIN} {SHARE}/job.sh", user="alice", check=True)
    host.run(f"rm -f {RAN}", check=True)


LINES = [
    f"{BIN}/srun --help",
    f"{BIN}/srun --made-up python3 {SHARE}/train.py --cache_dir {SHARE}/c",
    f"{BIN}/sbatch --made-up=1 --wrap 'python3 {SHARE}/train.py --cache_dir {SHARE}/c'",
    f"{BIN}/python {SHARE}/train.py --cache_dir {SHARE}/c",
    f"{BIN}/torchrun --made-up {SHARE}/train.py --cache_dir {SHARE}/c",
    f"PATH={BIN}:$PATH python3 {SHARE}/train.py --cache_dir {SHARE}/c",
    f"export PATH={BIN}\nsrun --made-up python3 {SHARE}/train.py --cache_dir {SHARE}/c\n$(srun) `sbatch`",
]


def looked(node: Host, line: str, environment: str, where: str) -> list[Completed]:
    node.run(f"cat >{SHARE}/job.sh", input=line + "\n", user="alice", check=True)
    program = node.run("command -v sharefs", check=True).out.strip()
    script = f"{environment} {program} cachefix script {SHARE}/job.sh"
    dry = f"{environment} {program} run --dry-run -- bash -c '. {SHARE}/job.sh'"
    direct = f"{environment} {program} run --dry-run -- {line}"
    commands = [script, dry] if "\n" in line or line.startswith("PATH") else [script, dry, direct]
    return [node.run(command, cwd=where, timeout=LATE) for command in commands]


@pytest.mark.parametrize("line", LINES)
def test_root_looks_at_a_text_that_names_programs(node: Host, line: str) -> None:
    def attack() -> bool:
        looked(node, line, "env", BIN)
        return node.exists(RAN)

    assert successes(attack, races=False) == 0


@pytest.mark.parametrize("environment", [
    f"env PATH={BIN}:/usr/sbin:/usr/bin:/sbin:/bin", f"env PYTHONPATH={BIN}", f"env PYTHONHOME={BIN}",
    f"env PYTHONSTARTUP={BIN}/json.py PYTHONUSERBASE={BIN}", f"env BASH_ENV={BIN}/env.sh ENV={BIN}/env.sh",
])  # fmt: skip
def test_root_looks_from_an_environment_that_names_programs(node: Host, environment: str) -> None:
    def attack() -> bool:
        line = f"python3 {SHARE}/train.py --cache_dir {SHARE}/c"
        node.run(f"cat >{SHARE}/job.sh", input=line + "\n", user="alice", check=True)
        for command in (f"cachefix script {SHARE}/job.sh", f"run --dry-run -- /usr/bin/{line}"):
            node.run(f"{environment} $(command -v sharefs) {command}", cwd=BIN, timeout=LATE)
        return node.exists(RAN)

    assert successes(attack, races=False) == 0


def test_what_is_plain_is_read(node: Host) -> None:
    """Honest use: the script is understood with her directory in PATH."""
    looks = looked(node, f"python3 {SHARE}/train.py --cache_dir {SHARE}/c", f"env PATH={BIN}:$PATH", SHARE)
    for look in looks:
        assert look.returncode == 0 and ("--cache_dir" in look.out or "Python programs are guarded" in look.err), look
