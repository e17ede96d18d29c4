"""docs/faults.md: what the last run said of each fault, a section for each test file. A run compares, and with
SHAREFS_FAULTS_UPDATE=1 it writes its section anew."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs/faults.md"
UPDATE = os.environ.get("SHAREFS_FAULTS_UPDATE") == "1"
COLUMNS = ["Fault", "Command", "Expected", "Got", "In time", "`sharefs doctor`: cause → cure", "Data intact", "Left over"]
HEAD = """\
# The fault matrix

A run of the lab writes this page (`SHAREFS_FAULTS_UPDATE=1 ctest -R lab.faults`). `scripts/test.sh --long` fails where a
row would differ: see `tests/lab/faults`. For each row, on real kernel NFS, the test

1. breaks a machine in one way;
2. runs the command;
3. asks `sharefs doctor`, which has to name the cause in one line and the cure in the next, and to say nothing else;
4. mends the machine;
5. checks that the share is well, and that its file is what it was: its checksum on the server, and as the node reads it
   past its cache;
6. checks that no new process, mount or file is left.

"Expected" and "got" are the state of the share after the command, and the command's exit code. "In time": the command has
come back by itself. What differs from run to run (times, process numbers) is shown as N.
"""


class Section:
    """The rows of one test file."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.rows: dict[str, str] = {}

    def add(self, cells: list[str]) -> str:
        line = "| " + " | ".join(cells) + " |"
        self.rows[cells[0]] = line
        return line

    def written(self) -> dict[str, str]:
        """By fault, as the page has them."""
        lines = _sections().get(self.title, "").splitlines()
        return {line.split(" | ")[0].removeprefix("| "): line for line in lines[4:] if line.startswith("| ")}

    def write(self, order: list[str]) -> None:
        """Rows that were not run stay as they are."""
        rows = self.written() | self.rows
        table = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS), *(rows[one] for one in order if one in rows)]
        with open(PAGE, "a+", encoding="utf-8") as page:
            fcntl.flock(page, fcntl.LOCK_EX)  # the test files run at the same time
            sections = _sections() | {self.title: "\n".join([f"## {self.title}", "", *table, ""])}
            text = "\n".join([HEAD, *(sections[title] for title in sorted(sections))])
            page.truncate(0)
            page.write(text)


def _sections() -> dict[str, str]:
    if not PAGE.exists():
        return {}
    parts = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    return {part.splitlines()[0]: "## " + part.rstrip("\n") + "\n" for part in parts}
