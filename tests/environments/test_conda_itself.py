"""The real conda (24.7.1) beside what sharefs does for it: in an update, and when an environment is activated."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from environmentslab.environment import Workshop, kinds, let_others_through
from environmentslab.shared import Shared, run_tool
from environmentslab.store import Store
from sharefslab.conda_program import ENVIRONMENT, conda_program

_OF_CONDA_ONLY = {"CONDA_EXE", "CONDA_PYTHON_EXE", "_CE_M", "_CE_CONDA", "CONDA_ROOT", "PS1"}  # where conda itself is
_OF_THE_SHELL = {"_", "SHLVL", "PWD", "OLDPWD"}
_START = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}


@pytest.fixture
def program(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """conda, with a cache of its own, and no home."""
    for name, value in {**ENVIRONMENT, "CONDA_PKGS_DIRS": str(place / "pkgs"), "CONDA_REGISTER_ENVS": "false"}.items():
        monkeypatch.setenv(name, value)
    return conda_program()


def conda(program: Path, *words: str | Path) -> str:
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def doctor(program: Path, prefix: Path) -> dict[str, list[str]]:
    """The files that `conda doctor` names, by its heading."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in conda(program, "doctor", "-v", "-p", prefix).splitlines():
        if line.endswith("Files:"):
            heading = line.split()[0].lower()
        elif heading and "/" in line and " " not in line.strip():
            found.setdefault(heading, []).append(line.strip())
    return {name: sorted(files) for name, files in found.items()}


def packages(program: Path, prefix: Path) -> list[str]:
    return [one["name"] for one in json.loads(conda(program, "list", "--json", "-p", prefix))]


@pytest.fixture
def made_by_conda(workshop: Workshop, place: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> Shared:
    """An environment in a home that conda has installed."""

    def create(self: Workshop, prefix: Path) -> Path:
        conda(program, "create", "-q", "--yes", "-p", prefix, *sorted((self.directory / "channel").glob("*/*.conda")))
        return prefix

    monkeypatch.setattr(Workshop, "install", create)
    return Shared(workshop, place)


def test_requirement_9_what_conda_has_installed_is_shared_and_moved_as_conda_wants_it(made_by_conda: Shared, program: Path) -> None:
    shared, workshop = made_by_conda, made_by_conda.workshop
    assert kinds(workshop.verify(shared.source)) == {}
    shared.share()
    assert doctor(program, shared.stable) == {} and kinds(workshop.verify(shared.stable)) == {}
    assert packages(program, shared.stable) == ["python", "tool"]
    assert run_tool(shared.stable).startswith(f"tool -I{shared.stable}/")
    moved = shared.place / "moved"
    subprocess.run(["cp", "-a", shared.generation, moved], check=True)
    subprocess.run(["chmod", "-R", "u+w", moved], check=True)
    assert doctor(program, moved) == {}
    workshop.relocate(moved)
    assert doctor(program, moved) == {} and kinds(workshop.verify(moved)) == {}
    assert run_tool(moved).startswith(f"tool -I{moved}/")


def test_verify_finds_what_conda_doctor_finds(made_by_conda: Shared, program: Path) -> None:
    prefix, workshop = made_by_conda.source, made_by_conda.workshop
    library = prefix / "lib/python3.11"
    for missing in (library / "site-packages/tool/__init__.py", library / "this.py"):
        missing.unlink()
    altered = library / "_sysconfigdata_x.py"  # a copy of its own: conda has put the prefix in
    altered.write_text(altered.read_text() + "# mine\n")
    expected = doctor(program, prefix)
    assert expected == {"missing": ["lib/python3.11/site-packages/tool/__init__.py", "lib/python3.11/this.py"],
                        "altered": ["lib/python3.11/_sysconfigdata_x.py"]}  # fmt: skip
    found = kinds(workshop.verify(prefix, expect=1))
    assert {name: sorted(files) for name, files in found.items() if name != "stale_pyc"} == expected


def test_requirement_6_conda_removes_and_installs_in_an_update(store: Store, program: Path) -> None:
    channel = store.workshop.directory / "channel"
    tool = channel / "noarch/tool-3.11.9-0.conda"
    words = ["conda", "update", "--yes", "llm", "--", program]
    store.sharefs(*words, "remove", "--yes", "--force", "-p", store.env, "tool")
    assert packages(program, store.env) == ["python"]
    assert packages(program, store.generation(1)) == ["python", "tool"]
    assert not (store.env / "bin/tool").exists()
    store.sharefs(*words, "install", "--yes", "-p", store.env, tool)
    assert packages(program, store.env) == ["python", "tool"]
    assert (store.env / "bin/tool").read_text().splitlines()[0] == f"#!{store.env}/bin/python3.11"
    ran = subprocess.run([store.env / "bin/tool"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0 and ran.stdout.startswith("tool "), ran
    assert store.generations()[2]["changes"] == [{"name": "tool", "before": "", "after": "3.11.9 0"}]
    commands = [line for line in (store.env / "conda-meta/history").read_text().splitlines() if line.startswith("# cmd:")]
    assert [line.split()[3] for line in commands[-2:]] == ["remove", "install"]
    found = store.workshop.verify(store.env)["environment"]["found"]
    assert [one for one in found if one["kind"] != "unmanaged"] == []
    store.sharefs("conda", "rollback", "llm", "--to", "1", "--yes")
    assert packages(program, store.env) == ["python", "tool"]


def test_conda_run_starts_programs_with_the_guard(store: Store, program: Path) -> None:
    """By PYTHONPATH, and by the wheel in the environment."""
    # By its path: the conda here has no scripts to activate by.
    asks = [store.env / "bin/python", "-c", "import sys; print(any(type(f).__module__ == 'sharefs_guard' for f in sys.meta_path))"]
    assert conda(program, "run", "-p", store.env, *asks).strip() == "False"
    variables = json.loads(store.sharefs("env", "--json").stdout)["environment"]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        assert conda(program, "run", "-p", store.env, *asks).strip() == "True"
    store.config.write_text(store.config.read_text() + "caches: {guard: always}\n")
    store.update("true")
    assert conda(program, "run", "-p", store.env, *asks).strip() == "True"


def test_requirement_7_conda_itself_cannot_change_what_is_shared(store: Store, program: Path) -> None:
    """Not even its owner."""
    subprocess.run(["chown", "-Rh", "nobody:", store.path], check=True)
    let_others_through(store.path)
    home = store.path.parent / "home"
    home.mkdir()
    subprocess.run(["chown", "nobody:", home], check=True)
    as_nobody = ["setpriv", "--reuid", "nobody", "--clear-groups", "env", f"HOME={home}", f"CONDA_PKGS_DIRS={home}/pkgs"]
    if subprocess.run([*as_nobody, program, "--version"], capture_output=True, timeout=120).returncode != 0:
        pytest.skip(f"this tree lies where others cannot read: {program}")
    before = sorted(str(path) for path in store.generation(1).rglob("*"))
    command = [program, "remove", "--yes", "--force", "-p", store.env, "tool"]
    done = subprocess.run([*as_nobody, *command], capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and "EnvironmentNotWritableError" in done.stderr, done
    assert sorted(str(path) for path in store.generation(1).rglob("*")) == before
    ran = subprocess.run([store.env / "bin/tool"], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def environment_of(command: Sequence[str | Path], environment: dict[str, str]) -> dict[str, str]:
    done = subprocess.run(command, env=environment, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    pairs = [entry.split("=", 1) for entry in done.stdout.decode().split("\0") if "=" in entry]
    return {name: value for name, value in pairs if name not in _OF_THE_SHELL | _OF_CONDA_ONLY}


@pytest.mark.parametrize("before", ["nothing", "another environment"])
def test_requirement_4_a_command_has_the_environment_that_conda_would_activate(store: Store, program: Path, before: str) -> None:
    top = store.generation(1)
    for directory in ("etc/conda/activate.d", "etc/conda/env_vars.d", "conda-meta"):
        made = top / directory
        for above in (top, top / "etc", top / "etc/conda", made):
            above.mkdir(exist_ok=True)
            above.chmod(0o755)
    (top / "etc/conda/activate.d/b.sh").write_text('export SECOND="$FIRST and $CONDA_PREFIX" OF_PACKAGE="$OF_PACKAGE."\nunset LANG\n')
    (top / "etc/conda/activate.d/a.sh").write_text("export FIRST='one\ntwo'\nNOT_EXPORTED=1\n")
    (top / "etc/conda/env_vars.d/p.json").write_text('{"OF_PACKAGE": "a b", "OF_BOTH": "package"}')
    (top / "conda-meta/state").write_text('{"env_vars": {"OF_BOTH": "user", "MINE": "$HOME and more"}, "version": 1}')
    (top / "conda-meta/history").chmod(0o644)  # without one it is no environment for conda
    start = dict(_START)
    if before != "nothing":
        other = store.path.parent / "other"
        (other / "conda-meta").mkdir(parents=True)
        start |= {"CONDA_SHLVL": "1", "CONDA_PREFIX": str(other), "CONDA_DEFAULT_ENV": "other", "CONDA_PROMPT_MODIFIER": "(other) ",
                  "PATH": f"{other}/bin:{_START['PATH']}"}  # fmt: skip
    script = f'eval "$({program} shell.posix activate "$1")" && exec env -0'
    # In the generation itself: `conda run` stays in it.
    wanted = environment_of(["sh", "-c", script, "sh", top], start)
    got = environment_of([os.environ["SHAREFS_BIN"], "--config", store.config, "conda", "run", "llm", "--", "env", "-0"], start)
    assert got.pop("SHAREFS_CONDA_GENERATION") == str(top)
    # conda names an environment outside of an `envs` directory by its whole path.
    assert (got.pop("CONDA_DEFAULT_ENV"), got.pop("CONDA_PROMPT_MODIFIER")) == ("llm", "(llm) ")
    assert (wanted.pop("CONDA_DEFAULT_ENV"), wanted.pop("CONDA_PROMPT_MODIFIER")) == (str(top), f"({top}) ")
    condabin = str(program.parents[1] / "condabin")
    wanted["PATH"] = ":".join(part for part in wanted["PATH"].split(":") if part != condabin)
    assert got == wanted
