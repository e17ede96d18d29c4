"""A Slurm cluster of two nodes in the namespaces of this test process."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from sharefslab.wait import wait_until

from .daemons import Daemons
from .isolation import ADDRESS, HEAD

NODES = ("node1", "node2")
START_TIMEOUT = 120
_PLUGIN = Path(__file__).parent.parent / "spank_plugin.c"

# Both nodes are this host under other names and ports; nothing needs cgroups, PAM or a database.
_SLURM_CONF = """\
ClusterName=lab
SlurmctldHost={head}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SchedulerParameters=batch_sched_delay=0
MpiDefault=none
SlurmdParameters=config_overrides
PlugStackConfig={directory}/plugstack.conf
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
_NODE = "NodeName={name} NodeHostname={head} NodeAddr={address} Port={port} CPUs=8 RealMemory=1000 State=UNKNOWN\n"


class Slurm:
    """Running when the constructor returns, with a plugin's options. Its commands need `environment`. `extra` are further
    lines of slurm.conf."""

    def __init__(self, directory: Path, extra: str = "") -> None:
        self._directory = directory
        (directory / "state").mkdir()
        for name in NODES:
            (directory / name).mkdir()
        self._daemons = Daemons(directory)
        conf = _SLURM_CONF.format(head=HEAD, directory=directory) + extra
        for number, name in enumerate(NODES, 1):
            conf += _NODE.format(name=name, head=HEAD, address=ADDRESS, port=17000 + number)
        (directory / "slurm.conf").write_text(conf)
        (directory / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        plugin = directory / "spank_plugin.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", plugin, _PLUGIN], check=True, timeout=60)
        (directory / "plugstack.conf").write_text(f"required {plugin}\n")
        self.environment = {"SLURM_CONF": str(directory / "slurm.conf")}
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        environment = {**os.environ, **self.environment}
        key = self._directory / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        socket = self._directory / "munge.socket"
        files = [f"--{name}-file={self._directory}/munge.{name}" for name in ("key", "pid", "log", "seed")]
        self._daemons.start("munged", ["munged", "--foreground", "--force", f"--socket={socket}", *files])
        wait_until(socket.exists, START_TIMEOUT, what="munged's socket")
        self._daemons.start("slurmctld", ["slurmctld", "-D", "-c"], env=environment)
        for name in NODES:
            self._daemons.start(f"slurmd.{name}", ["slurmd", "-D", "-N", name], env=environment)
        try:
            wait_until(self._is_up, START_TIMEOUT, what="both nodes idle")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self._daemons.text()}") from error

    def _is_up(self) -> bool:
        states = self.run("sinfo", "-h", "-N", "-o", "%T").stdout.split()
        return states == ["idle"] * len(NODES)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **self.environment}
        return subprocess.run(command, env=environment, text=True, capture_output=True, timeout=60, check=False)

    def close(self) -> None:
        self._daemons.stop()
