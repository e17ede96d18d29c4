"""sharefs export: from nothing to a verified export on a real kernel NFS server, and back."""

from __future__ import annotations

import pytest

from sharefslab import Cluster, Host, wait_until
from sharefslab.host import Job
from sharefslab.nfs import exported_clients
from sharefslab.product import EXPORTS_FILE, SHARE, config_text, configure, document, done, etc_digest, sharefs


def test_export_starts_the_server_and_is_verified(lab: Cluster) -> None:
    configure(lab)
    done(lab.server, "export", "--all", "--yes")

    assert sorted(exported_clients(lab.server, "/srv/share")) == ["10.77.0.2", "10.77.0.3"]
    seen = document(sharefs(lab["node1"], "probe", "10.77.0.1", "--timeout", "30", "--json"))
    assert seen["ok"]
    assert lab.server.run(["stat", "-c", "%a %U:%G", "/srv/share"]).out == "2770 root:ml\n"


def add_carol(host: Host) -> None:
    """She is in no group of the others."""
    host.run("echo carol:x:2003:2003::/:/bin/bash >>/etc/passwd; echo carol:x:2003: >>/etc/group", check=True)


def test_access_of_a_group_is_for_the_group_only(lab: Cluster) -> None:
    """A default ACL goes before the umask: what it gives to others, a file made under umask 077 gives them, too."""
    configure(lab)
    done(lab.server, "export", "--all", "--yes")
    node = lab["node1"]
    done(node, "mount", "--all", "--yes")
    add_carol(lab.server)
    add_carol(node)
    node.run("umask 077; mkdir d; echo secret >d/token; echo secret >token", user="alice", cwd=SHARE, check=True)
    for host, share in ((lab.server, "/srv/share"), (node, SHARE)):
        for name in ("token", "d/token"):
            assert host.run(["cat", f"{share}/{name}"], user="bob").out == "secret\n"
            assert not host.run(["cat", f"{share}/{name}"], user="carol").ok
    # even where the directory itself lets her in
    lab.server.run(["chmod", "o+rx", "/srv/share"], check=True)
    assert lab.server.run(["ls", "/srv/share"], user="carol").ok
    assert not lab.server.run(["cat", "/srv/share/token"], user="carol").ok


def test_access_that_lets_everyone_in_is_said_in_words(idle_lab: Cluster) -> None:
    configure(idle_lab, config_text().replace('mode: "2770"', 'mode: "2775"'))
    shown = sharefs(idle_lab.server, "export", "--all", "--dry-run")
    assert "readable by everyone on every node" in shown.out + shown.err
    configure(idle_lab)
    shown = sharefs(idle_lab.server, "export", "--all", "--dry-run")
    assert "everyone" not in shown.out + shown.err
    assert "root:ml 2770, group-writable" in shown.out + shown.err


@pytest.mark.parametrize("directory", ["/etc", "/", "/var/lib", "/usr/local/data"])
def test_directories_of_the_system_are_not_opened(idle_lab: Cluster, directory: str) -> None:
    configure(idle_lab, config_text().replace("/srv/share", directory))
    before = idle_lab.server.run("stat -c '%a %u %g %n' / /etc /var/lib /usr", check=True).out
    refused = sharefs(idle_lab.server, "export", "--all", "--yes")
    assert refused.returncode == 1 and "SF139" in refused.err
    assert idle_lab.server.run("stat -c '%a %u %g %n' / /etc /var/lib /usr", check=True).out == before
    assert not idle_lab.server.exists(EXPORTS_FILE)


def test_export_twice_changes_nothing(lab: Cluster) -> None:
    configure(lab)
    done(lab.server, "export", "--all", "--yes")
    before = etc_digest(lab.server)
    assert sharefs(lab.server, "export", "--all", "--check").returncode == 0
    again = document(done(lab.server, "export", "--all", "--yes", "--json"))
    assert again["plan"]["steps"] == []
    assert etc_digest(lab.server) == before


def test_dry_run_and_check_change_nothing(idle_lab: Cluster) -> None:
    configure(idle_lab)
    before = etc_digest(idle_lab.server)
    assert sharefs(idle_lab.server, "export", "--all", "--check").returncode == 3
    shown = sharefs(idle_lab.server, "export", "--all", "--dry-run")
    assert shown.returncode == 0 and EXPORTS_FILE in shown.out
    assert etc_digest(idle_lab.server) == before
    assert not idle_lab.server.run("pgrep -x rpc.mountd").ok


def test_without_a_terminal_consent_is_needed(idle_lab: Cluster) -> None:
    configure(idle_lab)
    refused = sharefs(idle_lab.server, "export", "--all")
    assert refused.returncode == 2 and "--yes" in refused.err
    assert not idle_lab.server.exists(EXPORTS_FILE)


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


def test_a_withdrawn_export_is_gone_for_its_clients(lab: Cluster) -> None:
    configure(lab)
    done(lab.server, "export", "--all", "--yes")
    node = lab["node1"]
    mount = "mount -t nfs -o vers=4.2,soft,timeo=20,retrans=1 server:/srv/share /mnt/a"
    node.run(f"mkdir -p /mnt/a && {mount} && umount /mnt/a", check=True)
    done(lab.server, "export", "--all", "--remove", "--yes")
    assert not node.run(mount).ok


SLOW_EXPORTFS = """
cp /usr/sbin/exportfs /local/exportfs && touch /local/hold
printf '#!/bin/sh\nwhile [ -e /local/hold ]; do sleep 0.1; done\nexec /local/exportfs "$@"\n' >/local/slow
chmod 755 /local/slow && mount --bind /local/slow /usr/sbin/exportfs
"""


def test_runs_that_waited_do_not_withdraw_what_others_exported(lab: Cluster) -> None:
    """One run holds the lock; two others, of other configurations, have made their plans and wait for it."""
    lab.start_nfs_server(exports="")
    server = lab.server
    texts = {
        "other": config_text().replace("/srv/share", "/srv/other"),
        "first": config_text(),
        "second": config_text().replace("10.77.0.3", "10.77.0.4"),
    }
    for name, text in texts.items():
        server.write_file(f"/etc/sharefs/{name}.yaml", text, mode=0o644)
    server.run(SLOW_EXPORTFS, check=True)

    def start(name: str) -> Job:
        return server.start(["sharefs", "--config", f"/etc/sharefs/{name}.yaml", "--wait", "200",
                             "export", "--all", "--yes"])  # fmt: skip

    holder = start("other")
    wait_until(lambda: server.run("pgrep -x exportfs").ok, what="the first run puts its exports into force")
    waiting = [start("first"), start("second")]
    wait_until(lambda: all(b"waiting" in job.stderr() for job in waiting), what="two runs wait for the lock")
    server.run("rm /local/hold", check=True)
    for job in (holder, *waiting):
        job.wait_or_kill(300).check()
    exported = sorted(exported_clients(server, "/srv/share"))
    assert exported in (["10.77.0.2", "10.77.0.3"], ["10.77.0.2", "10.77.0.4"])
    assert all(client in server.read_text(EXPORTS_FILE) for client in exported)  # etab and the file say the same
    assert exported_clients(server, "/srv/other") == []


def test_a_server_for_version_4_only_needs_no_portmapper(lab: Cluster) -> None:
    server, node = lab.server, lab["node1"]
    server.write_file("/etc/nfs.conf", "[nfsd]\nvers3=n\n")
    configure(lab)
    done(server, "export", "--all", "--yes")
    assert not server.run("pgrep -x rpcbind").ok
    assert "-3" in server.read_text("/proc/fs/nfsd/versions").split()
    node.run("mkdir -p /mnt/a && mount -t nfs -o vers=4.2 server:/srv/share /mnt/a", check=True)
    assert node.run(["ls", "/mnt/a"], user="alice").ok
    assert sharefs(server, "export", "--all", "--check").returncode == 0


def test_without_mountd_nothing_is_called_verified(lab: Cluster) -> None:
    configure(lab)
    done(lab.server, "export", "--all", "--yes")
    lab.server.run("pkill -x rpc.mountd", check=True)
    wait_until(lambda: not lab.server.run("pgrep -x rpc.mountd").ok, what="mountd is gone")
    assert sharefs(lab.server, "export", "--all", "--check").returncode == 3
    done(lab.server, "export", "--all", "--yes")
    assert lab.server.run("pgrep -x rpc.mountd").ok


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
    failed = sharefs(lab.server, "export", "--all", "--yes", timeout=240)
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
def test_export_check_finds_the_traps(idle_lab: Cluster, line: str, code_word: str) -> None:
    idle_lab.server.write_file("/tmp/exports", f"# a comment\n{line}\n")
    said = sharefs(idle_lab.server, "export", "check", "/tmp/exports")
    assert "/tmp/exports:2:" in said.err + said.out
    assert code_word in said.err + said.out


def test_nothing_is_exported_on_a_host_that_is_no_server(idle_lab: Cluster) -> None:
    configure(idle_lab)
    refused = sharefs(idle_lab["node1"], "export", "--all", "--yes")
    assert refused.returncode != 0 and "10.77.0.1" in refused.err
    assert not idle_lab["node1"].exists(EXPORTS_FILE)


def test_probe_names_the_failing_stage(lab: Cluster) -> None:
    node = lab["node1"]
    refused = document(sharefs(node, "probe", "10.77.0.1", "--timeout", "3", "--json"))
    assert not refused["ok"]  # nothing runs there
    lab.start_nfs_server()
    good = sharefs(node, "probe", "server", "--timeout", "30", user="alice")  # by name, and without root
    assert good.returncode == 0 and "/srv/share" in good.out
    lab.drop_traffic("server")
    silent = sharefs(node, "probe", "10.77.0.1", "--timeout", "2", timeout=90)
    assert silent.returncode == 1
    assert silent.duration < 2 + 30  # its deadline, and a busy machine; far below the two minutes of a connect(2)
    lab.restore_traffic("server")
    wait_until(lambda: sharefs(node, "probe", "10.77.0.1").ok, what="the server answers again")
    unknown = sharefs(node, "probe", "no-such-host.invalid", "--timeout", "2", timeout=90)
    assert unknown.returncode == 1 and "no-such-host.invalid" in unknown.out + unknown.err
