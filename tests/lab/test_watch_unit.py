"""sharefs watch under its shipped unit, in a machine with systemd: its hardening leaves it what it needs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sharefslab import Host, KernelCluster, systemd
from sharefslab.product import SHARE, config_text, configure, done, mount_lines, state_of
from sharefslab.wait import wait_until

UNIT = Path(os.environ.get("SHAREFS_UNIT") or Path(os.environ["SHAREFS_BIN"]).parent / "sharefs-watch.service")


def journal(node: Host) -> list[dict[str, str]]:
    """What it logged: each message is an object."""
    text = node.run("journalctl -u sharefs-watch -o json --no-pager", check=True).out
    lines = [json.loads(line) for line in text.splitlines()]
    return [{**json.loads(line["MESSAGE"]), "priority": line["PRIORITY"]} for line in lines if line.get("_COMM") == "sharefs"]


@pytest.mark.parametrize("version", ["4.2", "3"])
def test_it_heals(boot_lab: KernelCluster, version: str) -> None:
    text = config_text(extra=f', boot: unit, options: [actimeo=1, "vers={version}"]').replace('mode: "2770"', 'mode: "2775"')
    configure(boot_lab, text + "watch: {interval: 1s}\n")
    boot_lab.start_nfs_server(exports=None)
    done(boot_lab.server, "export", "--all", "--yes")
    node = boot_lab["node1"]
    done(node, "mount", "--all", "--yes")
    unit = UNIT.read_text(encoding="utf-8")
    program = next(line.split("=")[1].split()[0] for line in unit.splitlines() if line.startswith("ExecStart="))
    node.write_file("/etc/systemd/system/sharefs-watch.service", unit.replace(program, "/usr/local/bin/sharefs"))
    node.run("systemctl enable --now sharefs-watch", check=True)
    systemd.wait_for_unit(node, "sharefs-watch.service")  # Type=notify: it said so
    said = lambda event: [line for line in journal(node) if line["event"] == event]  # noqa: E731
    wait_until(lambda: said("state"), what="it has looked")

    boot_lab.remake_filesystem("server")
    wait_until(lambda: said("recovered") or said("failed"), 240, 1, "its recovery ended")
    assert not said("failed"), [(line["time"], line["event"], line["message"]) for line in journal(node)]
    assert state_of(node) == "healthy"  # seen from outside of the unit
    assert len(mount_lines(node)) == 1
    assert {line["priority"] for line in said("recovered")} == {"6"}

    node.run("systemctl reload sharefs-watch", check=True)
    wait_until(lambda: said("config"), what="it has read sharefs.yaml again")
    main = node.run("systemctl show -P MainPID sharefs-watch", check=True).out.strip()
    node.run(f"kill -9 {main}", check=True)
    wait_until(lambda: len(said("started")) == 2, what="systemd has started it again")
    status = lambda: node.run("systemctl show -P StatusText sharefs-watch", check=True).out  # noqa: E731
    wait_until(lambda: "1 mount well" in status(), what="its first round has ended")
    node.run("systemctl stop sharefs-watch", check=True)
    wait_until(lambda: said("stopped"), what="the journal has its last line")
    assert SHARE in node.read_text("/proc/mounts")  # it takes nothing with it
