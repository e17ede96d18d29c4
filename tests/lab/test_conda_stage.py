"""sharefs conda stage with README's access (2770, root_squash): root of a node, who is nobody there, copies the image and mounts it."""

from __future__ import annotations

import json
import signal
from collections import Counter

import pytest

from sharefslab import Cluster, Host, wait_until
from sharefslab.environment import PROGRAM, make_environment
from sharefslab.product import SHARE, config_text, configure, done, sharefs

GENERATIONS = f"{SHARE}/conda/.generations/llm_train"
STAGE = "/var/cache/sharefs/conda/0/%data%share%conda/llm_train"
RUN = ["conda", "run", "llm_train", "--", "python", "-c", PROGRAM]
_NOTE = """
import hashlib, json, sys
content = open(sys.argv[1] + ".sqfs", "rb").read()
record = json.load(open(sys.argv[1] + ".json"))
note = {"sharefs": 1, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content), "created": record["created"], "files": 1}
json.dump(note, open(sys.argv[1] + ".sqfs.json", "w"))
"""


def make_image(node: Host, user: str = "alice") -> None:
    """Of the present generation, if there is none."""
    generation = f"$(readlink -f {SHARE}/conda/llm_train)"
    node.run(
        f"test -e {generation}.sqfs.json && exit; rm -f {generation}.sqfs\n"
        f"mksquashfs {generation} {generation}.sqfs -comp zstd -Xcompression-level 3 -quiet -no-progress >/dev/null\n"
        f"/usr/bin/python3 -c '{_NOTE}' {generation}",
        user=user,
        check=True,
        timeout=300,
    )


@pytest.fixture
def shared(lab: Cluster, request: pytest.FixtureRequest) -> Cluster:
    configure(lab, config_text(extra=getattr(request, "param", "")))
    done(lab.server, "export", "--all", "--yes")
    for node in lab.nodes:
        done(node, "mount", "--all", "--yes")
        for user in ("alice", "bob"):
            node.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs && chmod 700 ~", user=user, check=True)
    one = lab["node1"]
    make_environment(one, "/home/alice/miniconda3/envs/llm_train", user="alice")
    done(one, "conda", "share", "llm_train", "--yes", timeout=400)
    make_image(one)
    return lab


def staged(node: Host) -> list[str]:
    """The generations whose images are mounted."""
    return [line.split(" ")[4].rpartition("/")[2] for line in node.read_text("/proc/self/mountinfo").splitlines() if " - squashfs " in line]


def test_by_root_who_is_nobody_there(shared: Cluster) -> None:
    node = shared["node1"]
    assert not node.run(f"ls {SHARE}").ok, "root may read the share: this is not README's access"
    said = done(node, "conda", "stage", "llm_train", "--yes", timeout=300)
    assert "is read as `alice`" in said.err and staged(node) == ["0001"], said
    for user in ("alice", "bob"):
        ran = sharefs(node, *RUN, user=user, timeout=200)
        assert ran.out == f'[42, "{STAGE}/0001"]\n', ran
    node.run("echo carol:x:2003:2003::/home/carol:/bin/bash >>/etc/passwd", check=True)
    assert not node.run(f"ls {STAGE}/0001", user="carol").ok  # whom the share keeps out
    refused = sharefs(node, "stage", f"{SHARE}/conda", user="carol")
    assert refused.returncode == 1 and "hint: run it as a user who may see it" in refused.err, refused
    assert "is there" in done(node, "conda", "stage", "llm_train", "--yes").err
    assert "is there" in done(node, "conda", "stage", "llm_train", "--yes", user="bob").err  # who could not make one
    assert "`sudo sharefs conda stage llm_train --remove` removes it" in done(node, "stage", "--drop", "llm_train", "--yes", user="bob").err

    # a node that boots while the server is away has it all the same
    shared.reboot("node1")
    assert staged(node) == []
    shared.freeze("server")
    assert done(node, "conda", "stage", "--mount", "--yes").out == ""
    assert staged(node) == ["0001"]
    assert node.run([f"{STAGE}/0001/bin/python", "-c", PROGRAM], check=True).out == f'[42, "{STAGE}/0001"]\n'
    shared.resume("server")
    done(node, "mount", "--all", "--yes", timeout=200)

    done(node, "conda", "update", "llm_train", "--yes", "--", "sh", "-c", "echo new >$CONDA_PREFIX/new", timeout=400)
    make_image(node)
    done(node, "conda", "stage", "llm_train", "--yes", timeout=300)
    assert staged(node) == ["0002"]
    done(node, "conda", "stage", "llm_train", "--remove", "--yes")
    assert staged(node) == [] and node.run(f"ls {STAGE}").out == "uses\n"


def counts(stats: str) -> Counter[str]:
    """Requests to the server of the share, of /proc/self/mountstats."""
    lines = stats.partition(f" on {SHARE} with")[2].partition("\ndevice")[0].splitlines()
    rows = [line.split() for line in lines[lines.index("\tper-op statistics") + 1 :]]
    found = Counter({row[0].rstrip(":"): int(row[1]) for row in rows if len(row) > 8})
    del found["DELEGRETURN"]  # of files that nobody has used for the time of a lease, when the kernel gets to it
    assert found["GETATTR"] > 0
    return found


def requests_of_four(node: Host, command: str) -> Counter[str]:
    """What it asks the server of the share in all, once this host remembers what it may. By one login of bob: what a
    login may do is asked anew (Linux 6.2)."""
    script = f"{command}; cat /proc/self/mountstats; echo ====; for i in 1 2 3 4; do {command}; done; cat /proc/self/mountstats"
    before, after = node.run(script, user="bob", check=True, timeout=200).out.split("====")
    return counts(after) - counts(before)


def test_staging_is_advised_once_where_each_process_reads_many_files_of_the_share(shared: Cluster) -> None:
    node = shared["node1"]
    assert "stage" not in sharefs(node, *RUN, user="bob", timeout=200).check().err  # a small one
    many = "mkdir $CONDA_PREFIX/many && cd $CONDA_PREFIX/many && seq 1001 | xargs touch"
    done(node, "conda", "update", "llm_train", "--yes", "--no-verify", "--", "sh", "-c", many, timeout=400)
    said = [sharefs(node, *RUN, user=user, timeout=200).check().err for user in ("bob", "bob", "alice", "alice")]
    assert said[1] == said[3] == "" and said[0] == said[2]
    assert "files from the share; `sudo sharefs conda stage llm_train` puts them on this host's own disk (this is said once)" in said[0]
    make_image(node)
    done(node, "conda", "stage", "llm_train", "--yes", timeout=300)  # as it was told
    node.run("rm -r ~/.local/state/sharefs", user="bob", check=True)
    assert sharefs(node, *RUN, user="bob", timeout=200).check().err == ""  # it is followed


def test_the_daemon_stages_what_an_update_has_made(shared: Cluster) -> None:
    configure(shared, config_text() + "watch: {stage: true, interval: 1s}\n")
    node = shared["node2"]
    daemon = node.start(["sharefs", "watch", "--json"])
    wait_until(lambda: staged(node) == ["0001"], what="the environment is staged")
    done(shared["node1"], "conda", "update", "llm_train", "--yes", "--", "sh", "-c", "echo new >$CONDA_PREFIX/new", timeout=400)
    wait_until(lambda: staged(node) == ["0002"], what="its new generation is staged")
    daemon.kill(signal.SIGTERM)
    events = [json.loads(line) for line in daemon.wait(timeout=60).err.splitlines()]
    said = [event["message"] for event in events if event["event"] == "staged"]
    assert said[:3] == ["staging llm_train", "all environments are staged", "staging llm_train"], said


# What the client remembers does not grow old here: which of a mount's attributes do so meanwhile is a matter of how busy the machine is.
@pytest.mark.parametrize("shared", [", options: [actimeo=3600]"], indirect=True)
def test_a_copy_that_is_used_stays_and_its_server_is_asked_once(shared: Cluster) -> None:
    node = shared["node1"]
    done(node, "conda", "stage", "llm_train", "--yes", timeout=300)

    asked = requests_of_four(node, "sharefs conda run llm_train -- true")
    assert asked in ({"GETATTR": 4}, {}), asked  # none under a delegation, as newer kernels give for what was read

    job = node.start(["sharefs", "conda", "run", "llm_train", "--", "sh", "-c", "sleep 1000; :"], user="bob")  # no program of the copy
    try:
        notes = wait_until(lambda: node.run(f"ls {STAGE}/uses").out.split(), what="the use is noted")
        namespace = node.run("readlink /proc/self/ns/pid", check=True).out.strip()[len("pid:[") : -1]  # of a container
        assert len(notes) == 1 and notes[0].startswith(f"node1+{namespace}.") and notes[0].endswith(".0001")
        assert node.run(f"ls {GENERATIONS}/uses", user="bob", check=True).out == ""
        said = sharefs(node, "conda", "stage", "llm_train", "--remove", "--yes")
        assert "0001 stays: a command works with it" in said.out + said.err and staged(node) == ["0001"], said
    finally:
        job.kill()
        job.wait(timeout=60)
    done(node, "conda", "stage", "llm_train", "--remove", "--yes")
    assert staged(node) == []


def test_an_image_of_somebody_else_is_not_mounted(shared: Cluster) -> None:
    """Bob may write in the store, as all of ml may: the image in the place of alice's is his."""
    node = shared["node1"]
    node.run(f"set -e; cp {GENERATIONS}/0001.sqfs {GENERATIONS}/mine; mv -f {GENERATIONS}/mine {GENERATIONS}/0001.sqfs", user="bob", check=True)
    said = done(node, "conda", "stage", "llm_train", "--yes", timeout=300)
    assert "mounts no image that others than root" in said.err and staged(node) == [], said
    ran = sharefs(node, *RUN, user="bob", timeout=200)  # from the files that root has copied, as alice reads them
    assert ran.out == f'[42, "{STAGE}/0001"]\n', ran


def size_of_part(node: Host) -> int:
    return int(node.run(f"stat -c %s {STAGE}/.0001.sqfs.part 2>/dev/null || echo 0").out)


def test_the_server_freezes_in_the_copy(shared: Cluster) -> None:
    node = shared["node1"]
    job = node.start(["sharefs", "conda", "stage", "llm_train", "--yes", "--limit", "1M"])
    wait_until(lambda: size_of_part(node) > 1 << 20, what="a piece is there")
    shared.freeze("server")
    job.kill(signal.SIGINT)
    ended = job.wait(timeout=60)
    assert ended.returncode == 130, ended
    assert staged(node) == [] and size_of_part(node) > 1 << 20
    shared.resume("server")
    again = done(node, "conda", "stage", "llm_train", "--yes", "--wait", "60s", timeout=300)
    assert ".sqfs: " in again.err and " 0 B there already" not in again.err, again
    assert staged(node) == ["0001"]


def test_the_server_is_killed_and_starts_anew_in_the_copy(shared: Cluster) -> None:
    node = shared["node1"]
    job = node.start(["sharefs", "conda", "stage", "llm_train", "--yes", "--limit", "1M"])
    wait_until(lambda: size_of_part(node) > 1 << 20, what="a piece is there")
    shared.reboot("server")
    done(shared.server, "export", "--all", "--yes")
    ended = job.wait(timeout=300)
    if ended.returncode != 0:  # by its deadline: the next one goes on
        assert staged(node) == [] and size_of_part(node) > 1 << 20, ended
        wait_until(lambda: node.run(f"timeout -s KILL 5 cat {GENERATIONS}/0001.json", user="alice").ok, timeout=180, what="the server opens files: its grace period is over")
        done(node, "conda", "stage", "llm_train", "--yes", timeout=300)
    assert staged(node) == ["0001"]
    assert sharefs(node, *RUN, user="bob", timeout=200).out == f'[42, "{STAGE}/0001"]\n'


def test_gc_takes_the_generation_while_another_host_copies(shared: Cluster) -> None:
    """What is copied is whole, or named and not mounted."""
    node, other = shared["node1"], shared["node2"]
    job = node.start(["sharefs", "conda", "stage", "llm_train", "--yes", "--limit", "1M"])
    wait_until(lambda: size_of_part(node) > 1 << 20, what="a piece is there")
    done(other, "conda", "update", "llm_train", "--yes", "--", "sh", "-c", "echo new >$CONDA_PREFIX/new", timeout=400)
    done(other, "conda", "gc", "llm_train", "--keep", "1", "--yes", timeout=300)
    ended = job.wait(timeout=300)
    if ended.returncode == 0:
        assert staged(node) == ["0001"], ended
    else:
        assert staged(node) == [] and f"{GENERATIONS}/0001" in ended.err, ended
    assert sharefs(node, *RUN, user="bob", timeout=200).out == f'[42, "{GENERATIONS}/0002"]\n'
    done(node, "conda", "stage", "llm_train", "--yes", "--wait", "60s", timeout=300)
    assert staged(node) == ["0002"]


def test_a_node_without_a_disk_reads_the_image_on_the_share(shared: Cluster) -> None:
    node = shared["node1"]
    configure(shared, config_text().replace("conda:\n", "conda:\n  image_from_share: true\n"))
    said = sharefs(node, "mount", "--all", "--check", timeout=120)
    assert said.returncode == 3 and "SIGKILL does not end them" in said.out + said.err and staged(node) == [], said
    done(node, "mount", "--all", "--yes", timeout=120)
    assert staged(node) == ["0001"] and not node.run(f"ls {STAGE}/0001.sqfs").ok
    device = node.run("awk '/ - squashfs / {print $3}' /proc/self/mountinfo", check=True).out.strip()
    assert node.read_text(f"/sys/class/bdi/{device}/read_ahead_kb") == "1024\n", "each request is a round trip"
    assert sharefs(node, *RUN, user="bob", timeout=200).out == f'[42, "{STAGE}/0001"]\n'
    assert sharefs(node, "mount", "--all", "--check", timeout=120).returncode == 0

    done(node, "conda", "update", "llm_train", "--yes", "--", "sh", "-c", "echo new >$CONDA_PREFIX/new", timeout=400)
    done(node, "mount", "--all", "--yes", timeout=120)
    assert staged(node) == ["0002"]
    done(node, "umount", "--all", "--yes", timeout=120)  # before the share
    assert staged(node) == []
    done(node, "mount", "--all", "--yes", timeout=120)
    assert staged(node) == ["0002"]

    done(node, "conda", "stage", "llm_train", "--yes", timeout=300)  # a copy takes its place
    assert staged(node) == ["0002"] and node.run(f"ls {STAGE}/0002.sqfs").ok
    assert sharefs(node, "mount", "--all", "--check", timeout=120).returncode == 0
    done(node, "conda", "stage", "llm_train", "--remove", "--yes")


@pytest.mark.parametrize("shared", [", options: [actimeo=3600]"], indirect=True)
def test_a_process_of_an_image_on_the_share_makes_two_requests(shared: Cluster) -> None:
    """Where STORE/ENV leads now, and its note. One process in sixteen, by its number, also looks for notes of ended ones."""
    node = shared["node1"]
    configure(shared, config_text(extra=", options: [actimeo=3600]").replace("conda:\n", "conda:\n  image_from_share: true\n"))
    done(node, "mount", "--all", "--yes", timeout=120)
    one = "until sh -c '[ $(($$ % 16)) != 0 ] && exec sharefs conda run llm_train -- true'; do :; done"
    # nfsd gives no delegation of a file for half a minute after it has recalled one, and without it each process opens it.
    wait_until(lambda: "OPEN_NOATTR" not in requests_of_four(node, one), 90, what="files that were just made have delegations")
    asked = requests_of_four(node, one)
    assert asked in ({"GETATTR": 4, "SYMLINK": 4}, {"SYMLINK": 4}), asked


def test_a_frozen_server_under_its_image_keeps_programs_and_not_sharefs(shared: Cluster) -> None:
    node = shared["node1"]
    configure(shared, config_text().replace("conda:\n", "conda:\n  image_from_share: true\n"))
    done(node, "mount", "--all", "--yes", timeout=120)
    assert staged(node) == ["0001"]
    node.run("echo 3 >/proc/sys/vm/drop_caches", check=True)
    shared.freeze("server")
    job = node.start([f"{STAGE}/0001/bin/python", "-c", PROGRAM], user="bob")
    try:
        for command in (["status"], ["doctor"], ["conda", "stage", "--mount", "--yes"], ["mount", "--all", "--check"]):
            said = sharefs(node, *command, timeout=120)
            assert said.returncode in (0, 1, 3, 4), said  # an answer
        assert job.running(), "it has read the image without its server"
    finally:
        shared.resume("server")
    ended = job.wait(timeout=200)
    assert ended.returncode == 0 and ended.stdout.decode().startswith("[42,"), ended


def test_an_image_on_a_share_that_gives_up_is_not_mounted(shared: Cluster) -> None:
    node = shared["node1"]
    configure(shared, config_text("recipe").replace("conda:\n", "conda:\n  image_from_share: true\n"))
    done(node, "umount", "--all", "--yes")
    said = sharefs(node, "mount", "--all", "--yes", timeout=120)
    assert "wants the store on a mount of NFS 4 with `hard`" in said.err and staged(node) == [], said


def test_a_user_mounts_the_image_by_squashfuse(shared: Cluster) -> None:
    node = shared["node1"]
    node.run("modprobe fuse; chmod 666 /dev/fuse; install -d -m 1777 /var/cache/sharefs/conda", check=True)
    said = sharefs(node, "conda", "stage", "llm_train", "--yes", user="bob", timeout=300)
    assert said.ok and "fuse.squashfuse" in node.read_text("/proc/self/mountinfo"), said
    mine = STAGE.replace("/0/", "/2002/")
    assert sharefs(node, *RUN, user="bob", timeout=200).out == f'[42, "{mine}/0001"]\n'
    assert sharefs(node, *RUN, user="alice", timeout=200).out == f'[42, "{GENERATIONS}/0001"]\n'  # it is bob's alone
    node.run("pkill -x squashfuse_ll", user="bob", check=True)  # as a batch system does
    wait_until(lambda: not node.run("pgrep -x squashfuse_ll").ok, what="squashfuse has ended")
    assert sharefs(node, *RUN, user="bob", timeout=200).out == f'[42, "{GENERATIONS}/0001"]\n'
    again = sharefs(node, "conda", "stage", "llm_train", "--yes", user="bob", timeout=300)
    assert again.ok and sharefs(node, *RUN, user="bob", timeout=200).out == f'[42, "{mine}/0001"]\n', again
    gone = sharefs(node, "conda", "stage", "llm_train", "--remove", "--yes", user="bob", timeout=300)
    assert gone.ok and "fuse.squashfuse" not in node.read_text("/proc/self/mountinfo"), gone
