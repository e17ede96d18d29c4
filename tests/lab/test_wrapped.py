"""What works bare works wrapped: launches with the real libraries, run as they are, then by `sharefs run`.

The share is real NFS whose locks exclude nobody else, so sharefs moves what it may. alice has node1, bob node2; each has
a warm interpreter (race_worker.py). Scripts print what they read to stdout, which must be the same, and where it lay
to stderr.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

from sharefslab import Cluster
from sharefslab.host import Completed, Host, Job
from sharefslab.product import CONFIG_PATH, SHARE, sharefs
from sharefslab.python_packages import DATASETS, Interpreter, interpreter
from sharefslab.race import LOCAL, NOLOCK, WARM_BIN, start_warm_interpreters

DIRECTORY = f"{SHARE}/wrapped"
ROWS = "".join(json.dumps({"id": number, "text": f"row {number}"}) + "\n" for number in range(100))
# Of a host without network: nothing is counted, nothing drawn.
QUIET = {"HF_UPDATE_DOWNLOAD_COUNTS": "0", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1", "PYTHONWARNINGS": "ignore"}
# Most launches have the same environment: for each that is new the warm interpreter imports its libraries anew.
MODELS = {"HF_HUB_CACHE": f"{DIRECTORY}/hub-b", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "0"}

# Runs on the outer machine: makes what the share holds, with the real libraries, and writes down what that imported.
# `rows` becomes a dataset that offline mode finds by its name.
MAKE = """\
import os, pathlib, sys

modules, made = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
os.environ.update(HF_HOME=f"{made}/none", HF_DATASETS_OFFLINE="1", HF_HUB_OFFLINE="1")
import evaluate
from datasets import load_dataset

os.chdir(made)
rows = load_dataset("rows", split="train", cache_dir=f"{made}/complete")
rows.save_to_disk(f"{made}/saved")
modules.write_text("\\n".join(sys.modules))
"""

METRIC = """\
import datasets, evaluate

class Same(evaluate.Metric):
    def _info(self):
        features = datasets.Features({"predictions": datasets.Value("int32"), "references": datasets.Value("int32")})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions, references):
        return {"same": sum(a == b for a, b in zip(predictions, references))}
"""

SCRIPTS = {
    "by_name.py": """\
import argparse, sys
from datasets import load_dataset
parser = argparse.ArgumentParser()
parser.add_argument("--cache_dir")
args = parser.parse_args()
rows = load_dataset("rows", split="train", cache_dir=args.cache_dir)
print(rows[:])
print("from", rows.cache_files[0]["filename"], file=sys.stderr)
""",
    "run_sft.py": """\
import argparse, sys
from datasets import load_dataset
parser = argparse.ArgumentParser()
parser.add_argument("--cache_dir", required=True)
args = parser.parse_args()
rows = load_dataset("json", data_files="rows/rows.jsonl", split="train", cache_dir=args.cache_dir)
print(rows[:])
print("from", rows.cache_files[0]["filename"], file=sys.stderr)
""",
    "t.py": """\
import sys
from datasets import load_dataset
rows = load_dataset("json", data_files="rows/rows.jsonl", split="train")
print(rows[:])
print("from", rows.cache_files[0]["filename"], file=sys.stderr)
""",
    "features.py": """\
import argparse, os
import numpy as np
parser = argparse.ArgumentParser()
parser.add_argument("--cache_dir")
args = parser.parse_args()
print(np.load(os.path.join(args.cache_dir, "features.npy")).tolist())
""",
    # What it does with the path stands in another file.
    "features_of_a_module.py": """\
import argparse
import their_features
parser = argparse.ArgumentParser()
parser.add_argument("--cache_dir")
their_features.show(parser.parse_args())
""",
    "their_features.py": """\
import os
import numpy as np
def show(args):
    print(np.load(os.path.join(args.cache_dir, "features.npy")).tolist())
""",
    "saved.py": """\
import argparse
from datasets import load_from_disk
parser = argparse.ArgumentParser()
parser.add_argument("--cache_dir")
print(load_from_disk(parser.parse_args().cache_dir)[:])
""",
    "hf_arguments.py": """\
import sys
from dataclasses import dataclass
from typing import Optional
from datasets import load_dataset
from hf_parser import HfArgumentParser

@dataclass
class DataArguments:
    train_file: str
    cache_dir: Optional[str] = None

(args,) = HfArgumentParser(DataArguments).parse_json_file(sys.argv[1])
rows = load_dataset("json", data_files=args.train_file, split="train", cache_dir=args.cache_dir)
print(rows[:])
print("from", rows.cache_files[0]["filename"], file=sys.stderr)
""",
    # As much of transformers as is asked for: importing it takes as long as all else here.
    "hf_parser.py": """\
import json
class HfArgumentParser:
    def __init__(self, dataclass_type):
        self.dataclass_type = dataclass_type
    def parse_json_file(self, json_file):
        return (self.dataclass_type(**json.load(open(json_file))),)
""",
    "two_hubs.py": """\
import argparse, sys
from datasets import load_dataset
from huggingface_hub import hf_hub_download
parser = argparse.ArgumentParser()
parser.add_argument("--cache_dir")
args = parser.parse_args()
for path in (hf_hub_download("org/a", "config.json", cache_dir=args.cache_dir), hf_hub_download("org/b", "config.json")):
    print(open(path).read())
rows = load_dataset("json", data_files="rows/rows.jsonl", split="train", cache_dir=args.cache_dir)
print(rows[:])
print("from", rows.cache_files[0]["filename"], file=sys.stderr)
""",
    "one_hub.py": """\
import argparse, sys
from datasets import load_dataset
from huggingface_hub import hf_hub_download
parser = argparse.ArgumentParser()
parser.add_argument("--cache_dir")
args = parser.parse_args()
print(open(hf_hub_download("org/a", "config.json", cache_dir=args.cache_dir)).read())
rows = load_dataset("json", data_files="rows/rows.jsonl", split="train", cache_dir=args.cache_dir)
print(rows[:])
print("from", rows.cache_files[0]["filename"], file=sys.stderr)
""",
    "metric.py": """\
import os, sys
os.environ["HF_EVALUATE_CACHE"] = "/tmp/evaluate"
import evaluate
metric = evaluate.load("same")
print(metric.compute(predictions=[1, 2, 3], references=[1, 2, 4]))
print("from", sys.modules[type(metric).__module__].__file__, file=sys.stderr)
""",
}

HEADER = f"""\
cd {DIRECTORY}
export HF_HOME={DIRECTORY}/h
export HF_DATASETS_CACHE=$HF_HOME/datasets
python3 t.py
"""


def place_of(completed: Completed) -> str:
    """Where the script read from."""
    return next(line for line in completed.err.splitlines() if line.startswith("from ")).removeprefix("from ")


@dataclass
class Site:
    """Two nodes and a share with all that the launches need."""

    cluster: Cluster
    python: Interpreter
    path: str  # of a user on the nodes

    def start(self, command: list[str], user: str = "alice", cwd: str = DIRECTORY, **settings: str) -> Job:
        node = self.cluster["node1" if user == "alice" else "node2"]
        environment = {"PATH": f"{WARM_BIN}:{self.path}", **QUIET, **MODELS, **self.python.environment}
        return node.start(command, user=user, cwd=cwd, env=environment | settings)

    def run(self, *command: str, **options: Any) -> Completed:
        return self.start(list(command), **options).wait_or_kill()

    def wrapped(self, *command: str, options: tuple[str, ...] = (), **settings: Any) -> Completed:
        return self.run("sharefs", "run", *options, "--", *command, **settings)

    def same(self, *command: str, options: tuple[str, ...] = (), **settings: Any) -> Completed:
        """The launch works bare, and does the same wrapped: that one."""
        bare = self.run(*command, **settings).check()
        wrapped = self.wrapped(*command, options=options, **settings)
        assert (wrapped.returncode, wrapped.out) == (0, bare.out), f"{bare}\n{wrapped}"
        return wrapped


def write_share(node: Host) -> None:
    """As root, who may; it is alice's then."""
    for name, text in SCRIPTS.items():
        node.write_file(f"{DIRECTORY}/{name}", text)
    commit = "0" * 40
    for hub, model in (("hub-a", "a"), ("hub-b", "b")):
        snapshot = f"{DIRECTORY}/{hub}/models--org--{model}"
        node.write_file(f"{snapshot}/refs/main", commit)
        node.write_file(f"{snapshot}/snapshots/{commit}/config.json", json.dumps({"model": model}))
    modules = f"{DIRECTORY}/modules/evaluate_modules"
    node.write_file(f"{modules}/metrics/evaluate-metric--same/{'e' * 64}/same.py", METRIC)
    packages = f"{modules} {modules}/metrics {modules}/metrics/*/ {modules}/metrics/*/*/"
    node.run(f"for package in {packages}; do touch $package/__init__.py; done", check=True)
    node.write_file(f"{DIRECTORY}/conf/a.json", json.dumps(
        {"train_file": f"{DIRECTORY}/rows/rows.jsonl", "cache_dir": f"{DIRECTORY}/for-all"}
    ))  # fmt: skip
    features = "import numpy; numpy.save('features.npy', numpy.arange(5))"
    node.run(f"mkdir {DIRECTORY}/features && cd {DIRECTORY}/features && {WARM_BIN}/python3 -c {features!r}", check=True)
    node.run(f"cp -r /share/made/. {DIRECTORY} && chown -R alice:ml {DIRECTORY} && chmod -R go=rX {DIRECTORY}", check=True)
    node.run(f"install -d -m 3777 -o alice {DIRECTORY}/for-all", check=True)


@pytest.fixture(scope="module")
def warm_site(lab_ready: None) -> Iterator[Site]:
    with ThreadPoolExecutor(1) as executor:
        python = executor.submit(interpreter, DATASETS["2.19.2"])  # meanwhile the hosts start
        with Cluster() as cluster:
            cluster.start_nfs_server()
            for node in cluster.nodes:
                node.run(f"mkdir -p {SHARE} && mount -t nfs -o {NOLOCK} server:/srv/share {SHARE}", check=True)
                node.run(f"mkdir -p -m 1777 {LOCAL}", check=True)
                node.write_file(CONFIG_PATH, f"version: 1\ncaches:\n  local: {LOCAL}\n", mode=0o644)
            path = cluster["node1"].run("echo $PATH", user="alice", check=True).out.strip()
            site = Site(cluster, python.result(), path)
            made = cluster.share / "made"
            (made / "rows").mkdir(parents=True)
            (made / "rows" / "rows.jsonl").write_text(ROWS)
            (made / "rows" / "README.md").write_text("---\nconfigs:\n- config_name: default\n  data_files: rows.jsonl\n---\n")
            users = {"node1": "alice", "node2": "bob"}
            start_warm_interpreters(cluster, site.python, users, MAKE, QUIET | site.python.environment, str(made))
            write_share(cluster["node1"])
            yield site


@pytest.fixture
def site(warm_site: Site) -> Iterator[Site]:
    yield warm_site
    for node in warm_site.cluster.nodes:
        node.run(f"find {LOCAL} -mindepth 1 -delete", check=True)
        node.log.clear()


def test_offline_with_a_complete_shared_cache(site: Site) -> None:
    launch = ["python3", f"{DIRECTORY}/by_name.py", "--cache_dir", f"{DIRECTORY}/complete"]
    left = site.same(*launch, cwd="/", HF_DATASETS_OFFLINE="1")
    assert place_of(left).startswith(f"{DIRECTORY}/complete/")


@pytest.mark.parametrize("script", ["features.py", "features_of_a_module.py"])
def test_precomputed_features(site: Site, script: str) -> None:
    site.same("python3", f"{DIRECTORY}/{script}", "--cache_dir", f"{DIRECTORY}/features")


def test_a_saved_dataset(site: Site) -> None:
    site.same("python3", "saved.py", "--cache_dir", f"{DIRECTORY}/saved")


def test_two_users_and_one_configuration_file(site: Site) -> None:
    """At the same time, from a directory that only alice may write to. Bare, one after the other: they would race."""
    launch = ["python3", "../hf_arguments.py", "a.json"]
    users = ("alice", "bob")
    bare = {}
    for user in users:
        bare[user] = site.run(*launch, user=user, cwd=f"{DIRECTORY}/conf").check()
        site.cluster["node1"].run(f"rm -r {DIRECTORY}/for-all/*", check=True)  # whose lock files only their maker opens
    jobs = {
        user: site.start(["sharefs", "run", "--", *launch], user=user, cwd=f"{DIRECTORY}/conf") for user in users
    }
    for user, job in jobs.items():
        wrapped = job.wait_or_kill()
        assert (wrapped.returncode, wrapped.out) == (0, bare[user].out), wrapped
        # The second may find what the first has published. It reads that without the lock, which only its maker opens.
        assert place_of(wrapped).startswith((f"{LOCAL}/{user}/", f"{DIRECTORY}/for-all/")), wrapped


def test_two_models_in_two_hubs(site: Site) -> None:
    """The flag names one of them, the environment the other: both are found where they are."""
    wrapped = site.same("python3", "two_hubs.py", "--cache_dir", f"{DIRECTORY}/hub-a")
    assert place_of(wrapped).startswith(f"{DIRECTORY}/hub-a/")  # what the launch without sharefs has completed


def test_a_model_in_the_directory_of_the_flag(site: Site) -> None:
    wrapped = site.same("python3", "one_hub.py", "--cache_dir", f"{DIRECTORY}/hub-a")
    assert place_of(wrapped).startswith(f"{DIRECTORY}/hub-a/")  # what the launch without sharefs has completed


def test_a_metric_of_the_shared_modules(site: Site) -> None:
    settings = {"HF_MODULES_CACHE": f"{DIRECTORY}/modules", "HF_EVALUATE_OFFLINE": "1"}
    wrapped = site.same("python3", "metric.py", **settings)
    assert place_of(wrapped).startswith(f"{LOCAL}/alice/")  # code, brought there from the share


def test_an_own_program_that_requires_the_flag(site: Site) -> None:
    """What is built is built on the node, and found on the share afterwards, also without sharefs."""
    launch = ["python3", "run_sft.py", "--cache_dir", f"{DIRECTORY}/for-all/fresh"]
    wrapped = site.wrapped(*launch).check()
    assert place_of(wrapped).startswith(f"{LOCAL}/alice/")
    bare = site.run(*launch).check()
    assert bare.out == wrapped.out and "Generating" not in bare.err
    assert place_of(site.same(*launch)).startswith((f"{LOCAL}/alice/", f"{DIRECTORY}/for-all/fresh/"))


def test_an_nfs_home_and_no_directory_for_caches(site: Site) -> None:
    node = site.cluster["node1"]
    node.write_file("/tmp/nowhere.yaml", f"version: 1\ncaches:\n  local: {SHARE}/local\n", mode=0o644)
    node.run(f"install -d -o alice {DIRECTORY}/home; mount -t tmpfs -o ro none /var/tmp", check=True)
    settings = {"HOME": f"{DIRECTORY}/home", "SHAREFS_CONFIG": "/tmp/nowhere.yaml"}
    hello = site.same("echo", "hello", **settings)
    python = site.same("python3", "-c", "print('hello')", **settings)
    explicit = site.wrapped("python3", "run_sft.py", "--cache_dir", f"{DIRECTORY}/for-all", **settings)
    node.run("umount /var/tmp", check=True)
    assert hello.err == ""
    assert python.err.count("warning:") == 1 and "SF405" in python.err
    assert explicit.returncode == 0 and place_of(explicit).startswith(f"{DIRECTORY}/for-all/"), explicit


def test_the_commonest_header(site: Site) -> None:
    """As a text and as a file: what the script exports is known in the process, and read from nowhere else."""
    site.run("bash", "-c", "cat >job.sh <<'end'\n" + HEADER + "end").check()
    text = site.wrapped("bash", "-c", HEADER).check()
    assert place_of(text).startswith(f"{LOCAL}/alice/"), text
    started = site.wrapped("bash", "job.sh").check()
    bare = site.run("bash", "-c", HEADER).check()
    assert [launch.out for launch in (text, started)] == [bare.out] * 2
    assert place_of(bare).startswith(f"{DIRECTORY}/h/datasets/"), bare


def test_sixteen_ranks_on_a_node(site: Site) -> None:
    """All start at once, where nothing is made yet but what bob squats: one directory, and one of them speaks."""
    site.cluster["node1"].run(["install", "-d", "-o", "bob", f"{LOCAL}/alice"], check=True)
    rank = f"HF_DATASETS_CACHE={DIRECTORY}/ranks SLURM_PROCID=$rank sharefs run --node --local HF_DATASETS_CACHE -- perl -e 'print qq($ENV{{HF_DATASETS_CACHE}}\n)'"
    ranks = site.run("bash", "-c", f"for rank in {{0..15}}; do {rank} & done; wait").check()
    assert len(ranks.out.splitlines()) == 16 and len(set(ranks.out.splitlines())) == 1, ranks
    assert ranks.out.startswith("/var/tmp/sharefs-alice/")  # the next directory: bob has the name in the first
    assert ranks.err.count("on this node") == 1, ranks
