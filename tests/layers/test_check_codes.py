"""The check of diagnosis codes must be able to fail."""

from pathlib import Path

import check_codes
import pytest


FORM = "why\nSee: x\nCure: y\nsharefs: z\n"


@pytest.mark.parametrize(
    "source,page,expected",
    [
        ('"SF101"', "", ["SF101 has no section in docs/diagnoses"]),
        ("", "## SF101 title\n" + FORM, ["SF101 is described, but nothing says it"]),
        ("", "## SF101 (retired) title\n" + FORM, []),
        ('"SF101"', "## SF101 (retired) title\n" + FORM, ["SF101 is retired, but something says it"]),
        ('"SF101"', "## SF101 title\n" + FORM + "## SF101 again\n" + FORM, ["SF101 is described 2 times"]),
        ('"SF101"', "## SF101 title\n" + FORM, []),
        ('"SF101"', "## SF101 title\nwhy\nUsual cause: y\nSee: x\nCure: y\nsharefs: z\n", []),
        ('"SF101"', "## SF101 title\nwhy\nCure: y\n", ["SF101 has Cure where See, Cure, sharefs should be"]),
        ('"SF101"', "## SF101 title\nSee: x\nCure: y\nsharefs: z\n", ["SF101 has an empty part"]),
        ('"SF101"', "## SF101 title\nwhy\nSee:\nCure: y\nsharefs: z\n", ["SF101 has an empty part"]),
    ],
)
def test_problems(tmp_path: Path, source: str, page: str, expected: list[str]) -> None:
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports/a.cpp").write_text(source)
    (tmp_path / "docs/diagnoses").mkdir(parents=True)
    (tmp_path / "docs/diagnoses/exports.md").write_text(page)
    assert check_codes.problems(tmp_path) == expected
