"""Reading the corpus: lines.txt and scripts/*.sh."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from .world import ROOT

CORPUS = Path(__file__).parent.parent
_PLACES = re.compile(r"(?<![\w.$}])/(share|scratch)(?=/|\b)")
# Words that only a shell understands in front: what stands there has to be given to one.
_SHELL_WORDS = set(
    "export source . cd eval set unset for while until if case function declare local readonly typeset trap exec ulimit "
    "module conda-activate shopt alias pushd { ( [ [[ : read".split()
)


@dataclass(frozen=True)
class Shape:
    name: str  # place in the corpus
    group: str  # where such a shape occurs
    text: str  # a line, or a whole script
    environment: dict[str, str] = field(default_factory=dict)
    is_script: bool = False


def placed(text: str) -> str:
    """/share and /scratch of the corpus where they are in the test's namespaces."""
    return _PLACES.sub(rf"{ROOT}/\1", text)


def _assignments(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in shlex.split(placed(text)))


def read_lines(path: Path) -> list[Shape]:
    """`# ` starts a group and names it; `@env NAME=VALUE...` holds for the rest of the group."""
    shapes: list[Shape] = []
    group, environment = "", dict[str, str]()
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if line.startswith("# "):
            group, environment = line[2:], {}
        elif line.startswith("@env "):
            environment = environment | _assignments(line[5:])
        elif line.strip() and not line.startswith("#"):
            shapes.append(Shape(f"{path.name}:{number}", group, placed(line), environment))
    return shapes


def read_scripts(directory: Path) -> list[Shape]:
    """A line `# where: TEXT` says where it occurs, `# env: NAME=VALUE...` what it finds in its environment."""
    shapes = []
    for path in sorted(directory.glob("*.sh")):
        text = path.read_text()
        where = re.search(r"^# where: (.*)$", text, re.MULTILINE)
        environment = re.search(r"^# env: (.*)$", text, re.MULTILINE)
        assigned = _assignments(environment[1]) if environment else {}
        shapes.append(Shape(path.name, where[1] if where else "", placed(text), assigned, is_script=True))
    return shapes


def is_shell_text(line: str) -> bool:
    """Must the line be given to a shell, or can `sharefs run --` stand in front of it?"""
    lexer = shlex.shlex(line, posix=False, punctuation_chars=";&|()\n")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words = list(lexer)
    redirections = {">&", "&>", "&>>", ">|"}
    operators = [word for word in words if set(word) <= set(";&|()") and word not in redirections]
    first = next((word for word in words if not re.match(r"\w+=", word)), "")
    # `2>&1` and `&>` are no operators, and bash does them in front of sharefs.
    bare = re.sub(r"'[^']*'|\"(?:\\.|[^\"])*\"|\$\([^)]*\)", "", line)
    bare = re.sub(r"\d?>&\d|&>>?", "", bare)
    return first in _SHELL_WORDS or first == "" or bool(operators and re.search(r"[;&|()]", bare)) or "<<" in bare


def with_sharefs(line: str) -> str:
    """The line as a user would write it with `sharefs run`, for bash."""
    if is_shell_text(line):
        return f"sharefs run --json -- bash -c {shlex.quote(line)}"
    assignments = re.match(r"(?:\w+=(?:'[^']*'|\"[^\"]*\"|[^\s'\"])*\s+)*", line)
    front = assignments[0] if assignments else ""
    return f"{front}sharefs run --json -- {line[len(front) :]}"
