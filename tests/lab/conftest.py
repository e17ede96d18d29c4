"""Fixtures: `lab` gives each test fresh hosts in a guest, `kernel_lab` separate kernels, `boot_lab` systemd, too.

`idle_lab` and `mounted_lab` are one cluster for the tests of a file that leave it as it was: a new one costs some seconds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sharefslab import BaseCluster, Cluster, KernelCluster, missing_prerequisites  # noqa: E402
from sharefslab.attack import attacked_cluster  # noqa: E402
from sharefslab.cluster import DEFAULT_HOSTS, is_server  # noqa: E402
from sharefslab.fleet import fleet_with_exports, unmounted  # noqa: E402
from sharefslab.paths import program_under_test  # noqa: E402
from sharefslab.product import configure, export_and_mount, mount_lines  # noqa: E402

_CLUSTER = pytest.StashKey[BaseCluster]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "lab_hosts(*names): the hosts of this test's cluster")


@pytest.fixture(scope="session")
def lab_ready() -> None:
    """Without the lab, tests fail: a silent skip would look like success."""
    if os.environ.get("SHAREFS_SKIP_LAB") == "1":
        pytest.skip("SHAREFS_SKIP_LAB=1")
    missing = missing_prerequisites()
    if missing:
        pytest.fail("the lab lacks: " + ", ".join(missing) + "; run scripts/setup.sh --lab", pytrace=False)


def _hosts(request: pytest.FixtureRequest, default: tuple[str, ...] = DEFAULT_HOSTS) -> tuple[str, ...]:
    marker = request.node.get_closest_marker("lab_hosts")
    return marker.args if marker else default


@pytest.fixture(scope="module")
def shipped_program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The program under test as a package has it, without symbols: for tests that send it from host to host."""
    directory = tmp_path_factory.mktemp("program")
    directory.chmod(0o755)
    program = program_under_test()
    assert program, "nothing was built yet"
    subprocess.run(["strip", "-o", directory / "sharefs", program], check=True)
    shutil.copytree(program.parent / "share", directory / "share")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHAREFS_BIN", os.fspath(directory / "sharefs"))
        yield


@pytest.fixture
def lab(request: pytest.FixtureRequest, lab_ready: None) -> Iterator[Cluster]:
    """A fresh cluster: hosts server, node1, node2, or those of the marker lab_hosts. Nothing is started.

    In a guest of its own, which costs two seconds: no test sees what another left in the kernel.
    """
    with Cluster(hosts=_hosts(request)) as cluster:
        request.node.stash[_CLUSTER] = cluster
        yield cluster


@pytest.fixture(scope="class")
def shared_lab(lab_ready: None) -> Iterator[Cluster]:
    """One cluster for all tests of a class: for those that neither serve nor mount, and leave the hosts as they were."""
    with Cluster(hosts=DEFAULT_HOSTS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def cluster_of_file(lab_ready: None) -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def idle_lab(request: pytest.FixtureRequest, cluster_of_file: Cluster) -> Cluster:
    """As `lab`, but one for all tests of a file that ask for it: for those that neither serve nor mount, and leave the
    hosts as they were but for sharefs.yaml."""
    return _again(request, cluster_of_file)


@pytest.fixture(scope="module")
def mounted_cluster_of_file(lab_ready: None) -> Iterator[Cluster]:
    with Cluster() as cluster:
        export_and_mount(cluster)
        yield cluster


@pytest.fixture
def mounted_lab(request: pytest.FixtureRequest, mounted_cluster_of_file: Cluster) -> Iterator[Cluster]:
    """As `lab` after export_and_mount(), but one for all tests of a file that ask for it: for those that leave the
    export and the mounts as they were, and each work in files of its own."""
    cluster = _again(request, mounted_cluster_of_file)
    configure(cluster)
    mounts = [mount_lines(node) for node in cluster.nodes]
    yield cluster
    assert [mount_lines(node) for node in cluster.nodes] == mounts, "this test needs a cluster of its own"


def _again(request: pytest.FixtureRequest, cluster: Cluster) -> Cluster:
    """A cluster that an earlier test has worked with, whose commands are not those of this one."""
    for host in cluster:
        host.log.clear()
    request.node.stash[_CLUSTER] = cluster
    return cluster


@pytest.fixture(scope="module")
def attacked(lab_ready: None) -> Iterator[Cluster]:
    """One cluster for all attacks of a file (see sharefslab.attack)."""
    with attacked_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def fleet_of_file(lab_ready: None, shipped_program: None) -> Iterator[Cluster]:
    with fleet_with_exports() as cluster:
        yield cluster


@pytest.fixture
def fleet(request: pytest.FixtureRequest, fleet_of_file: Cluster) -> Iterator[Cluster]:
    """A server that reaches four nodes by ssh, one for all tests of a file, with nothing mounted before and after."""
    yield _again(request, fleet_of_file)
    unmounted(fleet_of_file)


@pytest.fixture
def kernel_lab(request: pytest.FixtureRequest, lab_ready: None) -> Iterator[KernelCluster]:
    """As `lab`, but each host has a kernel of its own: for power loss and frozen machines. Needs root."""
    with KernelCluster(hosts=_hosts(request)) as cluster:
        request.node.stash[_CLUSTER] = cluster
        yield cluster


@pytest.fixture
def boot_lab(request: pytest.FixtureRequest, lab_ready: None) -> Iterator[KernelCluster]:
    """As `kernel_lab`, but hosts server and node1, and each node boots a Debian of its own with systemd."""
    hosts = _hosts(request, ("server", "node1"))
    with KernelCluster(hosts=hosts, systemd=[name for name in hosts if not is_server(name)]) as cluster:
        request.node.stash[_CLUSTER] = cluster
        yield cluster


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Adds what was done on each host to the report of a failed test."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    cluster = item.stash.get(_CLUSTER, None)
    if report.when == "call" and report.failed and cluster:
        for host in cluster:
            if host.log:
                report.sections.append((f"commands on {host.name}", host.history()))
