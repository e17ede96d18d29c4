"""Users of the cluster attack sharefs: each attack fails in every run, and the honest use beside it works.

alice and bob are in the group of the share (ml), carol is not; root runs sharefs unless said otherwise. An attack runs
$SHAREFS_ATTACKS times, by default 10. docs/security.md says which boundary each test stands for.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sharefslab import Cluster, Host, wait_until
from sharefslab.host import Completed
from sharefslab.nfs import exported_clients
from sharefslab.product import CONFIG_PATH, SHARE, TRAIN, config_text, document, done, export_and_mount, sharefs

RUNS = int(os.environ.get("SHAREFS_ATTACKS", "10"))
LATE = 30.0  # a command that takes longer hangs

EXPORTED = "/srv/share"  # SHARE, on the server


@pytest.fixture(scope="module")
def cluster(lab_ready: None) -> Iterator[Cluster]:
    """One for all tests: each has directories of its own, and leaves no process and no mount behind."""
    with Cluster(hosts=("server", "node1")) as cluster:
        for host in cluster:
            host.run("echo carol:x:2003:2003::/home/carol:/bin/bash >>/etc/passwd", check=True)
            host.run("install -d -o 2003 -g 2003 /home/carol; install -d -m 1777 /local/cache", check=True)
        source = Path(__file__).with_name("exchange.c")
        compiled = cluster.share / "exchange"
        subprocess.run(["gcc", "-O2", "-Wall", "-static", "-o", str(compiled), str(source)], check=True)
        export_and_mount(cluster, config_text().replace("10.77.0.2, 10.77.0.3", "10.77.0.2"))
        yield cluster


@pytest.fixture
def node(cluster: Cluster) -> Host:
    return cluster["node1"]


def successes(attack: Callable[[], bool]) -> int:
    """How many of RUNS attacks did what the attacker wants."""
    return sum(attack() for _ in range(RUNS))


@contextlib.contextmanager
def exchanging(host: Host, user: str, *arguments: str, cwd: str = "/") -> Iterator[None]:
    """Meanwhile `user` exchanges two names without end (see exchange.c)."""
    job = host.start(["/share/exchange", *arguments], user=user, cwd=cwd)
    wait_until(lambda: b"at work" in job.stdout() or not job.running(), what="the attacker is at work")
    try:
        yield
    finally:
        job.kill()
        job.wait_or_kill()


def config_with(host: Host, name: str, text: str) -> str:
    """A configuration file beside the usual one."""
    path = f"/etc/sharefs/{name}.yaml"
    host.write_file(path, text, mode=0o644)
    return path


# 1. The export of a directory that a user can exchange for another


def exports_of(*directories: str) -> str:
    rows = "".join(
        f"      - {{path: {directory}, clients: [10.77.0.2], access: {{group: ml}}}}\n" for directory in directories
    )
    return f"version: 1\nservers:\n  storage:\n    address: 10.77.0.1\n    exports:\n{rows}"


class Victim:
    """A directory of the server that the attacker wants opened and exported."""

    def __init__(self, server: Host, path: str) -> None:
        self.server, self.path, self.before = server, path, self._state(server, path)

    @staticmethod
    def _state(server: Host, path: str) -> str:
        return server.run(f"stat -c '%a %U %G' {path} && getfacl -cpd {path}", check=True).out

    def was_opened(self) -> bool:
        """Whether it was; then everything is put back for the next attack."""
        exports = "".join(self.server.read_text("/var/lib/nfs/etab").partition(f"{self.path}\t")[1:])
        hurt = self._state(self.server, self.path) != self.before or exports != ""
        if hurt:
            mode, user, group = self.before.splitlines()[0].split()
            self.server.run(
                f"chown {user}:{group} {self.path}; chmod {mode} {self.path}; setfacl -k {self.path}; "
                f"rm -f /etc/exports.d/*; exportfs -ra",
                check=True,
            )
        return hurt


@pytest.fixture
def server(cluster: Cluster) -> Iterator[Host]:
    """The server with its exports as before each test of them."""
    server = cluster.server
    yield server
    server.run(f"rm -rf {EXPORTED}/proj {EXPORTED}/other", check=True)
    done(server, "export", "--all", "--yes")


@pytest.mark.parametrize("victim_path", ["/etc", "/local/private"])
def test_export_of_a_planted_link(server: Host, victim_path: str) -> None:
    server.run("install -d -m 700 /local/private", check=True)
    victim = Victim(server, victim_path)
    config = config_with(server, "planted", exports_of(f"{EXPORTED}/proj"))
    server.run(f"ln -sfn {victim_path} {EXPORTED}/proj", user="alice", check=True)

    def attack() -> bool:
        refused = sharefs(server, "--config", config, "export", "--all", "--yes", timeout=LATE)
        return victim.was_opened() or refused.ok

    assert successes(attack) == 0


def test_export_of_a_directory_that_is_exchanged_for_a_link(server: Host) -> None:
    server.run("install -d -m 700 /local/private", check=True)
    victim = Victim(server, "/local/private")
    config = config_with(server, "exchanged", exports_of(f"{EXPORTED}/proj"))
    server.run(f"mkdir {EXPORTED}/proj; ln -s /local/private {EXPORTED}/other", user="alice", check=True)

    def attack() -> bool:
        with exchanging(server, "alice", f"{EXPORTED}/proj", f"{EXPORTED}/other"):
            sharefs(server, "--config", config, "export", "--all", "--yes", timeout=LATE)
        return victim.was_opened()

    assert successes(attack) == 0


def test_export_of_anothers_directory_renamed_into_place(server: Host) -> None:
    """bob's private directory below the share, under the name that is exported: his secrets, for the group."""
    server.run(f"mkdir -m 700 {EXPORTED}/other", user="bob", check=True)
    config = config_with(server, "renamed", exports_of(f"{EXPORTED}/proj"))
    victim = Victim(server, f"{EXPORTED}/other")
    victim.path = f"{EXPORTED}/proj"
    server.run(f"mv {EXPORTED}/other {EXPORTED}/proj", user="alice", check=True)

    def attack() -> bool:
        sharefs(server, "--config", config, "export", "--all", "--yes", timeout=LATE)
        return victim.was_opened()

    assert successes(attack) == 0


def test_export_below_directories_of_root_works(server: Host) -> None:
    server.run("install -d /local/projects", check=True)
    config = config_with(server, "honest", exports_of(EXPORTED, "/local/projects/proj"))
    done(server, "--config", config, "export", "--all", "--yes")
    assert exported_clients(server, "/local/projects/proj") == ["10.77.0.2"]
    assert server.run("stat -c %G /local/projects/proj").out == "ml\n"
    server.run("exportfs -u 10.77.0.2:/local/projects/proj", check=True)


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
    """`sharefs run` of the plain training script."""
    node.run("cat >train.py", input=TRAIN, cwd=SHARE, user="alice", check=True)
    command = ["python3", f"{SHARE}/train.py", "--cache_dir", f"{SHARE}/{cache}", "--output_dir", f"{SHARE}/out"]
    return sharefs(node, "run", "--", *command, user=user, timeout=LATE)


def cache_of(ran: Completed) -> str:
    """Where the script was told to put its cache."""
    return ran.out.splitlines()[0].split()[1]


def test_own_caches_are_listed_and_pruned(node: Host) -> None:
    cache = cache_of(run_train(node, "mine").check())
    assert cache in sharefs(node, "cache", "list", "--json", user="alice").check().out
    prune(node, user="alice").check()
    assert not node.exists(cache)


# 4. Files that sharefs writes where others may write, too

PRINT = "# HfArgumentParser\nimport sys\nprint(open(sys.argv[1]).read())\n"


@pytest.fixture
def project(node: Host) -> Iterator[str]:
    """A project of alice's in which the group may write, and a file of hers that only she may."""
    path = f"{SHARE}/project"
    node.run(f"mkdir {path} && echo mine >~/.bashrc", user="alice", check=True)
    node.run("cat >train.py", input=PRINT, cwd=path, user="alice", check=True)
    config = json.dumps({"cache_dir": f"{SHARE}/c", "output_dir": f"{SHARE}/o"})
    node.run("cat >config.json", input=config, cwd=path, user="alice", check=True)
    yield path
    node.run(f"rm -rf {path}", user="alice", check=True)


def changed_copy(node: Host, project: str) -> str:
    """The file that `run` gives to the program instead of the configuration file."""
    said = sharefs(node, "run", "--dry-run", "--json", "--", "python3", "train.py", "config.json", cwd=project, user="alice")
    return str(document(said)["final_argv"][-1])


def test_run_with_a_link_where_the_changed_copy_goes(node: Host, project: str) -> None:
    def attack() -> bool:
        copy = changed_copy(node, project)
        node.run(f"ln -sfn /home/alice/.bashrc {copy}", user="bob")  # may fail: then bob cannot reach it at all
        sharefs(node, "run", "--", "python3", "train.py", "config.json", cwd=project, user="alice", timeout=LATE)
        return node.read_text("/home/alice/.bashrc") != "mine\n"

    assert changed_copy(node, project) != "config.json"
    assert successes(attack) == 0


def test_run_reads_the_changed_copy(node: Host, project: str) -> None:
    ran = sharefs(node, "run", "--", "python3", "train.py", "config.json", cwd=project, user="alice", timeout=LATE)
    changed = json.loads(ran.check().out)
    assert not changed["cache_dir"].startswith(SHARE) and changed["output_dir"] == f"{SHARE}/o"


def test_script_copy_through_a_planted_link(node: Host, project: str) -> None:
    node.run(f"echo 'python3 train.py --cache_dir {SHARE}/c' >job.sh", cwd=project, user="alice", check=True)
    node.run("ln -s /home/alice/.bashrc job.local.sh", cwd=project, user="bob", check=True)

    def attack() -> bool:
        sharefs(node, "cachefix", "script", "job.sh", "--write", "job.local.sh", "--yes", cwd=project, user="alice")
        sharefs(node, "cachefix", "script", "job.sh", "--write", "job.local.sh", cwd=project, user="alice")
        return node.read_text("/home/alice/.bashrc") != "mine\n"

    assert successes(attack) == 0


def test_script_copy_asks_before_it_overwrites(node: Host, project: str) -> None:
    node.run(f"echo 'python3 train.py --cache_dir {SHARE}/c' >job.sh; echo old >copy.sh", cwd=project, user="alice", check=True)
    refused = sharefs(node, "cachefix", "script", "job.sh", "--write", "copy.sh", cwd=project, user="alice")
    assert refused.returncode == 2 and "--force" in refused.err
    assert node.read_text(f"{project}/copy.sh") == "old\n"
    for copy in ("copy.sh", "new.sh"):
        words = ("cachefix", "script", "job.sh", "--write", copy, "--force")
        assert sharefs(node, *words, cwd=project, user="alice").returncode == 2  # nobody has agreed
        done(node, *words, "--yes", cwd=project, user="alice")
        assert "--cache_dir /local/cache/" in node.read_text(f"{project}/{copy}")


# 5. A mount point that is exchanged for a link after the plan was made


def mounts_at(node: Host, *targets: str) -> list[str]:
    return [line for line in node.read_text("/proc/mounts").splitlines() if line.split(" ")[1] in targets]


def test_mount_on_a_directory_that_is_exchanged_for_a_link(node: Host) -> None:
    node.run("install -d /etc/cron.d", check=True)
    node.run("mkdir -p ~/mnt && ln -sfn /etc/cron.d ~/link", user="alice", check=True)
    text = node.read_text(CONFIG_PATH).replace("at: /data/share", "at: /home/alice/mnt")
    config = config_with(node, "exchanged", text)

    def attack() -> bool:
        with exchanging(node, "alice", "/home/alice/mnt", "/home/alice/link"):
            sharefs(node, "--config", config, "mount", "share", "--yes", timeout=LATE)
            hurt = bool(mounts_at(node, "/etc/cron.d"))
        node.run("umount -l /etc/cron.d; umount -l /home/alice/mnt /home/alice/link")
        return hurt

    assert successes(attack) == 0


def test_mount_on_a_directory_of_root_works(node: Host) -> None:
    config = config_with(node, "second", node.read_text(CONFIG_PATH).replace("at: /data/share", "at: /data/second"))
    done(node, "--config", config, "mount", "share", "--yes")
    assert mounts_at(node, "/data/second")
    done(node, "--config", config, "umount", "share", "--yes")
    assert not mounts_at(node, "/data/second")


# 6. A journal that somebody else wrote

STATE = "/var/tmp/sharefs-2001"  # alice's, when her own lies on shared storage
ON_SHARE = {"XDG_STATE_HOME": f"{SHARE}/state"}


@pytest.fixture
def forged(server: Host, node: Host) -> Iterator[None]:
    """A true journal of a change that ran exportfs, in which a script of bob's has its place."""
    server.run("rm /etc/exports.d/sharefs.exports && exportfs -ra", check=True)
    done(server, "export", "--all", "--yes")
    newest = "cd /var/lib/sharefs/journal && tar -cf - $(ls -t | head -n 1)"
    journal = server.run(newest, check=True).stdout
    node.write_file("/local/evil", "#!/bin/sh\nid -un >>/tmp/evil-ran\n", mode=0o755)
    script = f"""
        mkdir -p {STATE}/journal && tar -C {STATE}/journal -xf - --no-same-owner
        find {STATE} -type f -exec sed -i 's#"exportfs"#"/local/evil"#g; s#/etc/exports.d/#/tmp/none/#g' {{}} +
        chmod -R go+rX {STATE}"""
    node.run(script, input=journal, user="alice", check=True)
    sharefs(node, "undo", "--yes", user="alice", env=ON_SHARE)
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


# 7. access: {group}, and who else gets to read


def test_group_access_gives_nothing_to_others(cluster: Cluster, server: Host, node: Host) -> None:
    config = config_with(server, "group", exports_of("/local/group"))
    done(server, "--config", config, "export", "--all", "--yes")
    assert server.run("stat -c '%a %G' /local/group").out == "2770 ml\n"
    server.run("umask 077; echo secret >/local/group/token", user="alice", check=True)
    assert server.run("echo more >>/local/group/token", user="bob").ok  # what the group is for
    node.run("mkdir -p /local/group && mount -t nfs -o vers=4.2 10.77.0.1:/local/group /local/group", check=True)
    try:
        assert "secret" in node.run("cat /local/group/token", user="bob", check=True).out
        for host in (server, node):
            assert not host.run("cat /local/group/token", user="carol").ok
        # not even where the directory itself is opened later
        server.run("chmod 2775 /local/group", check=True)
        assert not server.run("cat /local/group/token", user="carol").ok
    finally:
        node.run("umount -l /local/group", check=True)


@pytest.mark.parametrize("access,mode", [('{group: ml, mode: "2775"}', "2775"), ("open", "1777")])
def test_wider_access_is_said_in_words(server: Host, access: str, mode: str) -> None:
    config = config_with(server, "wide", exports_of("/local/wide").replace("{group: ml}", access))
    shown = sharefs(server, "--config", config, "export", "--all", "--dry-run")
    assert "everyone on every node" in " ".join((shown.out + shown.err).split())
    done(server, "--config", config, "export", "--all", "--yes")
    assert server.run("stat -c %a /local/wide").out == f"{mode}\n"
    server.run("rm -rf /local/wide", check=True)


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
        cache = cache_of(ran)
        assert not cache.startswith((SHARE, *(f"{path}/" for path in squatted)))
        assert node.run(["stat", "-c", "%U", cache]).out == "alice\n"
    finally:
        node.run("rm -rf /local/cache/alice* /var/tmp/sharefs-alice*", check=True)


def test_caches_of_an_own_directory(node: Host) -> None:
    cache = cache_of(run_train(node, "own").check())
    assert cache.startswith("/local/cache/alice/")
    assert node.run("stat -c '%a %U' /local/cache/alice").out == "700 alice\n"


def test_squashed_to_root_for_everyone_is_warned_of(server: Host) -> None:
    server.write_file("/tmp/exports", "/local/x *(rw,sync,no_subtree_check,all_squash,anonuid=0)\n")
    said = sharefs(server, "export", "check", "/tmp/exports")
    assert "anonuid" in said.out + said.err
    server.write_file("/tmp/exports", "/local/x 10.77.0.2(rw,sync,no_subtree_check,all_squash,anonuid=2001,anongid=3000)\n")
    said = sharefs(server, "export", "check", "/tmp/exports")
    assert "anonuid=0" not in said.out + said.err


def test_tools_do_not_come_from_the_callers_path(server: Host) -> None:
    server.run("rm -rf /local/bin /tmp/evil-ran; mkdir /local/bin", check=True)
    for tool in ("exportfs", "systemctl", "getent", "rpc.nfsd", "rpcbind", "mount.nfs", "id"):
        server.write_file(f"/local/bin/{tool}", f'#!/bin/sh\necho {tool} >>/tmp/evil-ran\nexec /usr/sbin/{tool} "$@"\n', mode=0o755)
    config = config_with(server, "path", exports_of("/local/path"))
    done(server, "--config", config, "export", "--all", "--yes", env={"PATH": "/local/bin:/lab-bin:/usr/sbin:/usr/bin"})
    assert not server.exists("/tmp/evil-ran"), server.read_text("/tmp/evil-ran")


def test_a_configuration_in_a_directory_of_a_user_is_refused(node: Host) -> None:
    """The file is root's, but bob can put another one of root's in its place."""
    node.run(f"install -d -o bob /local/bobs && install -m 644 {CONFIG_PATH} /local/bobs/sharefs.yaml", check=True)
    refused = sharefs(node, "--config", "/local/bobs/sharefs.yaml", "mount", "--all", "--yes")
    assert refused.returncode == 2 and "/local/bobs" in refused.err
    node.run("chown root /local/bobs", check=True)
    done(node, "--config", "/local/bobs/sharefs.yaml", "mount", "--all", "--yes")
