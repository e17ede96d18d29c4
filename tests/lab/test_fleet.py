"""A server and four nodes with a real sshd: trusted, served with sharefs, and changed together; and what goes wrong."""

from __future__ import annotations

import zlib

import pytest

from sharefslab import Cluster, ssh
from sharefslab.fleet import (
    CONFIG,
    HOSTS,
    KNOWN_HOSTS,
    NODES,
    PROGRAM,
    WAITING,
    Stub,
    nodes_command,
    on,
    start_hosts,
    states,
)
from sharefslab.product import CONFIG_PATH, document, done, mount_lines, sharefs
from sharefslab.wait import wait_until

pytestmark = pytest.mark.usefixtures("shipped_program")


@pytest.mark.lab_hosts(*HOSTS)
def test_from_bare_machines_to_mounts_on_all(lab: Cluster) -> None:
    server, nodes = lab.server, lab.nodes
    start_hosts(lab)
    public_key = ssh.make_key(server)
    for node in nodes:
        ssh.set_password(node)
        assert not node.run(["ssh-keygen", "-F", "server"]).ok
    password = "/root/password"
    server.write_file(password, ssh.PASSWORD + "\n", mode=0o600)

    # Nothing is believed without a word of the administrator.
    shown = nodes_command(lab, "trust")
    assert shown.returncode == 1, shown
    for node in nodes:
        for fingerprint in ssh.fingerprints(node):
            assert fingerprint in shown.out, shown
    assert "--accept" in shown.err, shown
    assert not server.exists(KNOWN_HOSTS)

    # What the consoles say; that of node4 is not what it offers.
    lines = [f"{node.name}: 256 {each} root@x\n" for node in nodes[:3] for each in ssh.fingerprints(node)]
    server.write_file("/root/consoles", "".join(lines) + "node4 SHA256:0000000000000000000000000000000000000000000\n")
    server.run(["chmod", "644", password], check=True)
    refused = nodes_command(lab, "trust", "--fingerprint", "/root/consoles", "--password-file", password, "--yes")
    assert refused.returncode == 1 and "can be read by others" in refused.err, refused
    server.run(["chmod", "600", password], check=True)
    trusted = nodes_command(
        lab, "trust", "--fingerprint", "/root/consoles", "--password-file", password, "--yes", "--json"
    )
    assert trusted.returncode == 4, trusted
    assert states(trusted) == {"node1": "changed", "node2": "changed", "node3": "changed", "node4": "host key"}, trusted
    assert "node4" not in server.read_text(KNOWN_HOSTS)
    for node in nodes[:3]:
        assert node.read_text("/root/.ssh/authorized_keys").split()[:2] == public_key.split()[:2]
    assert ssh.PASSWORD not in server.run("cat /var/lib/sharefs/fleet/*/* 2>/dev/null; true").out

    # Without the password node4 is known, and does not let us in: that is said with the line to add.
    known = nodes_command(lab, "trust", "--accept", "--yes")
    assert known.returncode == 4 and "--password-file" in known.err and public_key.split()[1] in known.err, known
    done(server, "nodes", "trust", "--password-file", password, "--yes", timeout=300)
    again = nodes_command(lab, "trust", "--check", "--json")
    assert again.returncode == 0 and set(states(again).values()) == {"ok"}, again
    for node in nodes:
        assert len(node.read_text("/root/.ssh/authorized_keys").splitlines()) == 1

    # It is undone as every change is: the key of node4, exactly its line, then what known_hosts has of it.
    before = server.read_text(KNOWN_HOSTS)
    own = "# of node4\nssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA other\n"
    nodes[3].run("cat >>/root/.ssh/authorized_keys", input=own, check=True)
    lab.freeze("node4")  # a node that is off: then the undo is not done
    try:
        assert not sharefs(server, "undo", "--yes", timeout=300).ok
    finally:
        lab.resume("node4")
    done(server, "undo", "--yes", timeout=300)
    assert nodes[3].read_text("/root/.ssh/authorized_keys") == own
    assert public_key.split()[1] in nodes[2].read_text("/root/.ssh/authorized_keys")
    assert server.read_text(KNOWN_HOSTS) == before
    done(server, "undo", "--yes")
    assert server.read_text(KNOWN_HOSTS) != before
    done(server, "nodes", "trust", "--accept", "--password-file", password, "--yes", timeout=300)
    assert server.read_text(KNOWN_HOSTS) == before
    assert nodes[3].read_text("/root/.ssh/authorized_keys").startswith(own + public_key.strip())

    push_to_bare_nodes(lab)
    change_all(lab)


def push_to_bare_nodes(lab: Cluster) -> None:
    server, nodes = lab.server, lab.nodes
    assert set(states(on(lab, "clients", "status")).values()) == {"no sharefs"}
    check = nodes_command(lab, "push", "--check", "--json")
    assert check.returncode == 3 and set(states(check).values()) == {"pending"}, check
    assert not nodes[0].exists(PROGRAM)
    nodes[0].run("echo 'echo Welcome to the cluster' >>/root/.bashrc", check=True)  # noise in front of every answer
    pushed = nodes_command(lab, "push", "--yes", "--json")
    assert pushed.returncode == 0 and states(pushed) == dict.fromkeys(NODES, "changed"), pushed
    own = server.run("sha256sum <$(readlink -f $(command -v sharefs))", check=True).out
    for node in nodes:
        assert node.run(f"sha256sum <{PROGRAM}", check=True).out == own
        assert node.read_text(CONFIG_PATH) == CONFIG
        assert node.run("ls /var/tmp /usr/local/bin", check=True).out.count("sharefs") == 1
        assert node.exists("/usr/local/share/sharefs/guard/sitecustomize.py")
    inode = nodes[0].run(f"stat -c %i {PROGRAM} {CONFIG_PATH}", check=True).out
    again = nodes_command(lab, "push", "--yes", "--json")
    assert again.returncode == 0 and states(again) == dict.fromkeys(NODES, "ok"), again
    assert nodes[0].run(f"stat -c %i {PROGRAM} {CONFIG_PATH}", check=True).out == inode

    # A changed file alone, of which the old one is kept.
    server.write_file(CONFIG_PATH, "# new\n" + CONFIG, mode=0o644)
    done(server, "nodes", "push", "--yes", timeout=300)
    assert nodes[3].read_text(CONFIG_PATH) == "# new\n" + CONFIG
    assert nodes[3].read_text(CONFIG_PATH + ".old") == CONFIG
    assert nodes[0].run(f"stat -c %i {PROGRAM}", check=True).out == inode.splitlines()[0] + "\n"


def change_all(lab: Cluster) -> None:
    done(lab.server, "--on", "servers", "export", "--all", "--yes", timeout=300)
    mounted = on(lab, "clients", "mount", "--all", "--yes")
    assert mounted.returncode == 0 and states(mounted) == dict.fromkeys(NODES, "changed"), mounted
    assert all(len(mount_lines(node)) == 1 for node in lab.nodes)
    again = on(lab, "clients", "mount", "--all", "--yes")
    assert again.returncode == 0 and states(again) == dict.fromkeys(NODES, "ok"), again
    assert on(lab, "clients", "mount", "--all", "--check").returncode == 0
    for engine in "xargs", "clush", "pdsh":
        looked = on(lab, "clients", "status", "--engine", engine)
        assert looked.returncode == 0 and states(looked) == dict.fromkeys(NODES, "ok"), looked
    undone = on(lab, "all", "undo", document(mounted)["run"], "--yes")
    assert undone.returncode == 0 and states(undone) == dict.fromkeys(NODES, "changed"), undone
    assert not any(mount_lines(node) for node in lab.nodes)


def hello_of_another(node: str) -> str:
    payload = '{"sharefs":"9.9","protocol":99}'
    content = f"{node} 0/0 {payload}"
    return f"@sf1 {node} 0/0 {zlib.crc32(content.encode()):08x} {payload}"


def test_a_node_that_is_off(fleet: Cluster) -> None:
    fleet.freeze("node2")
    try:
        looked = on(fleet, "all", "cache", "list")
        pushed = nodes_command(fleet, "push", "--check", "--json")
    finally:
        fleet.resume("node2")
    assert looked.returncode == 4, looked
    assert states(looked) == {**dict.fromkeys(NODES | {"storage"}, "ok"), "node2": "unreachable"}, looked
    assert states(pushed)["node2"] == "unreachable", pushed


def test_a_login_that_hangs(fleet: Cluster) -> None:
    node = fleet["node3"]
    node.write_file("/etc/ssh/sshd_config.d/hang.conf", "ForceCommand sleep 600\n")
    ssh.reload_sshd(node)
    try:
        looked = on(fleet, "clients", "cache", "list", "--node-deadline", "3s")
    finally:
        node.run("rm /etc/ssh/sshd_config.d/hang.conf; pkill -x sleep", check=True)
        ssh.reload_sshd(node)
    assert looked.returncode == 4 and states(looked) == {**dict.fromkeys(NODES, "ok"), "node3": "timed out"}, looked


def test_another_protocol_runs_nothing(fleet: Cluster) -> None:
    node = fleet["node1"]
    with Stub(node, f"#!/bin/sh\necho '{hello_of_another('node1')}'\nexit 2\n"):
        looked = on(fleet, "clients", "mount", "--all", "--yes")
        assert states(looked)["node1"] == "version differs" and not mount_lines(node), looked
        # It was the canary: nothing else was touched.
        assert {state for name, state in states(looked).items() if name != "node1"} == {"not tried"}, looked
        assert not any(mount_lines(each) for each in fleet.nodes)
        check = nodes_command(fleet, "push", "--check", "--json")
        assert states(check) == {**dict.fromkeys(NODES, "ok"), "node1": "pending"}, check
    assert "nodes push node1" in looked.out


def test_a_changed_host_key_is_refused(fleet: Cluster) -> None:
    node, server = fleet["node4"], fleet.server
    known = server.read_text(KNOWN_HOSTS)
    node.run("cd /etc/ssh && mkdir kept && mv ssh_host_* kept && ssh-keygen -q -t ecdsa -N '' -f ssh_host_ecdsa_key", check=True)
    node.run("sed -i '/ed25519/d' /etc/ssh/sshd_config", check=True)  # of a type that known_hosts does not have
    server.run(f"sed -i '/^node4.*ecdsa/d' {KNOWN_HOSTS}", check=True)
    ssh.reload_sshd(node)
    try:
        looked = on(fleet, "clients", "cache", "list")
        refused = nodes_command(fleet, "trust", "--accept", "--yes", "--json")
        told = nodes_command(fleet, "trust", "--accept", "--yes")
        assert server.run(f"grep -c ^node4 {KNOWN_HOSTS}").out == "1\n"
    finally:
        node.run("cd /etc/ssh && mv kept/* . && rmdir kept", check=True)
        node.run("sed -i '/^HostKey/i HostKey /etc/ssh/ssh_host_ed25519_key' /etc/ssh/sshd_config", check=True)
        ssh.reload_sshd(node)
        server.write_file(KNOWN_HOSTS, known, mode=0o600)
    assert states(looked)["node4"] == "host key", looked
    assert states(refused) == {**dict.fromkeys(NODES, "ok"), "node4": "host key"}, refused
    assert refused.returncode == 4 and "ssh-keygen -R node4" in told.err, told
    assert set(states(on(fleet, "clients", "cache", "list")).values()) == {"ok"}


def test_a_user_without_sudo(fleet: Cluster) -> None:
    server, node = fleet.server, fleet["node1"]
    server.run("ssh-keygen -q -t ed25519 -N '' -f /home/alice/key && chown alice: /home/alice/key*", check=True)
    server.run(["install", "-d", "-o", "alice", "-g", "alice", "-m", "700", "/home/alice/.ssh"], check=True)
    server.run("mv /home/alice/key /home/alice/.ssh/id_ed25519; mv /home/alice/key.pub /home/alice/.ssh/id_ed25519.pub", check=True)
    ssh.authorize(node, server.read_text("/home/alice/.ssh/id_ed25519.pub"), "/home/alice")
    node.run(["chown", "-R", "alice:", "/home/alice/.ssh"], check=True)
    ssh.set_password(node, "alice")  # an account without one is locked
    trusted = server.run(["sharefs", "nodes", "trust", "node1", "--accept", "--yes"], user="alice")
    assert trusted.ok, trusted
    assert server.run(["stat", "-c", "%U %a", "/home/alice/.ssh/known_hosts"]).out == "alice 600\n"
    looked = server.run(["sharefs", "--on", "node1", "cache", "list", "--json"], user="alice")
    assert states(looked) == {"node1": "ok"}, looked
    refused = server.run(["sharefs", "--on", "node1", "mount", "--all", "--yes", "--json"], user="alice")
    assert refused.returncode == 1 and states(refused) == {"node1": "denied"}, refused
    refused = server.run(["sharefs", "nodes", "push", "node1", "--yes", "--json"], user="alice")
    assert refused.returncode == 1 and states(refused) == {"node1": "denied"}, refused


def test_two_administrators_at_once(fleet: Cluster) -> None:
    server, node = fleet.server, fleet["node1"]
    with Stub(node, WAITING):
        first = server.start(["sharefs", "--on", "clients", "mount", "--all", "--yes", "--json"])
        wait_until(lambda: node.exists("/tmp/waits"), what="the canary is at work")
        for words in (["--on", "clients", "mount", "--all", "--yes"], ["nodes", "push", "--yes"]):
            second = sharefs(server, *words, "--wait", "1s")
            assert second.returncode == 1 and "another sharefs" in second.err, second
        node.run("touch /tmp/go", check=True)
        ended = first.wait(300)
        node.run("rm /tmp/go /tmp/waits", check=True)
    assert ended.returncode == 0 and states(ended) == dict.fromkeys(NODES, "changed"), ended


def test_resume_after_the_launching_process_was_killed(fleet: Cluster) -> None:
    server, node = fleet.server, fleet["node1"]
    with Stub(node, WAITING):
        first = server.start(["sharefs", "--on", "clients", "mount", "--all", "--yes", "--json"])
        wait_until(lambda: node.exists("/tmp/waits"), what="the canary is at work")
        server.run(["pkill", "-KILL", "-x", "sharefs"], check=True)
        first.wait()
        node.run("touch /tmp/go", check=True)
        # What was begun there goes to its end, or dies with its connection: either is known to who comes next.
        wait_until(lambda: not node.run(["pgrep", "-x", "sharefs.real"]).ok and not node.run("pgrep -f tmp/go").ok)
        resumed = nodes_command(fleet, "resume", "--yes", "--json")
        node.run("rm /tmp/go /tmp/waits", check=True)
    assert resumed.returncode == 0 and set(states(resumed)) == NODES, resumed
    assert all(len(mount_lines(each)) == 1 for each in fleet.nodes)
    left = nodes_command(fleet, "resume", "--yes", "--json")
    assert left.returncode == 0 and "done on all" in left.err, left


def test_what_a_node_has_begun_goes_to_its_end_after_ctrl_c(fleet: Cluster) -> None:
    server, node = fleet.server, fleet["node1"]
    with Stub(node, WAITING):
        first = server.start(["sharefs", "--on", "clients", "mount", "--all", "--yes", "--json"])
        wait_until(lambda: node.exists("/tmp/waits"), what="the canary is at work")
        server.run(["pkill", "-INT", "-x", "sharefs"], check=True)
        ended = first.wait(120)
        assert ended.returncode == 130 and "not known whether these are done: node1\n" in ended.err, ended
        assert states(ended) == {**dict.fromkeys(NODES, "not tried"), "node1": "failed"}, ended
        node.run("touch /tmp/go", check=True)
        wait_until(lambda: len(mount_lines(node)) == 1, what="the change that was begun goes to its end")
        wait_until(lambda: not node.run(["pgrep", "-x", "sharefs.real"]).ok)
        node.run("rm /tmp/go /tmp/waits", check=True)
    assert not any(mount_lines(each) for each in fleet.nodes[1:]), "nobody else has begun"
    resumed = nodes_command(fleet, "resume", "--yes", "--json")
    assert resumed.returncode == 0 and states(resumed) == {**dict.fromkeys(NODES, "changed"), "node1": "ok"}, resumed


def test_push_where_it_cannot_run_leaves_what_was_there(fleet: Cluster) -> None:
    node, server = fleet["node2"], fleet.server
    old = "#!/bin/sh\necho sharefs 0.0.1\n"
    with Stub(node, old):
        node.run("mount -o remount,noexec /usr/local", check=True)
        try:
            pushed = nodes_command(fleet, "push", "--yes", "--json")
        finally:
            node.run("mount -o remount,exec /usr/local", check=True)
        assert states(pushed) == {**dict.fromkeys(NODES, "ok"), "node2": "failed"}, pushed
        assert "does not run there" in pushed.out
        assert node.read_text(PROGRAM) == old
        assert not node.exists(PROGRAM + ".new")
        # A file that its sharefs does not take stays out, and the program that was there stays in.
        server.write_file("/root/wrong.yaml", CONFIG + "nonsense: 1\n", mode=0o644)
        wrong = sharefs(server, "--config", "/root/wrong.yaml", "nodes", "push", "--yes")
        assert wrong.returncode == 2, wrong
        done(server, "nodes", "push", "node2", "--yes", timeout=300)
        assert node.read_text(PROGRAM + ".old") == old


def test_certificates_and_the_mesh(fleet: Cluster) -> None:
    server = fleet.server
    known = server.read_text(KNOWN_HOSTS)
    server.run("ssh-keygen -q -t ed25519 -N '' -f /root/ca", check=True)
    certified = nodes_command(fleet, "trust", "--ca", "/root/ca", "--yes", "--json")
    assert certified.returncode == 0 and states(certified) == dict.fromkeys(NODES, "changed"), certified
    # The one line of the authority stands for all host keys.
    line = next(each for each in server.read_text(KNOWN_HOSTS).splitlines() if each.startswith("@cert-authority"))
    server.write_file(KNOWN_HOSTS, line + "\n", mode=0o600)
    server.run(["ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "node2", "true"], check=True)
    again = nodes_command(fleet, "trust", "--ca", "/root/ca", "--yes", "--json")
    assert again.returncode == 0 and states(again) == dict.fromkeys(NODES, "ok"), again

    done(server, "undo", "--yes", timeout=300)
    assert not fleet["node2"].exists("/etc/ssh/sshd_config.d/10-sharefs.conf")
    assert not fleet["node2"].run("ls /etc/ssh/*-cert.pub").ok
    server.write_file(KNOWN_HOSTS, known, mode=0o600)

    # From node to node: without a key there it is said, with one it works.
    meshed = nodes_command(fleet, "trust", "clients", "--mesh", "--yes", "--json")
    assert meshed.returncode == 1 and "from there to node2" in meshed.out, meshed
    for node in fleet.nodes:
        for name in "id_ed25519", "id_ed25519.pub":
            node.write_file(f"/root/.ssh/{name}", server.read_file(f"/root/.ssh/{name}"), mode=0o600)
    meshed = nodes_command(fleet, "trust", "clients", "--mesh", "--yes", "--json")
    assert meshed.returncode == 0, meshed
    fleet["node1"].run(["ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "node3", "true"], check=True)
    for node in fleet.nodes:
        node.run("rm -f /root/.ssh/id_ed25519*", check=True)
    done(server, "undo", "--yes", timeout=300)
    assert fleet["node2"].run("cat /etc/ssh/ssh_known_hosts").out == ""


def test_a_certificate_lets_the_user_in_where_no_key_is_known(fleet: Cluster) -> None:
    server, node = fleet.server, fleet["node1"]
    keys = node.read_text("/root/.ssh/authorized_keys")
    login = ["ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "node1", "true"]
    server.run("ssh-keygen -q -t ed25519 -N '' -f /root/user_ca", check=True)
    words = ["trust", "--user-ca", "/root/user_ca", "--yes", "--json"]
    check = nodes_command(fleet, *words, "--check")
    assert check.returncode == 3 and set(states(check).values()) == {"pending"}, check
    assert not server.exists("/root/.ssh/id_ed25519-cert.pub")
    certified = nodes_command(fleet, *words)
    assert certified.returncode == 0 and states(certified) == dict.fromkeys(NODES, "changed"), certified
    node.run("rm /root/.ssh/authorized_keys", check=True)
    try:
        server.run(login, check=True)
        again = nodes_command(fleet, *words)
        assert again.returncode == 0 and states(again) == dict.fromkeys(NODES, "ok"), again
        assert set(states(on(fleet, "clients", "cache", "list")).values()) == {"ok"}
        done(server, "undo", "--yes", timeout=300)  # the nodes, by the certificate that is still there
        assert not node.exists("/etc/ssh/sshd_config.d/10-sharefs.conf")
        assert not server.run(login).ok
        done(server, "undo", "--yes")
        assert not server.exists("/root/.ssh/id_ed25519-cert.pub")

        # A site's own file of authorities keeps what it has, and gets a line.
        site = "/etc/ssh/site_ca.pub"
        node.write_file(site, server.read_text("/root/ca.pub") if server.exists("/root/ca.pub") else "", mode=0o644)
        node.write_file("/etc/ssh/sshd_config.d/50-site.conf", f"TrustedUserCAKeys {site}\n", mode=0o644)
        ssh.reload_sshd(node)
        node.write_file("/root/.ssh/authorized_keys", keys, mode=0o600)
        before = node.read_text(site)
        done(server, "nodes", "trust", "node1", "--user-ca", "/root/user_ca", "--yes", timeout=300)
        assert node.read_text(site).startswith(before) and node.read_text(site) != before
        assert not node.exists("/etc/ssh/sshd_config.d/10-sharefs.conf")
        done(server, "undo", "--yes", timeout=300)
        assert node.read_text(site) == before
        done(server, "undo", "--yes")
    finally:
        node.write_file("/root/.ssh/authorized_keys", keys, mode=0o600)
        node.run("rm -f /etc/ssh/sshd_config.d/50-site.conf", check=True)
        ssh.reload_sshd(node)


def test_a_package_does_not_hide_behind_another_program(fleet: Cluster) -> None:
    node, server = fleet["node4"], fleet.server
    server.write_file("/root/sharefs.deb", b"a package")
    server.write_file("/root/dpkg-deb", "#!/bin/sh\necho 9.9\n", mode=0o755)
    server.run("mount --bind /root/dpkg-deb /usr/bin/dpkg-deb", check=True)
    try:
        check = nodes_command(fleet, "push", "--package", "/root/sharefs.deb", "node4", "--check", "--json")
    finally:
        server.run("umount /usr/bin/dpkg-deb", check=True)
    # The program that push has brought belongs to no package, and would stand before the package's.
    assert check.returncode == 1 and "belongs to no package" in check.out, check
    assert node.exists(PROGRAM)
