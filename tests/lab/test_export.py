"""sharefs export: from nothing to a verified export on a real kernel NFS server, and back."""

from __future__ import annotations

import pytest

from sharefslab import Cluster, wait_until
from sharefslab.nfs import exported_clients
from sharefslab.product import EXPORTS_FILE, config_text, configure, document, done, etc_digest, sharefs


def test_export_starts_the_server_and_is_verified(lab: Cluster) -> None:
    configure(lab)
    done(lab.server, "export", "--all", "--yes")

    assert sorted(exported_clients(lab.server, "/srv/share")) == ["10.77.0.2", "10.77.0.3"]
    seen = document(sharefs(lab["node1"], "probe", "10.77.0.1", "--json"))
    assert seen["ok"]
    # group access: setgid and a default ACL, so that a file made under umask 077 is the group's too
    assert lab.server.run(["stat", "-c", "%a %G", "/srv/share"]).out == "2775 ml\n"
    lab.server.run("umask 077; echo x >/srv/share/by-alice", user="alice", check=True)
    assert lab.server.run("echo y >>/srv/share/by-alice", user="bob").ok


def test_export_twice_changes_nothing(lab: Cluster) -> None:
    configure(lab)
    done(lab.server, "export", "--all", "--yes")
    before = etc_digest(lab.server)
    assert sharefs(lab.server, "export", "--all", "--check").returncode == 0
    again = document(done(lab.server, "export", "--all", "--yes", "--json"))
    assert again["plan"]["steps"] == []
    assert etc_digest(lab.server) == before


def test_dry_run_and_check_change_nothing(lab: Cluster) -> None:
    configure(lab)
    before = etc_digest(lab.server)
    assert sharefs(lab.server, "export", "--all", "--check").returncode == 3
    shown = sharefs(lab.server, "export", "--all", "--dry-run")
    assert shown.returncode == 0 and EXPORTS_FILE in shown.err
    assert etc_digest(lab.server) == before
    assert not lab.server.run("pgrep -x rpc.mountd").ok


def test_without_a_terminal_consent_is_needed(lab: Cluster) -> None:
    configure(lab)
    refused = sharefs(lab.server, "export", "--all")
    assert refused.returncode == 2 and "--yes" in refused.err
    assert not lab.server.exists(EXPORTS_FILE)


def test_undo_restores_every_byte_of_etc(lab: Cluster) -> None:
    configure(lab)
    before = etc_digest(lab.server)
    done(lab.server, "export", "--all", "--yes")
    assert etc_digest(lab.server) != before
    done(lab.server, "undo", "--yes")
    assert etc_digest(lab.server) == before
    assert exported_clients(lab.server, "/srv/share") == []


def test_remove(lab: Cluster) -> None:
    configure(lab)
    lab.server.write_file("/etc/exports", "/local 10.77.0.3(ro,sync,no_subtree_check,fsid=99)\n")
    done(lab.server, "export", "--all", "--yes")
    done(lab.server, "export", "--all", "--remove", "--yes")
    assert exported_clients(lab.server, "/srv/share") == []
    assert exported_clients(lab.server, "/local") == ["10.77.0.3"]  # the administrator's own stays


def test_the_administrators_file_is_never_touched(lab: Cluster) -> None:
    configure(lab)
    mine = "# mine\n/local  10.77.0.3(ro,sync,no_subtree_check,fsid=99)   # odd   spacing\n"
    lab.server.write_file("/etc/exports", mine)
    done(lab.server, "export", "--all", "--yes")
    assert lab.server.read_text("/etc/exports") == mine
    assert exported_clients(lab.server, "/local") == ["10.77.0.3"]


def test_a_running_server_is_not_restarted(lab: Cluster) -> None:
    lab.start_nfs_server(exports="")
    pid = lab.server.run("pgrep -x rpc.mountd", check=True).out
    configure(lab)
    done(lab.server, "export", "--all", "--yes")
    assert lab.server.run("pgrep -x rpc.mountd", check=True).out == pid


def test_a_host_that_exportfs_drops_silently_is_rolled_back(lab: Cluster) -> None:
    """exportfs -r exits with 0 and leaves an unresolvable client out: only etab tells."""
    text = config_text().replace("10.77.0.3", "no-such-host.invalid")
    configure(lab, text)
    before = etc_digest(lab.server)
    failed = sharefs(lab.server, "export", "--all", "--yes", timeout=90)
    assert failed.returncode != 0 and "no-such-host.invalid" in failed.err
    assert etc_digest(lab.server) == before


@pytest.mark.parametrize(
    "line,code_word",
    [
        ("/srv/share 192.168.16.11/22(rw,sync,no_subtree_check)", "1,024"),
        ("/srv/share 10.77.0.2 (rw,no_root_squash)", "space"),
        ("/srv/share 10.77.0.0/0(rw)", "/0"),
    ],
)
def test_export_check_finds_the_traps(lab: Cluster, line: str, code_word: str) -> None:
    lab.server.write_file("/tmp/exports", f"# a comment\n{line}\n")
    said = sharefs(lab.server, "export", "check", "/tmp/exports")
    assert "/tmp/exports:2:" in said.err + said.out
    assert code_word in said.err + said.out


def test_nothing_is_exported_on_a_host_that_is_no_server(lab: Cluster) -> None:
    configure(lab)
    refused = sharefs(lab["node1"], "export", "--all", "--yes")
    assert refused.returncode != 0 and "10.77.0.1" in refused.err
    assert not lab["node1"].exists(EXPORTS_FILE)


def test_probe_names_the_failing_stage(lab: Cluster) -> None:
    node = lab["node1"]
    refused = document(sharefs(node, "probe", "10.77.0.1", "--timeout", "3", "--json"))
    assert not refused["ok"]  # nothing runs there
    lab.start_nfs_server()
    good = sharefs(node, "probe", "server", user="alice")  # by name, and without root
    assert good.returncode == 0 and "/srv/share" in good.out
    lab.drop_traffic("server")
    silent = sharefs(node, "probe", "10.77.0.1", "--timeout", "2", timeout=30)
    assert silent.returncode == 1
    assert silent.duration < 2 + 5  # its deadline, and a busy machine
    lab.restore_traffic("server")
    wait_until(lambda: sharefs(node, "probe", "10.77.0.1").ok, what="the server answers again")
    unknown = sharefs(node, "probe", "no-such-host.invalid", "--timeout", "2", timeout=30)
    assert unknown.returncode == 1 and "no-such-host.invalid" in unknown.out + unknown.err
