"""Hugging Face datasets on several hosts with one cache directory: the race is real, and sharefs run ends it.

The real library builds its cache on real NFS, mounted so that locks exclude nobody else. The counts are for
tests/bench/cache_race.py; docs/cache-race.md has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sharefslab import Cluster
from sharefslab.product import document, sharefs
from sharefslab.python_packages import DATASETS, interpreter
from sharefslab.race import CACHES, LOCAL, PLAIN, USER, WITH_MODELS, Race

MOST_LAUNCHES = 40  # nearly half of all fail: that none of so many does has a probability of 1e-10
WRAPPED_LAUNCHES = 8


@pytest.fixture(scope="module")
def warm_race(lab_ready: None) -> Iterator[Race]:
    """One for all tests: what it takes to start is longer than what they do."""
    with ThreadPoolExecutor(1) as executor:
        python = executor.submit(interpreter, DATASETS["2.19.2"])  # meanwhile the hosts start
        with Cluster() as cluster:
            race = Race(cluster)
            race.prepare()
            race.warm_up(python.result())
            yield race


@pytest.fixture
def race(warm_race: Race) -> Iterator[Race]:
    """With the plain script, and no cache anywhere."""
    warm_race.write_script(PLAIN)
    yield warm_race
    warm_race.sweep()


def test_without_sharefs_a_launch_fails(race: Race) -> None:
    launches = (race.launch(wrapped=False) for _ in range(MOST_LAUNCHES))
    failed = next((launch for launch in launches if launch.failed), None)
    assert failed, f"none of {MOST_LAUNCHES} launches failed"
    assert all(outcome.ok or outcome.error for outcome in failed.outcomes)
    assert race.sweep().shared


def test_with_sharefs_none_fails(race: Race) -> None:
    tally = race.run(WRAPPED_LAUNCHES, wrapped=True)
    assert tally.failed == 0, tally.errors
    assert tally.differing == 0
    assert tally.on_share == 0
    # Each launch has built a cache on each host, instead of finding that of an earlier one.
    assert tally.on_hosts == WRAPPED_LAUNCHES * len(race.cluster.nodes)


@pytest.mark.parametrize(
    ("model", "action"), [(PLAIN, "rewrite"), (WITH_MODELS, "drop")], ids=["rewritten", "dropped"]
)
def test_a_launch_with_nothing_warmed_up(race: Race, model: str, action: str) -> None:
    """sharefs becomes a Python that has imported nothing yet, in both ways of keeping the flag off the share."""
    race.write_script(model)
    node = race.cluster.nodes[0]
    answer = document(
        sharefs(node, "run", "--dry-run", "--json", "--", "python3", *race.arguments(f"{CACHES}/again-1"), user=USER)
    )
    assert [change["action"] for change in answer["changes"] if change["kind"] == "argument"] == [action]

    launch = race.launch(wrapped=True, cold=True)
    assert [outcome.error for outcome in launch.outcomes] == ["", ""]
    assert all(outcome.identical for outcome in launch.outcomes)
    swept = race.sweep()
    assert swept.shared == []
    assert {host: len(caches) for host, caches in swept.local.items()} == {"node1": 1, "node2": 1}


def test_what_a_lost_launch_left_is_reported_and_stays(race: Race) -> None:
    cache = f"{CACHES}/old"
    left = f"{cache}/json/default-0123456789abcdef/0.0.0/0123456789abcdef.incomplete"
    node = race.cluster.nodes[0]
    node.run(f"mkdir -p {left} && echo half >{left}/json-train.arrow", user=USER, check=True)

    answer = document(
        sharefs(node, "run", "--dry-run", "--json", "--", "python3", *race.arguments(cache), user=USER)
    )
    reports = [diagnosis for diagnosis in answer["diagnoses"] if diagnosis["code"] == "SF410"]
    assert len(reports) == 1 and left in reports[0]["message"]

    launch = race.launch(wrapped=True, cache=cache)
    assert [outcome.error for outcome in launch.outcomes] == ["", ""]
    for host in race.cluster.nodes:
        assert host.read_text(f"{left}/json-train.arrow") == "half\n"


def test_a_warm_start_takes_the_complete_dataset_of_the_share(race: Race) -> None:
    assert not race.launch(wrapped=True).failed
    # What was built on the node becomes a cache of the share, under a name that no client has looked for yet, with a file
    # by which a copy is known.
    cache = f"{CACHES}/complete"
    mark = 'touch "$(dirname "$(find . -name dataset_info.json)")"/mark'
    race.cluster.nodes[0].run(f"cp -r {LOCAL}/{USER}/*/ {cache} && cd {cache} && {mark}", user=USER, check=True)

    launch = race.launch(wrapped=True, cache=cache, options=["--seed"])
    assert [outcome.error for outcome in launch.outcomes] == ["", ""]
    assert all(outcome.identical for outcome in launch.outcomes)
    for node in race.cluster.nodes:
        assert len(node.run(f"find {LOCAL}/{USER} -name mark", check=True).out.splitlines()) == 1
