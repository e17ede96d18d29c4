"""The guard on real kernel NFS, mounted so that locks exclude nobody else, with several hosts: no launch fails, each
dataset gets to the share once, and what `.map()` makes does not vanish under those who have mapped it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sharefslab import Cluster, Host
from sharefslab.cluster import host_names
from sharefslab.host import Job
from sharefslab.python_packages import DATASETS, interpreter
from sharefslab.race import CACHES, DIRECTORY, SERVER_CACHES, USER, Race
from sharefslab.wait import wait_until

GUARD = "/project/cachefix/guard"
LAUNCHES = MAPS = 20 if os.environ.get("SHAREFS_LONG") == "1" else 6
HOSTS = 4


@pytest.fixture(scope="module")
def warm_race(lab_ready: None) -> Iterator[Race]:
    with ThreadPoolExecutor(1) as executor:
        python = executor.submit(interpreter, DATASETS["2.19.2"])
        with Cluster(hosts=host_names(HOSTS), memory="3G") as cluster:
            race = Race(cluster)
            race.prepare()
            race.warm_up(python.result())
            yield race


@pytest.fixture
def race(warm_race: Race) -> Iterator[Race]:
    yield warm_race
    warm_race.sweep()


def guarded(build: str) -> dict[str, str]:
    return {"PYTHONPATH": GUARD, "SHAREFS_GUARD": "1", "SHAREFS_GUARD_BUILD": build}


@pytest.mark.parametrize("build", ["publish", "unique"])
def test_no_launch_fails_and_one_copy_is_published(race: Race, build: str) -> None:
    for number in range(LAUNCHES // 2):
        cache = f"{CACHES}/{build}-{number}"
        launch = race.launch(wrapped=False, cache=cache, environment=guarded(build))
        assert [outcome.error for outcome in launch.outcomes] == [""] * HOSTS
        assert all(outcome.identical for outcome in launch.outcomes)
        found = race.cluster.server.run(f"cd {SERVER_CACHES}/{build}-{number} && find . -type f", check=True).out.split()
        kept = [re.sub(r".*/", "", name) for name in found if not name.endswith(".lock")]
        assert sorted(kept) == ["dataset_info.json", "json-train.arrow"], found
        left = race.cluster.server.run(f"find {SERVER_CACHES}/{build}-{number} -name '.*sharefs-*'", check=True).out
        assert left == ""


def test_a_cold_launch(race: Race) -> None:
    """A Python that reads PYTHONPATH itself."""
    launch = race.launch(wrapped=False, cold=True, environment=guarded("publish"))
    assert [outcome.error for outcome in launch.outcomes] == [""] * HOSTS
    assert all(outcome.identical for outcome in launch.outcomes)


# A process that is killed at the n-th step of the guard or of the library's builder, for each n: from where a dataset is
# published, or, where it is built on the share, from the beginning. Standard input names the caches.
KILLED = """\
import os, signal, sys
import datasets, datasets.builder as builder
import sharefs_guard.builds as builds, sharefs_guard.publishing as publishing
count = 0
def deadly(function, step):
    def call(*arguments, **named):
        global count
        if sys._getframe(1).f_code.co_filename in (publishing.__file__, builds.__file__, builder.__file__):
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)
    return call
def arm(step):
    for name in "mkdir makedirs rename fsync utime open close listdir lstat stat statvfs walk unlink".split():
        setattr(os, name, deadly(getattr(os, name), step))
def load(cache):
    return datasets.load_dataset("json", data_files=sys.argv[1], cache_dir=cache, split="train")
publish = publishing.publish_dataset
for number, cache in enumerate(sys.stdin.read().split()):
    child = os.fork()
    if child == 0:
        step = int(sys.argv[2]) * (number + 1)
        if os.environ["SHAREFS_GUARD_BUILD"] == "unique" and step:
            arm(step)
        def publish_deadly(*arguments):
            if step:
                arm(step)
            return publish(*arguments)
        publishing.publish_dataset = publish_deadly
        try:
            found = len(load(cache))
        except BaseException as error:
            found = error
        print(cache, found, flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(cache, "killed", flush=True)
"""
KILLS = 20


@pytest.mark.parametrize("build", ["publish", "unique"])
def test_killed_at_each_step(race: Race, build: str) -> None:
    first, second = race.cluster.nodes[:2]
    first.run(f"cat >{DIRECTORY}/killed.py", user=USER, input=KILLED, check=True)
    caches = [f"{CACHES}/killed-{build}-{number}" for number in range(KILLS)]

    def load(node: Host, *, dies: bool) -> list[str]:
        command = [f"{race.python.bin}/python3", f"{DIRECTORY}/killed.py", f"{DIRECTORY}/data.json", str(int(dies))]
        environment = race.environment | guarded(build)
        done = node.run(command, user=USER, env=environment, input="\n".join(caches), timeout=400, check=True)
        return [line.split(" ", 1)[1] for line in done.out.splitlines()]

    def on_server(what: str) -> list[str]:
        return race.cluster.server.run(f"cd {SERVER_CACHES} && find killed-{build}-* {what}", check=True).out.split()

    steps = KILLS - 2 if build == "publish" else 15  # so many it has at least
    assert load(first, dies=True).count("killed") >= steps
    complete = [name for name in on_server("-name dataset_info.json -o -name '*.arrow'") if "/." not in name]
    assert len(complete) % 2 == 0, complete  # both files, or none
    on_server("-path '*/.*sharefs-*' -exec touch -h -d '2 hours ago' {} +")
    first.run("echo 3 >/proc/sys/vm/drop_caches", check=True)  # the node remembers the times of before for a while
    assert load(first, dies=False) == ["5000"] * KILLS
    assert load(second, dies=False) == ["5000"] * KILLS
    files = on_server("-type f ! -name '*.lock'")
    left = [name for name in files if "/." in name]
    assert not left, left
    assert len(files) == 2 * KILLS, files


# Each map is made by both hosts at once, mapped, and read when no page of it is in any cache. It is large, because pages
# near one that was read stay.
MAPPING = """\
import os, sys, time
from datasets import Dataset, load_from_disk
saved, count = sys.argv[1], int(sys.argv[2])
def wait(name):
    while not os.path.exists(name):
        time.sleep(0.01)
print("imported", flush=True)
for number in range(count):
    wait("/local/map/begin-%d" % number)
    child = os.fork()
    if child == 0:
        try:
            made = load_from_disk(saved).map(lambda row: {"n": row["id"] + number}, batched=False)
            open("/local/map/mapped-%d" % number, "w").close()
            wait("/local/map/read-%d" % number)
            totals = sum(made["n"]), sum(len(text) for text in made["text"])
            print(number, "ok" if totals == (sum(range(2000)) + 2000 * number, 4000000) else "wrong", flush=True)
        except BaseException as error:
            print(number, type(error).__name__, error, flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status:
        print(number, "killed by signal", status, flush=True)
"""
SAVE = "from datasets import Dataset; Dataset.from_dict({{'id': list(range(2000)), 'text': ['x' * 2000] * 2000}}).save_to_disk('{saved}')"


def map_on_all(race: Race, saved: str, environment: dict[str, str]) -> list[str]:
    """What came of all maps on the first two hosts, but for those that were right."""
    nodes = race.cluster.nodes[:2]
    python = f"{race.python.bin}/python3"
    nodes[0].run([python, "-c", SAVE.format(saved=saved)], user=USER, env=race.environment, timeout=120, check=True)
    nodes[0].run(f"cat >{DIRECTORY}/mapping.py", user=USER, input=MAPPING, check=True)
    jobs: list[tuple[Host, Job]] = []
    for node in nodes:
        node.run("rm -rf /local/map; mkdir -m 1777 /local/map", check=True)
        command = [python, f"{DIRECTORY}/mapping.py", saved, str(MAPS)]
        jobs.append((node, node.start(command, user=USER, env=race.environment | environment)))
    for _, job in jobs:
        wait_until(lambda job=job: b"imported" in job.stdout() or not job.running(), 120, what="datasets is imported")  # type: ignore[misc]
    for number in range(MAPS):
        for node in nodes:
            node.run(f"touch /local/map/begin-{number}", check=True)
        for node, job in jobs:
            wait_until(
                lambda node=node, job=job: node.exists(f"/local/map/mapped-{number}")  # type: ignore[misc]
                or not job.running()
                or job.stdout().count(b"\n") > number + 1,
                60,
                what=f"{node.name} has made map {number}",
            )
        nodes[0].run("sync; echo 3 >/proc/sys/vm/drop_caches", check=True)
        for node in nodes:
            node.run(f"touch /local/map/read-{number}", check=True)
    lines = [line for _, job in jobs for line in job.wait_or_kill(120).out.splitlines()[1:]]
    assert len(lines) == 2 * MAPS, lines
    return [line for line in lines if not line.endswith(" ok")]


def test_maps_of_several_hosts(race: Race) -> None:
    bare = map_on_all(race, f"{DIRECTORY}/saved-bare", {})
    assert any("killed by signal" in line for line in bare), bare
    assert map_on_all(race, f"{DIRECTORY}/saved-guarded", guarded("publish")) == []
    left = race.cluster.nodes[0].run(f"find {DIRECTORY}/saved-guarded -name '.*sharefs-*'", check=True).out
    assert left == ""


PUBLISH = """\
import os, shutil
from sharefs_guard import publishing, storage
os.makedirs("/local/made", exist_ok=True)
for name in "data.arrow", publishing.INFO, "cache-1.arrow":
    with open("/local/made/" + name, "w") as file:
        file.write(name * 1000)
place = storage.Place("/mnt/share", "local", "/local/elsewhere", "", True, False)
assert publishing.publish_dataset("/local/made", "/mnt/share/set", place)
publishing.publish_file("/local/made/cache-1.arrow", "/mnt/share/set/cache-1.arrow", place)
"""
PREFERS = "from sharefs_guard import publishing; print(publishing.prefers_local('/local/made', '/mnt/share/set'))"


@pytest.mark.lab_hosts("server", "node1", "node2")
def test_what_is_published_counts_as_the_same_when_its_delegation_has_ended(lab: Cluster) -> None:
    """A client with a delegation keeps the times of a file to itself, and loses those that it has set (Linux 7.2)."""
    lab.start_nfs_server(exports="/srv/share *(rw,sync,no_subtree_check,no_root_squash)\n", threads=4)
    node, other = lab["node1"], lab["node2"]
    for host in node, other:
        host.run("mkdir -p /mnt/share && mount -t nfs -o vers=4.2 server:/srv/share /mnt/share", check=True)

    def gives_delegations() -> bool:
        node.run("date >/mnt/share/first; cat /mnt/share/first", check=True)
        return "type: deleg" in lab.server.run("cat /proc/fs/nfsd/clients/*/states").out

    def prefers_local() -> str:
        return node.run(["/usr/bin/python3", "-c", PREFERS], env={"PYTHONPATH": GUARD}, check=True).out.strip()

    wait_until(gives_delegations, 60, what="the server gives delegations")
    node.run(["/usr/bin/python3", "-c", PUBLISH], env={"PYTHONPATH": GUARD}, timeout=120, check=True)
    assert prefers_local() == "True"
    other.run("cat /mnt/share/set/* >/dev/null; for file in /mnt/share/set/*; do echo >>$file.new; done", check=True)
    node.run("echo 3 >/proc/sys/vm/drop_caches", check=True)
    assert prefers_local() == "True"
    node.run("umount /mnt/share && mount -t nfs -o vers=4.2 server:/srv/share /mnt/share", check=True)
    assert prefers_local() == "True"
