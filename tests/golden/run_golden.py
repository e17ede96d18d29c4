#!/usr/bin/env python3
"""Golden tests: sharefs on a scripted machine, compared with what the case expects, byte for byte.

usage: run_golden.py SCRIPTED_SHAREFS CASES [NAME...]

A case is a directory:
  cmd            the arguments, one line as for a shell; further lines NAME=value (environment), `--tty`, `< text` (stdin)
  root/          the files before (optional; `@` in a directory's stead of an empty one is a file named .keep)
  system.json    everything else of the machine (src/sys/scripted_system.hpp)
  expected/      stdout, stderr, exit_code, calls (programs, mounts), root/ (only the files that changed; REMOVED lists those
                 that are gone)
SHAREFS_GOLDEN_UPDATE=1 writes `expected` anew; read the diff before you commit it.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

IGNORED = ("var/lib/sharefs",)  # journal and lock: tested in tests/unit/plan
PARTS = ("stdout", "stderr", "exit_code", "calls")


def read_command(case: Path) -> tuple[list[str], list[str], str]:
    """The arguments, the options of scripted_sharefs, and standard input."""
    arguments, options, stdin = [], [], ""
    for line in (case / "cmd").read_text().splitlines():
        if line.startswith("< "):
            stdin += line[2:] + "\n"
        elif line == "--tty" or ("=" in line.split(" ")[0] and not arguments):
            options.append(line)
        elif line and not line.startswith("#"):
            arguments = shlex.split(line)
    return arguments, options, stdin


def snapshot(root: Path) -> dict[str, tuple[int, str]]:
    """Every path below root: mode and content (or link text)."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.startswith(IGNORED) or path.name == ".keep":
            continue
        if path.is_symlink():
            found[name] = (0, f"-> {os.readlink(path)}")
        elif path.is_file():
            found[name] = (path.stat().st_mode & 0o7777, path.read_text(errors="replace"))
        elif path.is_dir():
            found[name] = (path.stat().st_mode & 0o7777, "/")
    for ignored in IGNORED:  # its parents are the journal's business too
        for parent in Path(ignored).parents:
            found.pop(str(parent), None)
    return found


def changes(before: dict, after: dict) -> dict[str, str]:
    """What a case is compared by: one text per changed path."""
    out = {}
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            mode, text = after.get(name, (0, "REMOVED"))
            out[name] = text if text in ("REMOVED",) or text.startswith("-> ") else f"{mode:04o} {text}"
    return out


def run_case(binary: Path, case: Path) -> dict[str, str]:
    arguments, options, stdin = read_command(case)
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "root"
        shutil.copytree(case / "root", root, symlinks=True) if (case / "root").exists() else root.mkdir()
        (root / "var/lib").mkdir(parents=True, exist_ok=True)
        before = snapshot(root)
        done = subprocess.run(
            [binary, root, case / "system.json", *options, "--", *arguments],
            input=stdin, capture_output=True, text=True, timeout=60, env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )
        calls = Path(directory) / "calls"
        result = {
            "stdout": done.stdout.replace(str(root), "ROOT"),
            "stderr": done.stderr.replace(str(root), "ROOT"),
            "exit_code": f"{done.returncode}\n",
            "calls": calls.read_text() if calls.exists() else "",
        }
        for name, text in changes(before, snapshot(root)).items():
            result[f"root/{name}"] = text
        return result


def expected_of(case: Path) -> dict[str, str]:
    base = case / "expected"
    return {str(p.relative_to(base)): p.read_text() for p in sorted(base.rglob("*")) if p.is_file()}


def update(case: Path, result: dict[str, str]) -> None:
    shutil.rmtree(case / "expected", ignore_errors=True)
    for name, text in result.items():
        path = case / "expected" / (name + "@" if text.endswith(" /") else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def show_difference(name: str, part: str, wanted: str | None, got: str | None) -> None:
    print(f"FAILED {name}: {part}")
    for mark, text in (("-", wanted), ("+", got)):
        print("".join(f"    {mark}{line}\n" for line in (text if text is not None else "(nothing)").splitlines()), end="")


def main() -> int:
    binary, cases = Path(sys.argv[1]), Path(sys.argv[2])
    wanted_names = sys.argv[3:]
    failed = ran = 0
    for case in sorted(p.parent for p in cases.rglob("cmd")):
        name = str(case.relative_to(cases))
        if wanted_names and name not in wanted_names:
            continue
        ran += 1
        result = run_case(binary, case)
        if os.environ.get("SHAREFS_GOLDEN_UPDATE"):
            update(case, result)
            continue
        got = {(k + "@" if v.endswith(" /") else k): v for k, v in result.items()}
        expected = expected_of(case)
        different = [part for part in sorted(expected.keys() | got.keys()) if expected.get(part) != got.get(part)]
        for part in different:
            show_difference(name, part, expected.get(part), got.get(part))
        failed += bool(different)
    print(f"{ran - failed} of {ran} golden cases passed")
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
