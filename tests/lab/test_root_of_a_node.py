"""README's access (`{group: ml}`: 2770) and root_squash: root of a node is nobody on the share, and works all the same."""

from __future__ import annotations

from sharefslab import Cluster
from sharefslab.environment import make_environment
from sharefslab.product import SHARE, config_text, configure, document, done, sharefs

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
