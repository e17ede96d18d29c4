"""Servers that fail, over NFS 3, which has a portmapper, mountd and lock daemons of its own."""

from __future__ import annotations

from sharefslab.product import SHARE

from .bench import LATE, STATUS, Bench, Row, both, on_node, on_server
from .servers import ACCESS, EXPORT, RECOVER, VERIFY, cut, remake
from .stand_in import replace_nfsd, withdraw

TITLE = "Servers that fail (NFS 3)"
VERSION = "3"

MOUNT = "sharefs mount --all --yes --timeout 2"
SECOND = "10.77.0.9"  # an address of the server that goes away
MANY = 100

# Without mount.nfs, which takes fifty times as long: each is a superblock of its own.
_MOUNT_MANY = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for number in range({MANY}):
    for address in ("10.77.0.1", "{SECOND}"):
        target = f"/mnt/many/{{address}}/{{number}}"
        os.makedirs(target)
        options = f"vers=3,addr={{address}},mountaddr={{address}},mountproto=tcp,proto=tcp,nolock,nosharecache,hard"
        if libc.mount(f"{{address}}:/srv/share".encode(), target.encode(), b"nfs", 0, options.encode()):
            raise OSError(ctypes.get_errno(), target)
"""

# umount(8) would say goodbye to mountd 200 times.
_UNMOUNT_MANY = """
import ctypes, glob, os
libc = ctypes.CDLL(None, use_errno=True)
for target in glob.glob("/mnt/many/*/*"):
    if libc.umount2(target.encode(), 2):
        raise OSError(ctypes.get_errno(), target)
    os.rmdir(target)
for directory in [*glob.glob("/mnt/many/*"), "/mnt/many"]:
    os.rmdir(directory)
"""


def _many(bench: Bench) -> None:
    bench.server.run(f"ip addr add {SECOND}/24 dev eth0", check=True)
    bench.node.run(["/usr/bin/python3", "-c", _MOUNT_MANY], check=True)
    bench.server.run(f"ip addr del {SECOND}/24 dev eth0", check=True)


def _not_many(bench: Bench) -> None:
    bench.server.run(f"ip addr add {SECOND}/24 dev eth0", check=True)
    bench.node.run(["/usr/bin/python3", "-c", _UNMOUNT_MANY], check=True, timeout=LATE)
    bench.server.run(f"ip addr del {SECOND}/24 dev eth0", check=True)


_NO_STATD = "pkill -x rpc.statd; while pgrep -x rpc.statd; do :; done >/dev/null"

ROWS = [
    Row("server frozen", lambda b: b.lab.freeze("server"), lambda b: b.lab.resume("server")),
    Row(
        "link down, and umount",
        cut("server")[0],
        both(cut("server")[1], on_node(MOUNT)),
        "sharefs umount share --yes --timeout 2",
        0,
        "missing",
        doctor=("SF217", "SF201"),
    ),
    Row("nfsd has no threads", on_server("rpc.nfsd 0"), Bench.serve, RECOVER, server=("SF603", "SF146")),
    Row("accepts and never answers", lambda b: replace_nfsd(b, "silent"), withdraw, MOUNT),
    Row("serves version 4 only", on_server("rpc.nfsd 0; rpc.nfsd -N 3 4"), Bench.serve, state="failed", doctor=("SF220",)),
    Row(
        "rpc.mountd is gone",
        on_server("pkill -x rpc.mountd; while pgrep -x rpc.mountd; do :; done >/dev/null"),
        on_server("rpc.mountd"),
        exits=0,
        state="healthy",
        doctor=("SF204",),
        server=("SF603", "SF146"),
    ),
    Row(
        "rpcbind is gone",
        on_server("pkill -x rpcbind; while pgrep -x rpcbind; do :; done >/dev/null"),
        on_server("pkill -x rpc.mountd; pkill -x rpc.statd; rpcbind -w; rpc.statd; rpc.nfsd 0; rpc.nfsd 4; rpc.mountd; exportfs -ra"),
        exits=0,
        state="healthy",
        doctor=("SF204",),
        server=("SF603", "SF146"),
    ),
    Row(
        "rpc.statd of the server is gone",
        on_server(_NO_STATD),
        on_server("rpc.statd"),
        exits=0,
        state="healthy",
        doctor=(),
        server=("SF603", "SF146"),
    ),
    Row(
        "rpc.statd of this host is gone",
        on_node(_NO_STATD),
        on_node("rpc.statd"),
        exits=0,
        state="healthy",
        doctor=("SF245",),
    ),
    Row("file system made anew", remake, ACCESS, RECOVER, 0, "healthy", doctor=("SF211",), mended=True),
    Row(
        "exported read-only",
        on_server("sed -i s/rw/ro/ /etc/exports.d/sharefs.exports && exportfs -ra"),
        EXPORT,
        VERIFY,
        1,
        "healthy",
        "[SF216]",
        doctor=(),
        server=("SF603",),
    ),
    Row(
        "rpcbind is gone, and unmounted",
        both(on_node(f"umount {SHARE}"), on_server("pkill -x rpcbind; while pgrep -x rpcbind; do :; done >/dev/null")),
        both(
            on_server("pkill -x rpc.mountd; pkill -x rpc.statd; rpcbind -w; rpc.statd; rpc.nfsd 0; rpc.nfsd 4; rpc.mountd; exportfs -ra"),
            on_node(MOUNT),
        ),
        MOUNT,
        1,
        "missing",
        doctor=("SF217", "SF204"),
    ),
    Row(f"{2 * MANY} mounts, half of them hung", _many, _not_many, f"{STATUS} --json", 1, "healthy", doctor=("SF212",)),
]
