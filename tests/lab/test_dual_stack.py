"""A server with an address of each family, which lets a host in by one of them only: mounted wherever mount.nfs gets one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sharefslab import Cluster, KernelCluster, systemd
from sharefslab.cluster import BaseCluster
from sharefslab.host import Host
from sharefslab.product import SHARE, configure, done, mount_lines, sharefs
from sharefslab.wait import wait_until

V4, V6 = "10.77.0.0/24", "fd00:77::/64"
SERVER4, SERVER6 = "10.77.0.1", "fd00:77::1"
OPTIONS = "(rw,sync,no_root_squash,no_subtree_check)"
PROTO = {V4: "tcp", V6: "tcp6"}

CONFIG = """\
version: 1
servers:
  storage: {{address: server}}
mounts:
  share: {{from: "storage:/srv/share", at: /data/share{extra}}}
"""


def give_both_families(cluster: BaseCluster, server6: str = SERVER6) -> None:
    """IPv6 first, as getaddrinfo(3) has it where both families have an address."""
    for number, host in enumerate(cluster, 1):
        host.run(f"modprobe -q ipv6; ip -6 addr add fd00:77::{number}/64 dev eth0 nodad", check=True)
        host.run(f"echo '{server6} server' >>/etc/hosts", check=True)


def export_to(cluster: BaseCluster, exports: dict[str, str]) -> None:
    """Directories to their clients, with blanks between these."""
    text = (f"{path} " + " ".join(client + OPTIONS for client in clients.split()) for path, clients in exports.items())
    cluster.server.write_file("/etc/exports", "\n".join(text) + "\n")
    cluster.server.run("exportfs -ra && exportfs -f", check=True)


def protocol_of(host: Host, target: str = SHARE) -> str:
    (line,) = mount_lines(host, target)
    return next(word[6:] for word in line.split(" ")[3].split(",") if word.startswith("proto="))


def unmounted(host: Host) -> None:
    done(host, "umount", "--all", "--yes")
    assert not mount_lines(host)


@pytest.fixture(scope="module")
def dual_cluster(lab_ready: None) -> Iterator[Cluster]:
    with Cluster() as cluster:
        give_both_families(cluster)
        cluster.start_nfs_server(exports=f"/srv/share {V4}{OPTIONS}\n")
        cluster.start_lock_daemons("node1")
        yield cluster


@pytest.fixture
def dual(dual_cluster: Cluster) -> Iterator[Cluster]:
    configure(dual_cluster, CONFIG.format(extra=""))
    yield dual_cluster
    unmounted(dual_cluster["node1"])


@pytest.mark.parametrize("clients", [V4, V6, f"{V4} {V6}"])
@pytest.mark.parametrize("extra", ["", ", options: [vers=3]"])
def test_mounted_by_the_address_that_lets_this_host_in(dual: Cluster, clients: str, extra: str) -> None:
    export_to(dual, {"/srv/share": clients})
    configure(dual, CONFIG.format(extra=extra))
    node = dual["node1"]
    assert sharefs(node, "probe", "server:/srv/share").ok
    for _ in range(2):  # the second time with what mountd and the kernel have kept of the first
        done(node, "mount", "--all", "--yes")
        assert protocol_of(node) == PROTO.get(clients, "tcp6")
        status = sharefs(node, "status")
        assert status.ok and " healthy " in status.out, status
        unmounted(node)


def test_of_two_exports_each_by_its_address(dual: Cluster) -> None:
    """One server, one name, and no family that serves both. By NFS 3: a client of 4.2 finds out that both addresses are one
    server, and stays with the first, whoever mounts."""
    dual.server.run("mkdir -p /srv/share/four /srv/share/six", check=True)
    export_to(dual, {"/srv/share/four": V4, "/srv/share/six": V6})
    more = '  six: {from: "storage:/srv/share/six", at: /data/six, options: [vers=3]}\n'
    configure(dual, CONFIG.format(extra=", options: [vers=3]").replace("/srv/share", "/srv/share/four") + more)
    node = dual["node1"]
    done(node, "mount", "--all", "--yes")
    assert (protocol_of(node), protocol_of(node, "/data/six")) == ("tcp", "tcp6")


def test_a_refusal_names_what_each_address_answered(dual: Cluster) -> None:
    export_to(dual, {"/srv/share": "10.77.0.99"})
    node = dual["node1"]
    said = sharefs(node, "mount", "--all", "--yes")
    assert said.returncode == 1 and "[SF203]" in said.err
    assert f"{SERVER6}: access denied by server, {SERVER4}: access denied by server" in said.err, said.err
    dual.server.run("ip -6 addr del fd00:77::1/64 dev eth0", check=True)
    try:
        said = sharefs(node, "mount", "--all", "--yes")
        assert f"({SERVER6}: " in said.err and f", {SERVER4}: access denied by server)" in said.err, said.err
        dual.stop_nfs_server()
        said = sharefs(node, "mount", "--all", "--yes", "--timeout", "3s")
        assert "[SF201]" in said.err and f"of {SERVER6}: " in said.err, said.err
        assert f", {SERVER4}: Connection refused" in said.err, said.err
    finally:
        dual.server.run("ip -6 addr add fd00:77::1/64 dev eth0 nodad", check=True)
        dual.start_nfs_server(exports=None)


@pytest.mark.parametrize("clients", [V4, V6])
def test_version_4_alone(dual: Cluster, clients: str) -> None:
    """No mountd that could be asked."""
    dual.stop_nfs_server()
    export_to(dual, {"/srv/share": clients})
    node = dual["node1"]
    try:
        dual.server.run("rpc.nfsd -N 3 -V 4 4 && rpc.mountd && pkill -x rpcbind", check=True)
        done(node, "mount", "--all", "--yes")
        assert protocol_of(node) == PROTO[clients]
        unmounted(node)
        export_to(dual, {"/srv/share": "10.77.0.99"})
        said = sharefs(node, "mount", "--all", "--yes")
        assert said.returncode == 1 and f"{SERVER6}: " in said.err and f"{SERVER4}: " in said.err, said.err
    finally:
        dual.stop_nfs_server()
        dual.server.run("rpc.nfsd -N 4 -V 3 -V 4 0; true")
        dual.start_nfs_server(exports=f"/srv/share {V4}{OPTIONS}\n")


@pytest.mark.parametrize("dead", [SERVER6, SERVER4])
def test_an_address_that_is_dead_holds_nothing_up(dual: Cluster, dead: str) -> None:
    """Its packets are lost, as those to a machine that is off."""
    export_to(dual, {"/srv/share": f"{V4} {V6}"})
    node = dual["node1"]
    family = "-6" if dead == SERVER6 else "-4"
    node.run(f"ip {family} neigh replace {dead} lladdr 02:00:00:00:00:99 dev eth0 nud permanent", check=True)
    try:
        probed = sharefs(node, "probe", "server", "--timeout", "8s")
        assert probed.ok and f"{dead}: no answer" in probed.out, probed
        done(node, "mount", "--all", "--yes", "--timeout", "8s")
        assert protocol_of(node) == ("tcp" if dead == SERVER6 else "tcp6")
    finally:
        node.run(f"ip {family} neigh del {dead} dev eth0", check=True)


@pytest.mark.parametrize("clients", [V4, V6])
def test_recovered_by_the_same_address(dual: Cluster, clients: str) -> None:
    export_to(dual, {"/srv/share": clients})
    node = dual["node1"]
    done(node, "mount", "--all", "--yes")
    dual.remake_filesystem("server")
    assert sharefs(node, "status").returncode == 1
    done(node, "recover", "--all", "--yes")
    assert protocol_of(node) == PROTO[clients]
    assert sharefs(node, "status").ok


@pytest.mark.parametrize("clients", [V4, V6])
def test_the_line_in_fstab_mounts_by_that_address(dual: Cluster, clients: str) -> None:
    export_to(dual, {"/srv/share": clients})
    configure(dual, CONFIG.format(extra=", boot: fstab"))
    node = dual["node1"]
    done(node, "mount", "--all", "--yes")
    node.run(f"umount {SHARE} && mount {SHARE}", check=True)
    assert protocol_of(node) == PROTO[clients]


def test_only_ipv6(lab: Cluster) -> None:
    give_both_families(lab)
    lab["node1"].run("sed -i '/^10.77.0.1 /d' /etc/hosts", check=True)
    lab.start_nfs_server(exports=f"/srv/share {V6}{OPTIONS}\n")
    configure(lab, CONFIG.format(extra=""))
    done(lab["node1"], "mount", "--all", "--yes")
    assert protocol_of(lab["node1"]) == "tcp6"


def test_a_link_local_address_in_place_of_a_name(lab: Cluster) -> None:
    """It is not complete without the interface of the host that uses it."""
    give_both_families(lab)
    lab.start_nfs_server(exports=f"/srv/share fe80::/10{OPTIONS}\n")
    node = lab["node1"]
    words = lab.server.run("ip -6 -o addr show dev eth0 scope link", check=True).out.split()
    address = words[words.index("inet6") + 1].split("/")[0] + "%eth0"
    configure(lab, CONFIG.format(extra="").replace("address: server", f'address: "{address}"'))
    done(node, "mount", "--all", "--yes")
    assert protocol_of(node) == "tcp6"
    for command in ("status", "doctor"):
        said = sharefs(node, command)
        assert said.ok and "SF2" not in said.out + said.err, said
    lab.remake_filesystem("server")
    assert "SF211" in sharefs(node, "status").err
    done(node, "recover", "--all", "--yes")
    assert sharefs(node, "status").ok
    assert sharefs(node, "probe", f"[{address}]:/srv/share").ok


def test_mounted_again_at_boot(boot_lab: KernelCluster) -> None:
    give_both_families(boot_lab)
    boot_lab.start_nfs_server(exports=f"/srv/share {V4}{OPTIONS}\n")
    node = boot_lab["node1"]
    configure(boot_lab, CONFIG.format(extra=", boot: unit"))
    done(node, "mount", "--all", "--yes")
    boot_lab.power_off(node)
    boot_lab.power_on(node)
    wait_until(lambda: node.run("ip link show eth0").ok, what="the network has its name")
    node.run("modprobe -q ipv6; ip -6 addr add fd00:77::2/64 dev eth0 nodad", check=True)
    systemd.wait_for_boot(node)
    systemd.wait_for_mount(node, SHARE)
    wait_until(lambda: mount_lines(node), what="the unit has mounted it")
    assert protocol_of(node) == "tcp"
