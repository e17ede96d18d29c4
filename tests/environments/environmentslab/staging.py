"""Copies of a shared environment on this host's own disk."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

from environmentslab.shared import Shared


def stage(staged: Shared, *words: str, expect: int | None = 0) -> str:
    return staged.run("conda", "stage", "env", "--yes", *words, expect=expect).stderr


def prefix(staged: Shared) -> str:
    """Of a command of `conda run`."""
    return staged.run("conda", "run", "env", "python", "-c", "import sys, json; print(sys.prefix)").stdout.strip()


def copies(staged: Shared) -> list[str]:
    return sorted(path.name for path in staged.stage.glob("*/*/env/*") if path.name != "uses")


def make_image(generation: Path) -> Path:
    """The image of a generation, with its note."""
    image = Path(f"{generation}.sqfs")
    image.unlink(missing_ok=True)
    command = ["mksquashfs", generation, image, "-comp", "zstd", "-Xcompression-level", "3", "-quiet", "-no-progress"]
    subprocess.run(command, check=True, capture_output=True)
    record = json.loads(Path(f"{generation}.json").read_text())
    content = image.read_bytes()
    note = {"sharefs": 1, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content), "created": record["created"], "files": 1}
    Path(f"{image}.json").write_text(json.dumps(note))
    return image


def staged_mounts(staged: Shared) -> list[str]:
    """Names of the staged generations on which an image is mounted."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    targets = [line.split()[4] for line in lines if " - squashfs " in line]
    return sorted(os.path.basename(one) for one in targets if one.startswith(f"{staged.stage}/"))


def unmount_all(staged: Shared) -> None:
    for path in staged.stage.glob("*/*/env/[0-9][0-9][0-9][0-9]"):
        if path.is_mount():
            subprocess.run(["umount", "--lazy", path], check=True)
