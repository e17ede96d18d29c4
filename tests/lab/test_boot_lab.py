"""The lab's hosts that boot as real machines do: what the tests of boot persistence rely on."""

from __future__ import annotations

import pytest

from sharefslab import Host, KernelCluster, LabError, systemd

UNIT = "/etc/systemd/system/mnt-share.mount"
# It waits for a server that boots on a busy machine, too.
MOUNT_UNIT = """\
[Mount]
What=server:/srv/share
Where=/mnt/share
Type=nfs
Options=vers=4.2,nofail,retry=10
TimeoutSec=600

[Install]
WantedBy=remote-fs.target
"""

# Stands for slurmd: it is to start where the share is mounted.
ORDERED_SERVICE = """\
[Unit]
Wants=mnt-share.mount
After=mnt-share.mount

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/cp /mnt/share/hello /root/started

[Install]
WantedBy=multi-user.target
"""


def recovered(host: Host) -> bool:
    """Whether the disk was not unmounted before this boot."""
    return "recovery complete" in host.run("journalctl --boot --dmesg --no-pager", check=True).out


class TestSystemd:
    def test_a_machine_that_is_switched_off_and_on(self, boot_lab: KernelCluster) -> None:
        node = boot_lab["node1"]
        assert node.run("echo $(</proc/1/comm) $(hostname); id -u alice; exit 7").out == "systemd node1\n2001\n"
        assert node.run("systemctl is-system-running --wait").out == "running\n"
        assert node.run("systemctl list-jobs --no-legend; systemctl --failed --no-legend").out == ""
        assert node.run("stat -c %a / && sharefs --version", user="alice").out.startswith("755\n")
        assert node.run("systemd-run --quiet --wait --pipe sharefs --version").ok

        node.write_file("/etc/kept", "over the reboot")
        assert boot_lab.power_off(node) > 0
        with pytest.raises(LabError, match="powered off"):
            node.run("true")
        boot_lab.power_on(node)
        assert 0 < systemd.wait_for_boot(node) <= systemd.uptime(node)
        assert node.read_text("/etc/kept") == "over the reboot"
        assert "Reached target poweroff.target" in node.run("journalctl --boot=-1 --no-pager", check=True).out
        assert not recovered(node)

        boot_lab.kill(node)
        boot_lab.power_on(node)
        systemd.wait_for_boot(node)
        assert node.read_text("/etc/kept") == "over the reboot"
        assert recovered(node)

    def test_mounts_at_boot(self, boot_lab: KernelCluster) -> None:
        boot_lab.start_nfs_server()
        boot_lab.server.write_file("/srv/share/hello", "from the server")
        node = boot_lab["node1"]
        node.write_file(UNIT, MOUNT_UNIT)
        node.write_file("/etc/systemd/system/ordered.service", ORDERED_SERVICE)
        node.run("systemctl enable mnt-share.mount ordered.service", check=True)
        boot_lab.reboot(node)
        assert systemd.wait_for_unit(node, "mnt-share.mount") <= systemd.wait_for_unit(node, "ordered.service")
        assert node.read_text("/root/started") == "from the server"
        boot_lab.power_off(node)

    def test_the_server_comes_later(self, boot_lab: KernelCluster) -> None:
        boot_lab.start_nfs_server()
        node = boot_lab["node1"]
        node.write_file(UNIT, MOUNT_UNIT)
        node.run("systemctl enable mnt-share.mount", check=True)
        boot_lab.power_off(node)
        boot_lab.kill("server")
        boot_lab.power_on(node)
        reached = systemd.wait_for_boot(node)
        assert systemd.active_since(node, "mnt-share.mount") is None
        boot_lab.power_on("server")
        boot_lab.start_nfs_server(exports=None)
        assert systemd.wait_for_mount(node, "/mnt/share") > reached
        assert systemd.wait_for_unit(node, "mnt-share.mount") > reached


class TestWithoutSystemd:
    @pytest.mark.lab_hosts("server", "node1")
    def test_rc_local_runs_at_boot(self, kernel_lab: KernelCluster) -> None:
        kernel_lab.start_nfs_server()
        node = kernel_lab["node1"]
        mount = "mkdir -p /mnt/share\nmount -t nfs -o vers=4.2,bg server:/srv/share /mnt/share\n"
        node.write_file("/etc/rc.local", f"#!/bin/sh\n{mount}", mode=0o755)
        assert not node.exists("/run/systemd/system")
        kernel_lab.power_off(node)
        job = kernel_lab.power_on(node, rc_local=True)
        assert job and job.wait().ok
        assert systemd.wait_for_mount(node, "/mnt/share") > 0
