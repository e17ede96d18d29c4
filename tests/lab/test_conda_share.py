"""sharefs conda share: from a home that root cannot read to a store where root is nobody, on the kernel's NFS."""

from __future__ import annotations

import threading
import time

import pytest

from sharefslab import Cluster
from sharefslab.environment import PROGRAM, make_environment
from sharefslab.product import SHARE, document, done, export_and_mount, sharefs

STORE = f"{SHARE}/conda"
SHARED = f"{STORE}/llm_train"
HOME = "/home/alice/miniconda3/envs/llm_train"


@pytest.fixture
def cluster(lab: Cluster) -> Cluster:
    """alice has an environment on node1; the store is hers and her group's; root_squash is what the export says."""
    export_and_mount(lab)
    node = lab["node1"]
    node.run(f"mkdir -m 2775 {STORE}", user="alice", check=True)
    for user in ("alice", "bob"):
        for one in lab.nodes:
            one.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs && chmod 700 ~", user=user, check=True)
    make_environment(node, HOME, user="alice")
    return lab


def listed_as_good(node) -> None:  # type: ignore[no-untyped-def]
    rows = document(done(node, "conda", "list", "llm_train", "--json"))["environments"]
    assert [(one["generation"], one["state"]) for one in rows if one["path"] == SHARED] == [(1, "good")], rows


def imports(node, path: str, user: str) -> None:  # type: ignore[no-untyped-def]
    said = node.run([f"{path}/bin/python", "-S", "-c", PROGRAM], user=user, timeout=300, check=True)
    assert said.out == f'[42, "{path}"]\n'


def test_requirement_1_both_nodes_import_what_root_has_shared(cluster: Cluster) -> None:
    node = cluster["node1"]
    said = done(node, "conda", "share", "llm_train", "--yes", timeout=400)
    assert "working as `alice`" in said.err
    assert node.run(["readlink", HOME], user="alice").out == f"{SHARED}\n"
    imports(node, HOME, "alice")
    for one in cluster.nodes:
        imports(one, SHARED, "bob")
        done(one, "conda", "link", "llm_train", "--user", "bob", "--yes")
        imports(one, "/home/bob/miniconda3/envs/llm_train", "bob")


def test_requirement_7_and_12_the_group_reads_and_nobody_writes(cluster: Cluster) -> None:
    node = cluster["node1"]
    said = done(node, "conda", "share", "llm_train", "--yes", "--json", timeout=400, user="alice")
    copied = document(said)["copy"]
    assert copied["files"] > 100 and copied["kept"] == 0, copied
    assert node.run(f"find {STORE}/.generations/llm_train/0001 ! -type l -perm /222", user="alice", check=True).out == ""
    for user in ("alice", "bob"):
        assert not node.run(f"rm -f {SHARED}/lib/python3*/lab_package.py", user=user).ok
        assert not node.run(f"echo x >{SHARED}/new", user=user).ok
    assert node.run(f"stat -c %G {SHARED}/lib {STORE}/.generations", user="bob", check=True).out == "ml\nml\n"


def test_a_store_of_another_user_is_refused_with_the_cure(cluster: Cluster) -> None:
    node = cluster["node1"]
    node.run(f"chmod 0755 {STORE}", user="alice", check=True)
    make_environment(node, "/home/bob/miniconda3/envs/of_bob", user="bob")
    refused = sharefs(node, "conda", "share", "of_bob", "--yes")
    assert refused.returncode == 1 and "SF526" in refused.err
    assert node.run("ls -A ~/miniconda3/envs", user="bob").out == "of_bob\n"


def test_a_server_that_dies_while_it_is_copied_and_comes_back(cluster: Cluster) -> None:
    """A hard mount waits; nothing that anybody uses changes until all is there."""
    node = cluster["node1"]
    outcome = {}

    def share() -> None:
        outcome["share"] = sharefs(node, "conda", "share", "llm_train", "--yes", "--limit", "1M", timeout=600)

    sharing = threading.Thread(target=share)
    sharing.start()
    end = time.monotonic() + 240
    while not node.run(f"ls -d {STORE}/.generations/llm_train/new-0001.*", user="alice").ok:
        assert time.monotonic() < end and sharing.is_alive()
    cluster.drop_traffic("server")
    imports(node, HOME, "alice")
    cluster.restore_traffic("server")
    sharing.join()
    if outcome["share"].returncode != 0:
        done(node, "conda", "share", "llm_train", "--yes", timeout=600)
    imports(node, HOME, "alice")
    imports(cluster["node2"], SHARED, "bob")
    for one in cluster.nodes:
        listed_as_good(one)


def test_undo_brings_the_directory_back(cluster: Cluster) -> None:
    node = cluster["node1"]
    done(node, "conda", "share", "llm_train", "--yes", timeout=400, user="alice")
    done(node, "undo", "--yes", user="alice")
    assert not node.run(["readlink", HOME], user="alice").ok
    imports(node, HOME, "alice")
    assert not node.run(["readlink", SHARED], user="alice").ok
