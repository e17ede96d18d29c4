"""A user who is in the group on a node, and not for the server: by manage-gids=y, or by more than 16 groups without it."""

from __future__ import annotations

from sharefslab import Cluster, Host
from sharefslab.environment import make_environment
from sharefslab.product import SHARE, TRAIN, config_text, configure, document, done, sharefs

CAROL = 2011
CONFIG = config_text().replace("users: [alice, bob]", "users: [alice, bob, carol]")


def add_carol(host: Host, *groups: str) -> None:
    """With a home, in `ml`, and in `groups`."""
    host.run(
        f"echo 'carol:x:{CAROL}:{CAROL}:carol:/home/carol:/bin/bash' >>/etc/passwd; echo 'carol:x:{CAROL}:' >>/etc/group; "
        "sed -i -E 's/^(ml:.*)$/\\1,carol/' /etc/group; "
        f"install -d -m 755 -o {CAROL} -g {CAROL} /home/carol /home/carol/miniconda3 /home/carol/miniconda3/conda-meta "
        "/home/carol/miniconda3/envs",
        check=True,
    )
    for number, group in enumerate(groups):
        host.run(f"echo '{group}:x:{1500 + number}:carol' >>/etc/group", check=True)


def as_carol(host: Host, *words: str) -> str:
    """Her sharefs: what it says."""
    completed = host.run(["runuser", "-u", "carol", "--", *words], timeout=200)
    return completed.out + completed.err


def codes(host: Host) -> dict[str, dict[str, str]]:
    return {each["code"]: each for each in document(sharefs(host, "doctor", "--json", timeout=200))["diagnoses"]}


def set_up(lab: Cluster, manage: str, *groups: str) -> Host:
    lab.server.write_file("/etc/nfs.conf", f"[mountd]\nmanage-gids={manage}\n", mode=0o644)
    configure(lab, CONFIG)
    done(lab.server, "export", "--all", "--yes")
    node = lab["node1"]
    add_carol(node, *groups)
    done(node, "mount", "--all", "--yes")
    node.run(f"install -d -m 2770 {SHARE}/cache && touch {SHARE}/cache/x", user="alice", check=True)
    return node


def test_a_user_whom_the_server_does_not_know(lab: Cluster) -> None:
    node = set_up(lab, "y")
    assert "ermission denied" in as_carol(node, "ls", SHARE)
    # On the server: named before anybody tries.
    said = sharefs(lab.server, "export", "--all", "--yes").err
    assert "SF156" in said and "carol is unknown on this server" in said, said
    assert "SF156" in codes(lab.server)
    # On the node, as she and as root: the cause with both sides, in one line.
    for said in as_carol(node, "sharefs", "status"), sharefs(node, "doctor", timeout=200).err:
        assert "carol is in `ml` here, and storage does not let carol use" in said or "10.77.0.1 does not let carol" in said, said
        assert "usermod -aG ml carol" in said and "30 minutes" in said, said
    # A launch: a server that says no has answered.
    node.write_file("/local/train.py", TRAIN)
    said = as_carol(node, "sharefs", "run", "--dry-run", "--", "python3", "/local/train.py", "--cache_dir", f"{SHARE}/cache")
    assert "SF409" not in said and "does not answer" not in said, said

    # The links of homes: hers has the cause, the others are made.
    for user in "alice", "bob":
        node.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs", user=user, check=True)
    make_environment(node, "/home/alice/miniconda3/envs/llm_train", user="alice")
    done(node, "conda", "share", "llm_train", "--yes", timeout=400)
    linked = sharefs(node, "conda", "link", "--all", "--yes", timeout=200)
    assert "carol is in `ml` here" in linked.err and "usermod -aG ml carol" in linked.err, linked.err
    assert node.run("readlink ~/miniconda3/envs/llm_train", user="bob").ok

    # The cure that is named cures it.
    add_carol(lab.server)
    lab.server.run("exportfs -f", check=True)
    node.run("echo 2 >/proc/sys/vm/drop_caches", check=True)
    assert as_carol(node, "ls", SHARE).startswith("cache")
    assert "SF248" not in as_carol(node, "sharefs", "status")
    assert "SF156" not in codes(lab.server)


def test_more_groups_than_nfs_carries(lab: Cluster) -> None:
    node = set_up(lab, "n", *(f"g{number}" for number in range(20)))
    assert "ermission denied" in as_carol(node, "ls", SHARE), "the 16 lowest groups are sent, and ml is none of them"
    said = as_carol(node, "sharefs", "status")
    assert "carol is in 22 groups, of which NFS carries 16" in said and "manage-gids=y" in said, said
    add_carol(lab.server, *(f"g{number}" for number in range(20)))
    said = sharefs(lab.server, "export", "--all", "--yes").err
    assert "SF156" in said and "more than 16 groups" in said, said


def test_those_whom_both_sides_know(lab: Cluster) -> None:
    """Nothing is said of alice and bob, whatever the server goes by."""
    node = set_up(lab, "y")
    lab.server.run("true", check=True)
    said = document(sharefs(node, "doctor", "--json", timeout=200))["diagnoses"]
    assert not [each for each in said if each["code"] == "SF248" and "carol" not in each["message"]], said
    said = node.run("sharefs status", user="alice")
    assert "SF248" not in said.out + said.err


def test_members_update_in_a_store_that_staging_has_made(lab: Cluster) -> None:
    configure(lab)
    done(lab.server, "export", "--all", "--yes")
    for node in lab.nodes:
        done(node, "mount", "--all", "--yes")
    node, other = lab["node1"], lab["node2"]
    node.run(f"mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs {SHARE}/set && for i in 1 2 3; do echo $i >{SHARE}/set/$i; done", user="alice", check=True)
    done(node, "stage", f"{SHARE}/set", "--yes")
    make_environment(node, "/home/alice/miniconda3/envs/llm_train", user="alice")
    done(node, "conda", "share", "llm_train", "--yes", timeout=400)
    update = ("conda", "update", "llm_train", "--yes", "--", "sh", "-c", "touch ~/began; echo new >$CONDA_PREFIX/new")
    done(other, *update, user="bob", timeout=400)
    # A node remembers for up to a minute where a link led; `conda run` asks the server.
    assert done(node, "conda", "run", "llm_train", "--", "sh", "-c", "cat $CONDA_PREFIX/new", user="alice").out == "new\n"

    # Whom the store lets switch nothing is told so before the command runs.
    node.run(f"chmod g-w {SHARE}/conda", user="alice", check=True)
    other.run("rm ~/began", user="bob", check=True)
    refused = sharefs(other, *update, user="bob", timeout=400)
    assert refused.returncode == 1 and "cannot be pointed to a new generation" in refused.err and "run it as `alice`" in refused.err, refused
    assert not other.run("ls ~/began", user="bob").ok
