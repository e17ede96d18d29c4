"""A cluster with one share on which faults are tried, one after the other: each row breaks something, doctor has to name
it, a command has to do what is expected within its deadline, and afterwards everything is as it was before.

A row that fails leaves the cluster in doubt: the next one gets a new one.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from sharefslab import Cluster, CommandTimeout, Host, wait_until
from sharefslab.cluster import mac_of
from sharefslab.host import Completed
from sharefslab.product import CONFIG_PATH, SHARE, document, done, in_time, sharefs

LATE = 120.0  # a command that takes longer hangs; its own deadlines are a few seconds
HEALING = 300.0  # what the kernel may need until it has found a server again
NAME = "nas"  # the server's, in /etc/hosts of both
FILE = f"{SHARE}/precious"

STATUS = "sharefs status --timeout 2"
DOCTOR = "sharefs doctor --json --timeout 2 --deadline 90"

CONFIG = """\
version: 1
servers:
  storage:
    address: {name}
    exports:
      - path: /srv/share
        clients: [10.77.0.2]
        access: {{group: ml, mode: "2775"}}
mounts:
  share: {{from: "storage:/srv/share", at: /data/share, options: [actimeo=1, "vers={version}"]}}
caches:
  local: /local/cache
"""

# Everything that a row could leave behind. What daemons of NFS write down, the journal and watch's lock are no
# left-overs.
LEFT = r"""
for directory in /proc/[0-9]*; do
    read -r name <"$directory/comm" || continue
    case $name in sharefs|mount.nfs*|umount*|exportfs|rpc.*|rpcbind|nfsdcld) echo "process $name";; esac
done 2>/dev/null | sort -u
while read -r _ _ _ _ target _ rest; do echo "mount $target ${rest##* - }"; done </proc/self/mountinfo |
    awk '{print $1, $2, $3, $4}' | sort
find / -xdev \( -path /proc -o -path /run -o -path /var/lib/nfs -o -path '/var/lib/sharefs/[jw]*' \) -prune -o \
    \( -name '*.yaml' -o -type d -o -type f -o -type l \) -printf 'file %p\n' | sort
[ ! -d /srv/share ] || find /srv/share -xdev -printf 'file %p %m %U:%G\n' | sort
"""


class Broken(AssertionError):
    """A row did not go as its table says."""


@dataclass(frozen=True)
class Row:
    """One fault. `doctor` are the codes of all errors and warnings that doctor finds `at` that host, in order; none means
    that all is well. `server` is the same of the server, if it is asked, too."""

    fault: str
    breaks: Callable[[Bench], Any]
    restores: Callable[[Bench], Any]
    command: str = f"{STATUS} --json"
    exits: int = 1
    state: str = "hung"  # of the share, after the command; "-": it is not what matters
    says: str = ""  # a part of what the command prints
    explains: str = ""  # a part of what doctor says
    doctor: tuple[str, ...] = ("SF212",)
    may: tuple[str, ...] = ()  # codes that are no surprise, by chance
    server: tuple[str, ...] | None = None
    at: str = "node1"
    asks: str = DOCTOR
    runs: Callable[[Bench], Completed] | None = None  # how `command` is run, if not in a shell
    mended: bool = False  # the command itself mends it, so doctor is asked before it; else that is all the same
    heals: bool = True  # the share is well afterwards, and its file as it was


class Bench:
    """A server and a node that has the share mounted, over one version of NFS."""

    def __init__(self, version: str, hosts: tuple[str, ...] = ("server", "node1")) -> None:
        self.version = version
        self._hosts = hosts
        self._cluster: Cluster | None = None
        self._in_doubt = True
        self._before: dict[str, list[str]] = {}
        self._digest = ""
        self.notes: dict[str, Any] = {}  # of a row, from breaking to restoring

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._cluster:
            self._cluster.close()

    @property
    def lab(self) -> Cluster:
        assert self._cluster
        return self._cluster

    @property
    def server(self) -> Host:
        return self.lab.server

    @property
    def node(self) -> Host:
        return self.lab["node1"]

    @property
    def config(self) -> str:
        return CONFIG.format(name=NAME, version=self.version)

    @property
    def server_config(self) -> str:
        """Which mounts nothing itself."""
        mounts = self.config.index("mounts:")
        return self.config[:mounts] + self.config[self.config.index("caches:") :]

    # The cluster

    def renew(self) -> None:
        if self._cluster:
            self._cluster.close()
        self._cluster = Cluster(hosts=self._hosts)
        for host in self.lab:
            host.run(f"echo '10.77.0.1 {NAME}' >>/etc/hosts; mkdir -p -m 1777 /local/cache", check=True)
        self.configure(self.node, self.config)
        self.configure(self.server, self.server_config)
        self.know_each_other()
        if self.version == "3":
            self.lab.start_lock_daemons("node1")
        done(self.server, "export", "--all", "--yes")
        self.end_grace()
        done(self.node, "mount", "--all", "--yes", timeout=240)
        self.node.run(f"head -c 65536 /dev/urandom >{FILE} && chmod 644 {FILE}", user="alice", check=True)
        for host in (self.server, self.node):
            self._before[host.name] = self.left_on(host)
        self._digest = self.digest_on_server()
        self._in_doubt = False

    def configure(self, host: Host, text: str) -> None:
        host.write_file(CONFIG_PATH, text, mode=0o644)

    def know_each_other(self) -> None:
        """By fixed entries: a server that is away then says nothing, where ARP would say so sometimes sooner, sometimes
        later."""
        for host, other in ((self.node, self.server), (self.server, self.node)):
            host.run(f"ip neigh replace {other.address} lladdr {mac_of(other.address)} nud permanent dev eth0", check=True)

    def end_grace(self) -> None:
        """Clients would wait for it; there are no locks to be reclaimed."""
        self.server.run("echo Y >/proc/fs/nfsd/v4_end_grace 2>/dev/null; true")

    def serve(self, *options: str) -> None:
        """nfsd and all that belongs to it, whatever of it runs."""
        self.server.run("rpc.nfsd 0", check=True)
        self.server.run(f"rpc.nfsd {' '.join(options)} 4", check=True)
        done(self.server, "export", "--all", "--yes")
        self.end_grace()

    def state(self) -> str:
        said = in_time(lambda: sharefs(self.node, "status", "--timeout", "2", "--json", timeout=LATE))
        return next(one["state"] for one in document(said)["mounts"] if one["target"] == SHARE)

    def wait_for(self, state: str) -> None:
        wait_until(lambda: self.state() == state, HEALING, what=f"the share is {state}")

    # A row

    def prove(self, row: Row) -> list[str]:
        """The cells of the page. Raises if anything is not as the row says."""
        if self._in_doubt:
            self.renew()
        self._in_doubt = True
        self.notes.clear()
        for host in self.lab:
            host.log.clear()
        try:
            cells = self._prove(row)
        except Exception as error:
            histories = "\n".join(f"--- {host.name}\n{host.history()}" for host in self.lab)
            raise Broken(f"{row.fault}: {error}\n{histories}") from error
        self._in_doubt = False
        return cells

    def _prove(self, row: Row) -> list[str]:
        row.breaks(self)
        found = self.ask_doctor(row.at, row.asks) if row.mended else []
        ended, in_time = self._command(row)
        _expect(ended.returncode == row.exits, f"exit code {ended.returncode} instead of {row.exits}:\n{ended}")
        _expect(row.says in ended.out + ended.err, f"`{row.says}` is not said:\n{ended}")
        state = "-" if row.state == "-" else self._state_by(ended)
        _expect(state == row.state, f"the share is {state} instead of {row.state}")
        found = found or self.ask_doctor(row.at, row.asks)
        found = [one for one in found if one["code"] not in row.may]
        self._compare(found, row.doctor, row.at)
        of_server = self.ask_doctor("server") if row.server is not None else []
        self._compare(of_server, row.server or (), "server")
        _expect(row.explains in json.dumps(found), f"doctor does not say `{row.explains}`: {found}")
        row.restores(self)
        if row.heals:
            wait_until(lambda: sharefs(self.node, "status", "--timeout", "2", timeout=LATE).ok, HEALING, what="all is well")
        intact = self.file_is_intact()
        _expect(intact, "the file is no longer what it was")
        self.nothing_left()
        causes = [*found, *([{**one, "subject": f"server: {one['subject']}"} for one in of_server])]
        return [
            row.fault,
            f"`{_plain(row.command)}`",
            f"{row.state}, {row.exits}",
            f"{state}, {ended.returncode}",
            "yes" if in_time else "no",
            "<br>".join(_said(one) for one in causes) or (f"at most {', '.join(row.may)}" if row.may else "all is well"),
            "yes" if intact else "no",
            "nothing",
        ]

    def _command(self, row: Row) -> tuple[Completed, bool]:
        try:
            if row.runs:
                return row.runs(self), True
            return self.lab[row.at].run(row.command, timeout=LATE), True
        except CommandTimeout as late:
            return late.completed, False

    def _state_by(self, ended: Completed) -> str:
        with contextlib.suppress(ValueError, KeyError, StopIteration):
            state = next(one["state"] for one in document(ended)["mounts"] if one["target"] == SHARE)
            if state != "slow":  # a busy machine: the server is asked again
                return state
        return self.state()

    def ask_doctor(self, at: str, asks: str = DOCTOR) -> list[dict[str, str]]:
        """Errors and warnings, each with its cause in one line and its cure in the next."""
        said = self.lab[at].run(asks, timeout=LATE)
        found = [one for one in document(said)["diagnoses"] if one["severity"] != "info"]
        errors = any(one["severity"] == "error" for one in found)
        _expect(said.returncode == (1 if errors else 0), f"doctor's exit code is {said.returncode}:\n{said}")
        for one in found:
            cure = one["fix"] or one["hint"]
            _expect(one["message"] and "\n" not in one["message"], f"no cause in one line: {one}")
            _expect(cure and "\n" not in cure, f"no cure in one line: {one}")
        return found

    def _compare(self, found: list[dict[str, str]], expected: tuple[str, ...], at: str) -> None:
        codes = tuple(one["code"] for one in found)
        _expect(codes == expected, f"doctor of {at} says {codes} instead of {expected}:\n{json.dumps(found, indent=1)}")

    # Afterwards

    def digest_on_server(self) -> str:
        return self.server.run("sha256sum </srv/share/precious", check=True).out

    def file_is_intact(self) -> bool:
        """As the server has it, and as the node reads it from the server."""
        read = self.node.run(f"dd if={FILE} iflag=direct bs=64k status=none | sha256sum", user="alice", timeout=LATE)
        return self._digest == self.digest_on_server() == read.out

    def left_on(self, host: Host) -> list[str]:
        return host.run(LEFT, check=True).out.splitlines()

    def nothing_left(self) -> None:
        """No process, mount or file that was not there before, and a journal that can be read."""
        for host in (self.server, self.node):
            before = self._before[host.name]

            def difference(host: Host = host, before: list[str] = before) -> set[str]:
                return set(before) ^ set(self.left_on(host))

            try:
                wait_until(lambda look=difference: not look(), 60, what="nothing is left")
            except TimeoutError:
                raise Broken(f"left or lost on {host.name}: {sorted(difference())}") from None
            entries = document(done(host, "undo", "--list", "--json"))["entries"]
            states = [one["state"] for one in entries]
            _expect(not {"unreadable", "running"} & set(states), f"the journal of {host.name}: {entries}")
            _expect(states[:1] != ["unfinished"], f"the newest change of {host.name} is unfinished: {entries}")
            host.run("rm -rf /var/lib/sharefs/journal/*", check=True)


def _expect(holds: object, what: str) -> None:
    if not holds:
        raise Broken(what)


def on_node(script: str) -> Callable[[Bench], Completed]:
    """A step of a row, which must succeed."""
    return lambda bench: bench.node.run(script, check=True)


def on_server(script: str) -> Callable[[Bench], Completed]:
    return lambda bench: bench.server.run(script, check=True)


def both(*steps: Callable[[Bench], Any]) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        for step in steps:
            step(bench)

    return run


def nothing(_: Bench) -> None:
    """Nothing to do."""


# What differs from run to run.
_VARYING = [
    (re.compile(r"\b\d+(\.\d+)? ?(ms|us|s|min)\b"), "N s"),
    (re.compile(r"\bpid \d+"), "pid N"),
    (re.compile(r"\bkill \d+"), "kill N"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z"), "TIME"),
    (re.compile(r"\d+ (requests,|times)"), r"N \1"),
]


def _plain(text: str) -> str:
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return " ".join(text.replace("|", "\\|").split())


def _said(one: dict[str, str]) -> str:
    cure = f"`{one['fix']}`" if one["fix"] else one["hint"]
    return f"{one['code']} {_plain(one['subject'])}: {_plain(one['message'])}<br>→ {_plain(cure)}"
