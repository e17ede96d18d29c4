"""A disk image with Debian and its systemd, for hosts that boot as real machines do."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path

from . import paths
from .errors import LabError
from .installation import add_users, make_homes

INIT = "/lib/systemd/systemd"
_SIZE = "2G"  # sparse; sharefs looks for 1 GiB of free space
_PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "nfs-common", "rpcbind", "iproute2", "kmod", "procps", "acl", "e2fsprogs"),
    "netbase",  # its /etc/protocols: mount.nfs has no NFSv3 without
    *("openssh-server", "openssh-client", "sudo", "rsync"),  # what bare machines of a cluster have
    *("libyaml-cpp0.7", "libspdlog1.10", "libfmt9", "libutf8proc2"),  # of sharefs
)
# Manuals and translations: a third of the size.
_LEFT_OUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*")

# What no test looks at, or what needs something that a guest lacks. Each costs a boot up to half a second.
_MASKED = """
getty.target getty@tty1.service console-getty.service serial-getty@.service
systemd-logind.service systemd-binfmt.service proc-sys-fs-binfmt_misc.automount systemd-pstore.service
sys-kernel-config.mount sys-fs-fuse-connections.mount sys-kernel-debug.mount sys-kernel-tracing.mount
dev-hugepages.mount dev-mqueue.mount
systemd-random-seed.service systemd-pcrphase.service systemd-pcrphase-sysinit.service
systemd-firstboot.service systemd-sysusers.service systemd-repart.service
systemd-update-utmp.service systemd-update-utmp-runlevel.service
systemd-tmpfiles-clean.timer dpkg-db-backup.timer fstrim.timer e2scrub_all.timer e2scrub_reap.service
apt-daily.timer apt-daily-upgrade.timer
systemd-tmpfiles-setup-dev.service systemd-modules-load.service kmod-static-nodes.service systemd-sysctl.service
systemd-remount-fs.service systemd-ask-password-wall.path systemd-ask-password-console.path systemd-initctl.socket
nfs-blkmap.service auth-rpcgss-module.service
""".split()

_MASKED_GENERATORS = "cryptsetup debug getty gpt-auto hibernate-resume integritysetup run system-update sysv veritysetup"

# For each of the lab's own mounts: it stays until the very end of a shutdown.
_LAB_MOUNTS = ("exchange", "project", "binary", "share", "usr-lib-modules")

_CUSTOMIZE = f"""
set -e
cat >/etc/systemd/system/lab-network.service <<'END'
[Unit]
Description=The network of the lab
DefaultDependencies=no
After=local-fs.target
Before=network.target network-online.target shutdown.target
Wants=network.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/bash /exchange/network

[Install]
WantedBy=multi-user.target network-online.target
END
for name in {" ".join(_LAB_MOUNTS)}; do
    mkdir -p /etc/systemd/system/$name.mount.d
    printf '[Unit]\\nDefaultDependencies=no\\n' >/etc/systemd/system/$name.mount.d/lab.conf
done
systemctl --quiet enable lab-network.service
systemctl --quiet set-default multi-user.target
systemctl --quiet mask {" ".join(_MASKED)}
mkdir -p /etc/systemd/system-generators
for name in {_MASKED_GENERATORS}; do
    ln -s /dev/null /etc/systemd/system-generators/systemd-$name-generator
done
echo 'options lockd nlm_timeout=3 nlm_grace_period=3' >/etc/modprobe.d/lab.conf
# The logs of earlier boots can be read, too.
mkdir -p /var/log/journal
rm -rf /var/cache/apt/* /var/lib/apt/lists/* /etc/hostname /etc/ssh/ssh_host_*
systemctl --quiet disable ssh # started by the tests that need it, with host keys of the machine's own
for file in fstab exports resolv.conf hosts; do
    : >/etc/$file
done
ln -s /lab-bin/sharefs /usr/local/bin/sharefs
{add_users()}{make_homes()}"""


def systemd_image() -> Path:
    """The image, which is made once for each list of packages. Guests write to copies (see Guest)."""
    parts = [*_PACKAGES, *_LEFT_OUT, _SIZE, _CUSTOMIZE, _release()]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    image = paths.cache_directory() / f"systemd-{digest}.img"
    image.parent.mkdir(parents=True, exist_ok=True)
    # Of two test runs that want it, one makes it.
    with open(image.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not image.exists():
            _make(image)
    return image


def _make(image: Path) -> None:
    if not shutil.which("mmdebstrap"):
        raise LabError("the lab lacks: mmdebstrap; run scripts/setup.sh --lab")
    unfinished = image.with_suffix(".new")
    work = paths.new_state_directory()
    root = work / "root"
    try:
        _run(
            # What it mounts in the new root must never be seen by those who remove that.
            *("unshare", "--mount", "mmdebstrap", "--quiet", "--variant=minbase", "--mode=root"),
            *(f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT),
            *(f"--include={','.join(_PACKAGES)}", _release(), str(root), *_mirror()),
        )
        _run("chroot", str(root), "bash", "-c", _CUSTOMIZE)
        unfinished.unlink(missing_ok=True)
        # All of the tables now: the kernel would write the rest in the background of every first boot.
        options = ("-t", "ext4", "-J", "size=8", "-E", "lazy_itable_init=0", "-d", str(root))
        _run("mke2fs", "-q", "-F", *options, str(unfinished), _SIZE)
        unfinished.rename(image)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        unfinished.unlink(missing_ok=True)


def _release() -> str:
    """Of this machine, as its sharefs is linked with the libraries of that."""
    return platform.freedesktop_os_release()["VERSION_CODENAME"]


def _mirror() -> list[str]:
    """Where this machine gets Debian from; empty if it does not say."""
    targets = ("apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages", "Origin: Debian")
    result = subprocess.run(targets, capture_output=True, text=True, check=False)
    return result.stdout.split()[:1]


def _run(*command: str) -> None:
    environment = {**os.environ, "PATH": "/usr/sbin:/sbin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment
    )
    if result.returncode != 0:
        raise LabError(f"the image of a system with systemd cannot be made: {command[0]}: {result.stderr[-2000:]}")
