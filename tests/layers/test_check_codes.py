"""The check of diagnosis codes must be able to fail."""

from pathlib import Path

import check_codes
import pytest


@pytest.mark.parametrize(
    "source,page,expected",
    [
        ('"SF101"', "", ["SF101 has no section in docs/diagnoses"]),
        ("", "## SF101 title\n", ["SF101 is described, but nothing says it"]),
        ('"SF101"', "## SF101 title\n## SF101 again\n", ["SF101 is described 2 times"]),
        ('"SF101"', "## SF101 title\n", []),
    ],
)
def test_problems(tmp_path: Path, source: str, page: str, expected: list[str]) -> None:
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports/a.cpp").write_text(source)
    (tmp_path / "docs/diagnoses").mkdir(parents=True)
    (tmp_path / "docs/diagnoses/exports.md").write_text(page)
    assert check_codes.problems(tmp_path) == expected
