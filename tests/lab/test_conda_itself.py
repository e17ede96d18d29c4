"""The real conda (24.7.1) on a shared environment: what it finds, and that it cannot take it from the others."""

from __future__ import annotations

import json

import pytest

from sharefslab import Cluster, Host
from sharefslab.conda_program import ENVIRONMENT, conda_on_hosts
from sharefslab.environment import PROGRAM, make_environment
from sharefslab.product import SHARE, done, export_and_mount

STORE = f"{SHARE}/conda"
SHARED = f"{STORE}/llm_train"


@pytest.fixture
def cluster(lab: Cluster) -> Cluster:
    """An environment of alice's, shared; the store is hers and her group's."""
    export_and_mount(lab)
    node = lab["node1"]
    node.run(f"mkdir -m 2775 {STORE}", user="alice", check=True)
    for user in ("alice", "bob"):
        node.run(f"mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs && echo 'envs_dirs: [/home/{user}/miniconda3/envs]' >~/.condarc",
                 user=user, check=True)  # fmt: skip
    make_environment(node, "/home/alice/made/llm_train", user="alice")
    done(node, "conda", "share", "llm_train", "--from", "/home/alice/made/llm_train", "--yes", timeout=400, user="alice")
    return lab


def conda_itself(node: Host, user: str, *words: str, expect: int | None = 0) -> str:
    """The real conda. (What it takes for its own directory is not the user's; the tests name that in .condarc.)"""
    said = node.run([conda_on_hosts(), *words], user=user, env=ENVIRONMENT, timeout=200)
    assert expect is None or said.returncode == expect, said
    return said.out


def activated(node: Host, user: str, name: str) -> list[str]:
    """The prefix that Python has there, and the prompt."""
    script = f'eval "$({conda_on_hosts()} shell.posix activate {name})" && python -S -c \'{PROGRAM}\' && echo "$PS1"'
    said = node.run(["sh", "-c", script], user=user, timeout=200, check=True)
    answer, prompt = said.out.splitlines()
    return [json.loads(answer)[1], prompt]


def test_requirement_13_conda_itself_finds_what_is_linked(cluster: Cluster) -> None:
    node = cluster["node1"]
    done(node, "conda", "link", "--all", "--yes")
    for user in ("alice", "bob"):
        own = f"/home/{user}/miniconda3/envs"
        directories = json.loads(conda_itself(node, user, "config", "--show", "envs_dirs", "--json"))["envs_dirs"]
        assert directories[0] == own
        assert f"{own}/llm_train" in json.loads(conda_itself(node, user, "env", "list", "--json"))["envs"]
        assert activated(node, user, "llm_train") == [f"{own}/llm_train", "(llm_train) "]
        conda_itself(node, user, "create", "-q", "--yes", "-n", "mine")
        assert node.exists(f"{own}/mine/conda-meta/history")  # its own go where they always went
    done(node, "conda", "unlink", "--all", "--yes")
    envs = json.loads(conda_itself(node, "alice", "env", "list", "--json"))["envs"]
    assert "/home/alice/miniconda3/envs/llm_train" not in envs


def remove(node: Host, user: str) -> None:
    conda_itself(node, user, "env", "remove", "-q", "--yes", "-n", "llm_train", expect=None)


def test_requirement_7_env_remove_through_a_link_leaves_the_environment(cluster: Cluster) -> None:
    node = cluster["node1"]
    done(node, "conda", "link", "--all", "--yes")
    for user in ("bob", "alice"):
        remove(node, user)
        assert node.run([f"{SHARED}/bin/python", "-S", "-c", PROGRAM], user="bob", check=True).out == f'[42, "{SHARED}"]\n'
    done(node, "conda", "link", "--all", "--yes")  # the links, if conda has taken them
    assert activated(node, "bob", "llm_train")[0] == "/home/bob/miniconda3/envs/llm_train"
