"""NFS servers made by hand, for tests that need one that sharefs did not make."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from .host import Host
from .wait import wait_until

SHARE = "/srv/share"
DEFAULT_EXPORTS = f"{SHARE} *(rw,sync,no_root_squash,no_subtree_check)\n"

# What NFSv3 needs for locks, on servers and on clients.
_LOCK_DAEMONS = """
pgrep -x rpcbind >/dev/null || rpcbind -w
pgrep -x rpc.statd >/dev/null || rpc.statd
"""

# The order matters: nfsdcld and rpc_pipefs well before rpc.nfsd, or one start in twelve waits for its grace
# period of 10 s or more.
_START = """
mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs sunrpc /run/rpc_pipefs
pgrep -x nfsdcld >/dev/null || nfsdcld
{lock_daemons}
exportfs -ra
rpc.nfsd {threads}
pgrep -x rpc.mountd >/dev/null || rpc.mountd
"""

# Refused if the grace period is over already, as that of a server that never had clients.
_END_GRACE = "echo Y >/proc/fs/nfsd/v4_end_grace || true\n"

# nfsd first: without its exports it would call every handle stale. A start finds no mountd that is about to end.
_STOP = """
rpc.nfsd 0
exportfs -ua
pkill -x rpc.mountd
while pgrep -x rpc.mountd >/dev/null; do sleep 0.05; done
exportfs -f
"""

# Takes one lock of each version: lockd and nfsd let nobody lock in the first seconds of a server.
_WARM_LOCKS = """
directory=$(mktemp -d)
for version in 3 4.2; do
    mount -t nfs -o vers=$version,nosharecache {source} "$directory"
    exec 9>"$directory/.lab-lock"
    flock 9
    exec 9>&-
    rm -f "$directory/.lab-lock"
    umount "$directory"
done
rmdir "$directory"
"""


def exports_text(exports: str | Mapping[str, str]) -> str:
    """`exports` is the text of /etc/exports, or directories with their clients and options."""
    if isinstance(exports, str):
        return exports if exports.endswith("\n") else exports + "\n"
    return "".join(f"{directory} {clients}\n" for directory, clients in exports.items())


def start_server(server: Host, exports: str | Mapping[str, str] | None, threads: int, end_grace: bool) -> None:
    if exports is not None:
        server.write_file("/etc/exports", exports_text(exports))
    script = "set -e\n" + _START.format(lock_daemons=_LOCK_DAEMONS, threads=threads)
    if end_grace:
        script += _END_GRACE
    server.run(script, check=True)


def stop_server(server: Host) -> None:
    server.run(_STOP)


def is_serving(server: Host) -> bool:
    return server.run("[[ -r /proc/fs/nfsd/threads ]] && (($(</proc/fs/nfsd/threads) > 0))").ok


def start_lock_daemons(client: Host) -> None:
    client.run("set -e\n" + _LOCK_DAEMONS, check=True)


def warm_locks(client: Host, source: str, timeout: float) -> None:
    script = "set -e\n" + _LOCK_DAEMONS + _WARM_LOCKS.format(source=shlex.quote(source))
    client.run(script, timeout=timeout, check=True)


def exported_clients(server: Host, path: str) -> list[str]:
    """The clients that `path` is exported to now, as etab names them."""
    clients = []
    for line in server.read_text("/var/lib/nfs/etab").splitlines():
        directory, _, client = line.partition("\t")
        if directory == path:
            clients.append(client.partition("(")[0])
    return clients


def remove_export(server: Host, path: str) -> None:
    for client in exported_clients(server, path):
        server.run(["exportfs", "-u", f"{client}:{path}"], check=True)
    wait_until(lambda: not exported_clients(server, path), what=f"{path} is no longer exported")
