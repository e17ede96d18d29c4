#!/usr/bin/env python3
"""Fails on an #include that docs/architecture.md does not allow.

usage: check_layers.py ROOT

The floors, from the top:  main -> cli -> rooms -> plan -> sys -> base,  cli -> ui -> plan,  cli -> config -> base.
An arrow may skip floors downwards; it never goes up, and never sideways between rooms.
Also: system calls that touch paths, and spdlog and CLI11, only where they belong.
"""

import re
import sys
from pathlib import Path

ROOMS = ["exports", "mounts", "conda", "cachefix", "fleet"]

# part -> the parts that its files may include besides itself
ALLOWED = {
    "base": set(),
    "sys": {"base"},
    "plan": {"sys", "base"},
    "config": {"base"},
    "ui": {"plan", "sys", "base"},
    **{room: {"plan", "sys", "base"} for room in ROOMS},
    "cli": {*ROOMS, "ui", "config", "plan", "sys", "base"},
    "main": {"cli"},
}

# external header -> the parts that may include it
EXTERNAL = {
    "CLI/": {"cli"},
    "yaml-cpp/": {"config", "cachefix"},  # sharefs.yaml; configuration files of training programs
    "spdlog/": {"sys"},
    "nfsc/": {"sys"},
    "libmount": {"sys"},
    "sys/mount.h": {"sys"},
    "libsmartcols": {"ui"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def part_of(path: Path) -> str | None:
    """The part that a source file belongs to; None for files that are no part of the program."""
    names = path.parts
    if path == Path("src/main.cpp"):
        return "main"
    name = names[1] if names[0] == "src" and len(names) > 2 else names[0]
    return name if name in ALLOWED else None


def violations(root: Path) -> list[str]:
    found = []
    sources = [p for top in ["src", *ROOMS] for p in sorted((root / top).rglob("*.[ch]pp"))]
    for source in sources:
        relative = source.relative_to(root)
        part = part_of(relative)
        if part is None:
            found.append(f"{relative}: belongs to no part; see docs/architecture.md")
            continue
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), start=1):
            include = INCLUDE.match(line)
            if include:
                found += [f"{relative}:{number}: {text}" for text in judge(part, *include.groups())]
    return found


def judge(part: str, quote: str, header: str) -> list[str]:
    if quote == '"':
        target = header.split("/")[0]
        if "/" not in header:
            return [f'"{header}" must be included with its part, e.g. "{part}/{header}"']
        if target not in ALLOWED:
            return [f'"{header}" is no part of the program']
        if target != part and target not in ALLOWED[part]:
            return [f'{part} may not include "{header}"']
        return []
    return [
        f"only {', '.join(sorted(parts))} may include <{header}>"
        for prefix, parts in EXTERNAL.items()
        if header.startswith(prefix) and part not in parts
    ]


def main() -> int:
    root = Path(sys.argv[1])
    found = violations(root)
    for text in found:
        print(text)
    print(f"{len(found)} forbidden includes")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
