"""sharefs mount --verify --with NODE --with-server: other hosts are asked by a real ssh, and try real locks."""

from __future__ import annotations

import pytest

from sharefslab import Cluster
from sharefslab.host import Host
from sharefslab.product import config_text, document, done, export_and_mount, sharefs
from sharefslab.wait import wait_until

SSHD = "/usr/sbin/sshd -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no -o UsePAM=no"


def start_sshd(host: Host, options: str = "") -> None:
    """It forks before it listens."""
    host.run(f"{SSHD} {options}", check=True)
    wait_until(lambda: host.run("exec 3<>/dev/tcp/127.0.0.1/22").ok, what=f"sshd of {host.name} listens")


def start_ssh(client: Host, *others: Host) -> None:
    """Throwaway keys: root of `client` may log in on the others, and knows them."""
    client.run("mkdir -p -m 700 /root/.ssh && ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519", check=True)
    public = client.read_text("/root/.ssh/id_ed25519.pub")
    known = ""
    for other in others:
        other.run(
            "mkdir -p -m 755 /run/sshd && mkdir -p -m 700 /root/.ssh && rm -f /etc/ssh/ssh_host_*"
            " && ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key",
            check=True,
        )
        other.write_file("/root/.ssh/authorized_keys", public, mode=0o600)
        start_sshd(other)
        address = other.run("hostname -I", check=True).out.split()[0]
        known += f"{other.name},{address} {other.read_text('/etc/ssh/ssh_host_ed25519_key.pub')}"
    client.write_file("/root/.ssh/known_hosts", known, mode=0o600)


def nothing_left(lab: Cluster) -> None:
    assert lab.server.run("ls -A /srv/share").out == ""


def export_where_locks_are_granted(lab: Cluster, text: str = config_text()) -> None:
    """A server that has just been started grants no lock for its grace period: until its end a client asks again, in a
    system call that only SIGKILL ends."""
    lab.start_nfs_server(exports="/srv/share *(rw,sync,no_root_squash,no_subtree_check)\n")
    lab.start_lock_daemons()
    lab.warm_locks()
    lab.server.run("echo >/etc/exports; rm -rf /srv/share/*", check=True)
    export_and_mount(lab, text)


def verified(node: Host, *more: str) -> dict:
    return document(sharefs(node, "mount", "--all", "--verify", "--yes", "--json", "--timeout", "30", *more))


def codes(answer: dict) -> list[str]:
    return [one["code"] for one in answer["diagnoses"]]


# 2775 of group ml: a squashed root writes as its group, and the other node has to read as that, too.
@pytest.mark.parametrize("extra", ["", ', options: ["vers=3"]'])
def test_locks_exclude_the_other_node(lab: Cluster, extra: str) -> None:
    export_where_locks_are_granted(lab, config_text(extra=extra))
    node = lab["node1"]
    start_ssh(node, lab["node2"], lab.server)
    answer = verified(node, "--with", "node2", "--with-server")
    (one,) = answer["verified"]
    assert one["locks"] == {"with": "node2", "flock": "excludes", "fcntl": "excludes"}, answer
    assert one["admitted"]["client"] == "10.77.0.2", answer
    assert {"rw", "root_squash", "sync"} <= set(one["admitted"]["options"].split(","))
    assert answer["ok"] and codes(answer) == [], answer
    nothing_left(lab)
    said = done(node, "mount", "--all", "--verify", "--yes", "--timeout", "30", "--with", "node2").err
    assert "share: locks exclude node2 (flock, fcntl)" in said
    # The names of users and groups are compared by their numbers.
    lab["node2"].run("sed -i 's/^ml:x:3000:/ml:x:3333:/' /etc/group", check=True)
    lab.server.run("sed -i s/,sync,/,async,/ /etc/exports.d/sharefs.exports && exportfs -ra && exportfs -f", check=True)
    answer = verified(node, "--with", "node2", "--with-server")
    assert sorted(codes(answer)) == ["SF237", "SF244"], answer
    assert any("ml is gid 3000 here and 3333 on node2" in one["message"] for one in answer["diagnoses"])


def test_nolock_excludes_nobody(lab: Cluster) -> None:
    lab.start_lock_daemons()
    export_and_mount(lab, config_text(profile="recipe", extra=', options: ["vers=3"]'))
    node = lab["node1"]
    start_ssh(node, lab["node2"])
    found = sharefs(node, "mount", "--all", "--verify", "--yes", "--timeout", "30", "--with", "node2")
    assert found.returncode == 1
    assert "locks do not exclude node2 (flock, fcntl): they are local to each node" in found.err, found.err
    assert "by nolock or local_lock on both" in found.err and "[SF239]" in found.err
    nothing_left(lab)


def test_what_keeps_a_node_from_trying(lab: Cluster) -> None:
    export_and_mount(lab)
    node, other = lab["node1"], lab["node2"]
    node.run("mkdir -p -m 700 /root/.ssh", check=True)
    refused = sharefs(node, "mount", "--all", "--yes", "--with", "node2")
    assert refused.returncode == 1 and "[SF240]" in refused.err and "Connection refused" in refused.err, refused.err
    start_ssh(node, other)
    done(other, "umount", "--all", "--yes")
    away = sharefs(node, "mount", "--all", "--yes", "--with", "root@node2")
    assert away.returncode == 1 and "the test file is not in /data/share there" in away.err, away.err
    other.run("ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/new; pkill -x sshd", check=True)
    wait_until(lambda: not other.run(["pgrep", "-x", "sshd"]).ok, what="the port is free")
    start_sshd(other, "-h /etc/ssh/new")
    changed = sharefs(node, "mount", "--all", "--yes", "--with", "node2")
    assert changed.returncode == 1 and "Host key verification failed" in changed.err, changed.err
    assert sharefs(node, "mount", "--all", "--yes", "--with", "-oProxyCommand=x").returncode == 2
    nothing_left(lab)


def never_log_in(host: Host) -> None:
    """A login that does not come to an end: the locks are held until ssh is given up."""
    host.run("sed -i 's#^\\(root:.*\\):[^:]*$#\\1:/local/slow#' /etc/passwd", check=True)
    host.write_file("/local/slow", "#!/bin/sh\nexec sleep 100\n", mode=0o755)


def test_a_killed_test_leaves_no_file(lab: Cluster) -> None:
    export_where_locks_are_granted(lab)
    node, other = lab["node1"], lab["node2"]
    start_ssh(node, other)
    never_log_in(other)
    running = node.start(["sharefs", "mount", "--all", "--yes", "--with", "node2"])
    wait_until(lambda: "sharefs-lock" in lab.server.run("ls -A /srv/share").out, what="the locks are held")
    running.kill()
    wait_until(lambda: lab.server.run("ls -A /srv/share").out == "", what="the files are gone")


def test_a_server_that_freezes_meanwhile_hangs_nothing(lab: Cluster) -> None:
    export_and_mount(lab)
    node, other = lab["node1"], lab["node2"]
    start_ssh(node, other)
    never_log_in(other)
    running = node.start(["sharefs", "mount", "--all", "--yes", "--with", "node2", "--timeout", "2s"])
    wait_until(lambda: "sharefs-lock" in lab.server.run("ls -A /srv/share").out, what="the locks are held")
    lab.freeze("server")
    found = running.wait()
    assert found.returncode == 1 and "[SF240]" in found.err, found.err
    lab.resume("server")
