"""The README's first hour on a machine that has nothing. `scripts/test.sh --bare` also runs the whole demo there.

The tests are steps: each begins where the one before has left the machine.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bare import PLACE, PROJECT, Bare

LATE = 4800.0  # it is built beside the tests of the lab, which go first


@pytest.mark.parametrize("options", ["--build", "--test", "--lab", "--demo", "--build --demo", ""])
def test_what_is_missing_is_named(machine: Bare, options: str) -> None:
    said = machine.run(f"scripts/setup.sh --check {options}")
    assert said.returncode == 3, said.stdout
    assert "missing packages" in said.stdout
    if options != "--lab":
        assert " cmake " in said.stdout and "libfmt-dev" in said.stdout
    assert ("clang-tidy" in said.stdout) == (options in ("--test", "")), "building needs no linters"


def test_an_unknown_option_is_refused(machine: Bare) -> None:
    assert machine.run("scripts/setup.sh --bild").returncode == 2


def install_lines() -> list[str]:
    """The commands of README's section on installing that build the program, as they stand there."""
    section = PROJECT.joinpath("README.md").read_text().split("## Build and install")[1].split("```")[1]
    lines = [line.split("#")[0].strip() for line in section.strip().splitlines()]
    assert lines[0].startswith("./scripts/setup.sh --build"), lines
    return [line.replace("sudo ", "") for line in lines if line]  # root's root has none


def test_the_lines_of_the_readme_build_and_install_the_program(machine: Bare) -> None:
    for line in install_lines():
        said = machine.run(line, timeout=LATE)
        assert said.returncode == 0, f"{line}\n{said.stdout[-3000:]}"
        assert "warning:" not in said.stdout, "another compiler's warnings stop nobody's build; this one has none"
    assert machine.run("sharefs --version").returncode == 0
    listed = machine.run("ls build/release/tests 2>/dev/null; dpkg -I build/release/sharefs*.deb").stdout
    assert "CTestTestfile" not in listed, "a user's build builds no tests"
    depends = re.search(r"Depends: (.*)", listed)
    assert depends and {word.split()[0] for word in depends[1].split(",")} <= {"libc6", "libgcc-s1"}, listed
    assert "libc6 (>= 2.34)" in depends[1]


def test_upgrade_removal_and_purge(machine: Bare) -> None:
    """By the package's own scripts; where systemd runs they also stop what runs (tests/lab/test_package.py)."""
    package = "build/release/sharefs_0.1.0_amd64.deb"
    # The version before: the same package with a lower number takes its place first.
    lower = "dpkg-deb -R {0} /tmp/old && sed -i 's/^Version: .*/Version: 0.0.9/' /tmp/old/DEBIAN/control && dpkg-deb -b /tmp/old /var/tmp/old.deb"
    said = machine.run(lower.format(package) + " && dpkg -i --force-downgrade /var/tmp/old.deb", timeout=LATE)
    assert said.returncode == 0, said.stdout
    assert machine.run("dpkg-query -W -f '${Version}' sharefs").stdout == "0.0.9"
    assert machine.run("stat -c %a /var/cache/sharefs").stdout == "1777\n"
    machine.run("mkdir -p /etc/sharefs /var/lib/sharefs/journal; touch /etc/sharefs/sharefs.yaml /var/cache/sharefs/x")
    unit = "/etc/systemd/system/sharefs-data-share.service"
    machine.run(f"echo '# Written by sharefs: changes are lost' > {unit}")
    upgraded = machine.run(f"dpkg -i {package}")
    assert upgraded.returncode == 0 and "WARNING" not in upgraded.stdout, upgraded.stdout
    assert machine.run("ls /etc/sharefs /var/cache/sharefs").stdout.split() == ["/etc/sharefs:", "sharefs.yaml", "/var/cache/sharefs:", "x"]
    removed = machine.run("dpkg -r sharefs")
    assert removed.returncode == 0 and "sharefs umount --all --forget" in removed.stdout, removed.stdout
    assert machine.run("ls /etc/sharefs").stdout == "sharefs.yaml\n"
    purged = machine.run("dpkg -P sharefs")
    assert purged.returncode == 0 and "the caches of all users" in purged.stdout, purged.stdout
    assert machine.run("ls -d /etc/sharefs /var/lib/sharefs /var/cache/sharefs 2>/dev/null").stdout == ""
    machine.run(f"rm {unit}; dpkg -i {package}")


def test_the_program_starts_where_small_clusters_are(machine: Bare) -> None:
    """Ubuntu 22.04 has glibc 2.35, RHEL 9 and its kin 2.34."""
    program = machine.root / PLACE[1:] / "build/release/sharefs"
    check = PROJECT / "tests/layers/check_hardening.py"
    assert b"SHAREFS_TEST_KILL_AT" not in program.read_bytes(), "faults are injected in tests only"
    said = subprocess.run([sys.executable, check, program, "--optimised", "--glibc", "2.34"], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout


def test_nothing_is_missing_for_the_demo_after_its_setup(machine: Bare) -> None:
    said = machine.run("scripts/setup.sh --demo", timeout=LATE)
    assert said.returncode == 0, said.stdout
    assert machine.run("scripts/setup.sh --check --demo").returncode == 0


if os.environ.get("SHAREFS_BARE_DEMO") == "1":  # `scripts/test.sh --bare` and `--long`

    def test_the_demo_runs_to_its_end(machine: Bare) -> None:
        machine.run("mkdir -p /dev/shm")
        said = machine.run("scripts/demo.sh", timeout=LATE)
        assert said.returncode == 0, said.stdout[-4000:]


def test_an_older_debian_is_told_which_glibc_is_missing(machine: Bare, tmp_path: Path) -> None:
    older = Bare("bullseye")
    try:
        program = machine.root / PLACE[1:] / "build/release/sharefs"
        older.root.joinpath("sharefs").write_bytes(program.read_bytes())
        older.root.joinpath("sharefs").chmod(0o755)
        said = older.run("/sharefs --version", cwd="/")
        assert said.returncode == 1 and "GLIBC_2.34" in said.stdout, said.stdout
        assert all("GLIBC_" in line for line in said.stdout.splitlines()), said.stdout
    finally:
        older.remove()
