#!/usr/bin/env python3
"""Adds up the JUnit files of ctest to one line: `N passed, N failed, N skipped`.

A ctest test that is itself a runner (Catch2, pytest, golden cases) counts as many tests as it says it ran; if it failed
without saying how many, it is one failure. Exits with 1 if anything failed or nothing ran.

usage: count.py [--only NAME,NAME] FILE...
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

CATCH_ALL = re.compile(r"All tests passed \(\d+ assertions? in (\d+) test cases?\)")
CATCH_SOME = re.compile(r"^test cases:\s+(\d+) \|(.*)$", re.M)
PYTEST = re.compile(r"^=*\s*((?:\d+ (?:passed|failed|skipped|error|errors|xfailed|warnings?|deselected)(?:, )?)+) in ", re.M)
GOLDEN = re.compile(r"^(\d+) of (\d+) golden cases passed", re.M)


def counted(text: str, ok: bool) -> tuple[int, int, int]:
    """Passed, failed, skipped of one ctest test, from its output."""
    if match := GOLDEN.search(text):
        passed, failed, skipped = int(match[1]), int(match[2]) - int(match[1]), 0
    elif match := CATCH_ALL.search(text):
        passed, failed, skipped = int(match[1]), 0, 0
    elif match := CATCH_SOME.search(text):
        failed = sum(int(n) for n in re.findall(r"(\d+) failed", match[2]))
        passed, skipped = int(match[1]) - failed, 0
    elif matches := PYTEST.findall(text):
        words = dict((name, int(n)) for n, name in re.findall(r"(\d+) (\w+)", matches[-1]))
        passed, skipped = words.get("passed", 0), words.get("skipped", 0)
        failed = words.get("failed", 0) + words.get("error", 0) + words.get("errors", 0)
    else:
        passed, failed, skipped = (1, 0, 0) if ok else (0, 1, 0)
    if not ok and failed == 0:  # it died after its summary, or ran into ctest's time limit
        failed = 1
    return passed, failed, skipped


def main() -> int:
    files, only = sys.argv[1:], None
    if files[:1] == ["--only"]:
        only, files = set(files[1].split(",")), files[2:]
    total = [0, 0, 0]
    for name in files:
        for case in ElementTree.parse(name).getroot().iter("testcase"):
            if only is not None and case.get("name") not in only:
                continue
            ok = case.get("status") == "run"
            numbers = counted(case.findtext("system-out") or "", ok)
            total = [a + b for a, b in zip(total, numbers)]
            if numbers[1]:
                print(f"failed: {case.get('name')}")
    passed, failed, skipped = total
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
