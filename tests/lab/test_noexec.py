"""Compiled caches on a node whose own disk is mounted noexec: what is compiled is mapped from there."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from sharefslab import Cluster, Host
from sharefslab.product import SHARE, sharefs

# As a program with kernels does it: a library is made in its cache, and mapped.
MAPS = """\
import ctypes, glob, json, os, shutil
cache = os.environ["TRITON_CACHE_DIR"]
os.makedirs(cache, exist_ok=True)
library = shutil.copy(glob.glob("/lib/*/libm.so.6")[0], cache + "/kernel.so")
ctypes.CDLL(library)
print(json.dumps({name: os.environ[name] for name in ("TRITON_CACHE_DIR", "HF_DATASETS_CACHE")}))
"""


@pytest.fixture
def node(attacked: Cluster) -> Iterator[Host]:
    host = attacked["node1"]
    host.run("mount -t tmpfs -o noexec,mode=1777,size=4g tmpfs /local/cache", check=True)
    yield host
    host.run("umount /local/cache", check=True)
    host.run(f"rm -rf {SHARE}/kernels {SHARE}/datasets-cache", user="alice", check=True)


def test_code_goes_where_it_can_be_mapped_and_data_to_the_disk(node: Host) -> None:
    variables = [f"TRITON_CACHE_DIR={SHARE}/kernels", f"HF_DATASETS_CACHE={SHARE}/datasets-cache"]
    bare = node.run(["env", *variables, "python3", "-c", MAPS], user="alice", cwd="/tmp")
    assert bare.returncode == 0, bare.err
    ours = node.run(["env", *variables, "sharefs", "run", "--local", "HF_DATASETS_CACHE", "--", "python3", "-c", MAPS], user="alice", cwd="/tmp")
    assert ours.returncode == 0, ours.err
    used = json.loads(ours.out)
    assert used["HF_DATASETS_CACHE"].startswith("/local/cache/alice/")
    assert used["TRITON_CACHE_DIR"].startswith("/var/tmp/sharefs-alice/")
    assert "/local/cache/alice lies on /local/cache, which is mounted noexec" in ours.err


def test_code_stays_on_the_share_where_no_disk_can_hold_it(node: Host) -> None:
    node.run("mount --bind /var/tmp /var/tmp && mount -o remount,bind,noexec /var/tmp", check=True)
    try:
        variables = [f"TRITON_CACHE_DIR={SHARE}/kernels", f"HF_DATASETS_CACHE={SHARE}/datasets-cache"]
        ours = node.run(["env", *variables, "sharefs", "run", "--local", "HF_DATASETS_CACHE", "--", "python3", "-c", MAPS], user="alice", cwd="/tmp")
        assert ours.returncode == 0, ours.err
        used = json.loads(ours.out)
        assert used["TRITON_CACHE_DIR"] == f"{SHARE}/kernels" and "mounted noexec" in ours.err
        assert used["HF_DATASETS_CACHE"].startswith("/local/cache/alice/")
    finally:
        node.run("umount /var/tmp", check=True)


def test_a_plain_disk_holds_both(node: Host) -> None:
    node.run("mount -o remount,exec /local/cache", check=True)
    done = sharefs(node, "run", "--dry-run", "--", "env", f"TRITON_CACHE_DIR={SHARE}/kernels", "python3", "-c", "1", user="alice")
    assert "TRITON_CACHE_DIR=/local/cache/alice/" in done.out, done.err
