"""What clients of version 3 and 4.2 really may do where that is not what the exports say, and that `export check` and
`export` know it. The numbers are those of the project's list of known differences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from sharefslab import Cluster, Host
from sharefslab.product import CONFIG_PATH, document, sharefs

OUTER = "/srv/share"
INNER = "/srv/share/inner"
VERSIONS = ("3", "4.2")


@pytest.fixture(scope="module")
def cluster(lab_ready: None) -> Iterator[Cluster]:
    with Cluster(hosts=("server", "node1", "node2")) as cluster:
        server = cluster.server
        server.run(f"chmod 1777 {OUTER} && mkdir -m 1777 {INNER} {OUTER}/plain {OUTER}/both && ln -s share/inner /srv/link",
                   check=True)
        server.run("printf '10.77.0.2 both.lab\\n10.77.0.3 both.lab alias.lab\\n' >>/etc/hosts", check=True)
        cluster.start_nfs_server(exports="")
        yield cluster


def export(cluster: Cluster, text: str) -> list[tuple[str, str]]:
    """The exports are put into force; what `export check` says of them."""
    cluster.server.write_file("/etc/exports", text)
    cluster.server.run("exportfs -ra", check=True)
    found = document(sharefs(cluster.server, "export", "check", "--json"))["diagnoses"]
    return [(one["code"], one["severity"]) for one in found if one["code"] not in ("SF136", "SF115")]


def may(node: Host, path: str, version: str) -> str:
    """"rw", "ro", or "" where the mount is refused."""
    mounted = f"mount -t nfs -o vers={version},nolock,soft,timeo=50,retrans=1,nosharecache 10.77.0.1:{path} /mnt/x"
    if not node.run(f"mkdir -p /mnt/x; {mounted}").ok:
        return ""
    try:
        name = PurePosixPath("/mnt/x") / f"{node.name}-{version}"
        return "rw" if node.run(f"touch {name} && rm {name}").ok else "ro"
    finally:
        node.run("umount -l /mnt/x", check=True)


def rights(node: Host, path: str) -> dict[str, str]:
    return {version: may(node, path, version) for version in VERSIONS}


def test_1_a_host_with_an_address_of_a_name(cluster: Cluster) -> None:
    node1, node2 = cluster["node1"], cluster["node2"]
    said = export(cluster, f"{OUTER}/both both.lab(rw)\n{OUTER}/plain 10.77.0.3(rw)\n")
    assert rights(node1, f"{OUTER}/plain") == {"3": "rw", "4.2": "rw"}  # .2, for whom it is not written
    assert said == [("SF144", "error")]
    # as the hint has it
    assert export(cluster, f"{OUTER}/both both.lab(rw)\n{OUTER}/plain 10.77.0.3/32(rw)\n") == []
    assert rights(node1, f"{OUTER}/plain") == {"3": "", "4.2": ""}
    assert rights(node2, f"{OUTER}/plain") == {"3": "rw", "4.2": "rw"}
    assert rights(node1, f"{OUTER}/both") == {"3": "rw", "4.2": "rw"}


def test_1_a_name_with_the_address_of_a_host(cluster: Cluster) -> None:
    said = export(cluster, f"{OUTER}/plain 10.77.0.3(rw)\n{OUTER}/both both.lab(rw)\n")
    assert rights(cluster["node1"], f"{OUTER}/both") == {"3": "", "4.2": ""}
    assert rights(cluster["node2"], f"{OUTER}/both") == {"3": "rw", "4.2": "rw"}
    assert said == [("SF144", "warning")]


def test_1_an_alias_of_a_name_with_several_addresses(cluster: Cluster) -> None:
    """etab has the canonical name, and mountd looks that up."""
    said = export(cluster, f"{OUTER}/plain alias.lab(rw)\n")
    assert rights(cluster["node1"], f"{OUTER}/plain") == {"3": "rw", "4.2": "rw"}
    assert said == [("SF144", "error")]


@pytest.mark.parametrize("root", ["", ",fsid=0"])
def test_2_nested_exports_of_one_file_system(cluster: Cluster, root: str) -> None:
    node = cluster["node1"]
    inner = {"3": INNER, "4.2": "/inner" if root else INNER}

    def inside() -> dict[str, str]:
        return {version: may(node, inner[version], version) for version in VERSIONS}

    said = export(cluster, f"{OUTER} 10.77.0.2(rw{root})\n{INNER} 10.77.0.2(ro)\n")
    assert inside() == {"3": "ro", "4.2": "rw"}
    assert said == [("SF143", "error")]
    said = export(cluster, f"{OUTER} 10.77.0.0/24(ro{root})\n{INNER} 10.77.0.2(rw)\n")
    assert inside() == {"3": "rw", "4.2": "ro"}
    assert said == [("SF143", "warning")]
    assert export(cluster, f"{OUTER} 10.77.0.2(rw{root})\n{INNER} 10.77.0.2(rw)\n") == []
    assert inside() == {"3": "rw", "4.2": "rw"}
    if root:  # mountd, which a service at boot asks too, knows no /inner
        said = sharefs(node, "probe", "--until-ready", "--timeout=15s", "10.77.0.1:/inner")
        assert said.returncode == 0, said


def test_2_a_client_of_the_inner_export_only_gets_that(cluster: Cluster) -> None:
    assert export(cluster, f"{OUTER} 10.77.0.3(rw)\n{INNER} 10.77.0.2(ro)\n") == []
    assert rights(cluster["node1"], INNER) == {"3": "ro", "4.2": "ro"}


def test_2_a_file_system_of_its_own_has_its_own_rights(cluster: Cluster) -> None:
    cluster.server.run(f"mount -t tmpfs -o mode=1777 none {INNER}", check=True)
    try:
        assert export(cluster, f"{OUTER} 10.77.0.2(rw)\n{INNER} 10.77.0.2(ro,fsid=5)\n") == []
        assert rights(cluster["node1"], INNER) == {"3": "ro", "4.2": "ro"}
    finally:
        cluster.server.run(f"exportfs -ua; exportfs -f; umount -l {INNER}", check=True)


def test_3_an_export_path_that_is_a_link(cluster: Cluster) -> None:
    said = export(cluster, "/srv/link 10.77.0.2(rw)\n")
    assert rights(cluster["node1"], "/srv/link") == {"3": "rw", "4.2": ""}
    assert rights(cluster["node1"], INNER) == {"3": "rw", "4.2": "rw"}
    assert said == [("SF142", "warning")]


def test_5_a_line_of_etab_that_mountd_cannot_read(cluster: Cluster) -> None:
    """The export behind it is gone, too."""
    said = export(cluster, f'{INNER} "10.77.0.2(rw,mp=/a b)"\n{OUTER}/plain 10.77.0.2(rw)\n')
    assert rights(cluster["node1"], INNER) == {"3": "", "4.2": ""}
    assert ("SF141", "error") in said


@pytest.mark.parametrize("fs_type", ["tmpfs"])
def test_5_a_file_system_in_memory_without_fsid(cluster: Cluster, fs_type: str) -> None:
    cluster.server.run(f"mount -t {fs_type} -o mode=1777 none {INNER}", check=True)
    try:
        said = export(cluster, f"{INNER} 10.77.0.2(rw)\n")
        assert rights(cluster["node1"], INNER) == {"3": "rw", "4.2": "rw"}
        assert said == [("SF124", "warning")]
    finally:
        cluster.server.run(f"exportfs -ua; exportfs -f; umount -l {INNER}", check=True)


EXPORTS = """\
version: 1
servers:
  storage:
    address: 10.77.0.1
    exports:
"""


@pytest.mark.parametrize(("code", "rows"), [
    ("SF144", [(f"{OUTER}/both", "both.lab", "rw"), (f"{OUTER}/plain", "10.77.0.3", "rw")]),
    ("SF143", [(OUTER, "10.77.0.2", "rw"), (INNER, "10.77.0.2", "ro")]),
])
def test_sharefs_exports_nothing_that_reaches_further(cluster: Cluster, code: str, rows: list[tuple[str, str, str]]) -> None:
    export(cluster, "")
    cluster.server.write_file(CONFIG_PATH, EXPORTS + "".join(
        f"      - {{path: {path}, clients: [{client}], options: [{options}]}}\n" for path, client, options in rows))
    refused = sharefs(cluster.server, "export", "--all", "--yes")
    assert not refused.ok
    assert code in refused.err
    assert cluster.server.read_text("/var/lib/nfs/etab") == ""
