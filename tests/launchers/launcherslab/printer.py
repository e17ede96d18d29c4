"""The program at the end of each command line, and reading what it printed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

PRINTER = Path(__file__).parent.parent / "print_arguments"

# The shape of a training script that may lose its --cache_dir: optional, and only handed on to the two loaders.
_TRAINING = """
def main():
    import argparse
    from datasets import load_dataset
    from transformers import AutoModel
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache_dir", default=None)
    parser.add_argument("--output_dir")
    args = parser.parse_args()
    load_dataset("x", cache_dir=args.cache_dir)
    AutoModel.from_pretrained("x", cache_dir=args.cache_dir)
"""


@dataclass(frozen=True)
class Printed:
    """What one process of the launched program saw."""

    argv: list[str]
    directory: str
    host: str
    environment: dict[str, str]


def printed(output: str) -> list[Printed]:
    """One entry per process. Launchers put their own words around the lines, and in front of them."""
    lines = [line[line.index('{"argv"') :] for line in output.splitlines() if '{"argv"' in line]
    return [Printed(**json.JSONDecoder().raw_decode(line)[0]) for line in lines]


def write_printers(directory: Path) -> None:
    """Into a working directory: the programs `print_arguments` and `train.py`, and the module `lab.train`.

    sharefs rewrites the --cache_dir of the first and the last, and drops that of train.py, which never calls main().
    """
    source = PRINTER.read_text()
    (directory / "lab").mkdir()
    (directory / "lab" / "__init__.py").touch()
    for name, text in {"print_arguments": source, "lab/train.py": source, "train.py": source + _TRAINING}.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)


def dataset_cache_of(process: Printed) -> str | None:
    """Where a train.py would build its datasets: what --cache_dir says, else HF_DATASETS_CACHE."""
    for at, word in enumerate(process.argv):
        if word == "--cache_dir":
            return process.argv[at + 1]
    return process.environment.get("HF_DATASETS_CACHE")
