"""What programs do with `datasets`: each case is a program that prints its outcome, and what happened before it.

Cases are run bare and guarded, on a share that is made anew, and compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PRELUDE = """
import os, sys
import datasets
from datasets import load_dataset, load_from_disk
SHARE, CACHE, DATA = "/mnt/share", "/mnt/share/c", "/mnt/share/data.json"
def show(*values):
    print("RESULT", *values, flush=True)
def rows(d):
    show(len(d), sum(d["id"]), d._fingerprint)
def mapped(d):
    # Version 2.5 takes the dataset, and so its path, for a part of the function, and the path for a part of the fingerprint.
    show(len(d), sum(d["id"]), sum(d["n"]), "" if datasets.__version__.startswith("2.5.") else d._fingerprint)
def load(**more):
    return load_dataset("json", data_files=more.pop("data_files", DATA), split="train", **{"cache_dir": CACHE, **more})
"""


@dataclass(frozen=True)
class Case:
    """`before` runs bare on the other host. On the share lies afterwards no more than what the bare program leaves, and
    no less of the files whose names begin with `keeps`."""

    name: str
    program: str
    before: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    keeps: tuple[str, ...] = ("dataset_info.json", "json-", "cache-")


# Without these, a case runs offline.
ONLINE = {"HF_HUB_OFFLINE": "0", "HF_DATASETS_OFFLINE": "0", "HF_UPDATE_DOWNLOAD_COUNTS": "0"}
_URL = "http://127.0.0.1:{port}/data.json"

# A dataset of the hub as an earlier job left it in the cache.
_HUB = """
import glob, json, shutil
d = load()
built = os.path.dirname(d.cache_files[0]["filename"])
info = json.load(open(built + "/dataset_info.json"))
info.update(dataset_name="name", config_name="CONFIG")
into = CACHE + "/user___name/CONFIG/0.0.0/" + os.path.basename(built)
os.makedirs(into)
for file in glob.glob(built + "/*.arrow"):
    shutil.copy(file, into + "/" + os.path.basename(file).replace("json-", "name-"))
json.dump(info, open(into + "/dataset_info.json", "w"))
shutil.rmtree(CACHE + "/json")
"""
_SCRIPT = """
open(SHARE + "/script.py", "w").write('''
import json
import datasets
class Script(datasets.GeneratorBasedBuilder):
    VERSION = datasets.Version("1.0.0")
    def _info(self):
        return datasets.DatasetInfo(features=datasets.Features({"id": datasets.Value("int64")}))
    def _split_generators(self, dl_manager):
        path = dl_manager.download_and_extract("/mnt/share/data.json")
        return [datasets.SplitGenerator(name="train", gen_kwargs={"path": path})]
    def _generate_examples(self, path):
        for number, line in enumerate(open(path)):
            yield number, {"id": json.loads(line)["id"]}
''')
"""
_METRIC = """
open(SHARE + "/metric.py", "w").write('''
import datasets
LIBRARY
class Equal(BASE):
    def _info(self):
        return INFO(description="", citation="", features=datasets.Features(
            {"predictions": datasets.Value("int64"), "references": datasets.Value("int64")}))
    def _compute(self, predictions, references):
        return {"equal": sum(p == r for p, r in zip(predictions, references))}
''')
"""
_EVALUATE = (
    _METRIC.replace("LIBRARY", "import evaluate").replace("BASE", "evaluate.Metric").replace("INFO", "evaluate.MetricInfo")
)
_OLD_METRIC = _METRIC.replace("LIBRARY", "").replace("BASE", "datasets.Metric").replace("INFO", "datasets.MetricInfo")
_COMPUTE = """
m.add_batch(predictions=[1, 2, 3], references=[1, 2, 4])
show(m.compute())
"""
_SAVE = 'd = load(cache_dir="/mnt/local/own"); d.save_to_disk(SHARE + "/saved")\n'
_MAP = 'mapped(d.map(lambda row: {"n": row["id"] + 1}))\n'
# Other data under the same name: the time of the file is a part of the fingerprint, its content is not.
_CHANGED = """
for times in 1, 2:
    path = SHARE + "/changed.json"
    with open(path, "w") as file:
        for number in range(50):
            file.write('{"id": %d, "text": "x"}\\n' % (number * times))
    os.utime(path, (1e9, 1e9))
    d = load(data_files=path, download_mode="reuse_dataset_if_exists" if times == 1 else "force_redownload")
    mapped(d.map(lambda row: {"n": row["id"] + 1}))
    del d
mapped(load(data_files=path).map(lambda row: {"n": row["id"] + 1}))
"""
_SAVED_ANEW = """
import shutil
for times in 1, 2:
    shutil.rmtree(SHARE + "/saved", ignore_errors=True)
    d = datasets.Dataset.from_dict({"id": [number * times for number in range(50)]}, info=datasets.DatasetInfo(description="x" * times))
    d._fingerprint = "0123456789abcdef"
    d.save_to_disk(SHARE + "/saved")
    d = load_from_disk(SHARE + "/saved")
    mapped(d.map(lambda row: {"n": row["id"] + 1}))
    del d
"""

CASES = [
    Case("flag", "rows(load())"),
    Case("flag, root there", "rows(load())", "os.makedirs(CACHE)"),
    Case("HF_DATASETS_CACHE", "rows(load(cache_dir=None))", environment={"HF_DATASETS_CACHE": "/mnt/share/c"}),
    Case("HF_HOME", "rows(load(cache_dir=None))", environment={"HF_HOME": "/mnt/share/hf"}),
    Case("HOME", "rows(load(cache_dir='~/c'))", "os.makedirs(SHARE + '/home')", {"HOME": "/mnt/share/home"}),
    Case("complete", "rows(load())", "load()"),
    Case("offline", "rows(load())", "load()"),
    Case("force_redownload", "rows(load(download_mode='force_redownload'))", "load()"),
    Case("force_redownload of other data", _CHANGED),
    Case("saved anew with the same fingerprint", _SAVED_ANEW),
    Case("map", "d = load()\n" + _MAP),
    Case("map done", "d = load()\n" + _MAP, "d = load()\n" + _MAP),
    Case("num_proc", 'd = load(); mapped(d.map(lambda row: {"n": row["id"] + 1}, num_proc=2))'),
    Case("load_from_disk", "d = load_from_disk(SHARE + '/saved')\n" + _MAP, _SAVE),
    Case(
        "indices",
        "d = load(); s = d.shuffle(seed=1).select(range(0, 300, 3)).sort('id'); rows(s)\n"
        "rows(s.filter(lambda row: row['id'] % 2)); rows(d.train_test_split(0.1, seed=1)['test'])",
    ),
    Case("save_to_disk", "d = load(); d.save_to_disk(SHARE + '/out'); rows(load_from_disk(SHARE + '/out'))"),
    Case("save over itself", "d = load_from_disk(SHARE + '/saved').map(lambda row: {'n': 1}); d.save_to_disk(SHARE + '/saved')", _SAVE),
    Case(
        "from_generator",
        "def g():\n    for i in range(50): yield {'id': i}\n"
        "d = datasets.Dataset.from_generator(g, cache_dir=CACHE); show(len(d), sum(d['id']))",
        keeps=("dataset_info.json", "generator-"),
    ),
    Case(
        "from_csv",
        "d = datasets.Dataset.from_csv(SHARE + '/data.csv', cache_dir=CACHE); rows(d)",
        keeps=("dataset_info.json", "csv-"),
    ),
    Case("streaming", "d = load(streaming=True); show(sum(row['id'] for row in d))"),
    Case(
        "builder",
        "b = datasets.load_dataset_builder('json', data_files=DATA, cache_dir=CACHE)\n"
        "b.download_and_prepare(); rows(b.as_dataset('train'))\n"
        "b = datasets.load_dataset_builder('json', data_files=DATA, cache_dir=CACHE)\nrows(b.as_dataset('train'))",
    ),
    Case(
        "output_dir",
        "b = datasets.load_dataset_builder('json', data_files=DATA, cache_dir=CACHE)\n"
        "b.download_and_prepare(SHARE + '/out', file_format='parquet'); show(sorted(os.listdir(SHARE + '/out')))",
    ),
    Case("http", f"rows(load(data_files='{_URL}'))", environment=ONLINE),
    Case("zip", "rows(load(data_files=SHARE + '/data.zip'))"),
    Case(
        "own DownloadConfig",
        f"rows(load(data_files='{_URL}', download_config=datasets.DownloadConfig(cache_dir=SHARE + '/downloads')))",
        environment=ONLINE,
    ),
    Case("json offline, not built", "rows(load())", "os.makedirs(CACHE)"),
    Case(
        "downloads offline",
        f"d = datasets.DownloadManager(download_config=datasets.DownloadConfig(cache_dir=SHARE + '/downloads', use_etag=False))\n"
        f"show(len(open(d.download('{_URL}')).read()))",
        f"d = datasets.DownloadManager(download_config=datasets.DownloadConfig(cache_dir=SHARE + '/downloads', use_etag=False))\n"
        f"d.download('{_URL}')",
    ),
    Case("hub, offline", "rows(load_dataset('user/name', cache_dir=CACHE, split='train'))", _HUB.replace("CONFIG", "default")),
    Case(
        "hub, offline, one of two configurations",
        "rows(load_dataset('user/name', 'one', cache_dir=CACHE, split='train'))",
        _HUB.replace("CONFIG", "one") + _HUB.replace("CONFIG", "two"),
    ),
    Case(
        "hub, offline, HF_DATASETS_CACHE",
        "d = load_dataset('user/name', split='train'); rows(d)\n" + _MAP,
        _HUB.replace("CONFIG", "default"),
        {"HF_DATASETS_CACHE": "/mnt/share/c"},
    ),
    Case("hub, offline, not there", "load_dataset('user/other', cache_dir=CACHE)", "os.makedirs(CACHE)"),
    Case(
        "evaluate, cache_dir",
        "import evaluate\nm = evaluate.load(SHARE + '/metric.py', cache_dir=SHARE + '/metrics')" + _COMPUTE,
        _EVALUATE,
    ),
    Case(
        "evaluate, HF_HOME",
        "import evaluate\nm = evaluate.load(SHARE + '/metric.py')" + _COMPUTE,
        _EVALUATE,
        {"HF_HOME": "/mnt/share/hf"},
        keeps=("metric.py",),  # its code, for who is offline
    ),
    Case(
        "evaluate, two processes",
        "import evaluate\n"
        "m = evaluate.load(SHARE + '/metric.py', cache_dir=SHARE + '/metrics', num_process=2, process_id=0, experiment_id='x')\n"
        "show(m.data_dir)",
        _EVALUATE,
    ),
    Case(
        "load_metric",
        "m = datasets.load_metric(SHARE + '/metric.py', cache_dir=SHARE + '/metrics', trust_remote_code=True)" + _COMPUTE,
        _OLD_METRIC,
    ),
    Case(
        "script",
        "more = {} if datasets.__version__ < '2.15' else {'trust_remote_code': True}\n"
        "rows(load_dataset(SHARE + '/script.py', cache_dir=CACHE, split='train', **more))",
        _SCRIPT,
        keeps=("dataset_info.json", "script-"),
    ),
]
