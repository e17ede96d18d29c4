"""Fixtures: sharefs in namespaces of this test process, and the real launchers."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "lab")]  # sharefslab waits for us, too

from launcherslab.isolation import isolate  # noqa: E402
from launcherslab.printer import write_printers  # noqa: E402
from launcherslab.sharefs import Sharefs, sharefs_under_test  # noqa: E402


def need_programs(*names: str) -> None:
    """Without a launcher its tests fail: a silent skip would look like success."""
    missing = [name for name in names if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
    if missing:
        pytest.fail(f"missing: {', '.join(missing)}; run scripts/setup.sh --lab", pytrace=False)


@pytest.fixture(scope="session")
def isolated() -> None:
    if os.geteuid() != 0:
        pytest.fail("namespaces and mounts of these tests need root", pytrace=False)
    need_programs("ip")
    isolate()


@pytest.fixture(scope="session")
def sharefs(isolated: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sharefs]:
    """sharefs in a working directory with `print_arguments`, `train.py` and the module `lab.train`."""
    directory = tmp_path_factory.mktemp("job")
    write_printers(directory)
    yield sharefs_under_test(directory)
