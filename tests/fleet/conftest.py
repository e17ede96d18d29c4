import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from network import Network  # noqa: E402


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    made = Network(tmp_path / "network")
    shutil.rmtree("/var/lib/sharefs/fleet", ignore_errors=True)  # a state of the test's own: tests/support/alone
    yield made
