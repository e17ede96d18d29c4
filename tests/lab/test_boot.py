"""Mounts that come back after a reboot: each way of `boot:`, with the server there, late, and never (operations.md's table)."""

from __future__ import annotations

import os

import pytest

from sharefslab import Host, KernelCluster, systemd
from sharefslab.product import CONFIG_PATH, SHARE, config_text, configure, done, sharefs
from sharefslab.wait import wait_until

# Longer than systemd tries once (TimeoutSec=30); SHAREFS_LATE_SERVER=150 is longer than its own 90 s, too.
LATE = float(os.environ.get("SHAREFS_LATE_SERVER", "35"))
SERVICE = "sharefs-data-share.service"
WAYS = ["auto", "automount", "fstab", "rc.local"]

# Mount points with what units, fstab and the shell write otherwise, one for each way.
ODD = {
    "unit": "/data/my share-1",
    "automount": "/data/\u00fc",
    "fstab": "/data/\u00e9 fstab-x",
    "rc.local": "/data/it's $HOME-\u00fc",
}

# Stands for slurmd, whose name the waiting service knows.
SLURMD = f"""\
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c "runuser -u alice -- cat {SHARE}/hello >/root/started"

[Install]
WantedBy=multi-user.target
"""


def text(way: str) -> str:
    """README's access: root of a node is nobody on the share, so these tests read it as alice."""
    return config_text(extra=f', boot: "{way}"').replace("10.77.0.3]", "10.77.0.3, 10.77.0.4, 10.77.0.5]")


def set_up(cluster: KernelCluster, *ways: str, config: str | None = None) -> list[Host]:
    """A node for each way that has mounted the share once, and shall have it after each boot."""
    configure(cluster, config or text(ways[0]))
    cluster.start_nfs_server(exports=None)
    done(cluster.server, "export", "--all", "--yes")
    cluster.server.run("echo hello >/srv/share/hello; chmod 666 /srv/share/hello; sync", check=True)
    for node, way in zip(cluster.nodes, ways, strict=True):
        node.write_file(CONFIG_PATH, config or text(way), mode=0o644)
        done(node, "mount", "--all", "--yes")
        assert sharefs(node, "mount", "--all", "--check").returncode == 0
    return list(cluster.nodes)


def boot_without_server(cluster: KernelCluster, *ways: str) -> list[tuple[Host, float]]:
    """The nodes, and when each reached multi-user.target."""
    nodes = set_up(cluster, *ways)
    for node in nodes:
        cluster.power_off(node)
    cluster.kill("server")
    for node in nodes:
        cluster.power_on(node)
    return [(node, systemd.wait_for_boot(node)) for node in nodes]


def etc(node: Host) -> str:
    """Every byte that a way may change."""
    return node.run(
        "cd /etc; for f in fstab rc.local; do stat -c '%n %a' $f; cat $f; done; "
        "find systemd/system -printf '%p %l\\n' | sort; grep -rs '' systemd/system/*share*",
    ).out


# A node for each way at once, since most of it is waiting.
@pytest.mark.lab_hosts("server", "node1", "node2", "node3", "node4")
def test_a_late_server(boot_lab: KernelCluster) -> None:
    """The boot does not wait for it, nobody writes below the bare mount point, and the mount comes soon after it."""
    nodes = boot_without_server(boot_lab, *WAYS)
    for way, (node, _) in zip(WAYS, nodes, strict=True):
        assert node.run("systemctl --failed --no-legend").out == ""
        if way != "automount":
            written = node.run(f"echo lost >{SHARE}/file")
            assert not written.ok and "not permitted" in written.err
            assert sharefs(node, "status").returncode == 1
    for node, _ in nodes:
        wait_until(lambda node=node: systemd.uptime(node) > LATE, 2 * LATE, what="the node has waited for long")
        assert " nfs" not in node.read_text("/proc/mounts")
    boot_lab.power_on("server")
    boot_lab.start_nfs_server(exports=None)
    done(boot_lab.server, "export", "--all", "--yes")
    for way, (node, reached) in zip(WAYS, nodes, strict=True):
        answers = systemd.uptime(node)
        if way == "automount":
            assert node.run(f"cat {SHARE}/hello", user="alice", timeout=300).out == "hello\n"
        mounted = systemd.wait_for_mount(node, SHARE)
        print(f"{way}: multi-user at {reached:.1f} s, the server at {answers:.1f} s, mounted at {mounted:.1f} s")
        assert sharefs(node, "status", "--timeout", "10").returncode == 0
        assert sharefs(node, "mount", "--all", "--check").returncode == 0
        if way == "automount":  # whose point goes, too, and is not looked at before
            done(node, "umount", "--all", "--yes", "--forget")
            assert SHARE not in node.read_text("/proc/mounts")
            assert node.run(f"echo free >{SHARE}/file").ok
        print(f"{way}: power-off in {boot_lab.power_off(node):.1f} s")


def test_no_server_at_all(boot_lab: KernelCluster) -> None:
    [(node, reached)] = boot_without_server(boot_lab, "auto")
    print(f"multi-user at {reached:.1f} s, power-off in {boot_lab.power_off(node):.1f} s")


def test_slurm_starts_where_its_shares_are(boot_lab: KernelCluster) -> None:
    """And the same share, at odd mount points, comes by each way."""
    odd = "".join(f'  odd{number}: {{from: "storage:/srv/share", at: "{target}", boot: "{way}"}}\n'
                  for number, (way, target) in enumerate(ODD.items()))  # fmt: skip
    [node] = set_up(boot_lab, "unit", config=text("unit").replace("conda:\n", odd + "conda:\n"))
    node.write_file("/etc/systemd/system/slurmd.service", SLURMD)
    node.run("systemctl enable slurmd.service", check=True)
    boot_lab.reboot(node)
    systemd.wait_for_unit(node, "slurmd.service")
    assert node.read_text("/root/started") == "hello\n"
    for way, target in ODD.items():
        if way != "automount":
            systemd.wait_for_mount(node, target.replace(" ", "\\040"))
        assert node.run(["cat", f"{target}/hello"], user="alice").out == "hello\n"
    assert node.run("systemctl --failed --no-legend").out == ""
    assert sharefs(node, "mount", "--all", "--check").returncode == 0
    done(node, "umount", "--all", "--yes", "--forget")
    assert node.run("grep -rs sharefs /etc/fstab /etc/rc.local /etc/systemd/system/*sharefs*").out == ""


def test_a_late_network_and_power_off_with_a_server_that_died(boot_lab: KernelCluster) -> None:
    [node] = set_up(boot_lab, "unit")
    network = node.guest.exchange / "network"
    commands = network.read_text(encoding="utf-8")
    network.write_text("", encoding="utf-8")
    boot_lab.reboot(node)
    reached = systemd.wait_for_boot(node)
    assert " nfs" not in node.read_text("/proc/mounts")
    node.run(commands, check=True)
    there = systemd.uptime(node)
    mounted = systemd.wait_for_mount(node, SHARE)
    print(f"multi-user at {reached:.1f} s, the network at {there:.1f} s, mounted at {mounted:.1f} s")
    boot_lab.kill("server")
    print(f"power-off with a dead server in {boot_lab.power_off(node):.1f} s")


def test_each_way_goes_as_it_came(boot_lab: KernelCluster) -> None:
    """Switching takes the old way away, undo and --forget give every byte back, and systemd has nothing to say."""
    node = boot_lab["node1"]
    node.write_file("/etc/fstab", "# mine\nproc  /proc proc\tdefaults 0 0   # tail", mode=0o640)
    node.write_file("/etc/rc.local", "#!/bin/sh -e\ntrue\nexit 0\n", mode=0o755)
    before = etc(node)
    set_up(boot_lab, "none")
    assert etc(node) == before
    for way in [*WAYS, "unit", "fstab"]:
        configure(boot_lab, text(way))
        done(node, "mount", "--all", "--yes")
        assert sharefs(node, "mount", "--all", "--check").returncode == 0
        assert etc(node) != before
        done(node, "undo", "--yes")
        assert etc(node) == before
    for way in WAYS:
        configure(boot_lab, text(way))
        done(node, "mount", "--all", "--yes")
    said = done(node, "umount", "--all", "--yes")
    assert "mounted again at boot by /etc/rc.local" in said.err
    assert "mounted again at boot" not in done(node, "umount", "--all", "--yes", "--forget").err
    assert etc(node) == before
    assert node.run(f"echo free >{SHARE}/file").ok


@pytest.mark.lab_hosts("server", "node1")
def test_without_systemd_rc_local_waits(kernel_lab: KernelCluster) -> None:
    [node] = set_up(kernel_lab, "auto")
    assert "probe --until-ready" in node.read_text("/etc/rc.local")
    kernel_lab.power_off(node)
    kernel_lab.kill("server")
    job = kernel_lab.power_on(node, rc_local=True)
    assert job and job.wait().ok  # it does not wait itself
    kernel_lab.power_on("server")
    kernel_lab.start_nfs_server(exports=None)
    done(kernel_lab.server, "export", "--all", "--yes")
    systemd.wait_for_mount(node, SHARE)
    assert node.run(["cat", f"{SHARE}/hello"], user="alice").out == "hello\n"


@pytest.mark.lab_hosts("server", "node1")
def test_the_clock_of_a_server_is_told_from_this_hosts(kernel_lab: KernelCluster) -> None:
    """By the time that the server gives to a file: with a delegation to write it would be this host's own (Linux 7.2)."""
    [node] = set_up(kernel_lab, "auto")
    node.run("date -s '+10 minutes'", check=True)
    said = sharefs(node, "mount", "--all", "--verify", "--yes")
    assert "[SF236]" in said.err + said.out and "s behind this host's" in said.err + said.out, said
