"""The commands that README and docs print are the program's: each has a command of that name, and its options."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
SHAREFS = os.environ["SHAREFS_BIN"]
PAGES = sorted([PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")])
# In `backticks`, or a line of a block; up to what a shell would do with it, or the command of somebody else.
FENCED = re.compile(r"^```\w*\n(.*?)^```$", re.M | re.S)
INLINE, LINE = re.compile(r"`sharefs ([^`]+)`"), re.compile(r"^(?:\S*[#$] |sudo )?sharefs (.+)$", re.M)
OTHERS = re.compile(r" --\s.*| [|;&>] ?.*| #.*|\.\.\..*", re.S)
RETIRED = re.compile(r"^## SF\d{3} \(retired\).*?(?=^## |\Z)", re.M | re.S)
OPTION = re.compile(r"(?<!\S)\[?(-{1,2}[a-zA-Z][\w-]*)")


@cache
def help_of(command: str) -> str | None:
    shown = subprocess.run([SHAREFS, *command.split(), "--help"], capture_output=True, text=True, check=False)
    return shown.stdout if shown.returncode == 0 else None


def faults(printed: str) -> list[str]:
    words = OTHERS.sub("", printed).split()
    # "conda gc ENV" is a command of two words, "conda ENV" none; "mount|umount" are two commands of one.
    named = [word for word in words[:2] if re.fullmatch(r"[a-z]+(-[a-z]+)*", word)]
    if not named or words[0] != named[0]:
        return [] if not words or words[0].startswith(("-", "[")) else [f"`sharefs {printed}`: no command"]
    shown = help_of(named[0])
    if shown is None:
        return [f"`sharefs {printed}`: there is no `{named[0]}`"]
    if len(named) == 2:
        shown = help_of(" ".join(named)) or shown
    known = shown + (help_of("options") or "")
    return [f"`sharefs {printed}`: no {option}" for option in OPTION.findall(" ".join(words)) if not re.search(rf"(?<![\w-]){option}(?![\w-])", known)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_what_is_printed_is_there(page: Path) -> None:
    text = RETIRED.sub("", page.read_text(encoding="utf-8"))
    found = LINE.findall("\n".join(FENCED.findall(text))) + INLINE.findall(FENCED.sub("", text))
    assert [fault for printed in found for fault in faults(printed)] == []


def test_what_is_not_there_is_seen() -> None:
    assert faults("mount --all --verify") == faults("run -- python --frobnicate") == []
    assert faults("frobnicate --all") and faults("mount --frobnicate") and faults("conda share ENV --frobnicate")
