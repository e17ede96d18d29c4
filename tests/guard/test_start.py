"""How the guard is loaded, and that a Python which needs nothing of it notices nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from conftest import Cluster
from guardlab.hosts import GUARD

PYTHON = "/usr/bin/python3"
INSTALLED = "import sys; print(any(type(f).__module__ == 'sharefs_guard' for f in sys.meta_path))"
# What takes hold of them needs these names only.
STANDIN = """
import sys, types
class DatasetBuilder:
    def __init__(self, cache_dir=None): pass
    def download_and_prepare(self, output_dir=None, download_mode=None): pass
sys.modules["datasets.builder"] = types.SimpleNamespace(DatasetBuilder=DatasetBuilder)
def load_dataset(): pass
"""


def python(*words: str, guard: Path = GUARD, path: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    everything = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"} | environment
    everything["PYTHONPATH"] = os.pathsep.join(filter(None, [str(guard), path]))
    return subprocess.run([PYTHON, *words], env=everything, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("words", "environment", "installed"),
    [
        ([], {}, True),
        (["-s"], {}, True),
        ([], {"SHAREFS_GUARD": "1"}, True),
        ([], {"SHAREFS_GUARD": "0"}, False),
        (["-E"], {}, False),
        (["-I"], {}, False),
        (["-S"], {}, False),
    ],
)
def test_it_is_installed(words: list[str], environment: Mapping[str, str], installed: bool) -> None:
    answer = python(*words, "-c", INSTALLED, **environment)
    assert (answer.stdout, answer.stderr) == (f"{installed}\n", "")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, made as the build makes it."""
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", place], check=True, timeout=60)
    backend = GUARD.parents[1] / "packaging/wheel/backend.py"
    subprocess.run([PYTHON, backend, "1.2.3", place], check=True, timeout=60)
    (site,) = place.glob("lib/python3*/site-packages")
    with zipfile.ZipFile(place / "sharefs_guard-1.2.3-py3-none-any.whl") as wheel:
        wheel.extractall(site)
        assert set(wheel.namelist()) | {"sharefs_guard-1.2.3.dist-info/INSTALLER"} == {
            str(path.relative_to(place / "share/sharefs/site-packages"))
            for path in (place / "share/sharefs/site-packages").rglob("*")
            if path.is_file()
        }
    return place


# How a program is started, and whether it has the guard by PYTHONPATH, and by the wheel. {} is the Python with a script
# that asks.
STARTS = [
    ("{}", True, True),
    ("exec {}", True, True),
    ("nohup {}", True, True),
    ("timeout 60 {}", True, True),
    ("nice -n 1 {}", True, True),
    ("echo | xargs {}", True, True),
    ("setsid -w {}", True, True),
    ("su -s /bin/sh root -c '{}'", True, True),
    ("su -s /bin/sh - root -c '{}'", False, True),
    ("env -i {}", False, True),
    ("PYTHONPATH=/nowhere {}", False, True),
    ("unset PYTHONPATH; {}", False, True),
]
OPTIONS = [("-s", True, True), ("-P", True, True), ("-E", False, True), ("-I", False, True), ("-S", False, False)]


@pytest.mark.parametrize(
    ("line", "option", "by_path", "by_wheel"),
    [(line, "", by_path, by_wheel) for line, by_path, by_wheel in STARTS]
    + [("{}", option, by_path, by_wheel) for option, by_path, by_wheel in OPTIONS],
)
def test_how_programs_are_started(environment: Path, tmp_path: Path, line: str, option: str, by_path: bool, by_wheel: bool) -> None:
    (tmp_path / "ask.py").write_text(INSTALLED)
    for interpreter, variables, expected in (
        (PYTHON, {"PYTHONPATH": str(GUARD)}, by_path),
        (environment / "bin/python", {}, by_wheel),
    ):
        answer = subprocess.run(
            ["/bin/sh", "-c", line.replace("{}", f"{interpreter} {option} {tmp_path}/ask.py")],
            env={"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"} | variables,
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert answer.stdout == f"{expected}\n", (interpreter, answer)


def test_a_virtual_environment_of_one_with_the_wheel_has_no_wheel(environment: Path, tmp_path: Path) -> None:
    subprocess.run([environment / "bin/python", "-m", "venv", "--without-pip", tmp_path / "own"], check=True, timeout=60)
    for variables, expected in (({}, "False\n"), ({"PYTHONPATH": str(GUARD)}, "True\n")):
        answer = subprocess.run([tmp_path / "own/bin/python", "-c", INSTALLED], env=variables, capture_output=True, text=True, timeout=60)
        assert answer.stdout == expected


def test_the_wheel_and_pythonpath_together_are_one_guard(environment: Path) -> None:
    count = "import sys; print(sum(type(f).__module__ == 'sharefs_guard' for f in sys.meta_path))"
    variables = {"PYTHONPATH": str(GUARD), "PYTHONDONTWRITEBYTECODE": "1"}
    answer = subprocess.run([environment / "bin/python", "-c", count], env=variables, capture_output=True, text=True, timeout=60)
    assert (answer.stdout, answer.stderr) == ("1\n", "")


def test_children_of_all_kinds_have_it(tmp_path: Path) -> None:
    program = tmp_path / "children.py"
    program.write_text(
        "import multiprocessing, subprocess, sys\n"
        "def ask(queue):\n    import sys\n    queue.put(any(type(f).__module__ == 'sharefs_guard' for f in sys.meta_path))\n"
        "if __name__ == '__main__':\n"
        "    for kind in 'fork', 'spawn', 'forkserver':\n"
        "        context = multiprocessing.get_context(kind)\n"
        "        queue = context.Queue()\n"
        "        child = context.Process(target=ask, args=(queue,)); child.start(); print(queue.get()); child.join()\n"
        f"    sys.stdout.flush(); subprocess.run([sys.executable, '-c', {INSTALLED!r}])\n"
    )
    answer = python(str(program))
    assert answer.stdout.split() == ["True"] * 4, answer.stderr


def test_another_sitecustomize_runs_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; print('the other one', __name__)\n")
    answer = python("-c", INSTALLED + "; print(sys.modules['sitecustomize'].__file__)", path=str(tmp_path))
    assert answer.stdout.splitlines() == ["the other one sitecustomize", "True", str(tmp_path / "sitecustomize.py")]


def test_a_broken_one_is_one_line(tmp_path: Path) -> None:
    shutil.copytree(GUARD, tmp_path / "guard")
    (tmp_path / "guard/sharefs_guard/__init__.py").write_text("this is no Python\n")
    answer = python("-c", "print('goes on')", guard=tmp_path / "guard")
    assert answer.stdout == "goes on\n"
    assert len(answer.stderr.splitlines()) == 1 and "the guard is off: SyntaxError" in answer.stderr


def test_broken_holds_are_one_line(tmp_path: Path) -> None:
    shutil.copytree(GUARD, tmp_path / "guard")
    (tmp_path / "guard/sharefs_guard/libraries.py").write_text("this is no Python\n")
    (tmp_path / "datasets.py").write_text("print('imported')\n")
    answer = python("-c", "import datasets", guard=tmp_path / "guard", path=str(tmp_path))
    assert answer.stdout == "imported\n"
    assert len(answer.stderr.splitlines()) == 1 and "the guard is off: SyntaxError" in answer.stderr


def test_a_directory_that_is_gone_is_silent(tmp_path: Path) -> None:
    answer = python("-c", "print('runs')", guard=tmp_path / "nothing")
    assert (answer.stdout, answer.stderr) == ("runs\n", "")


def test_a_project_has_a_package_of_this_name(tmp_path: Path) -> None:
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets/__init__.py").write_text("def load_dataset(): return 'mine'\n")
    answer = python("-c", "import datasets; print(datasets.load_dataset())", path=str(tmp_path))
    assert (answer.stdout, answer.stderr) == ("mine\n", "")


def test_a_name_that_is_gone_is_said_and_the_program_goes_on(tmp_path: Path) -> None:
    (tmp_path / "datasets.py").write_text(STANDIN + "class Dataset: pass\n")
    answer = python("-c", "import datasets; datasets.load_dataset(); print('done')", path=str(tmp_path))
    assert answer.stdout == "done\n"
    assert "Dataset._get_cache_file_path is not there in this version" in answer.stderr


def test_the_loader_shows_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "evaluate.py").write_text("value = 1\n")
    program = (
        "import importlib.util, inspect\n"
        "found = importlib.util.find_spec('evaluate')\n"  # looked for, as transformers does, and not imported
        "import evaluate\n"
        "print(type(evaluate.__loader__).__name__, sorted(vars(evaluate.__loader__)), inspect.getsource(evaluate))\n"
    )
    answer = python("-c", program, path=str(tmp_path))
    assert answer.stdout == "SourceFileLoader ['name', 'path'] value = 1\n\n", answer.stderr


@pytest.mark.parametrize("position", [0, 1])
def test_another_finder_asks_all_finders(tmp_path: Path, position: int) -> None:
    (tmp_path / "datasets.py").write_text(STANDIN + "class Dataset: pass\n")
    program = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name != 'datasets': return None\n"
        "        print('asked')\n"
        "        specs = [f.find_spec(name, path, target) for f in sys.meta_path if f is not self]\n"
        "        return next(spec for spec in specs if spec)\n"
        f"sys.meta_path.insert({position}, Finder())\n"
        "import datasets; print(datasets.load_dataset())\n"
    )
    answer = python("-c", program, path=str(tmp_path))
    assert answer.stdout == "asked\nNone\n", answer.stderr
    assert "is not there in this version" in answer.stderr  # the guard has acted


def test_a_library_that_fails_fails_as_it_would(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('no GPU')\n")
    program = "for i in 1, 2:\n  try: import torch\n  except ImportError as e: print(e)\n"
    answer = python("-c", program, path=str(tmp_path))
    assert (answer.stdout, answer.stderr) == ("no GPU\nno GPU\n", "")


def test_it_runs_with_every_python_here() -> None:
    environment = {"PYTHONPATH": str(GUARD), "PYTHONDONTWRITEBYTECODE": "1"}
    tried = [Path(PYTHON), *sorted(Path.home().glob(".pyenv/versions/*/bin/python"))]
    for program in tried:
        answer = subprocess.run([program, "-c", INSTALLED], env=environment, capture_output=True, text=True, timeout=60)
        is_old = "/2." in str(program)
        assert (answer.stdout, answer.stderr) == (f"{not is_old}\n", ""), program
        if not is_old:
            everything = "from sharefs_guard import libraries, storage; print(storage.place_of('/nowhere'))"
            command = [program, "-W", "error", "-c", everything]
            answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
            assert (answer.stdout, answer.stderr) == ("None\n", ""), program


def test_the_wheel(tmp_path: Path) -> None:
    """Installed, it works where PYTHONPATH does not; removed, nothing of it is left."""
    environment, packaging = tmp_path / "environment", GUARD.parents[1] / "packaging" / "wheel"
    subprocess.run([PYTHON, "-m", "venv", environment], check=True)
    pip = [environment / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([PYTHON, packaging / "backend.py", "1.2.3", tmp_path], check=True)
    subprocess.run([*pip, "install", "--no-index", tmp_path / "sharefs_guard-1.2.3-py3-none-any.whl"], check=True)
    for words, installed in (["-E"], True), (["-I"], True), (["-S"], False):
        answer = subprocess.run([environment / "bin/python", *words, "-c", INSTALLED], capture_output=True, text=True)
        assert (answer.stdout, answer.stderr) == (f"{installed}\n", "")
    subprocess.run([*pip, "uninstall", "-y", "sharefs-guard"], check=True)
    assert not list(environment.rglob("*sharefs_guard*"))


def test_a_process_that_imports_none_of_them_loads_nothing_more(tmp_path: Path) -> None:
    """What it costs in time is for tests/bench/guard.py."""
    program = "import sys; print(*sys.modules, sep='\\n')"
    (tmp_path / "sitecustomize.py").touch()
    with_guard, without = (set(python("-c", program, guard=directory).stdout.split()) for directory in (GUARD, tmp_path))
    assert with_guard - without == {"sharefs_guard"}


def test_variables_of_compilers_are_moved_before_the_import(cluster: Cluster) -> None:
    host = cluster.hosts[0]
    (cluster.share / "torch.py").write_text("import os; print(os.environ.get('TRITON_CACHE_DIR'))\n")
    program = "import sys; sys.path.insert(0, '/mnt/share'); import torch"
    answer = host.run([PYTHON, "-c", program], environment={"TRITON_CACHE_DIR": "/mnt/share/triton"})
    assert answer.stdout.startswith("/mnt/local/caches/"), answer.stderr
    assert f"TRITON_CACHE_DIR is {answer.stdout.strip()} instead of /mnt/share/triton" in answer.stderr
    assert not (cluster.share / "triton").exists()
    kept = {"TRITON_CACHE_DIR": "/mnt/share/triton", "SHAREFS_GUARD_KEEP": "A:TRITON_CACHE_DIR"}
    assert host.run([PYTHON, "-c", program], environment=kept).stdout == "/mnt/share/triton\n"
    other = host.run([PYTHON, "-c", program], environment={"TRITON_CACHE_DIR": "/mnt/local/mine", "RANK": "1"})
    assert (other.stdout, other.stderr) == ("/mnt/local/mine\n", "")


# A signal arrives while the guard works; `raised` is what the handler raises, and how the handler is written.
HANDLERS = ["handler", "Handler().handle", "Handler()", "functools.partial(handler)"]
INTERRUPTED = """
import functools, os, signal, sys
class Preempted(%s): pass
def handler(*_): raise Preempted()
class Handler:
    def handle(self, *_): raise Preempted()
    __call__ = handle
signal.signal(signal.SIGTERM, %s)
from sharefs_guard import builds, holds
def publish(*_): os.kill(os.getpid(), signal.SIGTERM)
try:
    holds.attempt(lambda: builds._publish(publish, "", "", None, "it"))
    print("went on")
except Preempted:
    print("raised")
print(holds.attempt(lambda: 1 / 0))
"""


@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("kind", ["Exception", "TimeoutError"])
def test_what_a_signal_handler_raises_reaches_the_program(kind: str, handler: str) -> None:
    answer = python("-c", INTERRUPTED % (kind, handler))
    assert answer.stdout == "raised\nNone\n", answer.stderr
    assert answer.stderr.count("\n") == 1 and "ZeroDivisionError" in answer.stderr


def test_a_library_that_a_pth_file_has_imported_is_held_too(environment: Path, tmp_path: Path) -> None:
    (site,) = environment.glob("lib/python3*/site-packages")
    early, library = site / "0.pth", tmp_path / "datasets.py"
    library.write_text("DatasetBuilder = None\n")
    early.write_text(f"import sys; sys.path.append({str(tmp_path)!r}); import datasets\n")
    program = "import sharefs_guard.libraries as l; print(l.held)"
    watched = tmp_path / "guard"
    shutil.copytree(GUARD, watched)
    with open(watched / "sharefs_guard/libraries.py", "a") as file:
        file.write("\nheld = []\nbefore = lambda name: held.append(name)\nafter = lambda name, module: held.append(module.__name__)\n")
    try:
        variables = {"PYTHONPATH": str(watched), "PYTHONDONTWRITEBYTECODE": "1"}
        answer = subprocess.run(["/usr/bin/env", environment / "bin/python", "-c", program], env=variables, capture_output=True, text=True, timeout=60)
    finally:
        early.unlink()
    assert answer.stdout == "['datasets', 'datasets']\n", answer.stderr


# How a script that expects no PYTHONPATH lengthens it, where Python without the guard searches the working directory.
@pytest.mark.parametrize(
    ("value", "words", "found"),
    [
        ("$PYTHONPATH:/nowhere", "", True),
        ("/nowhere:$PYTHONPATH", "", True),
        ("$PYTHONPATH:/nowhere", "-P", True),
        ("$PYTHONPATH:/nowhere", "-I", False),
        ("$PYTHONPATH", "", False),
    ],
)
@pytest.mark.parametrize("guarded", [False, True])
def test_an_empty_element_is_the_working_directory(tmp_path: Path, value: str, words: str, found: bool, guarded: bool) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "own.py").touch()
    (tmp_path / "scripts/t.py").write_text("import importlib.util as u; print(u.find_spec('own') is not None)\n")
    line = f'export PYTHONPATH="{value}"; {PYTHON} {words} scripts/t.py'
    variables = {"PYTHONDONTWRITEBYTECODE": "1"} | ({"PYTHONPATH": f"{GUARD}/"} if guarded else {})
    answer = subprocess.run(["/bin/sh", "-c", line], env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (answer.stdout, answer.stderr) == (f"{found}\n", "")


def test_the_working_directory_comes_last_and_only_where_pythonpath_was_not_set(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('not the library')\n")
    (tmp_path / "t").mkdir()
    (tmp_path / "t/t.py").write_text(f"import random, sys; print(sys.path.index({str(tmp_path)!r}) == len(sys.path) - 1)\n")
    for path, expected in (f"{GUARD}/:/nowhere", "True\n"), (f"{GUARD}:/nowhere", ""):
        answer = subprocess.run([PYTHON, "t/t.py"], env={"PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert answer.stdout == expected
