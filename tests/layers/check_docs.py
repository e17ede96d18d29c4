#!/usr/bin/env python3
"""Fails where docs/*.md name a test that is not there: a promise with such a proof has none.

usage: check_docs.py ROOT

A test is named by its file (test_walk), by its function (test_undo), or by its title behind the file (test_walk: `rules for
links`). `...` stands for what is left out at the beginning or the end, `*` for the end of a name.
"""

import re
import sys
from pathlib import Path

NAMED = re.compile(r"\btest_\w+")
TITLED = re.compile(r"\btest_\w+: ((?:`[^`]+`(?:, )?)+)")
TITLE = re.compile(r"`([^`]+)`")


def problems(root: Path) -> list[str]:
    tests = [path for path in sorted((root / "tests").rglob("test_*")) if path.suffix in (".py", ".cpp")]
    names = {path.stem for path in tests}
    text = "\n".join(path.read_text(encoding="utf-8") for path in tests)
    found = []
    for page in sorted((root / "docs").glob("*.md")):
        words = " ".join(page.read_text(encoding="utf-8").split())
        wanted = [name for name in NAMED.findall(words) if name not in names]
        wanted += [title for titles in TITLED.findall(words) for title in TITLE.findall(titles)]
        missing = [one for one in dict.fromkeys(wanted) if one.removeprefix("...").removesuffix("...").rstrip("* ") not in text]
        found += [f"docs/{page.name}: there is no test `{one}`" for one in missing]
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print("\n".join(wrong))
    sys.exit(bool(wrong))
