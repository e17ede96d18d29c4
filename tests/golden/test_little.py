"""Commands on a machine that has little left of something: an error with a message, never a signal.

usage: SHAREFS_BIN=... [SHAREFS_ATTACKS=500] pytest test_little.py

Each command runs $SHAREFS_ATTACKS times under each limit, by default 6, with values spread over the range of the limit.
"""

import ctypes
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SHAREFS = os.environ["SHAREFS_BIN"]
RUNS = int(os.environ.get("SHAREFS_ATTACKS", "6"))
USER = 54321  # with no process but these: RLIMIT_NPROC counts all of a user
HUNG = 12

CONFIG = """\
version: 1
servers:
  storage:
    address: 127.0.0.1
    exports:
      - {{path: {root}/share, clients: [10.77.0.2, 10.77.0.3]}}
  other: {{address: 127.0.0.2}}
mounts:
  share: {{from: "storage:/srv/share", at: {root}/a, boot: fstab}}
  more: {{from: "other:/srv/share", at: {root}/b}}
conda: {{store: {root}/store, envs: [llm]}}
"""
COMMANDS = {
    "status": ["status", "--timeout", "1s"],
    "doctor": ["doctor", "--deadline", "5s"],
    "mount": ["mount", "--all", "--dry-run", "--timeout", "1s"],
    "recover": ["recover", "--all", "--dry-run", "--timeout", "1s"],
    "umount": ["umount", "--all", "--dry-run"],
    "export": ["export", "--all", "--dry-run"],
    "export check": ["export", "check"],
    "config check": ["config", "check"],
    "conda list": ["conda", "list"],
    "run": ["run", "--", "true"],
    "run hung": ["run", "--dry-run", "--", "python3", "{root}/t.py", *(f"--d{n}={{root}}/hung/{n}/x" for n in range(HUNG))],
    "script": ["cachefix", "script", "{root}/job.sh"],
    "undo list": ["undo", "--list"],
    "probe": ["probe", "localhost", "--timeout", "1s"],
    "explain": ["explain", "SF201"],
}
# What limits, its values from the least to the most, in its own unit. With less the kernel cannot even load the program.
LIMITS: dict[str, tuple[int, int, int]] = {
    "memory": (resource.RLIMIT_AS, 16 << 20, 160 << 20),
    "data": (resource.RLIMIT_DATA, 256 << 10, 24 << 20),
    "stack": (resource.RLIMIT_STACK, 128 << 10, 2 << 20),
    "processes": (resource.RLIMIT_NPROC, 0, 40),
    "descriptors": (resource.RLIMIT_NOFILE, 3, 24),
    "sixteen descriptors": (resource.RLIMIT_NOFILE, 16, 16),
}
CODES = {0, 1, 2, 3, 4, 130}
CODES_OF_RUN = {0, 1, 2, 125, 126, 127}  # 1 and 2 of python3, which finds as little
OF_THE_LOADER = ("error while loading shared libraries", "cannot allocate", "failed to map segment", "dl_")
CLONE_NEWNS, MS_REC, MS_PRIVATE, MS_NODEV = 0x20000, 0x4000, 0x40000, 4


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("little")
    for name in ("share", "a", "b", "store", *(f"hung/{number}" for number in range(HUNG))):
        (root / name).mkdir(parents=True)
    (root / "sharefs.yaml").write_text(CONFIG.format(root=root))
    (root / "t.py").write_text("import datasets\n")
    (root / "job.sh").write_text("#!/bin/bash\n#SBATCH -N 2\nexport HF_HOME=/data/share/hf\nsrun python t.py\n" * 20)
    for directory in (root, *root.parents[:-1]):
        directory.chmod(directory.stat().st_mode | 0o755)
    return root


def hang(root: Path) -> None:
    """File systems that nobody serves, in a mount namespace of this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        return
    for number in range(HUNG):
        device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
        libc.mount(b"hung", os.fsencode(root / "hung" / str(number)), b"fuse.sshfs", MS_NODEV, options.encode())


def limited(root: Path, name: str, value: int, hangs: bool) -> Callable[[], None]:
    kind = LIMITS[name][0]

    def prepare() -> None:
        if hangs and os.geteuid() == 0:
            hang(root)
        if kind == resource.RLIMIT_NPROC and os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(USER, USER, USER)
            os.setresuid(USER, USER, USER)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(kind, (value, value))

    return prepare


@pytest.mark.skipif(bool(os.environ.get("SHAREFS_SANITIZE")), reason="a sanitizer needs terabytes of address space")
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("command", COMMANDS)
def test_little_is_an_error_at_most(command: str, limit: str, machine: Path) -> None:
    _, least, most = LIMITS[limit]
    words = [word.format(root=machine) for word in COMMANDS[command]]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(machine), "SHAREFS_CONFIG": str(machine / "sharefs.yaml")}
    codes = CODES_OF_RUN if words[0] == "run" else CODES
    bad = []
    for value in (least + (most - least) * number // max(RUNS - 1, 1) for number in range(RUNS)):
        try:
            done = subprocess.run(
                [SHAREFS, *words],
                env=environment,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                timeout=120,
                preexec_fn=limited(machine, limit, value, "hung" in command),
            )
        except (subprocess.SubprocessError, OSError):
            continue  # Python itself found too little to start it
        said = done.stdout + done.stderr
        if any(text in said for text in OF_THE_LOADER) and done.returncode == 127:
            continue
        if done.returncode == -9 and not said:
            continue  # the kernel: too little for exec(2) itself
        if done.returncode not in codes or (done.returncode != 0 and not said) or "terminate called" in said:
            bad.append(f"{limit} {value}: code {done.returncode}: {said[-300:]}")
    assert not bad, f"{len(bad)} runs:\n" + "\n".join(bad[:10])
