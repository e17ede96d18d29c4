"""README's access (`{group: ml}`: 2770) and root_squash: root of a node is nobody on the share, and works all the same."""

from __future__ import annotations

import pytest

from sharefslab import Cluster, wait_until
from sharefslab.environment import make_environment
from sharefslab.product import SHARE, config_text, configure, document, done, sharefs

NOBODY = "root of this host is nobody on the server"
# As pip does it: what is replaced is another file.
CHANGE = 'cd $CONDA_PREFIX/lib/python3*; rm lab_package.py; echo "answer = 43" > lab_package.py'
STORE = f"{SHARE}/conda"
HOME = "/home/alice/miniconda3/envs/llm_train"


def test_from_no_store_to_a_shared_environment(lab: Cluster) -> None:
    configure(lab, config_text())
    done(lab.server, "export", "--all", "--yes")
    for node in lab.nodes:
        done(node, "mount", "--all", "--yes")
        for user in ("alice", "bob"):
            node.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs && chmod 700 ~", user=user, check=True)
    one, other = lab.nodes
    assert not one.run(f"ls {SHARE}").ok, "root may read the share: this is not README's access"
    looked = document(sharefs(one, "doctor", "--json"))["diagnoses"]
    assert {each["severity"] for each in looked if each["code"].startswith("SF3")} <= {"info"}, looked
    assert "SF324" in [each["code"] for each in looked]
    make_environment(one, HOME, user="alice")
    said = done(one, "conda", "share", "llm_train", "--yes", timeout=400)
    assert "working as `alice`" in said.err and "sudo -u alice sharefs undo" in said.err
    assert one.run(f"stat -c '%U %G %a' {STORE}", user="bob", check=True).out == "alice ml 2770\n"
    for node in lab.nodes:
        done(node, "conda", "link", "--all", "--yes", timeout=200)
        assert "working as `alice`" in done(node, "conda", "generations", "llm_train").err
    assert done(other, "conda", "verify", "llm_train", timeout=300)
    assert done(other, "conda", "run", "llm_train", "--", "true", timeout=200)
    refused = sharefs(one, "conda", "generations", "nosuch")
    assert refused.returncode == 1 and "no shared environment" in refused.err


@pytest.fixture
def shared(lab: Cluster) -> Cluster:
    """README's example after `conda share`, whose store is bob's: he is not the first whom root asks."""
    configure(lab, config_text())
    done(lab.server, "export", "--all", "--yes")
    for node in lab.nodes:
        done(node, "mount", "--all", "--yes")
        node.run("modprobe overlay || grep -q overlay /proc/filesystems", check=True)
        for user in ("alice", "bob"):
            node.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs && chmod 700 ~", user=user, check=True)
    make_environment(lab["node1"], HOME.replace("alice", "bob"), user="bob")
    done(lab["node1"], "conda", "share", "llm_train", "--yes", timeout=400)
    return lab


def test_every_conda_command(shared: Cluster) -> None:
    """Of root, who is nobody there: it works as one who may, says so once, and sees what the users see."""
    node = shared["node1"]
    listed = done(node, "conda", "list", "--json", timeout=300)
    assert "is read as `alice`" in listed.err
    assert [each["state"] for each in document(listed)["environments"] if each["path"] == f"{STORE}/llm_train"] == ["good"]
    assert "is a link to the shared environment already" in done(node, "conda", "share", "llm_train", "--yes", timeout=300).err
    assert "is read as `alice`" in done(node, "conda", "link", "--all", "--yes", timeout=200).err
    for words in (["generations", "llm_train"], ["verify", "llm_train"]):
        assert "working as `alice`" in done(node, "conda", *words, timeout=300).err
    for look in (["rollback", "llm_train", "--to", "1"], ["gc"]):
        assert sharefs(node, "conda", *look, "--dry-run", timeout=200).returncode == 0, look
    for words in (["verify", "llm_train", "--repair"], ["gc"]):
        assert "working as `bob`" in done(node, "conda", *words, "--yes", timeout=400).err, words
    done(node, "conda", "update", "llm_train", "--yes", "--", "sh", "-c", CHANGE, timeout=400)
    # Bob's own user namespace knows his first group only: the update works in a copy, and shares what is equal.
    said = done(node, "conda", "update", "llm_train", "--yes", "--", "sh", "-c", "echo x > $CONDA_PREFIX/x", user="bob", timeout=400)
    assert "works in a full copy" in said.err and f"newgrp $(stat -c %G {STORE}/" in said.err, said.err
    by_root, by_bob = document(done(node, "conda", "generations", "llm_train", "--json"))["generations"][1:]
    for made in (by_root, by_bob):
        assert made["own_bytes"] < made["bytes"] / 20, made
    # With the group that the message names as his first one he needs no copy.
    again = "sharefs conda update llm_train --yes -- sh -c 'echo y > $CONDA_PREFIX/y'"
    said = node.run(["sg", "ml", "-c", again], user="bob", timeout=400, check=True)
    assert "works in a full copy" not in said.err and node.run(f"cat {STORE}/llm_train/y", user="alice", check=True).out == "y\n"
    assert "nothing was changed" not in done(node, "conda", "rollback", "llm_train", "--yes", timeout=200).err
    run = ["conda", "run", "llm_train", "--", "sh", "-c", "id -un"]
    assert done(node, *run, timeout=200).out == "alice\n"
    staged = sharefs(node, "conda", "stage", "llm_train", "--yes", timeout=400)
    assert staged.returncode == 0 or "root makes copies for all users" in staged.err, staged
    done(node, "conda", "stage", "llm_train", "--remove", "--yes", timeout=200)
    assert not node.run("ls -d /home/bob/miniconda3/envs/*backup*", user="bob").err
    make_environment(node, f"{STORE}/moved", user="bob")
    relocated = done(node, "conda", "relocate", f"{STORE}/moved", f"{STORE}/moved", "--yes", timeout=300)
    assert "working as `bob`" in relocated.err


def test_what_runs_on_the_node_is_kept(shared: Cluster) -> None:
    """The worker of `gc` sees its own user's programs only; root has seen all."""
    node = shared["node1"]
    job = node.start([f"{STORE}/llm_train/bin/python", "-c", "import time; time.sleep(600)"], user="alice")
    wait_until(lambda: node.run(["pgrep", "-u", "alice", "python"]).ok, what="alice's program runs")
    done(node, "conda", "update", "llm_train", "--yes", "--", "sh", "-c", CHANGE, timeout=400)
    node.run(f"touch -h -d '2 minutes ago' {STORE}/llm_train", user="bob", check=True)
    kept = done(node, "conda", "gc", "llm_train", "--keep", "1", "--yes", timeout=300)
    assert "generation 1 is kept: used by process" in kept.err, kept
    job.kill()


def test_where_nobody_may(lab: Cluster) -> None:
    configure(lab, config_text().replace("users: [alice, bob]", "users: [carol]"))
    done(lab.server, "export", "--all", "--yes")
    node = lab["node1"]
    node.run("echo carol:x:2003:2003::/home/carol:/bin/bash >>/etc/passwd", check=True)
    done(node, "mount", "--all", "--yes")
    for words in (["generations", "llm_train"], ["rollback", "llm_train"], ["gc"], ["verify", "llm_train"]):
        refused = sharefs(node, "conda", *words, "--yes" if words[0] in ("rollback", "gc") else "-q", timeout=200)
        assert refused.returncode == 1 and NOBODY in refused.err, (words, refused)
        assert "hint: run it on storage, or as a member of `ml`" in refused.err, (words, refused)
    listed = sharefs(node, "conda", "list", timeout=200)
    assert listed.returncode and NOBODY in listed.err, listed


def test_what_the_store_lacks_holds_nothing_up(lab: Cluster) -> None:
    configure(lab, config_text().replace("envs: [llm_train]", "envs: [llm_train, not_yet]"))
    done(lab.server, "export", "--all", "--yes")
    node = lab["node1"]
    done(node, "mount", "--all", "--yes")
    node.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs", user="alice", check=True)
    node.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs", user="bob", check=True)
    make_environment(node, HOME, user="alice")
    done(node, "conda", "share", "llm_train", "--yes", timeout=400)
    linked = sharefs(node, "conda", "link", "--all", "--yes", timeout=200)
    assert linked.returncode == 4 and "SF303" in linked.err, linked
    assert node.run("readlink ~/miniconda3/envs/llm_train", user="bob", check=True).out == f"{STORE}/llm_train\n"
