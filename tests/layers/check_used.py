#!/usr/bin/env python3
"""Fails on a function or type of a header that the program itself does not use: nothing is there for tests alone.

usage: check_used.py ROOT

By names, so it is cheap and never wrong about a name that occurs once: of overloads, and of names that are used for several
things, it knows nothing.
"""

import re
import sys
from collections import Counter
from pathlib import Path

TOPS = ("src", "exports", "mounts", "conda", "cachefix", "fleet")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.S)
NAME = re.compile(r"\b[A-Za-z_]\w*\b")
# What a line of a header declares: a function, or a type.
FUNCTION = re.compile(r"^\s*(?:\[\[nodiscard\]\]\s+)?(?:(?:static|virtual|inline|constexpr|explicit|friend)\s+)*"
                      r"[\w:<>,&*\s]+?[\s&*]([a-z]\w*)\(")
TYPE = re.compile(r"^\s*(?:struct|class|enum class)\s+([A-Z]\w*)\b(?!\s*;)")
# Called by the language or by a library, by the kind of their name.
CALLED_BY_OTHERS = {"main", "to_json", "from_json", "begin", "end", "operator", "static_assert"}


def without_comments(text: str) -> str:
    return COMMENT.sub(lambda found: "\n" * found.group().count("\n") or " ", text)


def unused(root: Path) -> list[str]:
    sources = {p: without_comments(p.read_text(encoding="utf-8")) for top in TOPS for p in sorted((root / top).rglob("*.[ch]pp"))}
    counts = Counter(name for text in sources.values() for name in NAME.findall(text))
    found = []
    for path, text in sources.items():
        if path.suffix != ".hpp":
            continue
        lines = text.splitlines()
        for number, line in enumerate(lines, start=1):
            function, kind = FUNCTION.match(line), TYPE.match(line)
            name = function.group(1) if function else kind.group(1) if kind else None
            if name is None or name in CALLED_BY_OTHERS or line.lstrip().startswith("return"):
                continue
            # Declared and defined, or both at once.
            is_template = number > 1 and lines[number - 2].lstrip().startswith("template")
            is_inline = kind is not None or is_template or "{" in line or "= 0;" in line or re.search(r"\b(inline|constexpr)\b", line)
            if counts[name] <= (1 if is_inline else 2):
                found.append(f"{path.relative_to(root)}:{number}: `{name}` is not used by the program")
    return found


def main() -> int:
    found = unused(Path(sys.argv[1]))
    print("\n".join(found) or "everything in the headers is used")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
