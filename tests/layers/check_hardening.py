#!/usr/bin/python3
"""Read an ELF program and say what of the hardening of cmake/Settings.cmake it lacks, and whether it asks for a newer
glibc than --glibc. Exit code 1 if anything."""

from __future__ import annotations

import argparse
import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ET_DYN = 3
PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 2, 3, 0x6474E551, 0x6474E552
PF_X = 1
DT_NULL, DT_FLAGS, DT_FLAGS_1 = 0, 30, 0x6FFFFFFB
DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 0x8, 0x1, 0x08000000
SHT_DYNSYM = 11
EM_X86_64 = 62
ENDBR64 = b"\xf3\x0f\x1e\xfa"


@dataclass
class Elf:
    """What the checks need of a 64-bit little-endian program."""

    kind: int
    machine: int
    segments: list[tuple[int, int]] = field(default_factory=list)  # type, flags
    flags: dict[int, int] = field(default_factory=dict)  # of the dynamic section, by tag
    imports: set[str] = field(default_factory=set)
    code: bytes = b""
    glibc: tuple[int, ...] = (0,)  # the newest version that it asks for


def sections(data: bytes, header: tuple[int, ...]) -> Iterator[tuple[str, int, int, int, int]]:
    """Name, type, link, offset and size of each."""
    offset, size, count, names = header[5], header[10], header[11], header[12]
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, offset + index * size) for index in range(count)]
    for row in rows:
        begin = rows[names][4] + row[0]
        yield data[begin : data.index(b"\0", begin)].decode(), row[1], row[6], row[4], row[5]


def read_elf(path: Path) -> Elf:
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        sys.exit(f"error: {path} is no 64-bit little-endian ELF file")
    header = struct.unpack_from("<HHIQQQIHHHHHH", data, 16)
    elf = Elf(kind=header[0], machine=header[1])
    for index in range(header[9]):
        kind, flags, offset, _, _, size = struct.unpack_from("<IIQQQQ", data, header[4] + index * header[8])
        elf.segments.append((kind, flags))
        if kind == PT_DYNAMIC:
            for at in range(offset, offset + size, 16):
                tag, value = struct.unpack_from("<qQ", data, at)
                if tag == DT_NULL:
                    break
                elf.flags[tag] = value
    rows = list(sections(data, header))
    for name, kind, link, offset, size in rows:
        if name == ".text":
            elf.code = data[offset : offset + size]
        if kind == SHT_DYNSYM:
            strings = rows[link][3]
            texts = data[strings : strings + rows[link][4]]
            versions = [tuple(map(int, one.split(b"."))) for one in re.findall(rb"\0GLIBC_([0-9.]+)(?=\0)", texts)]
            elf.glibc = max(versions, default=(0,))
            for at in range(offset, offset + size, 24):
                symbol, _, _, section = struct.unpack_from("<IBBH", data, at)
                begin = strings + symbol
                if section == 0:
                    elf.imports.add(data[begin : data.index(b"\0", begin)].decode())
    return elf


def lacks(elf: Elf, *, optimised: bool) -> list[str]:
    kinds = {kind for kind, _ in elf.segments}
    bind_now = elf.flags.get(DT_FLAGS, 0) & DF_BIND_NOW or elf.flags.get(DT_FLAGS_1, 0) & DF_1_NOW
    executable_stack = any(kind == PT_GNU_STACK and flags & PF_X for kind, flags in elf.segments)
    wanted = {
        "a position-independent program (-pie)": elf.kind == ET_DYN and bool(elf.flags.get(DT_FLAGS_1, 0) & DF_1_PIE),
        "read-only relocations (-z relro)": PT_GNU_RELRO in kinds,
        "no lazy binding (-z now)": bool(bind_now),
        "a stack that is no code (-z noexecstack)": PT_GNU_STACK in kinds and not executable_stack,
        "stack canaries (-fstack-protector-strong)": "__stack_chk_fail" in elf.imports,
    }
    if optimised:
        wanted["checked library calls (_FORTIFY_SOURCE)"] = any(name.endswith("_chk") for name in elf.imports)
    if elf.machine == EM_X86_64:
        wanted["marked targets of jumps (-fcf-protection)"] = elf.code.count(ENDBR64) > 100
    return [name for name, there in wanted.items() if not there]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path)
    parser.add_argument("--optimised", action="store_true", help="built with -O1 or more")
    parser.add_argument("--glibc", help="the oldest version that it must start with, for example 2.34")
    arguments = parser.parse_args()
    elf = read_elf(arguments.program)
    missing = lacks(elf, optimised=arguments.optimised)
    if arguments.glibc and elf.glibc > tuple(map(int, arguments.glibc.split("."))):
        missing.append(f"a glibc of {arguments.glibc}: it asks for {'.'.join(map(str, elf.glibc))}")
    for name in missing:
        print(f"{arguments.program}: lacks {name}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
