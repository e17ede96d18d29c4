"""sharefs run: the wrapped command's cache lies on the node's own disk, its output stays on the share."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from sharefslab import Cluster, wait_until
from sharefslab.attack import RUNS
from sharefslab.host import Host
from sharefslab.product import SHARE, document, export_and_mount, sharefs, write_training


# train.py here has a `datasets` of its own, which the guard leaves alone: the words of the command are changed on wish.
MOVES = ("--local", "--cache_dir")


@pytest.fixture
def cluster(mounted_lab: Cluster) -> Cluster:
    """The same for all tests: each begins without caches on the nodes."""
    prepare(mounted_lab)
    return mounted_lab


def prepare(cluster: Cluster) -> None:
    write_training(cluster["node1"])
    for node in cluster.nodes:
        node.run("mkdir -p -m 1777 /local/cache && find /local/cache /tmp /var/tmp -mindepth 1 -delete", check=True)


@pytest.fixture
def own_cluster(lab: Cluster) -> Cluster:
    export_and_mount(lab)
    prepare(lab)
    return lab


def test_cache_is_local_and_output_is_shared(cluster: Cluster) -> None:
    for node in cluster.nodes:
        ran = sharefs(
            node, "run", *MOVES, "--", "python3", f"{SHARE}/train.py",
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
    ran = sharefs(node, "run", *MOVES, "--", "python3", f"{SHARE}/train.py", f"--cache_dir={SHARE}/c", "--output_dir",
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
    assert all(change["rule"] == "guard" for change in answer["changes"]) and answer["final_argv"] == answer["argv"]
    assert answer["guarded"] == []


def test_relative_paths_and_links_lead_to_the_share(cluster: Cluster) -> None:
    node = cluster["node1"]
    node.run(f"ln -s {SHARE} ~/work", user="alice", check=True)
    for arguments, cwd in ((["--cache_dir", "cache"], SHARE), (["--cache_dir", "/home/alice/work/cache"], "/")):
        answer = document(sharefs(
            node, "run", "--dry-run", "--json", "--", "deepspeed", "--num_gpus", "8", "train.py", *arguments,
            cwd=cwd, user="alice",
        ))  # fmt: skip
        assert [one["flag"] for one in answer["guarded"] if not one["implied"]] == ["--cache_dir"]


def test_with_a_dead_server_it_does_not_hang(own_cluster: Cluster) -> None:
    """Whether models lie in the directory cannot be seen: it is left as it is, and said so, in time."""
    own_cluster.drop_traffic("server")
    answer = document(sharefs(
        own_cluster["node1"], "run", *MOVES, "--dry-run", "--json", "--", "python3", "/local/train.py", "--cache_dir", f"{SHARE}/c",
        timeout=90, user="alice",
    ))  # fmt: skip
    assert answer["final_argv"] == answer["argv"]
    assert [k["flag"] for k in answer["kept"]] == ["--cache_dir"]
    assert any(d["severity"] == "warning" for d in answer["diagnoses"])


def launch(node: Host, **options: Any) -> Any:
    """A launch of alice."""
    return sharefs(node, "run", *MOVES, "--", "python3", f"{SHARE}/train.py", "--cache_dir", f"{SHARE}/cache",
                   "--output_dir", f"{SHARE}/output", user="alice", **options).check()  # fmt: skip


def cache_printed(ran: Any) -> str:
    return ran.out.splitlines()[0].split()[1]


def cache_of(node: Host, **options: Any) -> str:
    """Where a launch of alice puts its cache."""
    return cache_printed(launch(node, **options))


def test_names_that_another_user_took_stop_no_launch(cluster: Cluster) -> None:
    """The next directory is used, on every node where the name is taken the same one. Where all are taken, the cache
    stays on the share, which is said."""
    for node in cluster.nodes:
        node.run("mkdir -m 777 /local/cache/alice", user="bob", check=True)
    caches = {cache_of(node) for node in cluster.nodes for _ in range(2)}
    assert len(caches) == 1 and caches.copy().pop().startswith("/var/tmp/sharefs-alice/"), caches
    node = cluster["node1"]
    assert node.run(["stat", "-c", "%a %U", *caches]).out == "700 alice\n"
    listed = document(sharefs(node, "cache", "list", "--json", user="alice"))["caches"]
    assert {entry["path"] for entry in listed} == caches
    node.run("rm -r /var/tmp/sharefs-alice", check=True)
    node.run("mkdir -m 777 /var/tmp/sharefs-alice", user="bob", check=True)
    ran = launch(node)
    assert cache_printed(ran) == f"{SHARE}/cache"
    assert "SF405" in ran.err and "/local/cache/alice belongs to somebody else" in ran.err
    assert node.run("find /local/cache/alice /var/tmp/sharefs-alice -mindepth 1").out == ""


@pytest.mark.parametrize("mapped, name", [("--map-user=alice", "alice"), ("--map-root-user", "uid-2001")])
def test_in_a_user_namespace_root_s_files_are_trusted_and_others_are_not(cluster: Cluster, mapped: str, name: str) -> None:
    """As of a container that a user has started (enroot, apptainer, podman): all of root's and of bob's seems nobody's."""
    node = cluster["node1"]
    node.run("mkdir -m 755 /var/tmp/bob && cp /etc/sharefs/sharefs.yaml /var/tmp/bob/", user="bob", check=True)

    def inside(*words: str) -> Any:
        return node.run(["unshare", "--user", mapped, "sharefs", *words], user="alice", timeout=60)

    placed = inside("cache", "place", f"{SHARE}/cache", "--json").check()
    assert document(placed)["directory"].startswith(f"/local/cache/{name}/") and placed.err == "", placed
    assert inside("run", "--", "true").check().err == ""
    refused = inside("--config", "/var/tmp/bob/sharefs.yaml", "config", "check")
    assert not refused.ok and "others could replace" in refused.err, refused


def test_prune_deletes_nothing_that_another_user_planted(cluster: Cluster) -> None:
    node = cluster["node1"]
    node.write_file("/etc/victim/file", "x")
    node.run(
        "mkdir -p /var/tmp/sharefs-root/0123456789ab && ln -s /etc/victim /var/tmp/sharefs-root/0123456789ab/json &&"
        " ln -s /etc/victim /var/tmp/sharefs-root/abcdefabcdef",
        user="bob", check=True,
    )  # fmt: skip
    for _ in range(RUNS):
        assert "nothing to delete" in sharefs(node, "cache", "prune", "--older-than", "0", "--yes").check().err
    assert node.exists("/etc/victim/file")


HANG = """
import ctypes, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
libc = ctypes.CDLL(None)
file = open("/mnt/noac/train.py")
print("open", flush=True)
signal.sigwait({signal.SIGUSR1})
libc.mmap(None, 4096, 1, 2, file.fileno(), 0)
"""


def test_caches_are_listed_while_a_process_hangs_in_the_kernel(own_cluster: Cluster) -> None:
    """mmap(2) on a dead mount holds the memory's lock, on which /proc/PID/cmdline waits."""
    node = own_cluster["node1"]
    cache = cache_of(node)
    node.run("mkdir /mnt/noac && mount -t nfs -o vers=3,nolock,hard,noac 10.77.0.1:/srv/share /mnt/noac", check=True)
    job = node.start(["python3", "-c", HANG], user="alice")
    wait_until(lambda: job.stdout() == b"open\n", what="the process has its file open")
    pid = node.run("pgrep -u alice -f libc.mmap | head -n 1", check=True).out.strip()
    own_cluster.drop_traffic("server")
    job.kill(signal.SIGUSR1)
    cmdline = f"timeout -s KILL 5 cat /proc/{pid}/cmdline"
    wait_until(lambda: node.run(cmdline).returncode != 0, what="its command line cannot be read")
    listed = document(sharefs(node, "cache", "list", "--json", user="alice", timeout=90).check())["caches"]
    assert [(entry["path"], entry["in_use"]) for entry in listed] == [(cache, True)]
    assert "nothing to delete" in sharefs(node, "cache", "prune", "--older-than", "0", "-y", user="alice", timeout=90).check().err
    assert job.running()


def test_a_flag_without_dashes_is_a_mistake(cluster: Cluster) -> None:
    ran = sharefs(cluster["node1"], "run", "--keep", "cache_dir", "--", "true")
    assert ran.returncode != 0 and "did you mean `--keep --cache_dir`?" in ran.err
    assert sharefs(cluster["node1"], "cache", "prune", "--older-than", "30K").returncode == 2


def test_exit_codes(cluster: Cluster) -> None:
    node = cluster["node1"]
    node.write_file("/tmp/plain", "x")
    assert sharefs(node, "run", "--", "no-such-program").returncode == 127
    assert sharefs(node, "run", "--", "/tmp/plain").returncode == 126
    assert sharefs(node, "run", "--").returncode == 125
    assert sharefs(node, "run", "--", "sh", "-c", "exit 7").returncode == 7  # the child's own code
    assert sharefs(node, "run", "--", "sh", "-c", "kill -TERM $$").returncode == -15
