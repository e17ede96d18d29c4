#!/usr/bin/env python3
"""Fails on a diagnosis code without a section in docs/diagnoses, a section without a code, or a section twice; and on one
that is not in its form: the cause, and then, each once and at the start of a line, `See:`, `Cure:` and `sharefs:` (what
sharefs does). `sharefs explain` prints the sections by that form. A section `SFnnn (retired) ...` tells what has replaced a
code that nothing says any more.

usage: check_codes.py ROOT
"""

import re
import sys
from collections import Counter
from pathlib import Path

from check_layers import ROOMS

CODE = re.compile(r'"(SF\d{3})"')
SECTION = re.compile(r"^## (SF\d{3})\b.*\n((?:(?!## ).*\n?)*)", re.M)
RETIRED = re.compile(r"^## (SF\d{3}) \(retired\)", re.M)
FORM = ["See", "Cure", "sharefs"]
PART = re.compile(r"^(Usual cause|See|Cure|sharefs):[ \n]", re.M)


def fault_of(body: str) -> str | None:
    found = [part for part in PART.findall(body) if part != "Usual cause"]
    if found != FORM:
        return f"has {', '.join(found) or 'none'} where {', '.join(FORM)} should be"
    texts = PART.split(body)
    return "has an empty part" if not all(text.strip() for text in texts) else None


def problems(root: Path) -> list[str]:
    sources = [p for top in ("src", *ROOMS) for p in (root / top).rglob("*.[ch]pp")]
    used = {code for source in sources for code in CODE.findall(source.read_text(encoding="utf-8"))}
    pages = [page.read_text(encoding="utf-8") for page in sorted((root / "docs/diagnoses").glob("*.md"))]
    described = [(code, body) for page in pages for code, body in SECTION.findall(page)]
    sections = Counter(code for code, _ in described)
    retired = {code for page in pages for code in RETIRED.findall(page)}
    return (
        [f"{code} has no section in docs/diagnoses" for code in sorted(used - sections.keys())]
        + [f"{code} is described, but nothing says it" for code in sorted(sections.keys() - used - retired)]
        + [f"{code} is retired, but something says it" for code in sorted(used & retired)]
        + [f"{code} is described {count} times" for code, count in sorted(sections.items()) if count > 1]
        + [f"{code} {fault}" for code, body in described if (fault := fault_of(body))]
    )


def main() -> int:
    found = problems(Path(sys.argv[1]))
    print("\n".join(found) or "every diagnosis code has its section")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
