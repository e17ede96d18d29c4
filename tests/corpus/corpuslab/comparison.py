"""What differs between the program starts of a launch with and without sharefs, and is no decision of sharefs. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from launcherslab.isolation import LOCAL

from .world import Start

# A shell's own variables, and those that say where sharefs stood in between.
_NOISE = {"_", "SHLVL", "PWD", "OLDPWD", "BASH_EXECUTION_STRING"}
# What carries variables through a launcher, or sharefs itself to the other side of it.
_CARRIERS = set(
    "-e -E --env --export export env /usr/bin/env /bin/bash -pc sharefs run --node -- ; && = ' \" , ALL set unset -u --local".split()
)
# Of which one line for all is enough.
IMPLIED_VARIABLES = (
    "HF_DATASETS_CACHE HF_MODULES_CACHE HF_XET_CACHE TRITON_CACHE_DIR TORCH_EXTENSIONS_DIR VLLM_CACHE_ROOT "
    "FLASHINFER_WORKSPACE_BASE DG_JIT_CACHE_DIR TILELANG_CACHE_DIR CUDA_CACHE_PATH PIP_CACHE_DIR WANDB_CACHE_DIR "
    "WANDB_DATA_DIR SGLANG_CACHE_DIR EP_JIT_CACHE_DIR TVM_FFI_CACHE_DIR CUPY_CACHE_DIR OUTLINES_CACHE_DIR "
    "PYTORCH_KERNEL_CACHE_PATH TORCHINDUCTOR_CACHE_DIR CUTE_DSL_CACHE_DIR"
).split()
_PUNCTUATION = set("=,'\"")
_HUB = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE"}
_RANDOM = re.compile(r"RANDOM|\bdate\b|\$\$|mktemp|SECONDS|shuf|%s")
_TOKENS = re.compile(r"\s+|[^\s\"';&|()<>=,]+|.", re.DOTALL)


_MESSAGES = (
    (re.compile(r"^sharefs: (\S+) (\S+) -> (\S+): ", re.MULTILINE), ("flag", "from", "to")),
    (re.compile(r"^sharefs: (\w+)=(\S+) set: ", re.MULTILINE), ("flag", "to")),
)
_DIAGNOSIS = re.compile(r"^(note|warning|error): (?:(.*?): )?(.*) \[(SF\d+)\]$", re.MULTILINE)
_IMPLIED = re.compile(r"^sharefs: .* set to the node's own disk: ", re.MULTILINE)


# The one line of a launch that was not asked for more.
_SUMMARY = re.compile(
    r"^sharefs: .*?caches of (\S+)(?: and \d+ more)? on this node \((\S+)\); -v says how$", re.MULTILINE
)


def document_of(messages: str) -> dict[str, Any]:
    """What sharefs says to people, as its document would: it may be started by a batch system without --json."""
    changes = []
    for pattern, names in _MESSAGES:
        for found in pattern.finditer(messages):
            changes.append({"from": None, "to": None, **dict(zip(names, found.groups()))})
    for shared, local in _SUMMARY.findall(messages):
        names = ("--cache_dir", "HF_DATASETS_CACHE", *IMPLIED_VARIABLES)
        changes += [{"flag": name, "from": shared, "to": local} for name in names]
    if _IMPLIED.search(messages):
        changes += [{"flag": name, "from": None, "to": str(LOCAL)} for name in IMPLIED_VARIABLES]
    diagnoses = [
        {"severity": "info" if kind == "note" else kind, "subject": subject, "message": text, "hint": "", "code": code}
        for kind, subject, text, code in _DIAGNOSIS.findall(messages)
    ]
    return {"changes": changes, "diagnoses": diagnoses}


@dataclass(frozen=True)
class Decisions:
    """What the documents of `--json` say that was changed, left and found."""

    changes: list[dict[str, Any]] = field(default_factory=list)
    kept: list[dict[str, Any]] = field(default_factory=list)
    diagnoses: list[dict[str, Any]] = field(default_factory=list)
    set: dict[str, str] = field(default_factory=dict)
    unset: list[str] = field(default_factory=list)

    @staticmethod
    def of(documents: Sequence[dict[str, Any]]) -> Decisions:
        """Of all documents of one launch: sharefs may run on the other side of a launcher as well."""
        together = Decisions()
        for document in documents:
            for name in ("changes", "kept", "diagnoses"):
                getattr(together, name).extend(document.get(name) or [])
            together.set.update((document.get("environment") or {}).get("set", {}))
            together.unset.extend((document.get("environment") or {}).get("unset", []))
        return together

    @property
    def variables(self) -> set[str]:
        """The names of variables that a decision is about."""
        names = {change["flag"] for change in self.changes if re.fullmatch(r"[A-Za-z_]\w*", change["flag"])}
        return names | set(self.set) | set(self.unset)

    @property
    def new_values(self) -> set[str]:
        return {change["to"] for change in self.changes if change["to"]} | set(self.set.values())

    @property
    def old_values(self) -> set[str]:
        return {change["from"] for change in self.changes if change["from"]}


def _spelled(flag: str) -> str:
    return flag.replace("-", "_").strip("_")


def _holds(word: str, value: str) -> bool:
    """Does the value stand in the word, as a whole path?"""
    if value.startswith((str(LOCAL), "/var/cache/sharefs")) and word.startswith(f"{value}/"):
        return True  # the directory that several caches lie in
    return re.search(rf"(?<![\w./-]){re.escape(value)}/?(?![\w./-])", word) is not None


class _Explained:
    """Which words may go, and which may come, by the decisions."""

    def __init__(self, decisions: Decisions, random: bool) -> None:
        self._flags = {_spelled(change["flag"]) for change in decisions.changes}
        self._variables = decisions.variables
        self._new = {_masked(value, random) for value in decisions.new_values}
        self._old = {_masked(value, random) for value in decisions.old_values}

    def _is_name(self, word: str) -> bool:
        name = word.partition("=")[0]
        return _spelled(name) in self._flags or name in self._variables

    def gone(self, word: str) -> bool:
        return self._is_name(word) or any(_holds(word, old) for old in self._old)

    def gone_as_spelled(self, word: str) -> bool:
        """Is it `$HF_HOME/datasets` in text, for an old value that ends so?"""
        tail = re.search(r"\$(?:\w+|\{[^}]*\})([^$]*)$", word)
        return tail is not None and any(old.endswith(tail[1]) for old in self._old)

    def come(self, word: str) -> bool:
        if re.match(r"(?:-x)?(?:PYTHONPATH|SHAREFS_\w+)(?:=|$)", word) or "/share/sharefs/guard" in word:
            return True
        is_sharefs = word == "sharefs" or word.endswith("/sharefs") or " run --node " in word
        return self._is_name(word) or is_sharefs or any(_holds(word, new) for new in self._new | self._old)


def _unexplained(bare: Sequence[str], wrapped: Sequence[str], explained: _Explained, in_text: bool) -> list[str]:
    """The words by which two lists differ for no reason. `in_text`: they are parts of one word with spaces."""
    wrong: list[str] = []
    matcher = difflib.SequenceMatcher(None, bare, wrapped, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            continue
        gone, come = bare[a:b], wrapped[c:d]
        if len(gone) == len(come) == 1 and all(re.search(r"\S\s+\S", word) for word in (gone[0], come[0])):
            wrong += _unexplained(_TOKENS.findall(gone[0]), _TOKENS.findall(come[0]), explained, True)
            continue
        # What carries something may come with it, and in text what stands around a word goes with it.
        carries = any(map(explained.gone, gone)) or any(map(explained.come, come))
        for word in gone:
            around = carries and in_text and (
                word.isspace() or word in _PUNCTUATION or explained.gone_as_spelled(word)
            )
            if not around and not explained.gone(word):
                wrong.append(f"`{word}` is gone")
        for word in come:
            around = carries and (word in _CARRIERS or in_text and word.isspace())
            if not around and not explained.come(word):
                wrong.append(f"`{word}` came")
    return wrong


def _masked(text: str, random: bool) -> str:
    return re.sub(r"\d+", "#", text) if random else text


def _differences_of(
    bare: Start, wrapped: Start, decisions: Decisions, explained: _Explained, random: bool
) -> list[str]:
    old, new = ([_masked(word, random) for word in start.argv] for start in (bare, wrapped))
    wrong = [] if old == new else [f"argument {one}" for one in _unexplained(old, new, explained, False)]
    for name in sorted(set(bare.environment) | set(wrapped.environment)):
        before, after = bare.environment.get(name), wrapped.environment.get(name)
        if name in _NOISE or name.startswith("SHAREFS_") or before == after:
            continue
        if name == "PYTHONPATH" and after is not None and after.split(":")[1:] == [*filter(None, [before])]:
            continue  # the guard in front of what was there
        if random and before is not None and after is not None and _masked(before, True) == _masked(after, True):
            continue
        if name not in decisions.variables:
            wrong.append(f"variable {name}: {before} became {after}")
        elif after is None and name not in decisions.unset:
            wrong.append(f"variable {name} is gone")
        elif after is not None and name not in _HUB and not any(_holds(after, new) for new in decisions.new_values):
            wrong.append(f"variable {name}: {after} is no decision's value")
    if bare.directory != wrapped.directory:
        wrong.append(f"directory {bare.directory} became {wrapped.directory}")
    return wrong


def _program(start: Start) -> tuple[str, ...]:
    """By what starts that run at once are told apart."""
    return (start.name, *(word for word in start.argv[1:] if "cache" not in word and not word.startswith("/")))


def differences(
    text: str, bare: Sequence[Start], wrapped: Sequence[Start], codes: tuple[int, int], decisions: Decisions
) -> list[str]:
    """Empty where only decisions differ. `text` is the launch: one that starts programs at once has no order."""
    wrong = []
    if codes[0] != codes[1]:
        wrong.append(f"exit code {codes[0]} became {codes[1]}")
    if len(bare) != len(wrapped):
        names = [" ".join(start.name for start in starts) or "nothing" for starts in (bare, wrapped)]
        return [*wrong, f"{names[0]} started, with sharefs {names[1]}"]
    if re.search(r"(?<![&>|])&(?![&>\d])|\|(?!\|)", text):
        bare, wrapped = sorted(bare, key=_program), sorted(wrapped, key=_program)
    random = _RANDOM.search(text) is not None
    explained = _Explained(decisions, random)
    for old, new in zip(bare, wrapped):
        wrong += [f"{old.name}: {one}" for one in _differences_of(old, new, decisions, explained, random)]
    return wrong
