"""scripts/demo_story.py holds: the first thing that a stranger runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

LAB = Path(__file__).parent


def test_the_demo_holds(lab_ready: None, shipped_program: None) -> None:
    told = subprocess.run(
        ["/usr/bin/python3", str(LAB.parent.parent / "scripts" / "demo_story.py")],
        env={**os.environ, "PYTHONPATH": str(LAB)},
        capture_output=True,
        text=True,
        timeout=1400,
    )
    assert told.returncode == 0, told.stdout[-3000:] + told.stderr
