"""The page of manual steps that sharefs replaces, from the empty server to the launch, by what docs/from-the-manual-page.md
prints: each of its commands is typed here. The numbers are the page's steps."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from sharefslab import BaseCluster, Cluster, KernelCluster, systemd, wait_until
from sharefslab.environment import make_environment
from sharefslab.product import (
    SHARE, config_text, configure, done, export_and_mount, hold_share, mount_lines, sharefs, state_of, write_training,
)  # fmt: skip

SERVER = "10.77.0.1"
PAGE = Path(__file__).parents[2] / "docs/from-the-manual-page.md"
PRINTED = re.compile(r"`sharefs ([^`]+)`")
MEANT = {"SERVER": SERVER, "NAME": "share", "ENV": "llm_train", "FILE": "job.sh", "CMD": "", "...": ""}
FIRST_OF_ENVIRONMENTS = 12  # the rows before it are the page's steps 1 to 12

# A launcher of each name: past its own options it starts Python with the rest.
LAUNCHER = """\
#!/bin/sh
while :; do
    case $1 in
        --hostfile) shift 2 ;;
        -*) shift ;;
        *) exec python3 "$@" ;;
    esac
done
"""


def rows() -> list[list[str]]:
    """The commands that each row of the table prints."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [PRINTED.findall(line) for line in lines[1:]]


def assert_typed(cluster: BaseCluster, printed: list[list[str]]) -> None:
    """Somebody has typed each of the commands, with options of its own at most."""
    typed = [words for host in cluster for ended in host.log if "sharefs" in (words := shlex.split(ended.command))]
    for command in sum(printed, []):
        words = [meant for word in command.split() if (meant := MEANT.get(word, word))]
        wanted = [word for word in words if word != "--"]
        assert any(all(word in one for word in wanted) for one in typed), f"nobody has typed `sharefs {command}`"


def serve(cluster: BaseCluster) -> None:
    if isinstance(cluster, KernelCluster):
        cluster.start_nfs_server(exports=None)
    done(cluster.server, "export", "--all", "--yes")


@pytest.mark.parametrize("kind", ["lab", "boot_lab"])
def test_the_page(request: pytest.FixtureRequest, kind: str) -> None:
    cluster: BaseCluster = request.getfixturevalue(kind)
    server, node = cluster.server, cluster["node1"]
    text = config_text(extra=", boot: auto, options: [actimeo=1], shares: [{path: outputs, access: {group: ml}}]")
    configure(cluster, text.replace('mode: "2770"', "sticky: true"))

    # 4: that is no host, and what stands there is not taken over unseen
    said = server.run("echo '/mnt 192.168.16.11/22(rw)' | sharefs export check -")
    assert "1,024" in said.out
    # 3, 5: directory, rights, export, server
    serve(cluster)
    assert server.run("stat -c '%a %G' /srv/share").out == "3770 ml\n"
    assert sharefs(server, "export", "--all", "--check").returncode == 0
    done(server, "export", "--all", "--recursive", "--yes")
    # 6: without root
    assert "/srv/share" in done(node, "probe", SERVER, user="alice").out
    assert "may mount" in done(node, "probe", f"{SERVER}:/srv/share").out
    # 15: on the server, which bind-mounts the same path; root of a node is nobody
    done(server, "mount", "--all", "--yes")
    # 7, 13
    done(node, "mount", "--all", "--yes")
    node.run(f"umask 022; mkdir {SHARE}/outputs/run && echo a >{SHARE}/outputs/run/log", user="alice", check=True)
    node.run(f"echo b >>{SHARE}/outputs/run/log && rm -r {SHARE}/outputs/run", user="bob", check=True)
    assert state_of(node) == "healthy"
    done(node, "mount", "--all", "--verify", "--yes")
    node.run(f"echo hello >{SHARE}/file", user="alice", check=True)
    # 8: the same owner on both sides
    assert server.run("stat -c '%U %G' /srv/share/file").out == "alice ml\n"
    assert node.run(f"stat -c '%U %G' {SHARE}/file", user="bob").out == "alice ml\n"
    assert not node.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", f"{SHARE}/file"]).ok
    server.run("rm /srv/share/file", check=True)
    # 9
    holder = hold_share(node, user="alice")
    busy = sharefs(node, "umount", "share", "--yes")
    assert busy.returncode == 1 and "sleep" in busy.err
    done(node, "umount", "share", "--lazy", "--yes")
    node.kill(holder)
    assert mount_lines(node) == []
    done(node, "mount", "share", "--yes")
    # 10
    if kind == "boot_lab":
        cluster.reboot(node)
        systemd.wait_for_mount(node, SHARE)
    else:
        cluster.reboot(node, rc_local=True)
        wait_until(lambda: mount_lines(node), what="rc.local has mounted")
    assert state_of(node) == "healthy"
    # 11: "Stale file handle"
    done(server, "umount", "--all", "--yes")
    cluster.remake_filesystem("server")
    wait_until(lambda: state_of(node) == "stale", what="the node notices that its handle is stale")
    done(node, "recover", "--all", "--yes", timeout=240)
    assert state_of(node) == "healthy"
    done(node, "watch", "--once", timeout=240)
    # 12: "backgrounding": which stage fails, and what helps
    cluster.drop_traffic("server")
    wait_until(lambda: state_of(node, 2) == "hung", what="the node notices that its server is away")
    told = sharefs(node, "status", "--timeout", "2s")
    assert told.returncode == 1 and "hint" in told.err
    assert not sharefs(node, "probe", SERVER, "--timeout", "2s").ok
    cluster.restore_traffic("server")
    wait_until(lambda: state_of(node) == "healthy", 400, what="the server is back")
    assert sharefs(node, "doctor", timeout=240).returncode in (0, 1)  # whatever else there is to say on a lab's host
    done(node, "umount", "--all", "--forget", "--yes")
    assert mount_lines(node) == []
    assert_typed(cluster, [row for row in rows()[:FIRST_OF_ENVIRONMENTS]])


def test_the_page_s_environments_and_launches(lab: Cluster) -> None:
    text = config_text(extra=", shares: [{path: outputs, access: {group: ml}}]")
    export_and_mount(lab, text.replace('mode: "2770"', "sticky: true"))
    done(lab.server, "mount", "--all", "--yes")  # root of a node is nobody, and makes no directories of `shares:`
    node = lab["node1"]
    for one in lab.nodes:
        for user in ("alice", "bob"):
            one.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs && chmod 700 ~", user=user, check=True)
    make_environment(node, "/home/alice/miniconda3/envs/llm_train", user="alice")
    # 14: moved, linked on each node, updated, and back
    done(node, "conda", "share", "llm_train", "--yes", timeout=400, user="alice")
    for one in lab.nodes:
        done(one, "conda", "link", "--all", "--yes")
    answer = ["conda", "run", "llm_train", "python", "-S", "-c", "import lab_package; print(lab_package.answer)"]
    assert done(lab["node2"], *answer, user="bob").out == "42\n"
    changed = "sed -i s/42/43/ $CONDA_PREFIX/lib/python3*/site-packages/lab_package.py $CONDA_PREFIX/lib/python3*/lab_package.py; true"
    done(node, "conda", "update", "llm_train", "--yes", "--no-verify", "--", "sh", "-c", changed, timeout=400, user="alice")
    assert done(lab["node2"], *answer, user="bob").out == "43\n"
    done(node, "conda", "rollback", "llm_train", "--yes", user="alice")
    assert done(lab["node2"], *answer, user="bob").out == "42\n"
    # 15: what is made in the outputs is the group's
    node.run(f"umask 077; echo a >{SHARE}/outputs/log", user="alice", check=True)
    lab["node2"].run(f"cat {SHARE}/outputs/log", user="bob", check=True)
    # 16 to 22: the command stays as it is, and gets no cache on the share
    write_training(node)
    node.run("mkdir -p -m 1777 /local/cache /local/bin", check=True)
    for name in ("deepspeed", "srun", "torchrun"):
        node.write_file(f"/local/bin/{name}", LAUNCHER, mode=0o755)
    node.run(f"echo 'node1 slots=1' >hostfile; echo 'torchrun --nnodes=2 train.py --cache_dir {SHARE}/cache' >job.sh", cwd=SHARE, user="alice", check=True)
    options = ["train.py", "--output_dir", f"{SHARE}/outputs"]
    path = {"PATH": "/local/bin:" + node.run("echo $PATH", check=True).out.strip()}
    for launch in (["python3"], ["deepspeed", "--hostfile", "hostfile"], ["srun"], ["torchrun", "--nnodes=2"]):
        ran = done(node, "run", "--", *launch, *options, "--cache_dir", f"{SHARE}/cache", cwd=SHARE, user="alice", env=path)
        assert f"output: {SHARE}/outputs" in ran.out, launch
    assert "torchrun" in done(node, "cachefix", "script", "job.sh", cwd=SHARE, user="alice").out
    assert_typed(lab, rows()[FIRST_OF_ENVIRONMENTS:])
