"""The lab's hosts that boot as real machines do, with systemd: what the tests of boot persistence rely on."""

from __future__ import annotations

import pytest

from sharefslab import KernelCluster, LabError, systemd

LONG = 90.0  # nothing here takes that long; but the machine may be busy

MOUNT = """\
[Unit]
Description=the share, by hand

[Mount]
What=server:/srv/share
Where=/mnt/share
Type=nfs
Options=vers=4.2,nofail

[Install]
WantedBy=multi-user.target
"""


class TestBoot:
    def test_it_is_a_machine_with_systemd(self, boot_lab: KernelCluster) -> None:
        node = boot_lab["node1"]
        assert systemd.wait_for_boot(node) > 0
        assert node.run("systemctl is-system-running --wait").out == "running\n"
        assert node.run("echo $(</proc/1/comm) $(hostname); id -u alice; exit 7").out == "systemd node1\n2001\n"
        assert node.run("systemctl list-jobs --no-legend; systemctl --failed --no-legend").out == ""
        assert node.run("sharefs --version").ok
        assert node.run("systemd-run --quiet --wait --pipe sharefs --version").ok
