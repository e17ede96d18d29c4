"""Real shapes of launches: what works bare works wrapped, and what races does not, or is named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from corpuslab.runs import Result, failures_of, run_line, run_script, table_of
from corpuslab.shapes import CORPUS, read_lines, read_scripts
from corpuslab.verdict import Verdict
from corpuslab.world import CONFIG, World


# Stands in for sharefs: understands `run --json -- CMD` and says that it changed nothing.
_FAKE = """\
#!/bin/bash
shift 3
echo '{"schema": 1, "changes": [], "kept": [], "diagnoses": [], "error": null}' >&2
"""
_DAMAGES = [
    'exec "$@" one-more',
    'exec $@',
    'exec "$1" -- "${@:2}"',
    '"$@"; exit 125',
    'ONE_MORE=1 exec "$@"',
    "unset LANG; exec \"$@\"",
    'cd /; exec "$@"',
    '"$@"; exec "$@"',
    "exit 0",
]


def _judge(results: list[Result], capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print("\n" + table_of(results))
    failures = failures_of(results)
    assert not failures, f"{len(failures)} shapes\n" + "\n".join(failures)


def test_lines(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    shapes = read_lines(CORPUS / "lines.txt")
    assert len({(shape.text, *shape.environment.items()) for shape in shapes}) == len(shapes) >= 200
    _judge([result for shape in shapes for result in run_line(world, shape)], capsys)


def test_scripts(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    shapes = read_scripts(CORPUS / "scripts")
    assert len(shapes) >= 60
    _judge([result for shape in shapes for result in run_script(world, shape)], capsys)


def test_what_is_needed_stays_also_with_build_local(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    config = CONFIG.with_name("build-local.yaml")
    config.write_text(CONFIG.read_text() + "  build: local\n")
    needed = re.compile(r"/share/(features|saved|checkpoints)|OFFLINE=1")
    shapes = [shape for shape in read_lines(CORPUS / "lines.txt") if needed.search(shape.text)]
    assert len(shapes) >= 20
    local = [replace(shape, environment=shape.environment | {"SHAREFS_CONFIG": str(config)}) for shape in shapes]
    _judge([result for shape in local for result in run_line(world, shape)], capsys)


def test_the_corpus_can_tell_a_race(world: World) -> None:
    """With everything switched off, shapes of the corpus race, and nobody says so."""
    shapes = read_lines(CORPUS / "lines.txt")[::10]
    off = [replace(shape, environment=shape.environment | {"SHAREFS_CACHEFIX": "0"}) for shape in shapes]
    verdicts = Counter(result.verdict for shape in off for result in run_line(world, shape))
    assert verdicts[Verdict.silent] > len(shapes) / 2
    assert verdicts[Verdict.changed] == 0


@pytest.fixture
def fake(world: World, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Puts this shell text in the place of sharefs; the words of the command are "$@"."""

    def put(text: str) -> None:
        path = tmp_path / "sharefs"
        path.write_text(f"{_FAKE}{text}\n")
        path.chmod(0o755)
        world.use(path)

    yield put
    world.use()


def test_a_launch_is_the_same_as_itself(world: World, fake: Callable[[str], None]) -> None:
    fake('exec env -- "$@"')  # bash's own exec makes paths absolute
    shapes = read_lines(CORPUS / "lines.txt")[::8]
    assert [result.shape.text for shape in shapes for result in run_line(world, shape) if result.wrong] == []


@pytest.mark.parametrize("damage", _DAMAGES)
def test_the_corpus_can_tell_damage(world: World, fake: Callable[[str], None], damage: str) -> None:
    fake(damage)
    shapes = [shape for shape in read_lines(CORPUS / "lines.txt") if '"' in shape.text][::12]
    assert any(result.wrong for shape in shapes for result in run_line(world, shape))
