"""The comparison and the verdict can fail: each with starts that are made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corpuslab.comparison import Decisions, differences, document_of
from corpuslab.runs import documents_in
from corpuslab.shapes import is_shell_text, placed, with_sharefs
from corpuslab.verdict import Verdict, changed_for_nobody, judge, moved_what_must_stay, racy_of
from corpuslab.world import HOME, JOB, LOCAL, SHARE, Start

CACHE, MOVED = f"{SHARE}/hf", f"{LOCAL}/root/abc"


def start(line: str, settings: dict[str, str] | None = None, **environment: str) -> Start:
    return Start(tuple(line.split(" ")), {"HOME": str(HOME), **environment}, str(JOB), settings or {})


def change(flag: str, old: str | None, new: str | None, action: str = "rewrite") -> dict[str, Any]:
    return {"flag": flag, "from": old, "to": new, "action": action}


def diagnosis(code: str, message: str, severity: str = "warning") -> dict[str, Any]:
    return {"code": code, "severity": severity, "subject": "", "message": message, "hint": ""}


REWRITE = Decisions(changes=[change("--cache_dir", CACHE, MOVED)])
DROP = Decisions(changes=[change("--cache_dir", CACHE, None, "drop")], set={"HF_DATASETS_CACHE": MOVED})
GUARD = {"PYTHONPATH": "/opt/share/sharefs/guard", "SHAREFS_GUARD": "1"}
SET = Decisions(changes=[change("HF_DATASETS_CACHE", CACHE, MOVED, "set")], set={"HF_DATASETS_CACHE": MOVED})
BARE = start(f"python train.py --cache_dir {CACHE} --output_dir {CACHE}/out")


def compared(bare: Start, wrapped: Start, decisions: Decisions) -> list[str]:
    return differences("python train.py", [bare], [wrapped], (0, 0), decisions)


@pytest.mark.parametrize(
    ("wrapped", "decisions"),
    [
        (BARE, Decisions()),
        (start(f"python train.py --cache_dir {MOVED} --output_dir {CACHE}/out"), REWRITE),
        (start(f"python train.py --output_dir {CACHE}/out", HF_DATASETS_CACHE=MOVED, HF_HUB_CACHE=CACHE),
         replace(DROP, set={"HF_DATASETS_CACHE": MOVED, "HF_HUB_CACHE": CACHE})),
    ],
)  # fmt: skip
def test_decisions_may_differ(wrapped: Start, decisions: Decisions) -> None:
    assert compared(BARE, wrapped, decisions) == []


@pytest.mark.parametrize(
    ("wrapped", "decisions"),
    [
        (start(f"python train.py --cache_dir {MOVED} --output_dir {CACHE}/out"), Decisions()),
        (start(f"python train.py --cache_dir {MOVED} --output_dir {MOVED}/out"), REWRITE),
        (start(f"python train.py --cache_dir {MOVED}"), REWRITE),
        (start(f"python train.py --cache_dir {CACHE} --output_dir {CACHE}/out more"), REWRITE),
        (start(f"python train.py --output_dir {CACHE}/out", LANG="C"), DROP),
        (start(f"python train.py --output_dir {CACHE}/out", HF_DATASETS_CACHE="/elsewhere"), DROP),
        (replace(BARE, directory="/"), Decisions()),
    ],
)
def test_nothing_else_may_differ(wrapped: Start, decisions: Decisions) -> None:
    assert compared(BARE, wrapped, decisions) != []


def test_text_in_a_word_is_compared_word_by_word() -> None:
    bare = Start(("srun", "bash", "-c", f"python t.py --cache_dir={CACHE} && echo 'a b'"), {}, "/")
    good = replace(bare, argv=(*bare.argv[:3], f"python t.py --cache_dir={MOVED} && echo 'a b'"))
    bad = replace(bare, argv=(*bare.argv[:3], f"python t.py --cache_dir={MOVED} && echo 'ab'"))
    assert compared(bare, good, REWRITE) == []
    assert compared(bare, bad, REWRITE) != []


def test_text_spells_a_value_by_its_variables() -> None:
    old = f"{CACHE}/datasets"
    bare = Start(("srun", "bash", "-c", "export HF_DATASETS_CACHE=$H/datasets; python t.py $H/out"), {}, "/")
    good = replace(bare, argv=(*bare.argv[:3], f"export HF_DATASETS_CACHE={MOVED}; python t.py $H/out"))
    bad = replace(bare, argv=(*bare.argv[:3], f"export HF_DATASETS_CACHE=$H/datasets; python t.py {MOVED}"))
    decisions = Decisions(changes=[change("HF_DATASETS_CACHE", old, MOVED)])
    assert compared(bare, good, decisions) == []
    assert compared(bare, bad, decisions) != []


def test_starts_and_exit_codes() -> None:
    other = start("python eval.py")
    assert differences("a; b", [BARE, other], [BARE, other], (3, 3), Decisions()) == []
    assert differences("a; b", [BARE, other], [BARE, other], (0, 125), Decisions()) != []
    assert differences("a; b", [BARE, other], [BARE], (0, 0), Decisions()) != []
    assert differences("a; b", [BARE, other], [other, BARE], (0, 0), Decisions()) != []
    assert differences("a & b & wait", [BARE, other], [other, BARE], (0, 0), Decisions()) == []


def test_only_chance_may_change_numbers() -> None:
    bare, wrapped = start("python t.py --port 29123"), start("python t.py --port 29124")
    assert differences("python t.py --port $RANDOM", [bare], [wrapped], (0, 0), Decisions()) == []
    assert differences("python t.py --port 29123", [bare], [wrapped], (0, 0), Decisions()) != []


@pytest.mark.parametrize(
    ("one", "names"),
    [
        (BARE, ["--cache_dir"]),
        (start(f"torchrun -n 2 train.py --cache-dir={CACHE}"), ["--cache-dir"]),
        (start("python train.py --cache_dir ./cache"), ["--cache_dir"]),
        (start(f"python train.py --cache_dir {CACHE} --cache_dir /scratch"), []),
        (start("python train.py --cache_dir /scratch"), []),
        (start(f"python -m fastchat.train.train --cache_dir {CACHE}"), []),
        (start(f"llamafactory-cli train a.yaml", {"a.yaml": f"cache_dir: {CACHE}"}), ["cache_dir"]),
        (start(f"llamafactory-cli train a.yaml cache_dir=null", {"a.yaml": f"cache_dir: {CACHE}"}), []),
        (start("python main.py", TRITON_CACHE_DIR=CACHE), ["TRITON_CACHE_DIR"]),
        (start("python main.py", HF_HOME=CACHE), ["HF_DATASETS_CACHE", "HF_MODULES_CACHE"]),
        (start("python main.py", HF_HOME=CACHE, HF_DATASETS_CACHE="/scratch", HF_MODULES_CACHE="/scratch"), []),
        (start("hf download a/b", HF_HOME=CACHE), []),
        (start("python -m pip install a", HF_HOME=CACHE), []),
        (Start(("ssh", "node1", f"HF_HOME={CACHE} python main.py"), {}, "/"), ["HF_HOME"]),
    ],
)  # fmt: skip
def test_what_races(one: Start, names: list[str]) -> None:
    assert [racy.name for racy in racy_of([one])] == names


def test_a_race_is_moved_left_warned_of_or_silent() -> None:
    moved = start("python train.py", HF_DATASETS_CACHE=MOVED)
    named = {"flag": "--cache_dir", "reason": "offline"}
    guarded = replace(BARE, environment=BARE.environment | GUARD)
    assert judge([BARE], [guarded], Decisions(), "")[0] is Verdict.changed
    isolated = replace(guarded, argv=("python", "-I", *BARE.argv[1:]))
    assert judge([BARE], [isolated], Decisions(), "")[0] is Verdict.silent
    elsewhere = replace(guarded, environment=guarded.environment | {"PYTHONPATH": "/src"})
    assert judge([BARE], [elsewhere], Decisions(), "")[0] is Verdict.silent
    assert judge([BARE], [moved], DROP, "")[0] is Verdict.changed
    assert judge([moved], [moved], DROP, "")[0] is Verdict.nothing
    assert judge([BARE], [BARE], Decisions(), "")[0] is Verdict.silent
    assert judge([BARE], [BARE], Decisions(kept=[named]), "")[0] is Verdict.left
    for code, message, verdict in (
        ("SF408", "--cache_dir was left", Verdict.warned),
        ("SF402", "it runs on another machine", Verdict.warned),
        ("SF401", "an option is not known", Verdict.silent),
        ("SF410", "left-over directories", Verdict.silent),
    ):
        assert judge([BARE], [BARE], Decisions(diagnoses=[diagnosis(code, message)]), "")[0] is verdict


def test_a_kept_hf_home_says_nothing_of_what_is_built_in_it() -> None:
    one = start("python main.py", HF_HOME=CACHE)
    assert judge([one], [one], Decisions(kept=[{"flag": "HF_HOME", "reason": "the token"}]), "")[0] is Verdict.silent


def _moved(bare: list[Start], wrapped: list[Start]) -> list[str]:
    return moved_what_must_stay(bare, wrapped, holds=lambda path: True)


def test_what_must_stay() -> None:
    offline, moved = start("python m.py", HF_HOME=CACHE, HF_HUB_OFFLINE="1"), start("python m.py", HF_HUB_OFFLINE="1")
    online = start("python m.py", HF_HOME=CACHE, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="0")
    models = start(f"python models_only.py --cache_dir {CACHE}")
    assert _moved([offline], [offline]) == []
    assert _moved([offline], [moved]) != []
    assert _moved([online], [moved]) == []
    assert _moved([models], [start("python models_only.py")]) != []
    for script, may_move in (("missing.py", False), ("train.py", True)):
        saved = start(f"python {script} --cache_dir {SHARE}/saved")
        assert (_moved([saved], [start(f"python {script} --cache_dir {MOVED}")]) == []) == may_move


def test_nothing_is_done_for_nobody() -> None:
    assert changed_for_nobody([start("nvidia-smi")], Decisions(), []) == []
    assert changed_for_nobody([start("nvidia-smi")], SET, []) != []
    assert changed_for_nobody([start("nvidia-smi")], Decisions(), [MOVED]) != []
    assert changed_for_nobody([BARE], SET, [MOVED]) == []


def test_messages_are_read_as_a_document() -> None:
    said = (
        f"sharefs: --cache_dir {CACHE} -> {MOVED}: unknown script\n"
        f"sharefs: HF_DATASETS_CACHE={MOVED} set: a reason\nwarning: srun: it starts elsewhere [SF421]\nbye\n"
    )
    document = document_of(said)
    assert [(one["flag"], one["from"], one["to"]) for one in document["changes"]] == [
        ("--cache_dir", CACHE, MOVED), ("HF_DATASETS_CACHE", None, MOVED),
    ]  # fmt: skip
    assert [(one["severity"], one["code"], one["subject"]) for one in document["diagnoses"]] == [
        ("warning", "SF421", "srun")
    ]
    summary = document_of(f"sharefs: caches of {CACHE} on this node ({MOVED}); -v says how\n")["changes"]
    assert ("--cache_dir", CACHE, MOVED) in [(one["flag"], one["from"], one["to"]) for one in summary]
    assert document_of("bye\n") == {"changes": [], "diagnoses": []}


def test_documents_stand_between_other_lines() -> None:
    documents, said = documents_in('warning: {x}\n{"schema": 1, "diagnoses": []}\nbye {"a": 1}\n')
    assert documents == [{"schema": 1, "diagnoses": []}]
    assert said == 'warning: {x}\n\nbye {"a": 1}\n'


@pytest.mark.parametrize(
    ("line", "is_text"),
    [
        ("python train.py --a 'b; c' \"d && e\"", False),
        ("A=1 B='2 3' python train.py > log 2>&1", False),
        ("torchrun --n $(nvidia-smi -L | wc -l) train.py", False),
        ("python a.py; python b.py", True),
        ("python a.py | tee log", True),
        ("python a.py &", True),
        ("export A=1", True),
        ("(python a.py)", True),
        ("source env.sh", True),
    ],
)
def test_which_lines_need_a_shell(line: str, is_text: bool) -> None:
    assert is_shell_text(line) == is_text


def test_sharefs_stands_behind_assignments() -> None:
    assert with_sharefs("A=1 B='2 3' python t.py") == "A=1 B='2 3' sharefs run --json -- python t.py"
    assert with_sharefs("a; b 'c'").startswith("sharefs run --json -- bash -c ")


def test_paths_of_the_corpus_are_those_of_the_world() -> None:
    assert placed("a /share/x ${A:-/share}/y $X/share") == f"a {SHARE}/x ${{A:-{SHARE}}}/y $X/share"
