"""Programs of PyPI that download to the place that is asked: sharefs must leave each of them by every name it has."""

from __future__ import annotations

from importlib.metadata import EntryPoint, distributions
from pathlib import Path

import pytest

from launcherslab.isolation import SHARED
from launcherslab.sharefs import Sharefs
from launcherslab.training_python import HUB_CLIENTS, hub_clients

NO_CLIENT = {"tiny-agents"}  # talks to a model


def console_scripts(directory: Path) -> list[EntryPoint]:
    found = [point for one in distributions(path=[str(directory)]) for point in one.entry_points]
    return [point for point in found if point.group == "console_scripts" and point.name not in NO_CLIENT]


@pytest.mark.parametrize("package", HUB_CLIENTS)
def test_each_name_of_the_real_program_keeps_its_caches(sharefs: Sharefs, package: str) -> None:
    scripts = console_scripts(hub_clients()[HUB_CLIENTS.index(package)])
    assert scripts
    for script in scripts:
        for program in ([script.name], ["python3", "-m", script.module.removesuffix(".__main__")]):
            answer = sharefs.ask([*program, "download", "a/b", "--cache-dir", f"{SHARED}/c", "--local_dir", f"{SHARED}/d"])
            assert answer.final == answer.argv and not answer.codes, answer.document
            assert not any(name.startswith("HF_") for name in answer.environment) and not answer.document["guarded"]
