"""sharefs.yaml that cannot be read: nothing hangs, and what needs no configuration works without it."""

from __future__ import annotations

import pytest

from sharefslab import Cluster
from sharefslab.product import CONFIG_PATH, SHARE, export_and_mount, sharefs

# Long enough for a slow guest; a hard mount of a dead server is waited for without end.
PATIENCE = 30.0
WITHOUT = "warning: going on without the configuration: "


def test_a_user_who_may_not_read_it_launches_without_it(lab: Cluster) -> None:
    export_and_mount(lab)
    node = lab["node1"]
    node.run(["chmod", "600", CONFIG_PATH], check=True)
    ran = sharefs(node, "run", "-q", "--", "echo", "trained", user="alice")
    assert (ran.returncode, ran.out) == (0, "trained\n"), ran.err
    assert ran.err.startswith(WITHOUT + CONFIG_PATH) and ran.err.count("\n") == 1
    needed = sharefs(node, "config", "check", user="alice")
    assert needed.returncode == 2 and CONFIG_PATH in needed.err


@pytest.mark.parametrize("what", ["file", "directory", "variable"])
def test_it_lies_on_a_dead_share(lab: Cluster, what: str) -> None:
    export_and_mount(lab)
    node = lab["node1"]
    lab.server.run(["cp", "-a", "/etc/sharefs", "/srv/share/etc"], check=True)  # root of a node may not write there
    lab.server.run(["chmod", "0755", "/srv/share/etc"], check=True)
    environment = {}
    if what == "variable":
        environment["SHAREFS_CONFIG"] = f"{SHARE}/etc/sharefs.yaml"
    else:
        path, end = (CONFIG_PATH, "/sharefs.yaml") if what == "file" else ("/etc/sharefs", "")
        node.run(f"rm -r {path} && ln -s {SHARE}/etc{end} {path}", check=True)
    lab.drop_traffic("server")
    words = ["env", *(f"{name}={value}" for name, value in environment.items()), "sharefs"]
    for command in (["status"], ["run", "-q", "--", "true"], ["probe", "10.77.0.1", "--timeout", "1s"]):
        ran = node.run([*words, *command], timeout=PATIENCE)
        assert WITHOUT in ran.err, ran
        assert command[0] != "run" or ran.returncode == 0
    for command in (["mount", "--all"], ["config", "show"], ["config", "check"], ["export", "--all"]):
        ran = node.run([*words, *command], timeout=PATIENCE)
        assert ran.returncode in (1, 2) and ran.err.startswith("error: "), ran
