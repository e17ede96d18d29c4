"""Servers and networks that fail, over NFS 4.2."""

from __future__ import annotations

import shlex

from sharefslab import wait_until
from sharefslab.product import SHARE

from .bench import NAME, STATUS, Bench, Row, both, nothing, on_node, on_server
from .stand_in import replace_nfsd, withdraw

TITLE = "Servers and networks (NFS 4.2)"
VERSION = "4.2"

RECOVER = "sharefs recover --all --yes --timeout 2"
MOUNT = "sharefs mount --all --yes --timeout 2"
VERIFY = "sharefs status --verify --timeout 2"
WATCH = "sharefs watch --once"
PATIENT_DOCTOR = "sharefs doctor --json --timeout 15 --deadline 90"
DARK = "10.77.0.99"  # an address that nobody has


def cut(host: str, interface: str = "eth0") -> tuple:
    """The link goes down, and comes back."""
    run = on_server if host == "server" else on_node
    return run(f"ip link set {interface} down"), both(run(f"ip link set {interface} up"), Bench.know_each_other)


def _lose(host: str, percent: int) -> tuple:
    """Of what leaves the host."""
    run = on_server if host == "server" else on_node
    return run(f"tc qdisc add dev eth0 root netem loss {percent}%"), run("tc qdisc del dev eth0 root")


def _reboot(bench: Bench) -> None:
    bench.lab.reboot("server")
    bench.know_each_other()


def _start_again(bench: Bench) -> None:
    bench.server.run("sharefs export --all --yes", check=True)
    bench.end_grace()


def remake(bench: Bench) -> None:
    """As after a restored backup: the same file, in another file system."""
    bench.server.run("cp -a /srv/share/precious /local/", check=True)
    bench.lab.remake_filesystem("server")
    bench.server.run("chgrp ml /srv/share && chmod 2775 /srv/share && mv /local/precious /srv/share/", check=True)
    bench.end_grace()
    bench.wait_for("stale")


# The new file system has the old one's ACL again.
ACCESS = on_server("sharefs export --all --yes")

# A part of the share, mounted by hand beside it: what happens to it does not touch the file.
_PART = f"mkdir -p /mnt/part && mount -t nfs -o vers=4.2,actimeo=1,nosharecache {NAME}:/srv/share/part /mnt/part"


def _recreate(bench: Bench) -> None:
    bench.server.run("mkdir /srv/share/part", check=True)
    bench.node.run(_PART, check=True)
    bench.server.run("rmdir /srv/share/part && mkdir /srv/share/part", check=True)
    bench.node.run("for turn in $(seq 300); do stat /mnt/part/. >/dev/null 2>&1 || exit 0; sleep 0.1; done; exit 1", check=True)


def _drop_part(bench: Bench) -> None:
    bench.node.run("umount /mnt/part && rmdir /mnt/part", check=True)
    bench.server.run("rmdir /srv/share/part", check=True)


def _small(made: str, fill: str, gone: str = "true") -> tuple:
    """A second export that an administrator made and mounted by hand: what is small is soon full."""

    def breaks(bench: Bench) -> None:
        bench.server.run(
            f"set -e; mkdir /srv/small; {made}; chmod 1777 /srv/small; cp /etc/exports /local/exports.before && "
            "echo '/srv/small 10.77.0.2(rw,fsid=77,no_subtree_check)' >>/etc/exports && exportfs -ra",
            check=True,
        )
        bench.node.run(f"mkdir /mnt/small && mount -t nfs -o vers={bench.version} {NAME}:/srv/small /mnt/small", check=True)
        bench.server.run(fill, check=True)

    def restores(bench: Bench) -> None:
        bench.node.run("umount /mnt/small && rmdir /mnt/small", check=True)
        bench.server.run("cat /local/exports.before >/etc/exports; rm /local/exports.before; exportfs -ra; exportfs -f")
        bench.server.run(f"umount /srv/small && rmdir /srv/small && {gone}", check=True)

    return breaks, restores


_INODES = _small(
    "mount -t tmpfs -o nr_inodes=20,size=4m small /srv/small",
    "for n in $(seq 30); do : >/srv/small/$n; done 2>/dev/null; true",
)

# A limit of 100 KiB for all files of project 5, to which whatever is made there belongs; setquota(8) may not be installed.
_LIMIT = """
import ctypes, struct, sys
limit = struct.pack("=8QI4x", 100, 100, 0, 0, 0, 0, 0, 0, 1)  # QIF_BLIMITS
set_quota, project = 0x800008, 2
libc = ctypes.CDLL(None, use_errno=True)
if libc.quotactl(ctypes.c_int(set_quota << 8 | project), sys.argv[1].encode(), 5, limit):
    raise OSError(ctypes.get_errno(), sys.argv[1])
"""
_QUOTA = _small(
    "truncate -s 16M /local/small.img; mkfs.ext4 -q -F -O quota,project -E quotatype=prjquota,nodiscard /local/small.img; "
    "mount -o loop,prjquota /local/small.img /srv/small; rmdir /srv/small/lost+found; chattr +P -p 5 /srv/small; "
    f"/usr/bin/python3 -c {shlex.quote(_LIMIT)} $(findmnt -no SOURCE /srv/small)",
    # The rest, which is less than a page, by small files. Root is bound by no quota.
    "setpriv --reuid 2001 --regid 2001 --clear-groups bash -c 'cat /dev/zero >/srv/small/all; "
    "for n in {1..20}; do echo >/srv/small/$n; done; sync; true'",
    "rm /local/small.img",
)


def _narrow(bench: Bench) -> None:
    bench.server.run("sed -i 's/10.77.0.2/10.77.0.77/' /etc/exports.d/sharefs.exports && exportfs -ra", check=True)
    bench.wait_for("denied")


def _unexport(bench: Bench) -> None:
    bench.lab.remove_export("server")
    bench.wait_for("denied")


# The mount is made anew because the kernel counts, for as long as it lasts, what was sent in vain.
EXPORT = both(
    on_server("sharefs export --all --yes"),
    Bench.end_grace,
    lambda bench: bench.wait_for("healthy"),
    on_node(f"umount {SHARE} && {MOUNT}"),
)

# The name service: what /etc/hosts does not have is asked of a machine that nobody has.
_NO_DNS = f"cp /etc/hosts /local/hosts; grep -v {NAME} /local/hosts >/etc/hosts; cp /etc/resolv.conf /local/ 2>/dev/null; " + (
    f"echo nameserver {DARK} >/etc/resolv.conf"
)
_DNS = "cat /local/hosts >/etc/hosts; rm -f /etc/resolv.conf; mv /local/resolv.conf /etc/ 2>/dev/null; rm -f /local/hosts"


def _hosts(*addresses: str) -> str:
    lines = "".join(f"{address} {NAME}\\n" for address in addresses)
    return f"cp /etc/hosts /local/hosts; {{ printf '{lines}'; grep -v {NAME} /local/hosts; }} >/etc/hosts"


_HOSTS_BACK = "cat /local/hosts >/etc/hosts; rm /local/hosts"


def _flap(bench: Bench) -> None:
    for _ in range(3):
        bench.lab.freeze("server")
        bench.wait_for("hung")
        bench.lab.resume("server")
        bench.wait_for("healthy")


def _wait_in_background(bench: Bench) -> None:
    bench.node.run(f"umount {SHARE}", check=True)
    bench.server.run("rpc.nfsd 0", check=True)
    bench.node.run(f"mount -t nfs -o vers=4.2,bg {NAME}:/srv/share {SHARE}", check=True)


def _dirty(bench: Bench) -> None:
    """A writer whose pages cannot leave."""
    script = f"exec 9>{SHARE}/unwritten; head -c 1000000 /dev/zero >&9; echo in memory; exec sleep 600"
    bench.notes["writer"] = writer = bench.node.start(script, user="alice")
    wait_until(lambda: b"in memory" in writer.stdout(), what="the pages are dirty")
    bench.lab.freeze("server")


def _clean(bench: Bench) -> None:
    bench.notes["writer"].kill()
    bench.lab.resume("server")
    bench.node.run("sharefs mount --all --yes", check=True, timeout=90)
    bench.server.run("rm -f /srv/share/unwritten", check=True)


ROWS = [
    Row("server killed", lambda b: b.lab.kill("server"), both(_reboot, _start_again)),
    Row("server frozen", lambda b: b.lab.freeze("server"), lambda b: b.lab.resume("server"), command=RECOVER),
    Row("its link is down", *cut("server"), command=MOUNT),
    Row("this host's link is down", *cut("node1")),
    Row(
        "requests are lost, one way",
        _lose("node1", 100)[0],
        both(_lose("node1", 100)[1], on_node(MOUNT)),
        "sharefs umount share --yes --timeout 2",
        0,
        "missing",
        doctor=("SF217", "SF201"),
    ),
    Row("replies are lost, one way", *_lose("server", 100)),
    # Whether a packet of these was lost is a matter of chance. What was lost is remembered as long as it is mounted.
    Row(
        "30 % of all packets are lost",
        _lose("server", 30)[0],
        both(_lose("server", 30)[1], on_node(f"sharefs umount share --yes && {MOUNT}")),
        command="sharefs status --timeout 20",
        exits=0,
        state="-",
        doctor=(),
        may=("SF214",),
        asks=PATIENT_DOCTOR,
    ),
    Row(
        "300 ms there and back",
        lambda b: b.lab.latency("server", 300),
        lambda b: b.lab.latency("server", 0),
        command="sharefs status --timeout 20",
        exits=0,
        state="-",
        doctor=(),
        may=("SF214",),
        asks=PATIENT_DOCTOR,
    ),
    Row(
        "flapping server",
        _flap,
        nothing,
        command=RECOVER,
        exits=0,
        state="healthy",
        says="all mounts are well",
        doctor=(),
    ),
    Row("nfsd has no threads", on_server("rpc.nfsd 0"), Bench.serve, server=("SF603", "SF146")),
    Row(
        "port 2049 is not NFS",
        lambda b: replace_nfsd(b, "other"),
        withdraw,
        command=MOUNT,
    ),
    Row("accepts and never answers", lambda b: replace_nfsd(b, "silent"), withdraw),
    Row("connections are reset", lambda b: replace_nfsd(b, "reset"), withdraw),
    Row(
        "serves version 3 only",
        on_server("rpc.nfsd 0; rpc.nfsd -N 4 4"),
        Bench.serve,
        state="failed",
        doctor=("SF220",),
    ),
    Row(
        "rpc.mountd is gone",
        on_server("pkill -x rpc.mountd; while pgrep -x rpc.mountd; do :; done >/dev/null"),
        on_server("rpc.mountd"),
        exits=0,
        state="healthy",
        doctor=(),
        server=("SF603", "SF146"),
    ),
    Row(
        "rebooted, and nothing started",
        _reboot,
        both(on_server("sharefs doctor --fix --yes"), Bench.end_grace),
        server=("SF603", "SF146"),
    ),
    Row("file system made anew", remake, ACCESS, RECOVER, 0, "healthy", doctor=("SF211",), mended=True),
    Row("directory re-created", _recreate, _drop_part, RECOVER, 0, "healthy", doctor=("SF211",), mended=True),
    Row("unexported", _unexport, EXPORT, RECOVER, 1, "denied", doctor=("SF215",), server=("SF603",)),
    Row("export narrowed", _narrow, EXPORT, MOUNT, 1, "denied", doctor=("SF215",), server=("SF603",)),
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
        "its file system became read-only",
        # Refused as long as nfsd keeps a file open that a client wrote.
        both(on_server("rpc.nfsd 0 && mount -o remount,ro /srv/share && rpc.nfsd 4"), Bench.end_grace),
        on_server("mount -o remount,rw /srv/share"),
        VERIFY,
        1,
        "healthy",
        "[SF216]",
        doctor=(),
        server=("SF147",),
    ),
    Row(
        "disk full",
        on_server("fallocate -l 2G /srv/share/all; dd if=/dev/zero of=/srv/share/rest bs=4k status=none; true"),
        on_server("rm -f /srv/share/all /srv/share/rest"),
        exits=1,
        state="full",
        doctor=("SF230",),
    ),
    Row("quota used up", *_QUOTA, command=STATUS, exits=1, state="healthy", says="full", doctor=("SF230",)),
    Row("inodes full", *_INODES, command=STATUS, exits=1, state="healthy", says="full", doctor=("SF230",)),
    Row(
        "name service gone",
        on_node(_NO_DNS),
        on_node(_DNS),
        exits=0,
        state="healthy",
        doctor=("SF201",),
    ),
    Row(
        "name service gone, and unmounted",
        on_node(f"umount {SHARE}; {_NO_DNS}"),
        on_node(f"{_DNS}; sharefs mount --all --yes"),
        MOUNT,
        1,
        "missing",
        doctor=("SF217", "SF201"),
    ),
    Row(
        "its name has another address",
        both(on_server("ip addr add 10.77.0.9/24 dev eth0"), on_node(_hosts("10.77.0.9"))),
        both(on_node(_HOSTS_BACK), on_server("ip addr del 10.77.0.9/24 dev eth0")),
        exits=0,
        state="healthy",
        doctor=("SF232",),
    ),
    Row(
        "two addresses, one dead",
        on_node(f"umount {SHARE}; {_hosts(DARK, '10.77.0.1')}"),
        on_node(_HOSTS_BACK),
        MOUNT,
        0,
        "healthy",
        doctor=("SF217",),
        mended=True,
    ),
    Row(
        "a mount.nfs waits",
        _wait_in_background,
        both(on_node("pkill -x mount.nfs"), Bench.serve, on_node(f"{MOUNT}")),
        MOUNT,
        1,
        "backgrounding",
        doctor=("SF218",),
    ),
    Row(
        "dirty pages at umount --force",
        _dirty,
        _clean,
        "sharefs umount share --force --lazy --yes --timeout 2",
        0,
        "missing",
        says="data that was not yet written is lost",
        doctor=("SF217", "SF201"),
    ),
    # What the daemon does of its own accord, by its default policy; test_watch.py has the rest.
    Row("server frozen, watched", lambda b: b.lab.freeze("server"), lambda b: b.lab.resume("server"), WATCH, 1, "hung", "waits"),
    Row("file system made anew, watched", remake, ACCESS, WATCH, 0, "healthy", doctor=("SF211",), mended=True),
    Row(
        "its recovery was cut off, watched",
        both(remake, lambda b: b.node.run(RECOVER, env={"SHAREFS_TEST_KILL_AT": "0+"})),
        ACCESS,
        WATCH,
        0,
        "healthy",
        "cut off",
        doctor=("SF217", "SF604"),
        mended=True,
    ),
    Row("unexported, watched", _unexport, EXPORT, WATCH, 1, "denied", doctor=("SF215",)),
    Row(
        "unmounted by hand, watched",
        on_node(f"umount {SHARE}"),
        on_node(MOUNT),
        WATCH,
        1,
        "missing",
        "nothing of sharefs was cut off",
        doctor=("SF217",),
    ),
]
