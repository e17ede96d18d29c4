"""`shares:` of a mount: directories on what is mounted, for outputs and training scripts."""

from __future__ import annotations

import pytest
from test_export import add_carol

from sharefslab import Cluster
from sharefslab.host import Host
from sharefslab.product import SHARE, config_text, configure, document, done, sharefs

OUTPUTS = f"{SHARE}/outputs"
RUNS = 10  # one in which nobody looked at the wrong moment proves nothing; one of the first failed before, each time


def start(lab: Cluster, squash: str = "root_squash", version: str = "vers=4.2", access: str = "keep") -> None:
    extra = f", options: [{version}, noac], shares: [{{path: outputs, access: {{group: ml}}}}]"
    text = config_text(extra=extra, export_options=f"rw, sync, no_subtree_check, {squash}")
    configure(lab, text.replace('access: {group: ml, mode: "2770"}', f"access: {access}"))
    done(lab.server, "export", "--all", "--yes")


def access_of(host: Host, path: str) -> str:
    return host.run(["stat", "-c", "%a %U:%G", path], check=True).out.strip()


def check_outputs(lab: Cluster, *, umask: str) -> None:
    """alice and bob write there and use what the other has written, carol cannot."""
    node1, node2 = lab["node1"], lab["node2"]
    for host in (lab.server, node1, node2):
        add_carol(host)
    node1.run(f"umask {umask}; mkdir {OUTPUTS}/run; echo a >{OUTPUTS}/run/a", user="alice", check=True)
    node2.run(f"umask {umask}; echo b >>{OUTPUTS}/run/a; echo b >{OUTPUTS}/run/b", user="bob", check=True)
    assert node1.run(["cat", f"{OUTPUTS}/run/a", f"{OUTPUTS}/run/b"], user="alice").out == "a\nb\nb\n"
    for host in (node1, node2):
        assert not host.run(["ls", OUTPUTS], user="carol").ok
        assert not host.run(["touch", f"{OUTPUTS}/c"], user="carol").ok
    assert access_of(lab.server, "/srv/share/outputs/run/a").endswith("alice:ml")


@pytest.mark.parametrize("version", ["vers=3, nolock", "vers=4.2"])
def test_root_of_a_node_makes_them_where_it_may(lab: Cluster, version: str) -> None:
    start(lab, "no_root_squash", version)
    said = done(lab["node1"], "mount", "--all", "--yes")
    assert ("no POSIX ACLs" in said.err) == (version == "vers=4.2"), said.err
    assert "every member of `ml` may delete" in said.err
    assert access_of(lab.server, "/srv/share/outputs") == "2770 root:ml"
    default = lab.server.run(["getfacl", "-d", "/srv/share/outputs"]).out
    assert ("group::rwx" in default) == (version != "vers=4.2"), default
    again = document(done(lab["node2"], "mount", "--all", "--yes", "--json"))
    assert not any("outputs" in step["description"] for step in again["plan"]["steps"])
    assert sharefs(lab["node2"], "mount", "--all", "--check").returncode == 0
    check_outputs(lab, umask="022" if version != "vers=4.2" else "002")
    undone = sharefs(lab["node1"], "undo", "--yes")  # in use: it stays, with its access
    assert undone.returncode == 0 and "not empty" in undone.err
    assert access_of(lab.server, "/srv/share/outputs") == "2770 root:ml"
    assert lab.server.run("test -e /srv/share/outputs/run/b").ok


def test_undo_takes_an_empty_one_away_and_never_from_the_bare_mount_point(lab: Cluster) -> None:
    start(lab, "no_root_squash")
    node = lab["node1"]
    done(node, "mount", "--all", "--yes")
    made = document(sharefs(node, "undo", "--list", "--json"))["entries"][0]["id"]
    done(node, "umount", "--all", "--yes")
    node.run(f"mkdir {OUTPUTS}", check=True)  # on the node's own disk
    refused = sharefs(node, "undo", made, "--yes")
    assert refused.returncode != 0 and "what was mounted there is not there now" in refused.err
    assert node.run(f"test -d {OUTPUTS}").ok and lab.server.run("test -d /srv/share/outputs").ok
    done(node, "mount", "--all", "--yes")
    done(node, "undo", made, "--yes")
    assert lab.server.run("ls -A /srv/share").out == ""


def test_squashed_root_says_who_can(lab: Cluster) -> None:
    start(lab)
    node = lab["node1"]
    refused = sharefs(node, "mount", "--all", "--yes")
    assert refused.returncode == 1
    assert "[SF241]" in refused.err and "root_squash" in refused.err
    assert f" {SHARE} nfs4 " in node.read_text("/proc/mounts")  # the mount itself is well
    # The cure that the hint names: on the server, whose ACLs count for clients of version 4, too.
    done(lab.server, "mount", "share", "--yes")
    assert access_of(lab.server, "/srv/share/outputs") == "2770 root:ml"
    done(node, "mount", "--all", "--yes")
    done(lab["node2"], "mount", "--all", "--yes")
    check_outputs(lab, umask="022")


def test_squashed_root_is_not_refused_for_what_others_look_at(lab: Cluster) -> None:
    """The client asks for a delegation of a directory in which a name was looked up (Linux from 6.19 on), and the next
    stat(2) by who may not read it fails with that, once."""
    start(lab, access="{group: ml, sticky: true}")
    node = lab["node1"]
    done(lab.server, "mount", "share", "--yes")
    done(node, "mount", "--all", "--yes")
    looking = node.start(f"while :; do stat {OUTPUTS}; done >/dev/null", user="alice")
    # It is called back, and asked for anew by whoever comes first.
    changing = lab.server.start("while :; do mkdir /srv/share/new; rmdir /srv/share/new; done")
    for _ in range(RUNS):
        said = done(node, "mount", "--all", "--yes")
        assert "may not look at" in said.err and "[SF243]" not in said.err, said.err
    node.kill(looking)
    lab.server.kill(changing)


def test_a_user_who_may_makes_them(lab: Cluster) -> None:
    start(lab, access="{group: ml, sticky: true}")
    node = lab["node1"]
    assert sharefs(node, "mount", "--all", "--yes", user="alice").returncode != 0  # nothing is mounted: that is root's
    assert "[SF241]" in sharefs(node, "mount", "--all", "--yes").err
    add_carol(node)
    assert "carol may not look at" in sharefs(node, "mount", "--all", "--yes", user="carol").err
    done(node, "mount", "--all", "--yes", user="alice")
    assert access_of(lab.server, "/srv/share/outputs") == "2770 alice:ml"
    done(node, "mount", "--all", "--yes")
    done(lab["node2"], "mount", "--all", "--yes")
    check_outputs(lab, umask="002")


def test_what_became_nobodys_is_taken_back(lab: Cluster) -> None:
    """Everyone may write in the export, root of the node too, as nobody: who then could not give it to the group."""
    start(lab, access="open")
    said = sharefs(lab["node1"], "mount", "--all", "--yes")
    assert said.returncode == 1 and "[SF241]" in said.err, said.err
    assert lab.server.run("ls -A /srv/share").out == ""


def test_what_others_made_is_left(lab: Cluster) -> None:
    start(lab, "no_root_squash", access="open")
    node, server = lab["node1"], lab.server
    server.run("mkdir -m 700 /srv/share/outputs && chown alice: /srv/share/outputs", check=True)
    said = sharefs(node, "mount", "--all", "--yes")
    assert said.returncode == 1 and "[SF242]" in said.err
    assert access_of(server, "/srv/share/outputs") == "700 alice:alice"
    server.run("rmdir /srv/share/outputs; mkdir -m 755 /etc/precious; ln -s /etc/precious /srv/share/outputs", check=True)
    node.run("mkdir -m 755 /etc/precious", check=True)
    said = sharefs(node, "mount", "--all", "--yes")
    assert said.returncode == 1 and "[SF243]" in said.err
    for host in (node, server):
        assert access_of(host, "/etc/precious") == "755 root:root"
    # A group may replace names in its directory: what root gives away there could be another's.
    server.run("rm /srv/share/outputs; chgrp ml /srv/share; chmod 2770 /srv/share", check=True)
    said = sharefs(node, "mount", "--all", "--yes")
    assert said.returncode == 1 and "others could replace" in said.err
    assert server.run("ls -A /srv/share").out == ""
