"""Hugging Face datasets on several hosts with one cache directory: the race is real, and sharefs run ends it.

With sharefs run the guard builds on each host and publishes one copy (test_guard.py has it without sharefs run).

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
from sharefslab.race import CACHES, LOCAL, SERVER_CACHES, USER, Race

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
    """With no cache anywhere."""
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
    # Each launch has built a cache on each host, instead of finding that of an earlier one, and published one copy.
    assert tally.on_hosts == WRAPPED_LAUNCHES * len(race.cluster.nodes)
    assert (tally.on_share, tally.incomplete) == (WRAPPED_LAUNCHES, 0)


def published(race: Race, cache: str) -> list[str]:
    """The files of datasets in one of the share's caches."""
    directory = cache.replace(CACHES, SERVER_CACHES)
    found = race.cluster.server.run(f"find {directory} -type f ! -name '*.lock' -printf '%f\\n'", check=True).out.split()
    return sorted(found)


DATASET = ["dataset_info.json", "json-train.arrow"]


def test_a_launch_with_nothing_warmed_up(race: Race) -> None:
    """sharefs becomes a Python that has imported nothing yet."""
    cache = f"{CACHES}/cold"
    node = race.cluster.nodes[0]
    answer = document(sharefs(node, "run", "--dry-run", "--json", "--", "python3", *race.arguments(cache), user=USER))
    assert [one["flag"] for one in answer["guarded"] if not one["implied"]] == ["--cache_dir"]

    launch = race.launch(wrapped=True, cold=True, cache=cache)
    assert [outcome.error for outcome in launch.outcomes] == ["", ""]
    assert all(outcome.identical for outcome in launch.outcomes)
    assert published(race, cache) == DATASET
    assert {host: len(caches) for host, caches in race.sweep().local.items()} == {"node1": 1, "node2": 1}


def test_what_a_lost_launch_left_stays(race: Race) -> None:
    cache = f"{CACHES}/old"
    left = f"{cache}/json/default-0123456789abcdef/0.0.0/0123456789abcdef.incomplete"
    race.cluster.nodes[0].run(f"mkdir -p {left} && echo half >{left}/json-train.arrow", user=USER, check=True)
    launch = race.launch(wrapped=True, cache=cache)
    assert [outcome.error for outcome in launch.outcomes] == ["", ""]
    for host in race.cluster.nodes:
        assert host.read_text(f"{left}/json-train.arrow") == "half\n"


def test_a_complete_dataset_of_the_share_is_read_where_it_lies(race: Race) -> None:
    cache = f"{CACHES}/complete"
    assert not race.launch(wrapped=True, cache=cache).failed
    assert published(race, cache) == DATASET
    for node in race.cluster.nodes:
        node.run(f"rm -rf {LOCAL}/{USER}", check=True)
        # A client of NFS may remember for a minute that there was nothing; then it builds once more.
        node.run("sync; echo 3 >/proc/sys/vm/drop_caches", check=True)

    launch = race.launch(wrapped=True, cache=cache)
    assert [outcome.error for outcome in launch.outcomes] == ["", ""]
    assert all(outcome.identical for outcome in launch.outcomes)
    for node in race.cluster.nodes:
        assert node.run(f"find {LOCAL}/{USER} -name '*.arrow'", check=True).out == ""
    assert published(race, cache) == DATASET
