#!/usr/bin/env python3
"""Fails on an #include that docs/architecture.md does not allow, and on calls that only src/sys may make.

usage: check_layers.py ROOT

The floors, from the top:  main -> cli -> rooms -> plan -> tree -> sys -> base,  cli -> ui -> plan,  cli -> config -> base.
An arrow may skip floors downwards; it never goes up, and never sideways between rooms. So it is among the folders of src/sys. The frame in src/cli knows no
command but by its row, and a command's file is included by commands only.
Also: libraries, and calls that take a path or ask a name service, only where they belong. Such a call may hang on a dead
mount, and follows links that anybody may have made; src/sys asks by the mount table, in a child, on descriptors.
"""

import re
import sys
from pathlib import Path

ROOMS = ["exports", "mounts", "conda", "cachefix", "fleet"]
FLOORS = {"tree", "sys", "base"}

# part -> the parts that its files may include besides itself
ALLOWED = {
    "base": set(),
    "sys": {"base"},
    "tree": {"sys", "base"},
    "plan": FLOORS,
    "config": {"base"},
    "ui": {"plan", *FLOORS},
    **{room: {"plan", *FLOORS} for room in ROOMS},
    "cli": {*ROOMS, "ui", "config", "plan", *FLOORS},
    "main": {"cli"},
}

# Inside src/sys, from the bottom: a folder may include those of lower floors and itself. "" is src/sys itself.
SYS_FLOORS = [
    {"process"},
    {"net"},
    {"identity"},
    {"mounts"},
    {"fs"},
    {"nfs", "programs"},
    {"worker", "mounting", "layers"},
    {""},
    {"leases"},
]

# external header -> the parts that may include it
EXTERNAL = {
    "CLI/": {"cli"},
    "yaml-cpp/": {"config", "cachefix"},  # sharefs.yaml; configuration files of training programs
    "spdlog/": {"sys"},
    "nfsc/": {"sys"},
    "openssl/": {"sys"},
    "libmount": {"sys"},
    "sys/mount.h": {"sys"},
}

# Calls with a path, and of name services: not outside of src/sys. Those with a descriptor (openat, ...) are the
# actions' own, which work on the descriptors of sys::walk.
PATH_CALL = re.compile(
    r"(?<![\w>.:])::(open|open64|creat|stat|lstat|statfs|statvfs|access|euidaccess|realpath|readlink|opendir|scandir|nftw|fts_open"
    r"|unlink|rmdir|mkdir|rename|chmod|chown|lchown|symlink|link|truncate|chdir|mkdtemp|mkstemp"
    r"|execvp|execve|popen|system|fork|getpw\w+|getgr(?!oups)\w+|getaddrinfo|gethostbyname)\s*\("
    r"|std::filesystem|std::[io]?fstream|#\s*include\s+<(filesystem|fstream)>|\bfopen\s*\("
)
DESCRIPTOR_CALL = re.compile(
    r"(?<![\w>.:])::(openat2?|fstatat|statx|readlinkat|unlinkat|renameat2?|mkdirat|fchmodat|fchownat|symlinkat|linkat|faccessat)\s*\("
)
# Another user's ids are taken in one file, and by whoever works in a child of its own; all else asks those.
IDENTITY_CALL = re.compile(r"(?<![\w>.:])::(set(re|res|e|fs)?[ug]id|setgroups|initgroups|setuid)\s*\(|SYS_set(re|res|fs)?[ug]id")
IDENTITY_FILE = "src/sys/process/become.cpp"
BECOMES = {
    "src/sys/process/child.cpp": "work in a child, as a user",
    "src/sys/programs/process.cpp": "a program that is run for a user",
    "src/sys/process/sandbox.cpp": "nobody, who asks NFS servers",
    "src/sys/worker/worker.cpp": "sharefs itself, once more",
    "src/sys/worker/user_namespace.cpp": "its owner",
    "src/sys/programs/isolation.cpp": "nobody, who may read, for a program that is asked about files",
    "src/sys/mounting/local_mounts.cpp": "the owner of an image on a share, in the child that mounts it",
    "src/plan/actor_root.cpp": "an action with an actor, in its child",
    "src/tree/job.cpp": "who reads an original for root, whom its server refuses, in the child that copies it",
}
DESCRIPTORS = {"sys", "tree", "plan"}
# file -> why it may. A row that is not needed any more is an error, too.
EXCEPTIONS = {
    "src/tree/acl.cpp": "chmod of /proc/self/fd/N: O_PATH descriptors know no fchmod",
    "src/tree/modes.cpp": "chown and chmod of /proc/self/fd/N, as acl.cpp",
    "src/plan/change_files_action.cpp": "chmod of /proc/self/fd/N, as acl.cpp",
    "src/plan/actor_root.cpp": "the root, from which sys::walk goes on by descriptors",
    "cachefix/store/seed.cpp": "copies a cache in children with a deadline",
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
            texts = judge(part, *include.groups()) if include else []
            if include and part == "sys":
                texts += judge_in_sys(relative, include.group(2))
            if include and include.group(2) == "sys/process/become.hpp" and str(relative) not in {*BECOMES, IDENTITY_FILE}:
                texts.append(f'only {", ".join(sorted(BECOMES))} may include "{include.group(2)}"')
            if include and names_command(relative, include.group(2)):
                texts.append(f'only commands may include "{include.group(2)}"')
            found += [f"{relative}:{number}: {text}" for text in texts]
        found += calls(relative, part, source.read_text(encoding="utf-8"))
    return found


def sys_folder(path: str) -> str:
    """The folder of src/sys of a file that is named from src, as in an #include."""
    names = path.split("/")
    return names[1] if len(names) > 2 else ""


def judge_in_sys(source: Path, header: str) -> list[str]:
    if not header.startswith("sys/") or header.endswith(".h"):
        return []
    own, target = sys_folder(source.relative_to("src").as_posix()), sys_folder(header)
    below = set()
    for floor in SYS_FLOORS:
        if own in floor:
            return [] if target == own or target in below else [f'sys/{own} may not include "{header}"']
        below |= floor
    return [f"{source}: sys/{own} is on no floor"]


def names_command(source: Path, header: str) -> bool:
    return header.startswith("cli/commands/") and not source.is_relative_to("src/cli/commands")


def calls(relative: Path, part: str, text: str) -> list[str]:
    """Forbidden calls, or an exception that is not needed."""
    code = re.sub(r"//[^\n]*", "", text)
    found = []
    for number, line in enumerate(code.splitlines(), start=1):
        if str(relative) != IDENTITY_FILE and IDENTITY_CALL.search(line):
            found.append(f"{relative}:{number}: another user's ids are taken in {IDENTITY_FILE} only")
        path = None if part == "sys" else PATH_CALL.search(line)
        descriptor = None if part in DESCRIPTORS else DESCRIPTOR_CALL.search(line)
        if path or descriptor:
            found.append(f"{relative}:{number}: `{(path or descriptor).group().strip()}` belongs to src/sys")
    if str(relative) in EXCEPTIONS:
        return [] if found else [f"{relative}: needs no exception any more"]
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
    print(f"{len(found)} forbidden includes and calls")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
