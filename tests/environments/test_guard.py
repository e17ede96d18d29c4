"""`caches.guard: always`: the guard in shared environments, for launches without `sharefs run`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from environmentslab.environment import kinds
from environmentslab.shared import Shared
from environmentslab.store import Store

INSTALLED = "import sys; print(any(type(f).__module__ == 'sharefs_guard' for f in sys.meta_path))"
SITE = "lib/python3.11/site-packages"
RECORD = "sharefs_guard-*.dist-info/RECORD"
WHEEL = next(Path(os.environ["SHAREFS_BIN"]).parent.glob("sharefs_guard-*.whl"))


def is_guarded(env: Path) -> bool:
    answer = subprocess.run([env / "bin/python", "-c", INSTALLED], capture_output=True, text=True, timeout=60)
    assert answer.stderr == ""
    return answer.stdout == "True\n"


def pip(*words: str | Path) -> str:
    """The words of pip, Debian's, working in the environment that is active."""
    return "/usr/bin/python3 -m pip --python $CONDA_PREFIX/bin/python -q --no-input " + " ".join(map(str, words))


def listed(run) -> bool:  # type: ignore[no-untyped-def]
    return json.loads(run("conda", "list", "--json").stdout)["environments"][0]["guard"]


@pytest.fixture
def always(shared: Shared) -> Shared:
    shared.config.write_text(shared.config.read_text() + "caches: {guard: always}\n")
    return shared


def guard(store: Store, value: str) -> None:
    store.config.write_text(store.config.read_text().partition("caches:")[0] + f"caches: {{guard: {value}}}\n")


def test_share_adds_it(always: Shared) -> None:
    said = always.share().stderr
    assert "get the guard" in said
    assert is_guarded(always.stable) and not is_guarded(always.kept()[0])
    package = always.generation / SITE / "sharefs_guard"
    assert list(package.glob("__pycache__/__init__.*.pyc"))  # else every start of Python compiles it
    assert not any(path.stat().st_mode & 0o222 for path in (package, *package.iterdir(), *always.generation.glob(f"{SITE}/{RECORD}")))
    found = always.workshop.verify(always.stable)
    assert kinds(found) == {}
    assert not any("sharefs_guard" in one["path"] for one in found["environment"]["found"])  # all of it is of a package
    assert listed(always.run)
    assert "sharefs_guard" in subprocess.run(
        ["/usr/bin/python3", "-m", "pip", "--python", always.stable / "bin/python", "freeze", "--all"], capture_output=True, text=True, timeout=60
    ).stdout.replace("-", "_")  # fmt: skip


def test_share_without_it(always: Shared) -> None:
    always.share("--no-guard")
    assert not is_guarded(always.stable) and not listed(always.run)
    always.run("conda", "update", "env", "--yes", "true")
    assert not is_guarded(always.stable) and not listed(always.run)


@pytest.mark.parametrize("value", ["run", "off"])
def test_share_adds_nothing_by_default(shared: Shared, value: str) -> None:
    shared.config.write_text(shared.config.read_text() + f"caches: {{guard: {value}}}\n")
    shared.share()
    assert not is_guarded(shared.stable)


def test_share_replaces_another_version(always: Shared) -> None:
    old = always.source / SITE / "sharefs_guard-0.0.1.dist-info"
    old.mkdir(parents=True)
    (old / "RECORD").write_text("sharefs_guard/__init__.py,,\n")
    (old.parent / "sharefs_guard").mkdir()
    (old.parent / "sharefs_guard/__init__.py").write_text("raise ImportError('an old one')\n")
    always.share()
    assert is_guarded(always.stable)
    records = list(always.generation.glob(f"{SITE}/{RECORD}"))
    assert len(records) == 1 and "0.0.1" not in records[0].parent.name


@pytest.mark.parametrize("owner", ["root", "nobody"])
def test_update_adds_it_and_leaves_the_generation_before(store: Store, owner: str) -> None:
    guard(store, "always")
    subprocess.run(["chown", "-Rh", f"{owner}:", store.path], check=True)
    for above in store.path.parents:  # pytest's own are closed to all others
        if above.stat().st_mode & 0o001 == 0:
            above.chmod(above.stat().st_mode | 0o011)
    said = store.update("true")
    assert ("working as `nobody`" in said) == (owner == "nobody") and "no guard" not in said
    assert is_guarded(store.env) and not is_guarded(store.generation(1))
    package = store.generation(2) / SITE / "sharefs_guard"
    assert {path.owner() for path in (package, *package.iterdir())} == {owner}
    assert list(package.glob("__pycache__/__init__.*.pyc"))
    assert (store.generation(2) / "conda-meta/frozen").exists()
    assert set(kinds(store.workshop.verify(store.env))) - {"nobody"} == set()
    store.update("echo 1 >$CONDA_PREFIX/new")
    for name in ("__init__.py", "storage.py"):  # one file for both
        assert os.stat(store.generation(2) / SITE / "sharefs_guard" / name).st_ino == os.stat(store.generation(3) / SITE / "sharefs_guard" / name).st_ino
    guard(store, "run")
    store.update("echo 2 >$CONDA_PREFIX/new")
    assert is_guarded(store.env)  # nobody takes it away


def test_an_update_in_a_copy_adds_it(store: Store) -> None:
    guard(store, "always")
    words = [os.environ["SHAREFS_BIN"], "--config", store.config, "conda", "update", "--yes", "llm", "true"]
    none = ["unshare", "-Ur", "sh", "-c", 'echo 0 >/proc/sys/user/max_mnt_namespaces && exec "$@"', "sh"]
    said = subprocess.run([*none, *words], capture_output=True, text=True, timeout=200, stdin=subprocess.DEVNULL)
    assert said.returncode == 0 and "works in a full copy" in said.stderr, said.stderr
    assert is_guarded(store.env) and not is_guarded(store.generation(1))
    assert list((store.generation(2) / SITE / "sharefs_guard").glob("__pycache__/__init__.*.pyc"))


def test_pip_takes_it_away_for_good_and_brings_it_back(store: Store) -> None:
    guard(store, "always")
    store.update("true")
    store.update(pip("uninstall", "-y", "sharefs-guard"))
    assert not is_guarded(store.env)
    assert not list((store.generation(3) / SITE).glob("sharefs_guard*"))
    store.update("echo 1 >$CONDA_PREFIX/new")
    assert not is_guarded(store.env)
    store.sharefs("conda", "verify", "llm", "--repair", "--yes")
    store.update(pip("install", "--no-index", WHEEL))
    assert is_guarded(store.env)
    assert kinds(store.workshop.verify(store.env)) == {}
    store.update("echo 2 >$CONDA_PREFIX/new")
    assert is_guarded(store.env)


def test_update_replaces_another_version(store: Store) -> None:
    guard(store, "always")
    store.update(
        f"site=$CONDA_PREFIX/{SITE}; mkdir -p $site/sharefs_guard $site/sharefs_guard-0.0.1.dist-info\n"
        "echo 'raise ImportError()' >$site/sharefs_guard/__init__.py; touch $site/sharefs_guard-0.0.1.dist-info/RECORD"
    )
    assert is_guarded(store.env)
    assert len(list((store.generation(2) / SITE).glob("sharefs_guard-*"))) == 1


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [("echo >>$site/sharefs_guard/storage.py", "altered"), ("rm $site/sharefs_guard/libraries.py", "missing")],
)
def test_verify_knows_its_files(store: Store, spoil: str, kind: str) -> None:
    guard(store, "always")
    store.update("true")
    guard(store, "run")
    store.update(f"site=$CONDA_PREFIX/{SITE}; chmod -R u+w $site/sharefs_guard; {spoil}", "--no-verify")
    found = store.workshop.verify(store.env, expect=1)
    assert set(kinds(found)) - {"stale_pyc"} == {kind}
    guard(store, "always")
    store.update("true")
    assert set(kinds(store.workshop.verify(store.env))) == set()
    assert is_guarded(store.env)
