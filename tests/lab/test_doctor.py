"""sharefs doctor on real kernel NFS: one line of a healthy host, the cause of a broken one, and what it mends."""

from __future__ import annotations

from typing import Any

from sharefslab import Cluster, wait_until
from sharefslab.host import Host
from sharefslab.product import SHARE, config_text, configure, document, done, export_and_mount, mount_lines, sharefs

# The whole run, with a server that does not answer; far below "hangs".
PATIENCE = 120.0
PLAIN = config_text().split("conda:")[0] + "caches:\n  local: /local/cache\n"


def found(host: Host, *arguments: str) -> dict[str, Any]:
    """What doctor says, by code."""
    answer = document(sharefs(host, "doctor", "--json", *arguments, timeout=PATIENCE))
    return {one["code"]: one for one in answer["diagnoses"]}


def test_one_line_of_a_healthy_client_and_server(lab: Cluster) -> None:
    export_and_mount(lab, PLAIN)
    done(lab.server, "mount", "--all", "--yes")
    for host in (lab["node1"], lab.server):
        said = done(host, "doctor")
        assert said.out + said.err == said.err and said.err.startswith("all is well: sharefs.yaml"), said
        assert said.err.count("\n") == 1
    assert "1 export" in done(lab.server, "doctor").err


def test_a_frozen_server_is_named_and_nothing_hangs(lab: Cluster) -> None:
    export_and_mount(lab, PLAIN)
    lab.freeze("server")
    codes = found(lab["node1"], "--timeout", "2")
    assert "SF212" in codes and "SF602" not in codes
    answer = document(sharefs(lab["node1"], "doctor", "--fix", "--yes", "--json", "--timeout", "2", timeout=PATIENCE))
    assert answer["plan"]["steps"] == [] and len(mount_lines(lab["node1"])) == 1
    lab.resume("server")


def test_what_is_stale_and_what_is_missing_is_mended_in_one_plan(lab: Cluster) -> None:
    text = PLAIN.replace("profile: safe}", "profile: safe, options: [actimeo=1]}")
    export_and_mount(lab, text)
    node = lab["node1"]
    done(lab["node2"], "umount", "--all", "--yes")
    lab.remake_filesystem("server")
    wait_until(lambda: "SF211" in found(node), what="the client notices that its handle is stale")
    assert "SF217" in found(lab["node2"])
    for host in (node, lab["node2"]):
        done(host, "doctor", "--fix", "--yes", timeout=240)
        assert len(mount_lines(host)) == 1
        assert done(host, "doctor").err.startswith("all is well")
    done(node, "undo", "--yes", timeout=240)


def test_a_server_that_is_not_as_it_should_be(lab: Cluster) -> None:
    export_and_mount(lab, PLAIN.replace("rw, sync", "rw, async"))
    server = lab.server
    assert "SF145" in found(server)
    server.run("rpc.nfsd 0", check=True)
    assert {"SF603", "SF146"} <= found(server).keys()
    done(server, "doctor", "--fix", "--yes", timeout=240)
    assert not {"SF603", "SF146"} & found(server).keys()

    server.run("chmod 777 /srv/share", check=True)
    opened = found(server)["SF603"]["message"]
    assert "set access of /srv/share: root:ml 2770, group-writable, now 2777" in opened
    done(server, "export", "--all", "--yes")
    server.run("echo '/srv/share *(ro)' >>/etc/exports", check=True)
    assert found(server)["SF133"]["message"] == "/srv/share is not exported to `*`, though /etc/exports:1:12 has it"
    server.run("exportfs -ra", check=True)
    assert "SF133" not in found(server)
    assert "SF159" not in found(server)
    server.run("chmod 777 /etc/exports.d", check=True)
    opened = found(server)["SF159"]
    assert opened["subject"] == "/etc/exports.d" and "`chown root: /etc/exports.d && chmod go-w /etc/exports.d`" in opened["hint"]


def test_a_disk_of_the_server_that_is_not_mounted(lab: Cluster) -> None:
    """Clients would fill the system's disk, by a directory that is opened to them."""
    export_and_mount(lab, PLAIN)
    server = lab.server
    stop = "exportfs -ua && rpc.nfsd 0 && "
    done(server, "umount", "--all", "--yes")
    server.run(f"echo '/dev/loop0 /srv/share ext4 defaults 0 2' >>/etc/fstab; {stop} umount /srv/share && rpc.nfsd 8", check=True)
    kept = server.run("stat -c '%a %U' /srv/share; cat /etc/exports.d/sharefs.exports", check=True).out
    absent = found(server)["SF148"]
    assert "(/etc/fstab:" in absent["message"] and absent["hint"].startswith("`mount /srv/share`;"), absent
    assert "SF603" not in found(server)
    sharefs(server, "doctor", "--fix", "--yes", timeout=240)
    assert sharefs(server, "export", "--all", "--yes").returncode == 1
    assert server.run("stat -c '%a %U' /srv/share; cat /etc/exports.d/sharefs.exports", check=True).out == kept
    assert not mount_lines(server), "the server would work in the bare directory"
    server.run("rpc.nfsd 0; mount /srv/share", check=True)
    done(server, "export", "--all", "--yes")
    assert "SF148" not in found(server)


def test_another_file_system_below_an_export(lab: Cluster) -> None:
    export_and_mount(lab, PLAIN)
    server, node = lab.server, lab["node1"]
    below = "/srv/share/below"
    server.run(f"mkdir {below} && mount -t tmpfs -o size=1m,mode=777 below {below} && touch {below}/there", check=True)
    assert node.run(["ls", f"{SHARE}/below"], user="alice", check=True).out == ""
    told = found(server)["SF149"]
    assert "add `crossmnt` to the options of /srv/share" in told["hint"], told
    configure(lab, PLAIN.replace("no_subtree_check]", "no_subtree_check, crossmnt]"))
    done(server, "export", "--all", "--yes")
    assert "SF149" not in found(server)
    done(node, "umount", "--all", "--yes")
    done(node, "mount", "--all", "--yes")
    assert node.run(["ls", f"{SHARE}/below"], user="alice", check=True).out == "there\n"


def test_a_directory_above_a_mount_that_is_closed(lab: Cluster) -> None:
    export_and_mount(lab, PLAIN)
    node = lab["node1"]
    above = SHARE.rsplit("/", 1)[0]
    node.run(["chmod", "700", above], check=True)
    assert f"`chmod a+x {above}`" in found(node)["SF250"]["hint"]
    as_user = document(sharefs(node, "doctor", "--json", user="alice"))["diagnoses"]
    assert [one["code"] for one in as_user] == ["SF250"], as_user  # and not that the server refuses
    node.run(["chmod", "a+x", above], check=True)
    assert "SF250" not in found(node)


def test_a_mount_on_which_nothing_can_run(lab: Cluster) -> None:
    """Whoever did it: no environment of the share can start, and nobody asked for that."""
    export_and_mount(lab, PLAIN)
    node = lab["node1"]
    node.run(f"mount -o remount,bind,noexec,nosuid,nodev {SHARE}", check=True)
    assert "noexec instead of exec" in found(node)["SF209"]["message"]
    done(node, "mount", "--all", "--remount", "--yes")
    assert "SF209" not in found(node) and "noexec" not in mount_lines(node)[0]


def test_caches_local_is_made_and_judged_as_users_see_it(lab: Cluster) -> None:
    """Root may do all: what it says of the directory is what its users would find."""
    directory = "/srv-local/cache"
    configure(lab, config_text().replace("local: /local/cache", f"local: {directory}"))
    done(lab.server, "export", "--all", "--yes")
    node = lab["node1"]
    missing = found(node)["SF414"]
    assert f"{directory} is not there" in missing["message"] and f"install -d -m 1777 {directory}" in missing["hint"], missing
    said = done(node, "mount", "--all", "--yes").err
    assert f"make directory {directory}" in said and "caches.local" in said, said
    assert node.run(f"stat -c '%a %U' {directory}", check=True).out == "1777 root\n"
    assert not {"SF405", "SF414"} & found(node).keys()
    assert sharefs(node, "mount", "--all", "--check").returncode == 0
    node.run(f"chmod 755 {directory}", check=True)
    closed = found(node)["SF414"]
    assert f"{directory} cannot be written" in closed["message"] and f"chmod 1777 {directory}" in closed["hint"], closed
    assert "which mode 0755 does not allow" in sharefs(node, "mount", "--all", "--dry-run").out
    done(node, "mount", "--all", "--yes")
    assert node.run(f"stat -c %a {directory}", check=True).out == "1777\n"
    done(node, "undo", "--yes")
    assert node.run(f"stat -c %a {directory}", check=True).out == "755\n"
