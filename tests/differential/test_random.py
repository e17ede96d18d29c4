"""Random files and hosts, and what the plans of `sharefs export` become there."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from differential.compare import difference, disagreement
from differential.grammar import configuration, exports_file, odd_host
from differential.host import ETAB, ETC, MAIN, WORKERS, checked, lay, on_hosts

RANDOM_FILES = 2000
ODD_HOSTS = 600
CONFIGURATIONS = 200
OWN_FILE = Path("/etc/exports.d/sharefs.exports")


def some_random_files(first: int) -> list[str]:
    """Files from number `first` on, by ones, twos and threes: in one run all of them count together."""
    wrong = []
    number = first
    while number < RANDOM_FILES:
        group = {MAIN: exports_file(number)}
        number += WORKERS
        for name in ("a", "b")[: number // WORKERS % 3]:
            if number < RANDOM_FILES:
                group[f"/etc/exports.d/{name}.exports"] = exports_file(number)
                number += WORKERS
        if found := disagreement(group):
            wrong.append(found)
    return wrong


def test_random_files() -> None:
    wrong = [found for part in on_hosts(some_random_files) for found in part]
    assert wrong == [], f"{len(wrong)} files, the first:\n" + "\n".join(wrong[:3])


def some_odd_hosts(first: int) -> list[str]:
    wrong = []
    for number in range(first, ODD_HOSTS, WORKERS):
        hosts, lying = odd_host(number)
        (ETC / "hosts").write_text(hosts)
        lay(lying)
        if found := difference():
            wrong.append(f"host {number}:\n{hosts}{lying}\n{found}")
    return wrong


def test_odd_hosts() -> None:
    wrong = [found for part in on_hosts(some_odd_hosts) for found in part]
    assert wrong == [], f"{len(wrong)} hosts, the first:\n" + "\n".join(wrong[:3])


def planned() -> dict[str, Any]:
    """The document of `export --all`, which changes nothing."""
    done = subprocess.run([os.environ["SHAREFS_BIN"], "--config", ETC / "sharefs.yaml", "export", "--all", "--dry-run", "--json"],
                          capture_output=True, timeout=60, check=False, cwd="/")
    assert done.returncode in (0, 1, 2), done.stderr
    return json.loads(done.stdout)


def text_of_plan(document: dict[str, Any]) -> str | None:
    """What the plan writes to the file of sharefs; None if it stays as it is."""
    files = [step["action"] for step in document["plan"]["steps"] if step["action"].get("path") == str(OWN_FILE)]
    return files[0]["after"] if files else None


def wrong_plans(first: int) -> tuple[int, list[str]]:
    """How many plans there were, and those that exportfs does not take as they are meant."""
    wrong, plans = [], 0
    for number in range(first, CONFIGURATIONS, WORKERS):
        hosts, lying = odd_host(number)
        (ETC / "hosts").write_text(hosts)
        lay({path: one for path, one in lying.items() if path != str(OWN_FILE)})
        ETAB.write_bytes(b"")
        (ETC / "sharefs.yaml").write_text(configuration(number, os.uname().nodename))
        document = planned()
        if document["plan"] is None or not document["ok"]:
            continue  # it is refused, and says why
        plans += 1
        OWN_FILE.write_text(text_of_plan(document) or "")
        said = difference()
        now = checked()
        own = [entry for file in now["files"] if file["file"] == str(OWN_FILE) for entry in [*file["exports"], *file["lost"]]]
        # one host by two names, with the same rights
        twice = {one["subject"] for one in now["diagnoses"] if one["code"] == "SF115" and one["severity"] == "warning"}
        said += "".join(f"not exported: {entry}\n" for entry in own if not entry.get("exported") and entry["origin"] not in twice)
        if len(own) != len(document["exports"]):
            said += f"{len(document['exports'])} were wanted\n"
        if text_of_plan(planned()) is not None:
            said += "a second plan changes the file again\n"
        if said:
            wrong.append(f"configuration {number}:\n{(ETC / 'sharefs.yaml').read_text()}\n{OWN_FILE.read_text()}\n{hosts}{lying}\n{said}")
    return plans, wrong


def test_plans_of_export() -> None:
    """What a plan writes is exported, all of it, and the next plan finds nothing to write."""
    results = on_hosts(wrong_plans)
    wrong = [found for _, part in results for found in part]
    assert wrong == [], f"{len(wrong)} plans, the first:\n" + "\n".join(wrong[:3])
    assert sum(plans for plans, _ in results) >= CONFIGURATIONS // 10  # the others are refused, for what already lies on the host
