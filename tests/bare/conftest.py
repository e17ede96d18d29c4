"""One machine for all tests of the file, in their order: each begins where the one before has left it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from bare import Bare  # noqa: E402


@pytest.fixture(scope="session")
def machine() -> Iterator[Bare]:
    made = Bare()
    try:
        made.bring_project()
        made.compile_by_ccache()
        yield made
    finally:
        made.remove()
