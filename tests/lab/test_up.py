"""sharefs up and down: one file and one command on each machine, and all of it back by one command."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from sharefslab import Cluster, Host, KernelCluster, systemd
from sharefslab.environment import PROGRAM, make_environment
from sharefslab.product import (
    EXPORTS_FILE,
    SHARE,
    config_text,
    configure,
    document,
    done,
    hold_share,
    mount_lines,
    sharefs,
    state_of,
)
from sharefslab.wait import wait_until

UNIT = Path(os.environ.get("SHAREFS_UNIT") or Path(os.environ["SHAREFS_BIN"]).parent / "sharefs-watch.service")
ENVIRONMENT = "llm_train"
LINK = f"/home/bob/miniconda3/envs/{ENVIRONMENT}"
TEXT = config_text(extra=', boot: auto, shares: [{path: outputs, access: {group: ml}}]').replace('mode: "2770"', 'mode: "2770", sticky: true')


def give_conda(node: Host) -> None:
    for user in ("alice", "bob"):
        node.run("mkdir -p ~/miniconda3/conda-meta ~/miniconda3/envs && chmod 700 ~", user=user, check=True)


def is_up(host: Host) -> None:
    """A second run has nothing to do, and changes nothing."""
    checked = sharefs(host, "up", "--check")
    assert checked.returncode == 0, checked
    entries = done(host, "undo", "--list").out
    done(host, "up", "--yes")
    assert done(host, "undo", "--list").out == entries


def is_down(host: Host) -> None:
    assert sharefs(host, "down", "--check").returncode == 0
    assert mount_lines(host) == [] and not host.exists(EXPORTS_FILE)
    assert "sharefs" not in host.run("cat /etc/fstab /etc/rc.local").out


def test_a_cluster_comes_up_and_goes_down(lab: Cluster) -> None:
    configure(lab, TEXT)
    for node in lab.nodes:
        give_conda(node)
    one, other = lab.nodes
    make_environment(one, f"/home/alice/miniconda3/envs/{ENVIRONMENT}", user="alice")
    assert sharefs(lab.server, "up", "--check").returncode == 3
    for host in lab:
        said = document(done(host, "up", "--yes", "--json"))
        assert said["host"]["servers"] == (["storage"] if host is lab.server else [])
        assert said["ok"] and said["results"]
        is_up(host)
    assert lab.server.run(f"stat -c '%U:%G %a' {SHARE}/outputs", check=True).out == "root:ml 2770\n"

    done(one, "conda", "share", ENVIRONMENT, "--yes", timeout=400, user="alice")
    for node in lab.nodes:
        assert sharefs(node, "up", "--check").returncode == 3
        homes = document(done(node, "up", "--yes", "--json"))["homes"]
        assert [home["name"] for home in homes] == ["alice", "bob"]
        is_up(node)
        said = node.run([f"{LINK}/bin/python", "-S", "-c", PROGRAM], user="bob", timeout=300, check=True)
        assert said.out == f'[42, "{LINK}"]\n'

    for host in reversed(list(lab)):
        assert sharefs(host, "down", "--check").returncode == 3
        done(host, "down", "--yes")
        is_down(host)
    assert lab.server.run("cat /var/lib/nfs/etab").out == ""
    assert lab.server.run(f"ls /srv/share/conda/{ENVIRONMENT}/bin/python", check=True).ok
    assert one.run(["readlink", LINK], user="bob", check=True).out == f"{SHARE}/conda/{ENVIRONMENT}\n"
    for host in lab:
        done(host, "up", "--yes")
        is_up(host)
    assert other.run(f"{LINK}/bin/python -c 'print(1)'", user="bob", timeout=300).out == "1\n"


def test_a_holder_is_named_and_the_rest_goes(lab: Cluster) -> None:
    configure(lab)
    for host in (lab.server, lab["node1"]):
        done(host, "up", "--yes")
    node = lab["node1"]
    job = hold_share(node)
    held = sharefs(node, "down", "--yes", "--timeout", "5")
    assert held.returncode in (1, 4), held
    assert "sleep" in held.err and "SF229" in held.err, held
    assert mount_lines(node)
    job.kill()
    job.wait()
    done(node, "down", "--yes")
    is_down(node)
    held_server = hold_share(lab.server, user=None)
    assert sharefs(lab.server, "down", "--yes", "--timeout", "5").returncode in (1, 4)
    assert lab.server.exists(EXPORTS_FILE), "what is bound from the exports goes first"
    held_server.kill()
    held_server.wait()
    done(lab.server, "down", "--yes")
    is_down(lab.server)


def test_a_client_whose_server_is_off(kernel_lab: KernelCluster) -> None:
    configure(kernel_lab, TEXT)
    done(kernel_lab.server, "up", "--yes")
    kernel_lab.server.run("sync", check=True)
    node = kernel_lab["node1"]
    kernel_lab.kill("server")
    off = sharefs(node, "up", "--yes", "--timeout", "3", timeout=60)
    assert off.returncode in (1, 4), off
    assert "share" in off.err and "hint:" in off.err and "SF301" not in off.err
    assert mount_lines(node) == [] and node.exists("/local/cache")
    kernel_lab.power_on("server")
    assert sharefs(kernel_lab.server, "up", "--check").returncode == 3  # nothing starts an NFS server at this host's boot
    done(kernel_lab.server, "up", "--yes")
    done(node, "up", "--yes")
    is_up(node)
    kernel_lab.kill("server")
    # Nobody holds the mount, and its server is gone: it ends within the time that is given, or is named.
    down = sharefs(node, "down", "--yes", "--timeout", "5", timeout=60)
    assert down.returncode == 0 or "share" in down.err, down


def test_two_at_once_and_one_that_is_stopped(lab: Cluster) -> None:
    configure(lab)
    done(lab.server, "up", "--yes")
    node = lab["node1"]
    both = [node.start("exec sharefs up --yes --wait 60s") for _ in range(2)]
    assert [job.wait().returncode for job in both] == [0, 0]
    assert len(mount_lines(node)) == 1
    is_up(node)
    done(node, "down", "--yes")
    node.write_file("/lab-slow/mount.nfs", "#!/bin/sh\ntouch /tmp/begun\nsleep 1000\n", mode=0o755)
    node.run("mount --bind /lab-slow/mount.nfs /usr/sbin/mount.nfs", check=True)
    job = node.start("exec sharefs up --yes")
    wait_until(lambda: node.exists("/tmp/begun"), what="mount.nfs is running")
    job.kill(signal.SIGINT)
    assert job.wait(20).returncode in (1, 4, 130)
    node.run("umount /usr/sbin/mount.nfs", check=True)
    done(node, "up", "--yes")
    is_up(node)


def test_a_host_that_is_not_named(lab: Cluster) -> None:
    configure(lab, config_text().replace("10.77.0.3", "10.77.0.33"))
    refused = sharefs(lab["node2"], "up", "--yes")
    assert refused.returncode == 2 and "10.77.0.3" in refused.err and "clients:" in refused.err
    assert "run `sudo sharefs up`" in sharefs(lab["node1"], "up", user="alice").err


def test_the_daemon_and_the_first_boot_of_an_image(boot_lab: KernelCluster) -> None:
    """The node's own disk is the image that `--root` prepares: what boots from it is up."""
    configure(boot_lab, config_text(extra=", boot: auto") + "watch: {interval: 1s}\n")
    done(boot_lab.server, "up", "--yes")
    node = boot_lab["node1"]
    give_conda(node)
    unit = UNIT.read_text(encoding="utf-8")
    program = next(line.split("=")[1].split()[0] for line in unit.splitlines() if line.startswith("ExecStart="))
    node.write_file("/etc/systemd/system/sharefs-watch.service", unit.replace(program, "/usr/local/bin/sharefs"))
    node.run("systemctl daemon-reload && mkdir /image && mount --rbind / /image", check=True)
    said = done(node, "--root", "/image", "up", "--yes")
    assert "left for the first boot: 1 mount, links in the homes; sharefs.service does it" in said.err
    assert mount_lines(node) == []
    assert sharefs(node, "--root", "/image", "up", "--check").returncode == 0

    make_environment(boot_lab.server, f"/srv/share/conda/{ENVIRONMENT}", user="root")
    boot_lab.reboot(node)
    systemd.wait_for_unit(node, "sharefs.service")
    assert node.run(["readlink", LINK], user="bob").out == f"{SHARE}/conda/{ENVIRONMENT}\n"
    assert state_of(node) == "healthy" and len(mount_lines(node)) == 1
    systemd.wait_for_unit(node, "sharefs-watch.service")
    is_up(node)

    done(node, "down", "--yes")
    is_down(node)
    assert not node.run("systemctl is-active --quiet sharefs-watch.service").ok
    assert node.run("ls /etc/systemd/system/*.wants | grep sharefs").out == ""
    done(node, "up", "--yes")
    systemd.wait_for_unit(node, "sharefs-watch.service")
    is_up(node)


@pytest.mark.lab_hosts("server")
def test_a_full_disk(lab: Cluster) -> None:
    """The journal comes before the change: without room for it nothing is done."""
    configure(lab)
    lab.server.run("mkdir -p /var/lib/sharefs && mount -t tmpfs -o size=64k,mode=0700 none /var/lib/sharefs", check=True)
    lab.server.run("head -c 1M /dev/zero >/var/lib/sharefs/full")
    full = sharefs(lab.server, "up", "--yes")
    assert full.returncode == 1 and "No space left" in full.err
    assert not lab.server.exists(EXPORTS_FILE)
