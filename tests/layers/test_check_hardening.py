"""check_hardening can fail: programs that are built without one of the measures."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest
from check_hardening import lacks, read_elf

# Many functions with buffers, so that canaries and marks of jump targets have somewhere to be.
SOURCE = (
    "#include <stdio.h>\n#include <string.h>\n"
    + "".join(f"int f{i}(const char* t) {{ char b[64]; strcpy(b, t); return printf(b); }}\n" for i in range(120))
    + "int main(int c, char** v) { return f0(v[0]) + c; }\n"
)
HARDENED = ("-fPIE", "-pie", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro", "-Wl,-z,now") + (
    ("-fcf-protection",) if platform.machine() == "x86_64" else ()
)


def build(directory: Path, *flags: str) -> Path:
    source, program = directory / "program.c", directory / "program"
    source.write_text(SOURCE)
    command = ["gcc", "-w", "-O1", "-U_FORTIFY_SOURCE", *HARDENED, *flags, "-o", str(program), str(source)]
    subprocess.run(command, check=True, timeout=60)
    return program


def test_a_hardened_program_lacks_nothing(tmp_path: Path) -> None:
    assert lacks(read_elf(build(tmp_path)), optimised=True) == []


@pytest.mark.parametrize(
    ("flags", "lack"),
    [
        (("-no-pie", "-fno-pie"), "-pie"),
        (("-Wl,-z,norelro",), "-z relro"),
        (("-Wl,-z,lazy",), "-z now"),
        (("-Wl,-z,execstack",), "-z noexecstack"),
        (("-fno-stack-protector",), "-fstack-protector-strong"),
        (("-U_FORTIFY_SOURCE",), "_FORTIFY_SOURCE"),
        pytest.param(
            ("-fcf-protection=none",),
            "-fcf-protection",
            marks=pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 only"),
        ),
    ],
)
def test_what_is_left_out_is_named(tmp_path: Path, flags: tuple[str, ...], lack: str) -> None:
    assert [name for name in lacks(read_elf(build(tmp_path, *flags)), optimised=True) if lack in name]


def test_the_newest_glibc_that_is_asked_for(tmp_path: Path) -> None:
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text("#include <stdlib.h>\nint main(void) { return (int)arc4random(); }\n")
    subprocess.run(["gcc", "-o", str(program), str(source)], check=True, timeout=60)
    assert read_elf(program).glibc == (2, 36)
