"""Fixtures: the world of the corpus in namespaces of this test process."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent), str(_TESTS / "launchers"), str(_TESTS / "lab")]

from corpuslab.world import World  # noqa: E402
from launcherslab.isolation import isolate  # noqa: E402


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    if os.geteuid() != 0:
        pytest.fail("namespaces and mounts of these tests need root", pytrace=False)
    missing = [name for name in ("ip", "gcc") if shutil.which(name) is None]
    if missing or not Path("/dev/fuse").exists():
        pytest.fail(f"missing: {', '.join(missing) or '/dev/fuse'}; run scripts/setup.sh --lab", pytrace=False)
    isolate()
    made = World(Path(os.environ["SHAREFS_BIN"]).resolve())
    yield made
    made.close()
