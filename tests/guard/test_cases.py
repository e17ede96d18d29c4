"""With the real `datasets`: what works bare works guarded, with the same outcome, and nothing else lies on the share."""

from __future__ import annotations

import functools
import http.server
import json
import os
import re
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Cluster
from guardlab.cases import CASES, ONLINE, Case
from guardlab.hosts import Host, files_below
from guardlab.pythons import python, versions
from guardlab.runner import Runner, run_alone

ROWS = 300


def fill(share: Path) -> None:
    lines = [json.dumps({"id": number, "text": "x" * 40}) + "\n" for number in range(ROWS)]
    (share / "data.json").write_text("".join(lines))
    (share / "data.csv").write_text("id\n" + "".join(f"{number}\n" for number in range(ROWS)))
    with zipfile.ZipFile(share / "data.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("data.json"), "".join(lines))
    for path in share.glob("data.*"):
        os.utime(path, (1e9, 1e9))  # fingerprints contain it


@pytest.fixture(scope="session")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a server that has data.json."""
    directory = tmp_path_factory.mktemp("web")
    fill(directory)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(directory))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(scope="module")
def runners(made_cluster: Cluster) -> Iterator[dict[object, Runner]]:
    made: dict[object, Runner] = {}
    yield made
    for runner in made.values():
        runner.close()


def outcome(
    runners: dict[object, Runner], host: Host, version: str, program: str, guarded: bool, environment: dict[str, str]
) -> tuple[list[str], str]:
    """The results that are shown, or the error; and what is said."""
    if environment and environment != ONLINE:  # what is imported takes directories from it
        answer = run_alone(host, python(version), program, guarded, environment)
    else:
        key = (host.name, version, guarded, bool(environment))
        if key not in runners:
            runners[key] = Runner(host, python(version), guarded, environment)
        answer = runners[key].run(program)
    error = [answer.said.strip().splitlines()[-1].partition(":")[0]] if answer.status else []
    return answer.results + error, answer.said


def without_random(names: list[str]) -> set[str]:
    """Files of datasets, without what is named at random or holds a lock's state."""
    return {re.sub(r"-[0-9a-f]{16,}|default_experiment-\d+-\d+", "-*", name) for name in names}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
@pytest.mark.parametrize("version", versions())
def test_case(cluster: Cluster, runners: dict[object, Runner], port: int, version: str, case: Case) -> None:
    outcomes, left = [], []
    for guarded in (False, True):
        fill(cluster.share)
        program, before = (text.replace("{port}", str(port)) for text in (case.program, case.before))
        if before:
            outcome(runners, cluster.hosts[1], version, before, False, ONLINE)
        result, said = outcome(runners, cluster.hosts[0], version, program, guarded, case.environment)
        outcomes.append(result)
        left.append(without_random(files_below(cluster.share)))
        assert "warning: " not in "".join(line for line in said.splitlines() if line.startswith("sharefs")), said
        if guarded:
            assert outcomes[0] == outcomes[1], said
        cluster.sweep()
    bare, guarded_files = left
    assert guarded_files <= bare
    kept = {name for name in bare if name.rpartition("/")[2].startswith(case.keeps)}
    assert kept <= guarded_files
    assert len(CASES) == 36
