"""Each shape with and without sharefs, and what is found between the two."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .comparison import Decisions, differences, document_of
from .shapes import Shape, with_sharefs
from .verdict import Racy, Verdict, changed_for_nobody, judge, moved_what_must_stay
from .world import Ran, World


@dataclass(frozen=True)
class Result:
    shape: Shape
    way: str  # how sharefs was asked
    verdict: Verdict
    silent: list[Racy] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def documents_in(output: str) -> tuple[list[dict[str, Any]], str]:
    """The documents of `--json` between other lines, and these."""
    documents, rest, at = [], "", 0
    while at < len(output):
        start = output.find('{', at)
        if start < 0:
            break
        try:
            value, end = json.JSONDecoder().raw_decode(output, start)
        except ValueError:
            value, end = None, start + 1
        if isinstance(value, dict) and "schema" in value and "diagnoses" in value:
            documents.append(value)
            rest += output[at:start]
        else:
            rest += output[at:end]
        at = end
    return documents, rest + output[at:]


def _result(shape: Shape, way: str, bare: Ran, wrapped: Ran, documents: Sequence[dict[str, Any]], said: str) -> Result:
    decisions = Decisions.of([*documents, document_of(said)])
    verdict, silent = judge(bare.starts, wrapped.starts, decisions, said)
    codes = (bare.exit_code, wrapped.exit_code)
    wrong = differences(shape.text, bare.starts, wrapped.starts, codes, decisions)
    wrong += moved_what_must_stay(bare.starts, wrapped.starts)
    wrong += changed_for_nobody(bare.starts, decisions, wrapped.made)
    if codes[0] != codes[1]:
        wrong.append(said.strip()[:200] or "nothing on stderr")
    errors = [document["error"] for document in documents if document["error"]]
    return Result(shape, way, verdict, silent, wrong + [f"sharefs failed: {error['message']}" for error in errors])


def run_line(world: World, shape: Shape) -> list[Result]:
    bare = world.run(["bash", "-c", shape.text], shape.environment, {})
    wrapped = world.run(["bash", "-c", with_sharefs(shape.text)], shape.environment, {})
    documents, said = documents_in(wrapped.stderr)
    if not documents:
        documents = [{"error": {"message": f"no document: {said[:200]}"}}]
    return [_result(shape, "run", bare, wrapped, documents, said)]


def run_script(world: World, shape: Shape) -> list[Result]:
    files = {shape.name: shape.text}
    bare = world.run(["bash", shape.name], shape.environment, files)
    wrapped = world.run(["bash", "-c", f"sharefs run --json -- bash {shape.name}"], shape.environment, files)
    documents, said = documents_in(wrapped.stderr)
    return [_result(shape, "run -- bash", bare, wrapped, documents, said)]


def table_of(results: Sequence[Result]) -> str:
    ways = list(dict.fromkeys(result.way for result in results))
    width = max(len(verdict.value) for verdict in Verdict)
    lines = [" " * width + "".join(f"  {way:>14}" for way in ways)]
    for verdict in Verdict:
        counts = (sum(r.way == way and r.verdict is verdict for r in results) for way in ways)
        lines.append(f"{verdict.value:<{width}}" + "".join(f"  {count:>14}" for count in counts))
    counts = (sum(r.way == way and bool(r.wrong) for r in results) for way in ways)
    lines.append(f"{'differs':<{width}}" + "".join(f"  {count:>14}" for count in counts))
    return "\n".join(lines)


def failures_of(results: Sequence[Result]) -> list[str]:
    """One line per shape and way that keeps not to the invariants."""
    lines = []
    for result in results:
        silent = [f"{one.program} builds in {one.name}={one.value}" for one in result.silent]
        causes = result.wrong + ([f"silent: {'; '.join(silent)}"] if silent else [])
        if causes:
            text = result.shape.name if result.shape.is_script else f"{result.shape.name}: {result.shape.text}"
            lines.append(f"{text} [{result.way}]\n" + "\n".join(f"    {cause}" for cause in causes))
    return lines
