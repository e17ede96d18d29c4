"""The unit, and the scripts for schedulers, as far as they can be tried without those."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
UNIT = Path(os.environ["SHAREFS_UNIT"])
# What gives a unit a mount namespace of its own (systemd.exec(5)), in which mounts and unmounts reach nobody.
OWN_NAMESPACE = """
PrivateTmp PrivateMounts PrivateDevices PrivateUsers PrivateNetwork PrivateIPC ProtectSystem ProtectHome
ProtectKernelTunables ProtectKernelModules ProtectKernelLogs ProtectControlGroups ProtectProc ProcSubset ReadOnlyPaths
ReadWritePaths InaccessiblePaths TemporaryFileSystem RootDirectory RootImage BindPaths BindReadOnlyPaths MountFlags
DynamicUser ExecPaths NoExecPaths LogNamespace
""".split()

# Stand for the scheduler's: `show` prints the state and the reason, `update` is noted.
SCONTROL = """#!/bin/sh
case $1$2 in
--onelinershow) echo "NodeName=n1 Arch=x86_64 State=$STATE Reason=$REASON [root@2026]" ;;
shownode) printf 'NodeName=n1 Arch=x86_64\\n   State=%s\\n   Reason=%s\\n' "$STATE" "$REASON" ;;
update*) shift; echo "$*" >>"$CALLS" ;;
esac
"""
SHAREFS = '#!/bin/sh\necho "$LINE"\nexit "$CODE"\n'


def run(script: str, tmp_path: Path, code: int, state: str, reason: str = "") -> tuple[int, str]:
    """Exit code, and what was changed of the node."""
    for name, text in (("scontrol", SCONTROL), ("sharefs", SHAREFS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    calls = tmp_path / "calls"
    calls.write_text("", encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "SLURMD_NODENAME": "n1",
        "CALLS": str(calls),
        "STATE": state,
        "REASON": reason,
        "LINE": "sharefs: share: stale",
        "CODE": str(code),
    }
    done = subprocess.run([PROJECT / "packaging/slurm" / script], env=environment, timeout=60, check=False)
    return done.returncode, calls.read_text(encoding="utf-8").strip()


DRAINED = "nodename=n1 state=drain reason=sharefs: share: stale"


@pytest.mark.parametrize(
    ("code", "state", "reason", "change"),
    [
        (0, "IDLE", "", ""),
        (1, "IDLE", "", DRAINED),
        (1, "MIXED", "", DRAINED),
        (1, "IDLE+DRAIN", "memory is replaced", ""),
        (1, "DOWN*", "", ""),
        (0, "IDLE+DRAIN", "sharefs: share: stale [root@2026]", "nodename=n1 state=resume"),
        (0, "IDLE+DRAIN", "memory is replaced", ""),
        (2, "IDLE", "", ""),
        (2, "IDLE+DRAIN", "sharefs: share: stale", ""),
    ],
)
def test_health_check_drains_and_takes_back_its_own(tmp_path: Path, code: int, state: str, reason: str, change: str) -> None:
    assert run("healthcheck.sh", tmp_path, code, state, reason) == (0, change)


@pytest.mark.parametrize(
    ("code", "state", "exit_code", "change"),
    [(0, "IDLE", 0, ""), (1, "IDLE", 1, DRAINED), (1, "MIXED+DRAIN", 1, ""), (2, "IDLE", 0, "")],
)
def test_prolog(tmp_path: Path, code: int, state: str, exit_code: int, change: str) -> None:
    assert run("prolog.sh", tmp_path, code, state) == (exit_code, change)


def test_the_unit_has_no_mount_namespace_of_its_own() -> None:
    keys = [line.split("=")[0] for line in UNIT.read_text(encoding="utf-8").splitlines() if "=" in line and line[0] != "#"]
    assert "Type" in keys and "CapabilityBoundingSet" in keys
    assert set(keys) & set(OWN_NAMESPACE) == set()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is missing")
def test_the_unit_is_valid(tmp_path: Path) -> None:
    text = UNIT.read_text(encoding="utf-8")
    program = next(line.split("=")[1].split()[0] for line in text.splitlines() if line.startswith("ExecStart="))
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace(program, "/bin/true"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    # It looks at the whole system, too, which is not ours.
    assert [line for line in (done.stdout + done.stderr).splitlines() if UNIT.name in line] == []


def test_the_links_of_the_installed_documentation_lead_somewhere(tmp_path: Path) -> None:
    """As `cmake --install` lays them out: README.md, and docs/ beside it."""
    shutil.copy(PROJECT / "README.md", tmp_path)
    shutil.copytree(PROJECT / "docs", tmp_path / "docs")
    dead = []
    for page in tmp_path.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not (page.parent / link).exists():
                dead.append(f"{page.relative_to(tmp_path)}: {link}")
    assert dead == []


def test_a_package_that_is_removed_warns_of_what_still_mounts_at_boot() -> None:
    """What the scripts look for is what sharefs writes."""
    prerm = (PROJECT / "packaging/deb/prerm").read_text(encoding="utf-8")
    for mark in ("# Written by sharefs: ", "x-sharefs.managed", "# >>> sharefs "):
        assert mark in prerm
        assert any(mark in path.read_text(encoding="utf-8") for path in (PROJECT / "mounts").glob("*.[ch]pp")), mark
