"""The tests of a table of rows: one for each, and one that the page has these and no other."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from .bench import Bench, Row
from .page import UPDATE, Section


def _stable(line: str) -> list[str]:
    """The cells of a row; of the diagnoses their codes, as a server in trouble has several words for it."""
    return [" ".join(re.findall(r"\bSF\d+", cell)) or cell for cell in line.split(" | ")]


def _selected(rows: list[Row]) -> list[Row]:
    """Every row takes 15 minutes. A run without SHAREFS_LONG=1 proves one in eleven, from each table and always the same
    ones: its verdict depends on nothing but the code."""
    return rows if UPDATE or os.environ.get("SHAREFS_LONG") == "1" else rows[2::11]


def proofs_of(table: ModuleType) -> tuple[Any, Callable[..., None], Callable[[], None]]:
    """The fixture `bench` and two test functions, for a module that takes them by these names."""
    rows: list[Row] = table.ROWS
    section = Section(table.TITLE)

    @pytest.fixture(scope="module")
    def bench(lab_ready: None) -> Iterator[Bench]:
        with Bench(table.VERSION) as made:
            yield made
        if UPDATE:
            section.write([row.fault for row in rows])

    @pytest.mark.parametrize("row", selected := _selected(rows), ids=[row.fault for row in selected])
    def test_fault(bench: Bench, row: Row) -> None:
        line = section.add(bench.prove(row))
        assert UPDATE or _stable(section.written().get(row.fault, "")) == _stable(line), "docs/faults.md: SHAREFS_FAULTS_UPDATE=1"

    def test_the_page_has_these_rows_and_no_other() -> None:
        assert UPDATE or list(section.written()) == [row.fault for row in rows]

    return bench, test_fault, test_the_page_has_these_rows_and_no_other
