"""Two hosts and the real library: the race, its end, phases of a job, kills at each step, a share that is full."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from conftest import Cluster
from guardlab.cases import PRELUDE
from guardlab.hosts import Host, files_below
from guardlab.pythons import NEWEST, python
from guardlab.runner import Runner
from test_cases import fill

VERSION = NEWEST
LAUNCHES = 20


@pytest.fixture(scope="module")
def interpreter() -> Path:
    return python(VERSION)


def start(host: Host, interpreter: Path, program: str, **environment: str) -> subprocess.Popen[str]:
    return host.start([interpreter, "-c", PRELUDE + program], True, environment)


def done(process: subprocess.Popen[str]) -> tuple[list[str], str]:
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, err
    return [line for line in out.splitlines() if line.startswith("RESULT")], err


def on_share(cluster: Cluster, cache: str = "c") -> list[str]:
    return [name for name in files_below(cluster.share) if name.startswith(cache + "/")]


def is_one_copy(names: list[str], cache: str = "c") -> bool:
    kept = [name.rpartition("/")[2] for name in names if name.startswith(cache + "/")]
    return sorted(kept) == ["dataset_info.json", "json-train.arrow"]


# One process per host that has imported everything: all launches in it, each forked when the hosts have met.
RACE = """
import time
def launch(number):
    try:
        d = load(cache_dir="%s/race-%%d" %% number)
        show(number, "ok", len(d), sum(d["id"]))
    except BaseException as error:
        show(number, type(error).__name__)
barrier = "/mnt/share/at-%%d-%s"
for number in range(%d):
    open(barrier %% number, "w").close()
    while not os.path.exists("/mnt/share/go-%%d" %% number):
        time.sleep(0.005)
    child = os.fork()
    if child == 0:
        launch(number); sys.stdout.flush(); os._exit(0)
    if os.waitpid(child, 0)[1]:
        show(number, "killed")
"""


def race(cluster: Cluster, interpreter: Path, guarded: bool, cache: str, **environment: str) -> list[str]:
    """The results of all launches on both hosts that are not `ok` with all rows."""
    fill(cluster.share)
    processes = [
        host.start([interpreter, "-c", PRELUDE + RACE % (cache, host.name, LAUNCHES)], guarded, environment)
        for host in cluster.hosts
    ]
    for number in range(LAUNCHES):
        for host in cluster.hosts:
            wait_for(cluster.share / f"at-{number}-{host.name}", processes)
        (cluster.share / f"go-{number}").touch()
    results = [line for process in processes for line in done(process)[0]]
    assert len(results) == 2 * LAUNCHES
    return [line for line in results if not line.endswith(" ok 300 44850")]


def wait_for(path: Path, processes: list[subprocess.Popen[str]]) -> None:
    limit = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < limit and all(process.poll() is None for process in processes), path
        time.sleep(0.002)


def test_bare_launches_fail(cluster: Cluster, interpreter: Path) -> None:
    assert race(cluster, interpreter, False, "/mnt/share")


@pytest.mark.parametrize("build", ["publish", "unique", "local"])
def test_guarded_launches_do_not(cluster: Cluster, interpreter: Path, build: str) -> None:
    assert race(cluster, interpreter, True, "/mnt/share", SHAREFS_GUARD_BUILD=build) == []
    for number in range(LAUNCHES):
        names = on_share(cluster, f"race-{number}")
        assert names == [] if build == "local" else is_one_copy(names, f"race-{number}"), names


def test_phases_and_later_jobs_find_what_was_made(cluster: Cluster, interpreter: Path) -> None:
    fill(cluster.share)
    first, second = cluster.hosts
    program = "d = load(); m = d.map(lambda row: {'n': row['id']}); rows(m)"
    made, said = done(start(first, interpreter, program))
    assert "are built in /mnt/local/caches/" in said and "and published" in said
    before = on_share(cluster)
    found, said = done(start(second, interpreter, program, SHAREFS_GUARD_BUILD="local"))
    assert found == made and said == ""
    assert on_share(cluster) == before
    assert not any(path.suffix == ".arrow" and not path.is_symlink() for path in second.disk.rglob("*"))


def test_a_pickled_dataset_is_read_on_another_host(cluster: Cluster, interpreter: Path) -> None:
    """Its state names files. A function that uses a dataset has a fingerprint that is made of it, on every host the same."""
    fill(cluster.share)
    makes = "import pickle\nd = load(); m = d.map(lambda row: {'n': row['id']})\npickle.dump((d, m), open(SHARE + '/pickled', 'wb'))\n"
    uses = "d = load(); rows(d.map(lambda row: {'n': d[row['id']]['id']}))\n"
    reads = "import pickle\nfor d in pickle.load(open(SHARE + '/pickled', 'rb')): rows(d)\n"
    first, second = cluster.hosts
    made, _ = done(start(first, interpreter, makes + "rows(d); rows(m)\n" + uses))
    read, said = done(start(second, interpreter, reads + uses))
    assert read == made and said == ""


def test_a_random_map_is_one_for_all(cluster: Cluster, interpreter: Path) -> None:
    """The first process makes it, the others wait for that one and take its rows."""
    fill(cluster.share)
    program = "import random\nd = load(); m = d.map(lambda row: {'n': random.random()}); show(sum(m['n']))"
    results = [done(start(host, interpreter, program))[0] for host in cluster.hosts]
    assert results[0] == results[1]


def test_a_forced_rebuild_counts_here_and_is_said(cluster: Cluster, interpreter: Path) -> None:
    fill(cluster.share)
    host = cluster.hosts[0]
    done(start(host, interpreter, "load()"))
    _, said = done(start(host, interpreter, "load(download_mode='force_redownload')"))
    assert "the share keeps what it has" in said
    result, said = done(start(host, interpreter, "show(load().cache_files[0]['filename'].startswith('/mnt/local'))"))
    assert result == ["RESULT True"] and said == ""
    assert is_one_copy(on_share(cluster))


def test_what_is_removed_from_the_share_is_built_again(cluster: Cluster, interpreter: Path) -> None:
    fill(cluster.share)
    done(start(cluster.hosts[0], interpreter, "load()"))
    shutil.rmtree(cluster.share / "c")
    _, said = done(start(cluster.hosts[0], interpreter, "load()"))
    assert "are built in" in said and is_one_copy(on_share(cluster))


@pytest.mark.parametrize("answer", [{"place": "unique", "reason": "no disk"}, {"place": "leave"}], ids=["unique", "leave"])
def test_without_a_local_disk(cluster: Cluster, interpreter: Path, answer: Mapping[str, object]) -> None:
    fill(cluster.share)
    cluster.hosts[0].answers(answer)
    program = "d = load(); m = d.map(lambda row: {'n': row['id']}); show(sum(m['n'])); show(m.cache_files[0]['filename'][:11])"
    result, said = done(start(cluster.hosts[0], interpreter, program))
    assert result == [f"RESULT {sum(range(300))}", "RESULT /mnt/share/"]
    assert ("no disk" in said) == (answer["place"] == "unique")
    names = [name.rpartition("/")[2] for name in on_share(cluster)]
    assert len(names) == 3 and not any("sharefs-" in name for name in on_share(cluster)), names
    assert not list(cluster.share.rglob(".*sharefs-*"))


def test_a_local_disk_that_is_too_small(cluster: Cluster, interpreter: Path) -> None:
    fill(cluster.share)
    host = cluster.hosts[0]
    program = (
        "import ctypes; os.makedirs('/mnt/local/caches', exist_ok=True)\n"
        "assert ctypes.CDLL(None).mount(b't', b'/mnt/local/caches', b'tmpfs', 0, b'size=12k') == 0\n"
        "try:\n    rows(load())\nfinally:\n    ctypes.CDLL(None).umount2(b'/mnt/local/caches', 2)"
    )
    bare = host.run([interpreter, "-c", PRELUDE + "rows(load(cache_dir='/mnt/local/elsewhere'))"], guarded=False)
    result, said = done(start(host, interpreter, program))
    assert result == bare.stdout.splitlines()
    assert "is too small" in said and is_one_copy(on_share(cluster)), said


@pytest.mark.parametrize("processes", [None, 2])
def test_a_local_disk_that_is_too_small_for_what_map_makes(cluster: Cluster, interpreter: Path, processes: int | None) -> None:
    fill(cluster.share)
    # Its place in the program is a part of the fingerprint.
    row = "make = lambda row: {'n': row['id'], 't': 'x' * 10000}\n"
    makes = f"m = load().map(make, num_proc={processes}); mapped(m); mapped(m.sort('n'))\n"
    program = row + (
        "import ctypes; os.makedirs('/mnt/local/caches', exist_ok=True)\n"
        "assert ctypes.CDLL(None).mount(b't', b'/mnt/local/caches', b'tmpfs', 0, b'size=1m') == 0\n"
        "import sharefs_guard.publishing as s; s.SPARE_ROOM = 0\n"
        f"try:\n    {makes}finally:\n    ctypes.CDLL(None).umount2(b'/mnt/local/caches', 2)"
    )
    bare = cluster.hosts[1].run([interpreter, "-c", PRELUDE + row + makes], guarded=False)
    shutil.rmtree(cluster.share / "c")
    fill(cluster.share)
    result, said = done(start(cluster.hosts[0], interpreter, program))
    assert result == bare.stdout.splitlines()
    assert said.count("is too small for what is made of") == 1, said
    assert any("/cache-" in name for name in on_share(cluster)) and not list(cluster.share.rglob(".*.sharefs-*"))


@pytest.mark.parametrize("build", ["publish", "unique"])
def test_a_dataset_of_the_share_without_its_last_file_is_mended(cluster: Cluster, interpreter: Path, build: str) -> None:
    """As a library without the guard would build it anew; what a purge of old files leaves."""
    fill(cluster.share)
    host = cluster.hosts[0]
    first = done(start(host, interpreter, "rows(load())"))[0]
    (info,) = cluster.share.rglob("dataset_info.json")
    info.unlink()
    shutil.rmtree(host.disk / "caches")
    again, said = done(start(host, interpreter, "rows(load())", SHAREFS_GUARD_BUILD=build))
    assert again == first and "is not published" not in said and is_one_copy(on_share(cluster)), said


def test_a_share_that_cannot_be_written(cluster: Cluster, interpreter: Path) -> None:
    """The dataset is built and used, and one line says that it is not published."""
    fill(cluster.share)
    program = (
        "import sharefs_guard.publishing as s\n"
        "s._has_room = lambda *_: False\n"
        "rows(load())"
    )
    result, said = done(start(cluster.hosts[0], interpreter, program))
    assert len(result) == 1 and said.count("is not published: No space left on device") == 1
    assert on_share(cluster) == []


# Kills: the n-th of these calls of the guard or of the library's builder is the process's last, from where a dataset is
# published, or, where it is built on the share, from the beginning.
KILL = """
import signal
import sharefs_guard.publishing as s, sharefs_guard.builds as l, datasets.builder as b
import os as real
count = 0
def deadly(function):
    def call(*arguments, **named):
        global count
        if sys._getframe(1).f_code.co_filename in (s.__file__, l.__file__, b.__file__):
            count += 1
            if count == %d:
                real.kill(real.getpid(), signal.SIGKILL)
        return function(*arguments, **named)
    return call
def count_steps():
    for name in "mkdir makedirs rename fsync utime open close listdir lstat stat statvfs walk unlink".split():
        setattr(s.os, name, deadly(getattr(s.os, name)))
    s.shutil.rmtree = deadly(s.shutil.rmtree)
publish = s.publish_dataset
def publish_deadly(*arguments):
    count_steps()
    return publish(*arguments)
s.publish_dataset = publish_deadly
if os.environ["SHAREFS_GUARD_BUILD"] == "unique":
    count_steps()
d = load()
show(len(d))
"""


@pytest.mark.parametrize("build", ["publish", "unique"])
def test_killed_at_each_step(cluster: Cluster, interpreter: Path, build: str) -> None:
    runner = Runner(cluster.hosts[0], interpreter, guarded=True, environment={"SHAREFS_GUARD_BUILD": build})
    kills = 0
    for step in range(1, 100):
        fill(cluster.share)
        answer = runner.run(KILL % step)
        names = [name for name in on_share(cluster) if "/." not in name]
        assert names == [] or is_one_copy(names), (step, names)  # none, or a complete one
        if answer.status == 0:
            break
        assert answer.status == signal.SIGKILL
        kills += 1
        for path in cluster.share.rglob(".*.sharefs-*"):  # an hour later
            for inner in (*path.rglob("*"), path):
                os.utime(inner, (1e9, 1e9))
        assert runner.run("show(len(load()))").results == ["RESULT 300"]
        assert is_one_copy(on_share(cluster)), step
        left = list(cluster.share.rglob(".*sharefs-*"))
        assert not left, (step, left)
        cluster.sweep()
    runner.close()
    assert kills >= (20 if build == "publish" else 15)  # so many steps it has


def test_with_sharefs_itself(cluster: Cluster, interpreter: Path) -> None:
    """`sharefs run` loads the guard, and `sharefs cache place` answers it."""
    fill(cluster.share)
    host = cluster.hosts[0]
    configuration = host.disk / "sharefs.yaml"
    configuration.write_text("version: 1\ncaches: {local: /mnt/local/cache}\n")
    (host.disk / "cache").mkdir(mode=0o755)
    program = os.environ["SHAREFS_BIN"]
    command = [program, "run", "--", interpreter, "-c", PRELUDE + "d = load(); rows(d); show(d.cache_files[0]['filename'])"]
    bare = done(host.start(command[3:], False))[0]
    shutil.rmtree(cluster.share / "c")
    fill(cluster.share)
    results, said = done(host.start(command, False, {"SHAREFS_CONFIG": "/mnt/local/sharefs.yaml"}))
    assert results[0] == bare[0], said
    assert results[1].startswith("RESULT /mnt/local/cache/root/")
    assert re.search(r"^sharefs: datasets of /mnt/share/c are built in /mnt/local/cache/root/\w+ and published$", said, re.M), said
    assert is_one_copy(on_share(cluster))


@pytest.mark.parametrize("build", ["publish", "unique"])
def test_modules_of_an_earlier_job_are_there_for_an_offline_one(cluster: Cluster, build: str) -> None:
    """`sharefs run` leaves them to the guard, which publishes them: the next job has another node, and no network."""
    (cluster.share / "transformers.py").write_text("import os; MODULES = os.environ.get('HF_MODULES_CACHE', os.environ['HF_HOME'] + '/modules')\n")
    program = "import os, sys; sys.path.insert(0, '/mnt/share'); import transformers; os.makedirs(transformers.MODULES, exist_ok=True)\n"
    makes = program + "open(transformers.MODULES + '/model.py', 'w').write('value = 1'); print(transformers.MODULES)"
    reads = program + "print(open(transformers.MODULES + '/model.py').read())"
    for host in cluster.hosts:
        (host.disk / "sharefs.yaml").write_text(f"version: 1\ncaches: {{local: /mnt/local/cache, build: {build}}}\n")
        (host.disk / "cache").mkdir(mode=0o755)
    settings = {"SHAREFS_CONFIG": "/mnt/local/sharefs.yaml", "HF_HOME": "/mnt/share/hf", "HF_HUB_OFFLINE": "0", "HF_DATASETS_OFFLINE": "0"}
    command = [os.environ["SHAREFS_BIN"], "run", "--", "/usr/bin/python3", "-c"]
    first = cluster.hosts[0].run([*command, makes], False, settings)
    assert first.returncode == 0 and first.stdout.startswith("/mnt/local/cache/"), first.stderr
    second = cluster.hosts[1].run([*command, reads], False, settings | {"HF_HUB_OFFLINE": "1"})
    assert second.stdout == "value = 1\n", second.stderr


def test_a_dataset_is_read_here_while_it_is_published(cluster: Cluster, interpreter: Path) -> None:
    """Publishing takes long, and other processes of the host need not wait for it."""
    fill(cluster.share)
    host = cluster.hosts[0]
    program = (
        "import sharefs_guard.publishing as s\n"
        "def publish(*_):\n    show('publishes'); sys.stdin.read()\n"
        "s.publish_dataset = publish\nrows(load())"
    )
    first = host.start([interpreter, "-c", PRELUDE + program], text=None)
    assert first.stdout and first.stdout.readline() == "RESULT publishes\n"
    second = start(host, interpreter, "rows(load())")
    try:
        result = done(second)[0]
    finally:
        second.kill()
        out, _ = first.communicate("")
    assert out.splitlines() == result and is_one_copy(on_share(cluster))


def test_a_failure_of_the_guard_keeps_no_other_process_waiting(cluster: Cluster, interpreter: Path) -> None:
    fill(cluster.share)
    host = cluster.hosts[0]
    program = "import sharefs_guard.storage as s\ns.announce = lambda _: 1 / 0\nrows(load()); sys.stdin.read()"
    environment = {"SHAREFS_GUARD_BUILD": "unique"}
    first = host.start([interpreter, "-c", PRELUDE + program], True, environment, text=None)
    assert first.stdout and first.stdout.readline().startswith("RESULT 300")
    try:
        second = start(host, interpreter, "rows(load(download_mode='force_redownload'))", **environment)
        assert len(done(second)[0]) == 1
    finally:
        second.kill()
        _, said = first.communicate("")
    assert "warning" in said and "ZeroDivisionError" in said


READ_ONLY = """
import ctypes
mount = ctypes.CDLL(None, use_errno=True).mount
assert mount(b"/mnt/share", b"/mnt/share", None, 0x1000, None) == 0  # a bind mount, made read-only
assert mount(None, b"/mnt/share", None, 0x1000 | 0x20 | 1, None) == 0
try:
    rows(load())
finally:
    ctypes.CDLL(None).umount2(b"/mnt/share", 2)
"""


def test_a_share_that_is_read_only(cluster: Cluster, interpreter: Path) -> None:
    """Nothing there: built and used here. A complete one is read where it lies, although no lock can be taken there."""
    fill(cluster.share)
    host = cluster.hosts[0]
    expected = done(host.start([interpreter, "-c", PRELUDE + "rows(load(cache_dir='/mnt/local/own'))"], False))[0]
    result, said = done(start(host, interpreter, READ_ONLY))
    assert result == expected and "is not published: Read-only file system" in said
    done(start(cluster.hosts[1], interpreter, "load()"))
    shutil.rmtree(host.disk / "caches")
    result, said = done(start(host, interpreter, READ_ONLY))
    assert (result, said) == (expected, "")
    assert not any(path.suffix == ".arrow" and not path.is_symlink() for path in host.disk.rglob("caches/**/*"))


RANKS = """
import multiprocessing
def train(rank):
    os.environ.update(RANK=str(%d + rank), LOCAL_RANK=str(rank))
    d = load(); rows(d.map(lambda row: {"n": row["id"]}))
context = multiprocessing.get_context("fork")
ranks = [context.Process(target=train, args=(rank,)) for rank in range(4)]
for rank in ranks: rank.start()
for rank in ranks: rank.join()
assert not any(rank.exitcode for rank in ranks)
"""


@pytest.mark.parametrize("build", ["publish", "unique"])
def test_four_ranks_on_each_host(cluster: Cluster, interpreter: Path, build: str) -> None:
    """One line from rank 0, one copy, and all read the same."""
    fill(cluster.share)
    processes = [
        start(host, interpreter, RANKS % (4 * number), SHAREFS_GUARD_BUILD=build)
        for number, host in enumerate(cluster.hosts)
    ]
    answers = [done(process) for process in processes]
    results = [line for lines, _ in answers for line in lines]
    assert len(results) == 8 and len(set(results)) == 1
    first, other = (said.count("sharefs: ") for _, said in answers)
    # Where the other host has put it on the share before rank 0 came, there was nothing to be said.
    assert (first, other) in ((1, 0), (0, 0)), answers
    names = on_share(cluster)
    assert is_one_copy([name for name in names if "/cache-" not in name]), names
    assert sum("/cache-" in name for name in names) == 1
    assert not list(cluster.share.rglob(".*sharefs-*"))
