"""sharefs conda link: one environment in every home, with a real Python, on both nodes."""

from __future__ import annotations

import pytest

from sharefslab import Cluster
from sharefslab.environment import PROGRAM, make_environment
from sharefslab.installation import make_homes
from sharefslab.product import SHARE, config_text, configure, document, done, export_and_mount, sharefs

STORE = f"{SHARE}/conda"
ENVIRONMENT = f"{STORE}/llm_train"


@pytest.fixture(scope="module")
def environment(mounted_cluster_of_file: Cluster) -> None:
    make_environment(mounted_cluster_of_file["node1"], ENVIRONMENT, user="alice")


@pytest.fixture
def cluster(mounted_lab: Cluster, environment: None) -> Cluster:
    """The same for all tests: each begins with new homes."""
    make_conda_homes(mounted_lab)
    return mounted_lab


def make_conda_homes(cluster: Cluster) -> None:
    for node in cluster.nodes:
        node.run(f"set -e; rm -rf /home/* /opt/bob\n{make_homes()}", check=True)
        for user in ("alice", "bob"):
            node.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs", user=user, check=True)


@pytest.fixture
def own_cluster(lab: Cluster) -> Cluster:
    export_and_mount(lab)
    make_environment(lab["node1"], ENVIRONMENT, user="alice")
    make_conda_homes(lab)
    return lab


def test_the_environment_runs_on_both_nodes_by_its_link(cluster: Cluster) -> None:
    for node in cluster.nodes:
        done(node, "conda", "link", "--all", "--yes")
        for user in ("alice", "bob"):
            link = f"/home/{user}/miniconda3/envs/llm_train"
            assert node.run(["readlink", link]).out == f"{ENVIRONMENT}\n"
            assert node.run(["stat", "-c", "%U", link]).out == f"{user}\n"
            said = node.run([f"{link}/bin/python", "-S", "-c", PROGRAM], user=user, check=True)
            assert said.out == f'[42, "{link}"]\n'


def test_twice_changes_nothing_and_unlink_restores(cluster: Cluster) -> None:
    node = cluster["node1"]
    before = node.run("find /home -printf '%p %y %l %U\\n' | sort", check=True).out
    done(node, "conda", "link", "--all", "--yes")
    assert sharefs(node, "conda", "link", "--all", "--check").returncode == 0
    done(node, "conda", "unlink", "--all", "--yes")
    assert node.run("find /home -printf '%p %y %l %U\\n' | sort", check=True).out == before


def test_unlink_takes_away_what_the_manual_recipe_has_linked(cluster: Cluster) -> None:
    node = cluster["node1"]
    node.run(f"rmdir ~/miniconda3/envs && ln -s {STORE} ~/miniconda3/envs", user="alice", check=True)
    assert "SF318" in sharefs(node, "conda", "link", "--all", "--yes").err
    done(node, "conda", "unlink", "--all", "--yes")
    assert not node.exists("/home/alice/miniconda3/envs")


def test_a_real_directory_needs_backup_and_comes_back(cluster: Cluster) -> None:
    node = cluster["node1"]
    node.run("mkdir ~/miniconda3/envs/llm_train && echo mine >~/miniconda3/envs/llm_train/file", user="alice", check=True)
    refused = sharefs(node, "conda", "link", "--all", "--yes")
    assert refused.returncode == 4 and "--backup" in refused.err + refused.out  # bob's was made
    assert node.read_text("/home/alice/miniconda3/envs/llm_train/file") == "mine\n"
    done(node, "conda", "link", "--all", "--backup", "--yes")
    assert node.run(["readlink", "/home/alice/miniconda3/envs/llm_train"]).ok
    done(node, "conda", "unlink", "--all", "--yes")
    assert node.read_text("/home/alice/miniconda3/envs/llm_train/file") == "mine\n"


def test_a_planted_link_is_not_followed(cluster: Cluster) -> None:
    """bob makes his envs a link to a directory of alice's: sharefs, as root, must not write there."""
    node = cluster["node1"]
    node.run("mkdir ~/target && chmod 777 ~/target && chmod 755 ~", user="alice", check=True)
    node.run("rmdir ~/miniconda3/envs && ln -s /home/alice/target ~/miniconda3/envs", user="bob", check=True)
    said = sharefs(node, "conda", "link", "--all", "--yes")
    assert said.returncode != 0
    assert node.run("ls -A /home/alice/target").out == ""
    assert node.run(["readlink", "/home/alice/miniconda3/envs/llm_train"]).ok  # the others are served


def test_one_unwritable_home_is_reported_and_the_rest_done(cluster: Cluster) -> None:
    node = cluster["node1"]
    node.run("chown root /home/bob/miniconda3/envs && chmod 755 /home/bob/miniconda3/envs", check=True)
    said = sharefs(node, "conda", "link", "--all", "--yes")
    assert said.returncode == 4 and "bob" in said.err + said.out
    assert node.run(["readlink", "/home/alice/miniconda3/envs/llm_train"]).ok


def test_with_the_share_unmounted_nothing_is_linked(own_cluster: Cluster) -> None:
    node = own_cluster["node1"]
    done(node, "umount", "share", "--yes")
    refused = sharefs(node, "conda", "link", "--all", "--yes")
    assert refused.returncode == 1 and "sharefs mount" in refused.err
    assert not node.exists("/home/alice/miniconda3/envs/llm_train")


def test_with_a_dead_server_it_comes_back(own_cluster: Cluster) -> None:
    own_cluster.drop_traffic("server")
    refused = sharefs(own_cluster["node1"], "conda", "link", "--all", "--yes", timeout=120)
    assert refused.returncode == 1
    dry = sharefs(own_cluster["node1"], "conda", "unlink", "--all", "--dry-run", "--json", timeout=120)
    assert document(dry)["schema"] == 1


def test_users_have_conda_in_different_places(cluster: Cluster) -> None:
    node = cluster["node1"]
    before = config_text()
    line = next(line for line in before.splitlines() if line.startswith("  homes:"))
    configure(cluster, before.replace(line, "  homes:\n    - {users: [alice], conda: miniconda3}\n"
                                            "    - {users: [bob], conda: /opt/bob/forge}"))
    node.run("mkdir -p /opt/bob/forge/envs && chown -R bob /opt/bob/forge", check=True)
    done(node, "conda", "link", "--all", "--yes")
    for link in ("/home/alice/miniconda3/envs/llm_train", "/opt/bob/forge/envs/llm_train"):
        assert node.run(["readlink", link]).out == f"{ENVIRONMENT}\n"
    assert node.run(["stat", "-c", "%U", "/opt/bob/forge/envs/llm_train"]).out == "bob\n"
    assert not node.exists("/home/bob/miniconda3/envs/llm_train")
    listed = document(sharefs(node, "conda", "list", "llm_train", "--json"))["environments"]
    assert [row["linked_by"] for row in listed if row["user"] == ""] == [["alice", "bob"]]
    done(node, "conda", "unlink", "--all", "--yes")
    assert not node.exists("/opt/bob/forge/envs/llm_train")
