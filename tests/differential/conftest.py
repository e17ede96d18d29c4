"""Each run of these tests has a host of its own: nothing here touches the machine's exports."""

from __future__ import annotations

import pytest

from differential.host import isolate


@pytest.fixture(scope="session", autouse=True)
def host() -> None:
    isolate()
