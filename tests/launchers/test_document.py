"""`sharefs run --dry-run --json` for all launch lines of the golden corpus: by its schema, and true of the command line."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from launcherslab.isolation import SHARED
from launcherslab.sharefs import Answer, Sharefs

PROJECT = Path(__file__).parents[2]
CORPUS = sorted((PROJECT / "tests" / "golden" / "cachefix").glob("*.txt"))


def lines_of(path: Path) -> list[list[str]]:
    """The launch lines, with the share where it is here."""
    lines = [line[2:] for line in path.read_text().splitlines() if line.startswith("> ")]
    return [shlex.split(line.replace("/share/", f"{SHARED}/")) for line in lines]


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((PROJECT / "docs" / "run.schema.json").read_text()))


def untrue_of(answer: Answer) -> list[str]:
    """What the document says of argv, and is not so."""
    document: dict[str, Any] = answer.document
    argv = answer.argv
    wrong = [] if document["argv"] == argv else ["argv"]
    wrong += [f"chain {one}" for one in document["chain"] if not one["index"] < len(argv)]
    script = document["script"]
    if script is not None and script["name"] not in argv[script["index"]]:
        wrong.append(f"script {script}")
    for one in [*document["changes"], *document["guarded"], *document["kept"]]:
        value = one["from"] if "from" in one else one["value"]
        if one["index"] is not None and not one["index"] < len(argv):
            wrong.append(f"{one}")
        is_word = one.get("kind") == "argument" and one.get("action") == "rewrite"
        # In shell text it stands as the shell spells it.
        if is_word and value and " " not in argv[one["index"]] and value not in argv[one["index"]]:
            wrong.append(f"{one}")
    if not document["changes"] and document["final_argv"] != argv:
        wrong.append("final_argv changed, and no change is told")
    return wrong


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_documents_keep_to_the_schema(
    sharefs: Sharefs, validator: jsonschema.Draft202012Validator, path: Path
) -> None:
    lines = lines_of(path)
    assert lines
    changed = 0
    for argv in lines:
        answer = sharefs.ask(argv)
        assert [error.message for error in validator.iter_errors(answer.document)] == [], argv
        assert untrue_of(answer) == [], answer.document
        changed += bool(answer.document["changes"])
    assert changed or path.stem in ("containers", "elsewhere", "home"), "no line of the corpus changes anything"


def test_words_that_are_not_utf8(sharefs: Sharefs, validator: jsonschema.Draft202012Validator) -> None:
    answer = sharefs.ask(["./print_arguments", "\udcff", "--cache_dir", f"{SHARED}/c"])
    assert [error.message for error in validator.iter_errors(answer.document)] == []
    assert answer.document["final_argv"][1] == "\ufffd"
    assert answer.document["final_argv_base64"][1] == "/w=="
