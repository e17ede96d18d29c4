"""sharefs run: the wrapped command's cache lies on the node's own disk, its output stays on the share."""

from __future__ import annotations

import pytest

from sharefslab import Cluster
from sharefslab.product import SHARE, TRAIN, document, export_and_mount, sharefs


@pytest.fixture
def cluster(lab: Cluster) -> Cluster:
    export_and_mount(lab)
    lab["node1"].run(f"cat >{SHARE}/train.py", input=TRAIN, user="alice", check=True)
    for node in lab.nodes:
        node.run("mkdir -p -m 1777 /local/cache", check=True)
    return lab


def test_cache_is_local_and_output_is_shared(cluster: Cluster) -> None:
    for node in cluster.nodes:
        ran = sharefs(
            node, "run", "--", "python3", f"{SHARE}/train.py",
            "--cache_dir", f"{SHARE}/cache", "--output_dir", f"{SHARE}/output", user="alice",
        )  # fmt: skip
        assert ran.returncode == 0, ran.err
        cache = ran.out.splitlines()[0].split()[1]
        assert cache.startswith("/local/cache/"), ran.out
        assert node.exists(f"{cache}/{node.name}")
        assert node.run(["stat", "-c", "%a %U", cache]).out == "700 alice\n"
    assert cluster.server.run("ls /srv/share/output").out.split() == ["node1", "node2"]
    assert not cluster.server.exists("/srv/share/cache")


def test_without_any_configuration(cluster: Cluster) -> None:
    node = cluster["node1"]
    node.run("rm /etc/sharefs/sharefs.yaml", check=True)
    ran = sharefs(node, "run", "--", "python3", f"{SHARE}/train.py", f"--cache_dir={SHARE}/c", "--output_dir",
                  f"{SHARE}/o", user="alice")  # fmt: skip
    assert ran.returncode == 0
    assert f"cache:  {SHARE}" not in ran.out and f"output: {SHARE}/o" in ran.out


def test_nothing_else_is_touched(cluster: Cluster) -> None:
    odd = ["", " ", "a\nb", "*", "$HOME", "--", "--cache_dir", f"{SHARE}/x", "\\", "'"]
    ran = sharefs(cluster["node1"], "run", "-q", "--", "printf", "%s|", *odd)
    assert ran.out == "|".join(odd) + "|"


def test_a_local_cache_stays(cluster: Cluster) -> None:
    answer = document(sharefs(
        cluster["node1"], "run", "--dry-run", "--json", "--", "torchrun", "--nnodes=2", "train.py",
        "--cache_dir", "/local/mine", cwd=SHARE, user="alice",
    ))  # fmt: skip
    assert answer["changes"] == [] and answer["final_argv"] == answer["argv"]


def test_relative_paths_and_links_lead_to_the_share(cluster: Cluster) -> None:
    node = cluster["node1"]
    node.run(f"ln -s {SHARE} ~/work", user="alice", check=True)
    for arguments, cwd in ((["--cache_dir", "cache"], SHARE), (["--cache_dir", "/home/alice/work/cache"], "/")):
        answer = document(sharefs(
            node, "run", "--dry-run", "--json", "--", "deepspeed", "--num_gpus", "8", "train.py", *arguments,
            cwd=cwd, user="alice",
        ))  # fmt: skip
        assert [c["flag"] for c in answer["changes"] if c["kind"] == "argument"] == ["--cache_dir"]


def test_with_a_dead_server_it_does_not_hang(cluster: Cluster) -> None:
    """Whether models lie in the directory cannot be seen: it is left as it is, and said so, in time."""
    cluster.drop_traffic("server")
    answer = document(sharefs(
        cluster["node1"], "run", "--dry-run", "--json", "--", "python3", "/local/train.py", "--cache_dir", f"{SHARE}/c",
        timeout=30, user="alice",
    ))  # fmt: skip
    assert answer["final_argv"] == answer["argv"]
    assert [k["flag"] for k in answer["kept"]] == ["--cache_dir"]
    assert any(d["severity"] == "warning" for d in answer["diagnoses"])


def test_exit_codes(cluster: Cluster) -> None:
    node = cluster["node1"]
    node.write_file("/tmp/plain", "x")
    assert sharefs(node, "run", "--", "no-such-program").returncode == 127
    assert sharefs(node, "run", "--", "/tmp/plain").returncode == 126
    assert sharefs(node, "run", "--").returncode == 125
    assert sharefs(node, "run", "--", "sh", "-c", "exit 7").returncode == 7  # the child's own code
    assert sharefs(node, "run", "--", "sh", "-c", "kill -TERM $$").returncode == -15
