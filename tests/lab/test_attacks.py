"""Users attack what sharefs keeps in places where others may write: caches, changed copies, journals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sharefslab import Cluster, Host
from sharefslab.attack import LATE, exchanging, successes
from sharefslab.host import Completed
from sharefslab.product import SHARE, done, sharefs, write_training


@pytest.fixture
def node(attacked: Cluster) -> Host:
    return attacked["node1"]


# 3. cache prune in a directory that somebody else made

KEY = "0123456789ab"  # the name of a cache
SQUATTED = "/var/tmp/sharefs-root"


@pytest.fixture
def planted(node: Host) -> Iterator[str]:
    """A cache that bob made for root. Returns its path."""
    node.run(f"install -d -o bob {SQUATTED} {SQUATTED}/{KEY} && mkdir -p /etc/victim", check=True)
    node.run("touch $(seq -f /etc/victim/%g 1 800)", check=True)
    yield f"{SQUATTED}/{KEY}"
    node.run(f"rm -rf {SQUATTED} /etc/victim /var/tmp/away", check=True)


def prune(node: Host, user: str | None = None) -> Completed:
    return sharefs(node, "cache", "prune", "--older-than", "0", "--yes", user=user, timeout=LATE)


def test_prune_of_directories_exchanged_for_links(node: Host, planted: str) -> None:
    def attack() -> bool:
        node.run(f"rm -rf {planted} /var/tmp/away; mkdir -p {planted}/d; ln -s /etc/victim /var/tmp/away; "
                 f"touch $(seq -f {planted}/d/%g 1 800)", user="bob", check=True)  # fmt: skip
        # By relative names: a cache that a process names in its arguments is in use, and not deleted.
        with exchanging(node, "bob", f"{KEY}/d", "../away", cwd=SQUATTED):
            prune(node)
        return len(node.run("ls /etc/victim").out.split()) != 800

    assert successes(attack) == 0


def test_prune_of_a_planted_directory_leaves_it(node: Host, planted: str) -> None:
    node.run(f"touch {planted}/of-bob", user="bob", check=True)
    assert successes(lambda: not (prune(node), node.exists(f"{planted}/of-bob"))[1]) == 0


@pytest.mark.parametrize("make", ["mkfifo", "truncate -s 64M", "ln -s /dev/zero"])
def test_a_planted_note_about_a_cache(node: Host, planted: str, make: str) -> None:
    """A FIFO, a file without bound: the list goes on without it."""
    node.run(f"{make} {SQUATTED}/.origin-{KEY}", user="bob", check=True)
    listed = sharefs(node, "cache", "list", "--json", timeout=LATE)
    assert listed.returncode == 0
    assert len(listed.stdout) < 100_000


def run_train(node: Host, cache: str, user: str = "alice") -> Completed:
    """`sharefs run` of the plain training script, whose cache moves by its words."""
    write_training(node)
    command = ["python3", f"{SHARE}/train.py", "--cache_dir", f"{SHARE}/{cache}", "--output_dir", f"{SHARE}/out"]
    return sharefs(node, "run", "--local", "--cache_dir", "--", *command, user=user, timeout=LATE)


def cache_of(ran: Completed) -> str:
    """Where the script was told to put its cache."""
    return ran.out.splitlines()[0].split()[1]


def test_own_caches_are_listed_and_pruned(node: Host) -> None:
    cache = cache_of(run_train(node, "mine").check())
    assert cache in sharefs(node, "cache", "list", "--json", user="alice").check().out
    prune(node, user="alice").check()
    assert not node.exists(cache)


# 6. A journal that somebody else wrote

STATE = "/var/tmp/sharefs-2001"  # alice's, when her own lies on shared storage
ON_SHARE = {"XDG_STATE_HOME": f"{SHARE}/state"}


@pytest.fixture
def forged(attacked: Cluster, node: Host) -> Iterator[None]:
    """A true journal of a change that ran exportfs, in which a script of bob's has its place."""
    server = attacked.server
    server.run("rm /etc/exports.d/sharefs.exports && exportfs -ra", check=True)
    done(server, "export", "--all", "--yes")
    newest = "cd /var/lib/sharefs/journal && tar -cf - $(ls -t | head -n 1)"
    journal = server.run(newest, check=True).stdout
    node.write_file("/local/evil", "#!/bin/sh\nid -un >>/tmp/evil-ran\n", mode=0o755)
    script = f"""
        mkdir -p {STATE}/journal && tar -C {STATE}/journal -xf - --no-same-owner
        find {STATE} -type f -exec sed -i 's#"exportfs"#"/local/evil"#g; s#/etc/exports.d/#/tmp/none/#g' {{}} +
        chmod -R go+rX {STATE}"""
    # An undo plans nothing for a file that is gone already, and no reload then.
    exports = server.read_text("/etc/exports.d/sharefs.exports")
    node.run("mkdir -p -m 777 /tmp/none", check=True)
    node.write_file("/tmp/none/sharefs.exports", exports, mode=0o666)
    node.run(script, input=journal, user="alice", check=True)
    sharefs(node, "undo", "--yes", user="alice", env=ON_SHARE)
    node.write_file("/tmp/none/sharefs.exports", exports, mode=0o666)
    node.run("rm /tmp/evil-ran", check=True)  # in a journal of her own it works: what follows depends on the owner
    node.run(f"rm -rf {STATE}", check=True)
    node.run(script, input=journal, user="bob", check=True)
    yield
    node.run(f"rm -rf {STATE} /var/tmp/forged /var/tmp/away /tmp/evil-ran", check=True)


def test_undo_by_a_forged_journal(node: Host, forged: None) -> None:
    def attack() -> bool:
        sharefs(node, "undo", "--yes", user="alice", env=ON_SHARE, timeout=LATE)
        return node.exists("/tmp/evil-ran")

    assert successes(attack) == 0


def test_undo_by_a_forged_journal_that_goes_away_when_it_was_read(node: Host, forged: None) -> None:
    """So that alice's own takes its name before anything is written: then the owner is right."""
    node.run(f"mv {STATE} /var/tmp/forged", user="bob", check=True)

    def attack() -> bool:
        node.run(f"rm -rf {STATE}", check=True)
        node.run(f"cp -r /var/tmp/forged {STATE}", user="bob", check=True)
        read = node.run(f"find {STATE}/journal -name '*.jsonl'", check=True).out.strip()
        with exchanging(node, "bob", STATE, "/var/tmp/away", "--read", read):
            sharefs(node, "undo", "--yes", user="alice", env=ON_SHARE, timeout=LATE)
        node.run("rm -rf /var/tmp/away", check=True)
        return node.run("rm /tmp/evil-ran").ok

    assert successes(attack) == 0


def test_undo_by_the_own_journal_works(node: Host) -> None:
    node.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs", user="alice", check=True)
    node.run(f"mkdir -p {SHARE}/conda/llm_train/conda-meta", user="alice", check=True)
    link = "/home/alice/miniconda3/envs/llm_train"
    done(node, "conda", "link", "--all", "--user", "alice", "--yes", user="alice", env=ON_SHARE)
    assert node.run(["readlink", link]).ok
    assert node.run(f"stat -c '%U %a' {STATE}").out == "alice 700\n"
    done(node, "undo", "--yes", user="alice", env=ON_SHARE)
    assert not node.exists(link)
    node.run(f"rm -rf {STATE}", check=True)


# 10. A directory for caches in which others may rename


@pytest.mark.parametrize("local", ["/local/cache", "/local"])
def test_caches_where_others_may_rename(node: Host, local: str) -> None:
    node.run(f"chmod 777 {local}; rm -rf /local/cache/alice", check=True)
    try:
        ran = run_train(node, "renamed").check()
        assert not cache_of(ran).startswith((SHARE, "/local/")), ran
        assert local in ran.err
    finally:
        node.run("chmod 755 /local; chmod 1777 /local/cache", check=True)


# 11. Smaller ones


def test_directories_made_by_another_user_stop_no_launch(node: Host) -> None:
    squatted = ["/local/cache/alice", "/var/tmp/sharefs-alice"]
    node.run(["rm", "-rf", *squatted], check=True)
    node.run(["mkdir", *squatted], user="bob", check=True)
    try:
        ran = run_train(node, "squatted").check()
        # No name is left on which all ranks agree: the cache stays where it is, which is said, and the guard builds there.
        assert cache_of(ran) == f"{SHARE}/squatted" and "SF405" in ran.err, ran
        assert node.run(["find", *squatted, "-mindepth", "1"]).out == ""
    finally:
        node.run("rm -rf /local/cache/alice* /var/tmp/sharefs-alice*", check=True)


def test_caches_of_an_own_directory(node: Host) -> None:
    cache = cache_of(run_train(node, "own").check())
    assert cache.startswith("/local/cache/alice/")
    assert node.run("stat -c '%a %U' /local/cache/alice").out == "700 alice\n"
