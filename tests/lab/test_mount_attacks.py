"""Mount points in a user's directory, which he exchanges for something else while root mounts and unmounts."""

from __future__ import annotations

import pytest

from sharefslab import Cluster, Host
from sharefslab.attack import LATE, RUNS, config_with, exchanging, successes
from sharefslab.product import CONFIG_PATH, done, sharefs


@pytest.fixture
def node(attacked: Cluster) -> Host:
    return attacked["node1"]


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


def test_mount_in_a_home_works(node: Host) -> None:
    text = node.read_text(CONFIG_PATH).replace("at: /data/share", "at: /home/alice/own")
    config = config_with(node, "home", text)
    node.run("mkdir ~/own", user="alice", check=True)
    done(node, "--config", config, "mount", "share", "--yes")
    assert mounts_at(node, "/home/alice/own")
    done(node, "--config", config, "umount", "share", "--yes")
    assert not mounts_at(node, "/home/alice/own")


def test_what_root_runs_at_boot_is_never_in_the_reach_of_a_user(node: Host) -> None:
    """alice owns the directory of the sharefs that root calls: mounted, but nothing of hers is run at boot."""
    text = node.read_text(CONFIG_PATH).replace("at: /data/share", "at: /data/boot").replace("profile:", "boot: unit, profile:")
    config = config_with(node, "boot", text)
    node.run("mkdir -p ~/bin/below", user="alice", check=True)
    node.run("cp $(readlink -f $(command -v sharefs)) /home/alice/bin/below/sharefs", check=True)
    node.run("chown root: /home/alice/bin/below && chmod 755 /home/alice/bin/below", check=True)
    said = node.run(["/home/alice/bin/below/sharefs", "--config", config, "mount", "share", "--yes"], timeout=LATE)
    assert "SF235" in said.err and "/home/alice" in said.err
    assert mounts_at(node, "/data/boot")
    assert not node.run("grep -rs /home/alice /etc/systemd /etc/rc.local /etc/fstab").ok
    done(node, "--config", config, "mount", "share", "--yes")  # the installed one may
    assert node.run("grep -rs 'probe --until-ready' /etc/systemd").ok
    done(node, "--config", config, "umount", "share", "--yes", "--forget")


def test_mount_on_a_directory_of_root_works(node: Host) -> None:
    config = config_with(node, "second", node.read_text(CONFIG_PATH).replace("at: /data/share", "at: /data/second"))
    done(node, "--config", config, "mount", "share", "--yes")
    assert mounts_at(node, "/data/second")
    done(node, "--config", config, "umount", "share", "--yes")
    assert not mounts_at(node, "/data/second")


def test_an_unmount_reaches_no_other_mount(node: Host) -> None:
    """alice exchanges the directory above her mount for a link to the directory above another one."""
    node.run("mkdir -p /home/alice/a/mnt && ln -s /srv/b /home/alice/other", user="alice", check=True)
    node.run("mkdir -p /srv/b/mnt && mount -t tmpfs victim /srv/b/mnt", check=True)
    for _ in range(RUNS):
        node.run("mount -t nfs -o vers=4.2 10.77.0.1:/srv/share /home/alice/a/mnt", check=True)
        with exchanging(node, "alice", "/home/alice/a", "/home/alice/other"):
            sharefs(node, "umount", "/home/alice/a/mnt", "--yes")
            assert len(mounts_at(node, "/srv/b/mnt")) == 1
        # whichever of the two names is the directory now
        node.run("[ ! -L /home/alice/a ] || { mv /home/alice/a /home/alice/x; mv /home/alice/other /home/alice/a; }")
        node.run("[ ! -L /home/alice/x ] || mv /home/alice/x /home/alice/other; umount -l /home/alice/a/mnt; true")


def test_a_configuration_in_a_directory_of_a_user_is_refused(node: Host) -> None:
    """The file is root's, but bob can put another one of root's in its place."""
    node.run(f"install -d -o bob /local/bobs && install -m 644 {CONFIG_PATH} /local/bobs/sharefs.yaml", check=True)
    refused = sharefs(node, "--config", "/local/bobs/sharefs.yaml", "mount", "--all", "--yes")
    assert refused.returncode == 2 and "/local/bobs" in refused.err
    node.run("chown root /local/bobs", check=True)
    done(node, "--config", "/local/bobs/sharefs.yaml", "mount", "--all", "--yes")
