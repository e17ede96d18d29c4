"""The nodes of a hostfile are asked over ssh before anything starts: sharefs, ssh and mpiexec are the real ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from conftest import need_programs
from launcherslab.hosts import SshHosts
from launcherslab.isolation import LOCAL, SHARED
from launcherslab.printer import printed
from launcherslab.sharefs import Sharefs

COMMAND = ["mpiexec.hydra", "-f", "hosts", "-n", "2", "/usr/bin/python3", "./train.py", "--cache_dir", str(SHARED / "c")]


@pytest.fixture(scope="module")
def hosts(sharefs: Sharefs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    need_programs("mpiexec.hydra", "sshd", "ssh")
    cluster = SshHosts(tmp_path_factory.mktemp("hosts"))
    (sharefs.directory / "hosts").write_text("node1\nnode2\n")
    yield cluster
    cluster.close()


def on_node2(sharefs: Sharefs, script: str) -> None:
    ran = sharefs.run(["ssh", "node2", script])
    assert ran.returncode == 0, ran.stderr


def launch(sharefs: Sharefs, *options: str) -> CompletedProcess[str]:
    return sharefs.run([*sharefs.command(*options), *COMMAND])


def hosts_of(ran: CompletedProcess[str]) -> set[str]:
    return {process.host for process in printed(ran.stdout)}


@pytest.fixture(params=["-o ro tmpfs", "-o size=64k,mode=1777 tmpfs", "-o mode=0777 tmpfs", "--bind /proc"])
def bad_node(sharefs: Sharefs, hosts: SshHosts, request: pytest.FixtureRequest) -> Iterator[None]:
    """One node whose local directory holds no caches: read-only, too small, without a sticky bit, not to write in."""
    kind = "" if "--bind" in request.param else "-t tmpfs "
    on_node2(sharefs, f"mount {kind}{request.param} {LOCAL}")
    yield
    on_node2(sharefs, f"umount {LOCAL}")


def test_a_node_that_cannot_hold_the_caches_is_named_and_nothing_starts(sharefs: Sharefs, bad_node: None) -> None:
    ran = launch(sharefs)
    assert ran.returncode == 125
    assert "node2: " in ran.stderr and "SF416" in ran.stderr and "node1: " not in ran.stderr
    assert hosts_of(ran) == set()


def test_it_starts_all_the_same_where_that_is_asked_for(sharefs: Sharefs, bad_node: None) -> None:
    ran = launch(sharefs, "--no-preflight")
    assert ran.returncode == 0, ran.stderr
    assert hosts_of(ran) == {"node1", "node2"}


def test_good_nodes(sharefs: Sharefs, hosts: SshHosts) -> None:
    ran = launch(sharefs, "--explain")
    assert ran.returncode == 0, ran.stderr
    assert "node1 can hold the caches" in ran.stderr and "node2 can hold the caches" in ran.stderr
    assert hosts_of(ran) == {"node1", "node2"}


def test_a_missing_directory_is_made_for_all_users_and_the_own_one_for_one(
    sharefs: Sharefs, hosts: SshHosts, tmp_path: Path
) -> None:
    config = tmp_path / "sharefs.yaml"
    config.write_text(f"version: 1\ncaches:\n  local: {LOCAL}/new/cache\n")
    on_node2(sharefs, f"mount -t tmpfs -o mode=1777 tmpfs {LOCAL}")
    ran = sharefs.run([str(sharefs.binary), "--config", str(config), "run", "--", *COMMAND], umask=0o077)
    modes = sharefs.run(["ssh", "node2", f"cd {LOCAL}/new && stat -c %a . cache cache/root"]).stdout.split()
    on_node2(sharefs, f"umount {LOCAL}")
    assert ran.returncode == 0, ran.stderr
    assert modes == ["755", "1777", "700"], ran.stderr
    assert [format((LOCAL / "new" / path).stat().st_mode & 0o7777, "o") for path in ("cache", "cache/root")] == modes[1:]


def test_a_node_that_does_not_answer_is_a_warning(sharefs: Sharefs, hosts: SshHosts, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("node1\n10.77.9.9\n")  # nobody has this address
    command = [word if word != "hosts" else str(tmp_path / "hosts") for word in COMMAND]
    ran = sharefs.run([*sharefs.command("--strict"), *command])
    assert ran.returncode == 125
    assert "10.77.9.9: could not be asked" in ran.stderr and "SF417" in ran.stderr
