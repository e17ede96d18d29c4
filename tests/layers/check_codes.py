#!/usr/bin/env python3
"""Fails on a diagnosis code without a section in docs/diagnoses, or a section without a code, or a section twice.

usage: check_codes.py ROOT
"""

import re
import sys
from collections import Counter
from pathlib import Path

CODE = re.compile(r'"(SF\d{3})"')
SECTION = re.compile(r"^## (SF\d{3})\b", re.M)


def problems(root: Path) -> list[str]:
    sources = [p for top in ("src", "exports", "mounts", "conda", "cachefix") for p in (root / top).rglob("*.[ch]pp")]
    used = {code for source in sources for code in CODE.findall(source.read_text(encoding="utf-8"))}
    sections = Counter(
        code for page in (root / "docs/diagnoses").glob("*.md") for code in SECTION.findall(page.read_text(encoding="utf-8"))
    )
    return (
        [f"{code} has no section in docs/diagnoses" for code in sorted(used - sections.keys())]
        + [f"{code} is described, but nothing says it" for code in sorted(sections.keys() - used)]
        + [f"{code} is described {count} times" for code, count in sorted(sections.items()) if count > 1]
    )


def main() -> int:
    found = problems(Path(sys.argv[1]))
    print("\n".join(found) or "every diagnosis code has its section")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
