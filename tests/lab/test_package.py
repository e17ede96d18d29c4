"""The Debian package in a machine with systemd: installed, upgraded from the version before, removed, purged.

The packages are made of the maintainer scripts, the unit and the tmpfiles.d file as they are shipped, and of the program
that is tested. tests/bare does the same with the package that CPack builds, where no systemd runs.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from sharefslab import Host, KernelCluster, systemd
from sharefslab.product import SHARE, config_text, configure, done
from sharefslab.wait import wait_until

PROJECT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ["SHAREFS_BIN"])
UNIT = Path(os.environ.get("SHAREFS_UNIT") or PROGRAM.parent / "sharefs-watch.service")
WAITING = "sharefs-data-share.service"


def build(directory: Path, version: str) -> Path:
    """A package in `directory`."""
    root = directory / f"root-{version}"
    for name in "DEBIAN", "usr/bin", "lib/systemd/system", "usr/lib/tmpfiles.d":
        (root / name).mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        f"Package: sharefs\nVersion: {version}\nArchitecture: amd64\nMaintainer: the lab\nDescription: under test\n",
    )
    for script in PROJECT.joinpath("packaging/deb").iterdir():
        (root / "DEBIAN" / script.name).write_bytes(script.read_bytes())
        (root / "DEBIAN" / script.name).chmod(0o755)
    subprocess.run(["strip", "-o", root / "usr/bin/sharefs", PROGRAM], check=True)
    unit = UNIT.read_text(encoding="utf-8")
    program = next(line.split("=")[1].split()[0] for line in unit.splitlines() if line.startswith("ExecStart="))
    (root / "lib/systemd/system/sharefs-watch.service").write_text(unit.replace(program, "/usr/bin/sharefs"))
    tmpfiles = PROJECT.joinpath("packaging/tmpfiles.d/sharefs.conf").read_bytes()
    (root / "usr/lib/tmpfiles.d/sharefs.conf").write_bytes(tmpfiles)
    package = directory / f"sharefs_{version}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", root, package], check=True, capture_output=True)
    return package


def dpkg(node: Host, *words: str) -> str:
    """What it says, and what the maintainer scripts say."""
    completed = node.run(["dpkg", *words], timeout=300).check()
    return completed.out + completed.err


def main_process(node: Host) -> int:
    return int(node.run("systemctl show -P MainPID sharefs-watch", check=True).out)


def product(node: Host, *words: str) -> None:
    node.run(["/usr/bin/sharefs", *words], timeout=300).check()


def test_install_upgrade_remove_purge(boot_lab: KernelCluster, tmp_path: Path) -> None:
    node = boot_lab["node1"]
    for version in "0.0.9", "0.1.0":
        package = build(tmp_path, version)
        (node.guest.exchange / package.name).write_bytes(package.read_bytes())
    old, new = "/exchange/sharefs_0.0.9.deb", "/exchange/sharefs_0.1.0.deb"
    configure(boot_lab, config_text(extra=", boot: unit").replace('mode: "2770"', 'mode: "2775"'))
    boot_lab.start_nfs_server(exports=None)
    done(boot_lab.server, "export", "--all", "--yes")

    # Installed: nothing is enabled, and the caches' directory is everyone's.
    dpkg(node, "-i", old)
    assert node.run("stat -c %a /var/cache/sharefs", check=True).out == "1777\n"
    assert not node.run("systemctl is-enabled sharefs-watch").ok
    product(node, "mount", "--all", "--yes")
    node.run("systemctl enable --now sharefs-watch", check=True)
    systemd.wait_for_unit(node, "sharefs-watch.service")

    # Upgraded: the daemon runs the new program, all else is as it was.
    before = main_process(node)
    said = dpkg(node, "-i", new)
    assert "WARNING" not in said and "deleting" not in said, said
    systemd.wait_for_unit(node, "sharefs-watch.service")
    assert main_process(node) not in (0, before)
    assert node.run("systemctl is-enabled sharefs-watch", check=True).out == "enabled\n"
    assert node.run(f"systemctl is-enabled {WAITING}", check=True).out == "enabled\n"
    assert SHARE in node.read_text("/proc/mounts")

    # Removed: nothing is left that would run the program, what is mounted stays so, and it is said what is lost.
    said = dpkg(node, "-r", "sharefs")
    assert "WARNING" in said and "`sharefs umount --all --forget`" in said, said
    for unit in "sharefs-watch", WAITING:
        assert node.run(f"systemctl is-active {unit}").out.strip() in ("inactive", "unknown"), unit
        assert node.run(f"systemctl is-enabled {unit}").out.strip() != "enabled", unit
    assert node.run("find -L /etc/systemd/system -type l ! -path '*sharefs-data*' -name '*sharefs*'").out == ""
    assert node.run("systemctl --failed --no-legend").out == ""
    assert SHARE in node.read_text("/proc/mounts")
    assert node.run("ls /etc/sharefs/sharefs.yaml").ok

    # A boot without the program: nothing restarts for ever.
    boot_lab.reboot(node)
    systemd.wait_for_boot(node)
    assert node.run("systemctl --failed --no-legend").out == ""
    assert "sharefs" not in node.run("systemctl list-jobs --no-legend").out

    # Installed again, forgotten, removed: nothing to warn of.
    dpkg(node, "-i", new)
    product(node, "umount", "--all", "--forget", "--yes")
    assert node.run(f"echo free >{SHARE}/file").ok
    said = dpkg(node, "-r", "sharefs")
    assert "WARNING" not in said, said
    assert node.run("grep -rs sharefs /etc/fstab /etc/rc.local /etc/systemd/system").out == ""

    node.run("mkdir -p /var/cache/sharefs/alice && touch /var/cache/sharefs/alice/x", check=True)
    said = dpkg(node, "-P", "sharefs")
    assert "deleting /var/cache/sharefs, the caches of all users" in said, said
    assert node.run("ls -d /etc/sharefs /var/lib/sharefs /var/cache/sharefs").out == ""
    wait_until(lambda: "sharefs" not in node.run("systemctl list-units --all --no-legend 'sharefs*'").out, what="no unit is left")
