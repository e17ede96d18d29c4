"""Fixtures: a channel of our own, and environments installed from it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "lab")]

from environmentslab.conda_python import conda_python  # noqa: E402
from environmentslab.environment import Workshop  # noqa: E402
from environmentslab.shared import Shared  # noqa: E402
from environmentslab.store import Store, make_store  # noqa: E402


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """A place that other users can pass: each run of pytest on the machine closes the one that all runs share."""
    if config.option.basetemp is None:
        place = tempfile.mkdtemp(prefix="sharefs-env.")
        os.chmod(place, 0o711)
        config.option.basetemp = f"{place}/t"
        config.add_cleanup(lambda: shutil.rmtree(place, ignore_errors=True))


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    made = Workshop(conda_python(), tmp_path_factory.mktemp("conda"))
    made.directory.chmod(0o755)
    made.build()
    return made


@pytest.fixture
def place(workshop: Workshop) -> Path:
    """A directory for the environments of one test, on the file system of the package cache: hard links work."""
    number = sum(1 for _ in workshop.directory.iterdir())  # names of tests are long, and a prefix has 127 bytes
    directory = workshop.directory / f"{number}"
    directory.mkdir()
    return directory


@pytest.fixture
def shared(workshop: Workshop, place: Path) -> Shared:
    return Shared(workshop, place)


@pytest.fixture
def staged(shared: Shared) -> Shared:
    """Shared, without an image, and nothing is staged yet."""
    shared.stage = shared.place / "stage"
    for above in shared.place.parents:  # copies lie only where nobody else could replace them
        if above.stat().st_mode & 0o022 and not above.stat().st_mode & 0o1000:
            above.chmod(0o755)
    shared.configure(f"  stage: {shared.stage}\n  image: off\n")
    shared.share()
    return shared


@pytest.fixture
def store(workshop: Workshop, place: Path) -> Store:
    return make_store(workshop, place)
