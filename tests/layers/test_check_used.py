"""The check of what is used must be able to fail."""

from pathlib import Path

import check_used
import pytest

USE = "void f() { used(1); Kind kind; }\n"


@pytest.mark.parametrize(
    "header,source,expected",
    [
        ("int used(int x);", USE + "int used(int x) { return x; }", None),
        ("int unused(int x);", "int unused(int x) { return x; } // unused() is for tests", "unused"),
        ("inline int unused() { return 1; }", USE, "unused"),
        ("inline int used(int x) { return x; }", USE, None),
        ("  [[nodiscard]] std::vector<int> unused() const;", "std::vector<int> C::unused() const { return {}; }", "unused"),
        ("  virtual int unused() = 0;", USE, "unused"),
        ("struct Kind {", USE, None),
        ("enum class Lonely { a };", USE, "Lonely"),
        ("class Later;", USE, None),
    ],
)
def test_unused(tmp_path: Path, header: str, source: str, expected: str | None) -> None:
    (tmp_path / "mounts").mkdir()
    (tmp_path / "mounts/a.hpp").write_text(header + "\n")
    (tmp_path / "mounts/a.cpp").write_text(source + "\n")
    found = check_used.unused(tmp_path)
    assert found == ([] if expected is None else [f"mounts/a.hpp:1: `{expected}` is not used by the program"])
