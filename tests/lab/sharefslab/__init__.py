"""Hosts with real kernel NFS and real faults, in processes of this machine: without KVM or Docker."""

from . import systemd
from .cluster import BaseCluster
from .errors import CommandFailed, CommandTimeout, GuestDied, LabError
from .guest import Guest
from .host import Completed, Host, Job
from .kernels import KernelCluster
from .namespaces import Cluster, boot_guest
from .paths import missing_prerequisites
from .wait import wait_until

__all__ = [
    "BaseCluster",
    "Cluster",
    "CommandFailed",
    "CommandTimeout",
    "Completed",
    "Guest",
    "GuestDied",
    "Host",
    "Job",
    "KernelCluster",
    "LabError",
    "boot_guest",
    "missing_prerequisites",
    "systemd",
    "wait_until",
]
