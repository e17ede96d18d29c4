"""A Debian 12 on which nothing is installed: a root of its own, made by mmdebstrap, and the project in it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sharefs-bare"
PLACE = "/root/sharefs"  # of the project in the root
COMPILED = "/opt/compiled"  # this machine's ccache(1) and what it keeps: what was compiled before is not compiled again
# CXXFLAGS: g++ takes as much memory as it wants before it frees any, which saves a sixth of the time.
_ENTER = """
set -e
for name in proc sys dev; do mount --rbind /$name "$1/$name"; done
mount -t tmpfs tmpfs "$1/tmp"
cp /etc/resolv.conf "$1/etc/resolv.conf"
if [ -n "$4" ]; then mount --bind "$4" "$1/opt/compiled/cache"; fi
exec chroot "$1" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    TERM=dumb LC_ALL=C.UTF-8 CI="$CI" CXXFLAGS="--param ggc-min-heapsize=2000000" bash -c "cd $2; $3" </dev/null
"""


class Bare:
    """A machine that has only what Debian's installation brings."""

    def __init__(self, release: str = "bookworm") -> None:
        self.root = Path(tempfile.mkdtemp(prefix="sharefs-bare-", dir="/var/tmp"))
        archive = _archive(release)
        subprocess.run(["tar", "-xf", archive, "-C", self.root], check=True)
        policy = self.root / "usr/sbin/policy-rc.d"  # packages of servers would start them, on this machine's network
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        self._compiled = ""  # this machine's directory of compiled objects

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def bring_project(self) -> None:
        """What `git clone` brings: what is tracked, as it lies in the working tree."""
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, check=True, capture_output=True, text=True)
        for name in filter(None, listed.stdout.split("\0")):
            target = self.root / PLACE[1:] / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (PROJECT / name).exists():
                shutil.copy2(PROJECT / name, target, follow_symlinks=False)

    def compile_by_ccache(self) -> None:
        """The build finds ccache where this machine has it, which lies apart from what is installed there."""
        program = shutil.which("ccache")
        if program is None:
            return
        cache = subprocess.run([program, "--get-config", "cache_dir"], check=True, capture_output=True, text=True).stdout.strip()
        os.makedirs(cache, exist_ok=True)
        (self.root / COMPILED[1:] / "cache").mkdir(parents=True)
        libraries = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout.split()
        for file in (program, *(word for word in libraries if Path(word).name.startswith("libhiredis") and word[0] == "/")):
            shutil.copy(file, self.root / COMPILED[1:])
        started = self.root / "usr/local/bin/ccache"
        started.write_text(f'#!/bin/sh\nCCACHE_DIR={COMPILED}/cache LD_LIBRARY_PATH={COMPILED} exec {COMPILED}/ccache "$@"\n')
        started.chmod(0o755)
        if self.run("ccache --version").returncode != 0:  # that of another system
            started.unlink()
        else:
            self._compiled = cache

    def run(self, command: str, timeout: float = 600, cwd: str = PLACE) -> subprocess.CompletedProcess[str]:
        """In mount and process namespaces of its own, which end with it."""
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", _ENTER, "bash", self.root, cwd, command, self._compiled]
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)


def _archive(release: str) -> Path:
    """The root as an archive, made once."""
    archive = CACHE / f"{release}-{platform.machine()}.tar"
    if archive.exists():
        return archive
    CACHE.mkdir(parents=True, exist_ok=True)
    targets = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages", "Origin: Debian"]
    mirror = subprocess.run(targets, capture_output=True, text=True, check=False).stdout.split()[:1]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        root = Path(directory) / "root"
        command = ["unshare", "--mount", "mmdebstrap", "--quiet", "--variant=important", "--mode=root", release, root, *mirror]
        made = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        assert made.returncode == 0, made.stderr[-2000:]
        for settings in Path("/etc/apt/apt.conf.d").iterdir():  # how this machine reaches Debian
            if "Acquire::" in settings.read_text(errors="replace"):
                shutil.copy(settings, root / "etc/apt/apt.conf.d")
        unfinished = archive.with_suffix(f".{os.getpid()}")
        with tarfile.open(unfinished, "w") as packed:
            packed.add(root, arcname=".")
        unfinished.rename(archive)
    return archive
