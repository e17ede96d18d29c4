"""The check of tests that are named in the documentation must be able to fail."""

from pathlib import Path

import check_docs
import pytest


@pytest.mark.parametrize(
    "page,missing",
    [
        ("unit test_walk: `rules for links`; lab test_undo", []),
        ("test_walk: `rules ...`, `..._by_a_journal`, `test_undo_*`", []),
        ("unit test_walk: `rules for\nlinks`", []),
        ("`test_gone`", ["test_gone"]),
        ("test_walk: `rules of links`", ["rules of links"]),
        ("test_walk: `rules for links`, `..._by_nobody`", ["..._by_nobody"]),
    ],
)
def test_problems(tmp_path: Path, page: str, missing: list[str]) -> None:
    for path, text in {"tests/unit/test_walk.cpp": 'TEST_CASE("rules for links")', "tests/lab/test_undo.py": "def test_undo_by_a_journal(",
                       "docs/security.md": page}.items():  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert check_docs.problems(tmp_path) == [f"docs/security.md: there is no test `{one}`" for one in missing]
