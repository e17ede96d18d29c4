"""Faults of the node itself, of its files, and of the run of sharefs; the server is well."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

from sharefslab import wait_until
from sharefslab.host import Completed
from sharefslab.product import CONFIG_PATH, SHARE

from .bench import DOCTOR, LATE, NAME, STATUS, Bench, Broken, Row, both, nothing, on_node, on_server

TITLE = "This host (NFS 4.2)"
VERSION = "4.2"

MOUNT = "sharefs mount --all --yes --timeout 2"
UMOUNT = "sharefs umount share --yes --timeout 5"
RECOVER = "sharefs recover --all --yes --timeout 2"
EXPORT = "sharefs export --all --yes"
STATE = "/var/lib/sharefs"

_UNMOUNTED = on_node(f"umount {SHARE}")
_MOUNTED = on_node(MOUNT)


def _instead(made: str) -> Callable[[Bench], Any]:
    """Something else in the place of the mount point."""
    return on_node(f"umount {SHARE} && rmdir {SHARE} && {made}")


def _as_it_was(unmade: str) -> Callable[[Bench], Any]:
    return on_node(f"{unmade} && mkdir -p {SHARE} && {MOUNT}")


def _as_alice(script: str) -> Callable[[Bench], Completed]:
    """Root of the node is nobody on the share."""
    return lambda bench: bench.node.run(script, user="alice", check=True)


# Mounts


def _hold(bench: Bench) -> None:
    bench.notes["holder"] = holder = bench.node.start(["sleep", "600"], cwd=SHARE)
    wait_until(lambda: bench.node.run(f"readlink /proc/[0-9]*/cwd | grep -qx {SHARE}").ok, what=f"{holder.command} holds it")


def _let_go(bench: Bench) -> None:
    bench.notes["holder"].kill()
    bench.notes["holder"].wait_or_kill()


_BELOW = f"{SHARE}/below"
_NESTED = both(_as_alice(f"mkdir {_BELOW}"), on_node(f"mount -t tmpfs -o size=1m nested {_BELOW}"))
_NOT_NESTED = both(on_node(f"umount {_BELOW}"), _as_alice(f"rmdir {_BELOW}"))

# Names that mountinfo writes with escapes: a blank, a tab, a line feed, a backslash, and bytes that are no UTF-8.
_STRANGE = r"d=$(printf '/mnt/a b\tc\nd\\040e\377')"

# Runs that are cut off


def killed_at_each_step(command: str, then: str) -> Callable[[Bench], Completed]:
    """Before and after each step of the command; after each, doctor has to say that a run was cut off, and the same
    command completes it. `then` makes it possible again."""

    def run(bench: Bench) -> Completed:
        host = bench.node if "export" not in command else bench.server
        host.run(then)
        for step in range(12):
            for after in ("", "+"):
                killed = host.run(f"exec {command}", env={"SHAREFS_TEST_KILL_AT": f"{step}{after}"}, timeout=LATE)
                if killed.returncode != -signal.SIGKILL:
                    if step == 0:
                        raise Broken(f"not killed at its first step:\n{killed}")
                    return killed
                ended = host.run(command, timeout=LATE)
                if ended.returncode != 0:
                    raise Broken(f"killed at {step}{after}, and then:\n{ended}")
                host.run(then, check=True, timeout=LATE)
        raise Broken("there is no end of its steps")

    return run


def cut_off(command: str) -> Callable[[Bench], Any]:
    return lambda bench: bench.node.run(f"{command} >/dev/null 2>&1", env={"SHAREFS_TEST_KILL_AT": "0+"}, timeout=LATE)


_SLOW = "#!/bin/sh\ntouch /tmp/begun\nexec sleep 1000\n"


def signalled(number: int) -> Callable[[Bench], Completed]:
    """In the middle of a mount whose mount.nfs hangs."""

    def run(bench: Bench) -> Completed:
        job = bench.node.start(f"exec {MOUNT}")
        wait_until(lambda: bench.node.exists("/tmp/begun"), what="mount.nfs is running")
        job.kill(number)
        return job.wait_or_kill(LATE)

    return run


def _slow_mount(bench: Bench) -> None:
    bench.node.run(f"umount {SHARE}", check=True)
    bench.node.write_file("/local/slow", _SLOW, mode=0o755)
    bench.node.run("mount --bind /local/slow /usr/sbin/mount.nfs", check=True)


_NOT_SLOW = on_node(f"umount /usr/sbin/mount.nfs && rm /local/slow /tmp/begun && {MOUNT}")


def twice(bench: Bench) -> Completed:
    jobs = [bench.node.start(f"{MOUNT} --wait 60s") for _ in range(2)]
    ended = [job.wait_or_kill(LATE) for job in jobs]
    lines = bench.node.run(f"grep -c ' {SHARE} ' /proc/mounts").out
    if [one.returncode for one in ended] != [0, 0] or lines != "1\n":
        raise Broken(f"{lines} mounts:\n" + "\n".join(map(str, ended)))
    return ended[0]


# The journal


def _journal(change: str) -> Callable[[Bench], Any]:
    """After one change, whose entry is 2: the mount of a mount that was unmounted."""
    return on_node(f"{UMOUNT} && {MOUNT} && {change}")


_AWAY = f"mv {STATE} /local/state && mkdir -m 700 {STATE} && mount -t tmpfs -o mode=700,size=64k tiny {STATE}"
_BACK = on_node(f"umount {STATE} && rmdir {STATE} && mv /local/state {STATE}")

# Programs


def _without(*programs: str) -> str:
    """A /usr/sbin in which they are missing."""
    kept = "".join(f" ! -name {one}" for one in programs)
    return (
        "mkdir /local/real /local/less && mount --bind /usr/sbin /local/real && "
        f"find /local/real -mindepth 1 {kept} -exec ln -s -t /local/less {{}} + && mount --bind /local/less /usr/sbin"
    )


_WITH = "umount /usr/sbin && umount /local/real && rmdir /local/real && rm -r /local/less"


def _gone_directory(bench: Bench) -> Completed:
    return bench.node.run(f"mkdir /tmp/gone && cd /tmp/gone && rmdir /tmp/gone && exec {STATUS} --json", timeout=LATE)


def _not_root(bench: Bench) -> Completed:
    return bench.node.run(UMOUNT, user="alice", timeout=LATE)


ROWS = [
    Row("mount point missing", _instead("true"), nothing, MOUNT, 0, "healthy", doctor=("SF217",), mended=True),
    Row(
        "mount point is a file",
        _instead(f"touch {SHARE}"),
        _as_it_was(f"rm {SHARE}"),
        MOUNT,
        1,
        "missing",
        "[SF221]",
        doctor=("SF217", "SF221"),
    ),
    Row(
        "mount point is a link",
        _instead(f"mkdir /local/elsewhere && ln -s /local/elsewhere {SHARE}"),
        _as_it_was(f"rm {SHARE} && rmdir /local/elsewhere"),
        MOUNT,
        1,
        "missing",
        "[SF221]",
        doctor=("SF217", "SF221"),
    ),
    Row(
        "mount point has mode 0700",
        _instead(f"mkdir -m 700 {SHARE}"),
        on_node(f"umount {SHARE} && chmod 755 {SHARE} && {MOUNT}"),
        MOUNT,
        0,
        "healthy",
        doctor=("SF217",),
        mended=True,
    ),
    Row(
        "mount point is not empty",
        on_node(f"umount {SHARE} && touch {SHARE}/local"),
        on_node(f"umount {SHARE} && rm {SHARE}/local && {MOUNT}"),
        MOUNT,
        0,
        "healthy",
        "[SF210]",
        doctor=("SF217", "SF210"),
        mended=True,
    ),
    Row("in use", _hold, _let_go, UMOUNT, 1, "healthy", "[SF229]", doctor=()),
    Row(
        "mounted twice, one over the other",
        on_node(f"mount -t nfs -o vers=4.2,nosharecache,actimeo=1,nosuid,nodev {NAME}:/srv/share {SHARE}"),
        on_node(f"umount {SHARE}"),
        f"{STATUS} --json",
        1,
        "healthy",
        doctor=("SF219",),
    ),
    Row("another mount below it", _NESTED, _NOT_NESTED, UMOUNT, 1, "healthy", "[SF224]", doctor=()),
    Row(
        "bound to another place, too",
        on_node(f"mkdir /mnt/bound && mount --bind {SHARE} /mnt/bound"),
        on_node(f"umount /mnt/bound && rmdir /mnt/bound && {MOUNT}"),
        UMOUNT,
        0,
        "missing",
        doctor=("SF217",),
    ),
    Row(
        "something else is mounted there",
        on_node(f"umount {SHARE} && mount -t tmpfs -o size=1m other {SHARE}"),
        on_node(f"umount {SHARE} && {MOUNT}"),
        MOUNT,
        1,
        "wrong source",
        "[SF208]",
        doctor=("SF208",),
    ),
    Row(
        "other options",
        on_node(f"umount {SHARE} && mount -t nfs -o vers=4.2,soft,actimeo=1 {NAME}:/srv/share {SHARE}"),
        on_node(f"umount {SHARE} && {MOUNT}"),
        MOUNT,
        1,
        "healthy",
        "[SF209]",
        doctor=("SF209",),
    ),
    Row(
        "strange names in the mount table",
        on_node(f'{_STRANGE}; mkdir "$d" && mount -t nfs -o vers=4.2,actimeo=1,hard,nosuid,nodev {NAME}:/srv/share "$d" && '
                'mkdir "$d.2" && mount -t tmpfs -o size=1m "a b" "$d.2"'),
        on_node(f'{_STRANGE}; umount "$d" "$d.2" && rmdir "$d" "$d.2"'),
        exits=0,
        state="healthy",
        doctor=(),
    ),
    Row(
        "sharefs mount killed at each step",
        both(_UNMOUNTED, cut_off(MOUNT), on_node(f"umount {SHARE}")),
        on_node(MOUNT),
        MOUNT,
        0,
        "healthy",
        doctor=("SF217", "SF604"),
        runs=killed_at_each_step(MOUNT, f"umount {SHARE}"),
        mended=True,
    ),
    Row(
        "sharefs umount killed at each step",
        cut_off(UMOUNT),
        on_node(MOUNT),
        UMOUNT,
        0,
        "missing",
        doctor=("SF217", "SF604"),
        runs=killed_at_each_step(UMOUNT, MOUNT),
        mended=True,
    ),
    Row(
        "sharefs export killed at each step",
        on_server("sed -i s/no_subtree_check/subtree_check/ /etc/exports.d/sharefs.exports"),
        on_server(EXPORT),
        EXPORT,
        0,
        "healthy",
        doctor=("SF603",),
        at="server",
        runs=killed_at_each_step(EXPORT, "sed -i s/no_subtree_check/subtree_check/ /etc/exports.d/sharefs.exports; exportfs -ra"),
        mended=True,
    ),
    Row(
        "sharefs undo killed at each step",
        both(on_node(UMOUNT), cut_off("sharefs undo --yes")),
        on_node(MOUNT),
        "sharefs undo --yes",
        0,
        "healthy",
        doctor=("SF604",),
        runs=killed_at_each_step("sharefs undo --yes", UMOUNT),
        mended=True,
    ),
    *(
        Row(
            f"{signal.Signals(number).name} in the middle of a mount",
            _slow_mount,
            _NOT_SLOW,
            MOUNT,
            130,
            "missing",
            doctor=("SF217",),
            runs=signalled(number),
        )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ),
    Row("two at once", _UNMOUNTED, nothing, MOUNT, 0, "healthy", doctor=(), runs=twice),
    Row(
        "journal's disk is full",
        on_node(f"{_AWAY} && head -c 1000000 /dev/zero >{STATE}/full; true"),
        _BACK,
        UMOUNT,
        1,
        "healthy",
        "nothing is changed",
        doctor=("SF607",),
    ),
    Row(
        "journal is read-only",
        on_node(f"mount --bind {STATE} {STATE} && mount -o remount,bind,ro {STATE}"),
        on_node(f"umount {STATE}"),
        UMOUNT,
        1,
        "healthy",
        "Read-only file system",
        doctor=("SF607",),
    ),
    Row(
        "journal is damaged",
        _journal(f"echo '{{' >{STATE}/journal/2/plan.json"),
        on_node(f"rm -r {STATE}/journal/2"),
        "sharefs undo --yes",
        1,
        "healthy",
        "cut off, or no JSON",
        doctor=("SF607",),
    ),
    Row(
        "journal is from a later version",
        _journal(f"sed -i '0,/\"version\": [0-9]*/s//\"version\": 99/' {STATE}/journal/2/plan.json"),
        on_node(f"rm -r {STATE}/journal/2"),
        "sharefs undo --yes",
        1,
        "healthy",
        "later version",
        doctor=("SF607",),
    ),
    Row(
        "others may write to the journal",
        on_node(f"chmod 777 {STATE}"),
        on_node(f"chmod 700 {STATE}"),
        UMOUNT,
        1,
        "healthy",
        "others may write",
        doctor=("SF607",),
    ),
    Row(
        "exports.d is read-only",
        on_server(
            "sed -i s/rw/ro/ /etc/exports.d/sharefs.exports && "
            "mount --bind /etc/exports.d /etc/exports.d && mount -o remount,bind,ro /etc/exports.d"
        ),
        on_server(f"umount /etc/exports.d && {EXPORT}"),
        EXPORT,
        1,
        "healthy",
        "Read-only file system",
        explains="this cannot be mended, since /etc/exports.d cannot be written: it is read-only",
        doctor=("SF603",),
        at="server",
    ),
    Row(
        "exportfs is missing",
        on_server(_without("exportfs")),
        on_server(_WITH),
        EXPORT,
        1,
        "healthy",
        "`exportfs` is not installed",
        doctor=("SF602",),
        at="server",
    ),
    Row(
        "mount.nfs is missing",
        on_node(f"umount {SHARE} && {_without('mount.nfs', 'mount.nfs4')}"),
        on_node(f"{_WITH} && {MOUNT}"),
        MOUNT,
        1,
        "missing",
        "not installed",
        doctor=("SF217", "SF246"),
    ),
    Row(
        "sharefs.yaml is damaged",
        on_node(f"cp {CONFIG_PATH} /local/ && echo 'mountz: [' >>{CONFIG_PATH}"),
        on_node(f"cp /local/sharefs.yaml {CONFIG_PATH} && rm /local/sharefs.yaml"),
        MOUNT,
        2,
        "-",
        CONFIG_PATH,
        doctor=("SF601",),
    ),
    Row(
        "clock goes back a day",
        both(on_node(f"{UMOUNT} && {MOUNT}"), on_node("date -s '-1 day'")),
        on_node(f"date -s '+1 day'; {MOUNT}"),
        "sharefs undo --yes",
        0,
        "missing",
        doctor=("SF217",),
    ),
    Row(
        "16 descriptors",
        nothing,
        nothing,
        f"ulimit -n 16; {STATUS} --json",
        0,
        "healthy",
        doctor=(),
        asks=f"ulimit -n 16; {DOCTOR}",
    ),
    Row(
        "stdin, stdout and stderr are closed",
        nothing,
        on_node(MOUNT),
        f"{UMOUNT} <&- >&- 2>&-",
        0,
        "missing",
        doctor=("SF217",),
    ),
    Row(
        "working directory is gone",
        nothing,
        nothing,
        f"{STATUS} --json",
        0,
        "healthy",
        doctor=(),
        runs=_gone_directory,
    ),
    Row("not root", nothing, nothing, UMOUNT, 1, "healthy", "only root", doctor=(), runs=_not_root),
]
