"""Users attack what sharefs changes and runs in environments: in a directory of the group without the sticky bit, where
everybody in it renames what the others have made."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sharefslab import Cluster, Host
from sharefslab.attack import LATE, config_with, exchanging, successes
from sharefslab.environment import make_environment
from sharefslab.product import config_text, sharefs

GROUP = "/local/group"
ENV = f"{GROUP}/env"
SECRET = f"{GROUP}/secret"  # root's, which only root may read
STORE = "/local/store"


@pytest.fixture
def node(attacked: Cluster) -> Iterator[Host]:
    """With an environment of alice's beside a private file of root's, and a store of root's."""
    node = attacked["node1"]
    node.run(f"install -d -g ml -m 2775 {GROUP} && install -d -m 755 {STORE}", check=True)
    make_environment(node, ENV, user="alice")
    node.run(f"chmod -R go-w {ENV} && echo private >{ENV}/lib/private.py && chmod 600 {ENV}/lib/private.py", user="alice", check=True)
    node.run(f"umask 077; echo of root >{SECRET}", check=True)
    yield node
    node.run(f"rm -rf {GROUP} {STORE} /tmp/ran", check=True)


def of_root(node: Host, where: str) -> str:
    """Modes of root's file, or of copies of it, below a directory."""
    return node.run(f"grep -rlx 'of root' {where} | xargs -r stat -c %a", check=True).out


def repair(node: Host, path: str = ENV) -> str:
    return sharefs(node, "conda", "verify", path, "--repair", "--yes", timeout=LATE).err


def share(node: Host, *words: str) -> str:
    config = config_with(node, "local", config_text().replace("/data/share/conda", STORE))
    return sharefs(node, "--config", config, "conda", "share", *words, "--yes", timeout=400).err


# 5. A file of root's takes the place of one that verify has seen


def test_repair_of_a_file_that_is_exchanged_for_one_of_root(node: Host) -> None:
    def attack() -> bool:
        node.run(f"chmod 600 {ENV}/lib/private.py", user="alice")
        with exchanging(node, "alice", f"{ENV}/lib/private.py", SECRET):
            repair(node)
        return of_root(node, GROUP) != "600\n"

    assert successes(attack) == 0


def test_repair_opens_what_is_closed(node: Host) -> None:
    repair(node)
    assert node.run(f"stat -c %a {ENV}/lib/private.py", check=True).out == "644\n"


# 6. A directory takes the place of the one whose program is run

EVIL = f"{GROUP}/evil"


@pytest.fixture
def compiled(node: Host) -> Host:
    """bob's environment, in which Python is to be compiled again, and one of alice's with a program of hers."""
    node.run(f"rm -rf {ENV}", user="alice", check=True)
    make_environment(node, ENV, user="bob")
    node.run(f"umask 022; cd /usr/lib/python3.* && cp -r concurrent multiprocessing logging urllib {ENV}/lib/python3*/", user="bob", check=True)
    node.run(f"cp -r {ENV} {EVIL} && cd {EVIL}/bin && rm python3* && printf '#!/bin/sh\\nid -un >>/tmp/ran\\n' >$(readlink python) && "
             "chmod +x python3*", user="alice", check=True)  # fmt: skip
    node.run("install -m 666 /dev/null /tmp/ran", check=True)
    return node


def make_stale(node: Host, path: str, user: str) -> None:
    node.run(f"cd {path}/lib/python3* && umask 022; mkdir -p __pycache__ && for i in abc ast bdb; do "
             "head -c 64 /dev/zero >__pycache__/$i.$(basename $PWD | sed 's/python3./cpython-3/').pyc; done",
             user=user, check=True)  # fmt: skip


def test_repair_runs_no_program_of_another_user(compiled: Host) -> None:
    node = compiled

    def attack() -> bool:
        for path, user in ((ENV, "bob"), (EVIL, "alice")):
            owner = node.run(f"stat -c %U {path}", check=True).out.strip()
            make_stale(node, path, owner if owner != user else user)
        with exchanging(node, "alice", ENV, EVIL):
            repair(node)
        return "bob" in node.read_text("/tmp/ran") or "root" in node.read_text("/tmp/ran")

    assert successes(attack) == 0


def test_repair_compiles_again(compiled: Host) -> None:
    make_stale(compiled, ENV, "bob")
    repaired = repair(compiled)
    said = compiled.run(f"stat -c '%U %s' {ENV}/lib/python3*/__pycache__/ast.*.pyc").out.split()
    assert said and said[0] == "bob" and int(said[1]) > 1000, repaired


# 4. Files of others in an environment that is shared


def test_share_of_files_of_others_is_refused_by_name(node: Host) -> None:
    node.run(f"mv {SECRET} {ENV}/lib/of-root", user="alice", check=True)
    said = share(node, "llm", "--from", ENV)
    assert "SF531" in said and "lib/of-root (uid 0)" in said
    assert of_root(node, f"{GROUP} {STORE}") == "600\n"
    node.run(f"mv {ENV} {STORE}/.llm", check=True)
    said = share(node, "llm", "--from", f"{STORE}/.llm")
    assert "SF531" in said and "lib/of-root (uid 0)" in said
    repair(node, f"{STORE}/.llm")
    assert of_root(node, STORE) == "600\n"


def test_share_of_a_file_that_is_exchanged_for_one_of_root(node: Host) -> None:
    def attack() -> bool:
        node.run(f"rm -rf {STORE}/llm {STORE}/.generations", check=True)
        with exchanging(node, "alice", f"{ENV}/lib/private.py", SECRET):
            share(node, "llm", "--from", ENV)
        published = of_root(node, STORE) != ""
        if node.run(f"test -L {ENV}").ok:
            node.run(f"rm {ENV} && mv {ENV}.* {ENV}", check=True)
        return published

    assert successes(attack) == 0


def test_share_of_own_files(node: Host) -> None:
    node.run(f"ln {ENV}/lib/python3*/abc.py {ENV}/lib/again.py && chgrp ml {ENV}/lib/private.py", user="alice", check=True)
    said = share(node, "llm", "--from", ENV)
    shared = f"{STORE}/llm/lib"
    assert node.run(f"stat -L -c %a {shared}/private.py {shared}/again.py").out == "444\n444\n", said
