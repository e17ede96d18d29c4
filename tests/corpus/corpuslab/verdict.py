"""What became of the caches of a launch: moved, left with a reason, warned of, or racing and nobody says so. Pure."""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .comparison import Decisions
from .world import SHARE, Start

# The node-local class of docs/cachefix.md: several nodes write them at once.
_VARIABLES = (
    "HF_DATASETS_CACHE HF_DATASETS_DOWNLOADED_DATASETS_PATH HF_DATASETS_EXTRACTED_DATASETS_PATH HF_MODULES_CACHE "
    "TRITON_CACHE_DIR TORCH_EXTENSIONS_DIR TORCHINDUCTOR_CACHE_DIR VLLM_CACHE_ROOT NUMBA_CACHE_DIR CUDA_CACHE_PATH"
).split()
# Where a cache lies whose variable is not set: the first of these that is set, and what is behind it.
_IMPLIED = {
    "HF_DATASETS_CACHE": (("HF_HOME", "datasets"), ("XDG_CACHE_HOME", "huggingface/datasets"),
                          ("HOME", ".cache/huggingface/datasets")),
    "HF_MODULES_CACHE": (("HF_HOME", "modules"), ("XDG_CACHE_HOME", "huggingface/modules"),
                         ("HOME", ".cache/huggingface/modules")),
    "TRITON_CACHE_DIR": (("TRITON_HOME", ".triton/cache"), ("HOME", ".triton/cache")),
    "TORCH_EXTENSIONS_DIR": (("XDG_CACHE_HOME", "torch_extensions"), ("HOME", ".cache/torch_extensions")),
}  # fmt: skip
_FLAG = re.compile(
    r"(--(?:data_?|dataset_?|datasets_?)?cache[-_]d(?:ir?)?|--dataset[-_]prepared[-_]path|[+~]*(?:[\w.]+\.)?cache_dir)"
    r"(?:=(.*))?",
    re.DOTALL,
)
_IN_TEXT = re.compile(
    r"(--(?:data_|dataset_)?cache[-_]dir|HF_DATASETS_CACHE|HF_HOME|TRITON_CACHE_DIR)[= ]+[\"']?([^\s\"';&)]+)"
)
_IN_FILE = re.compile(r"((?:dataset_prepared_path|(?:data_?)?cache_dir))[\"']?\s*[:=\s]\s*[\"']?([^\s\"',}]+)")
# Their --cache_dir holds models only, or is one cache for all nodes.
_MODELS_ONLY = re.compile(r"fastchat[./]|llava[./]train|levanter|models_only|extract\.py")

_INTERPRETER = re.compile(r"python[\d.]*|ipython")
_LAUNCHERS = set(
    "torchrun deepspeed accelerate accelerate-launch colossalai composer fabric lightning torchx tune litgpt trl axolotl "
    "llamafactory-cli swift nemo lm_eval lm-eval vllm sglang jupyter papermill uvx".split()
)
# Here they only record: what they would start is in their words.
_CARRIERS = set("docker podman nvidia-docker ray ssh pdsh tmux screen parallel qsub zsh fish tcsh enroot".split())
# And these hand the environment on.
_LOSES = _CARRIERS - {"parallel", "zsh", "fish", "tcsh", "screen"}
# Directories of the world with what the libraries did not make, and files from which more is derived than a cache.
_OWN_CONTENT = tuple(f"{SHARE}/{name}" for name in ("features", "saved", "checkpoints"))
# Their sources show that they only hand it on to the libraries' loaders: what else lies there, they never read.
_LOADERS_ONLY = ("train.py", "own/run_sft.py")
_DERIVED = re.compile(r"\$\{cache_dir\}/")
# Where no guard comes: containers, other machines and users, and where variables get lost.
_GENERAL = {"SF402", "SF404", "SF407"}
# What the guard's directory is called, wherever it is installed. It loads the guard into Python programs.
_GUARD = "/share/sharefs/guard"
_UNGUARDED = ("-I", "-E", "-S")


class Verdict(enum.Enum):
    nothing = "nothing at stake"
    changed = "changed"
    left = "left with a reason"
    warned = "warned"
    silent = "silent and racing"


@dataclass(frozen=True)
class Racy:
    program: str
    name: str  # of the flag or variable
    value: str
    base: str  # the variable that implies it, or the name again


def _is_shared(value: str, directory: str) -> bool:
    if value in ("null", "None"):
        return False
    path = os.path.normpath(os.path.join(directory, value))
    return path == str(SHARE) or path.startswith(f"{SHARE}/")


def _builds(start: Start) -> bool:
    if start.name in _LAUNCHERS:
        return "--help" not in start.argv and start.argv[1:2] not in (("config",), ("env",), ("test",))
    if not _INTERPRETER.fullmatch(start.name):
        return False
    words = start.argv[1:]
    while words and words[0].startswith("-") and words[0] not in ("-c", "-m", "-"):
        if words[0] in ("-V", "--version"):
            return False
        words = words[2:] if words[0] in ("-W", "-X") else words[1:]
    if not words:  # its program comes from stdin
        return True
    if words[0] == "-m":
        return words[1:2] not in (("pip",), ("venv",), ("http.server",), ("ipykernel",))
    if words[0] == "-c":
        return len(words) > 1 and re.search(r"datasets|train", words[1]) is not None
    return os.path.basename(words[0]) != "setup.py"


def _variables(start: Start) -> Iterator[Racy]:
    environment = start.environment
    for name in _VARIABLES:
        value = environment.get(name, "")
        if value:
            if _is_shared(value, start.directory):
                yield Racy(start.name, name, value, name)
            continue
        base, rest = next(((base, rest) for base, rest in _IMPLIED.get(name, ()) if environment.get(base)), ("", ""))
        if base and _is_shared(f"{environment[base]}/{rest}", start.directory):
            yield Racy(start.name, name, f"{environment[base]}/{rest}", base)


def _flags(start: Start) -> Iterator[Racy]:
    if any(_MODELS_ONLY.search(word) for word in start.argv):
        return
    last: dict[str, str] = {}
    for at, word in enumerate(start.argv):
        # Behind `--` are no options, unless they are another program's.
        if word == "--" and start.name.startswith("python") and start.argv[at + 1 : at + 2] > ("",):
            if start.argv[at + 1].startswith("-"):
                break
        found = _FLAG.fullmatch(word)
        if found is None:
            continue
        value = found[2]
        if value is None and found[1].startswith("-") and at + 1 < len(start.argv):
            value = start.argv[at + 1]
        if value:
            last[found[1]] = value.strip("\"'")  # Hydra's quotes
    for text in start.settings.values():
        for key, value in _IN_FILE.findall(text):
            if not any(flag.lstrip("+-").split(".")[-1].replace("-", "_") == key for flag in last):
                last[key] = value
    for flag, value in last.items():
        if _is_shared(value, start.directory):
            yield Racy(start.name, flag, value, flag)


# Of sources, and of `python -c`: what they write out themselves.
_IN_SOURCE = re.compile(r"(HF_HOME|HF_DATASETS_CACHE|cache_dir)[^\n;]*?[\"'](/[^\"']+)[\"']")


def _in_source(start: Start) -> Iterator[Racy]:
    if not _INTERPRETER.fullmatch(start.name) and start.name not in _LAUNCHERS:
        return
    for word in start.argv[1:]:
        path = os.path.join(start.directory, word)
        is_text = start.argv[1:2] == ("-c",) and word == start.argv[2]
        if not is_text and not (word.endswith(".py") and os.path.isfile(path)):
            continue
        text = word if is_text else Path(path).read_text()
        for name, value in _IN_SOURCE.findall(text):
            is_moved = name == "HF_HOME" and start.environment.get("HF_DATASETS_CACHE")
            is_default = "default=" in text and any(flag.startswith("--cache_dir") for flag in start.argv)
            if _is_shared(value, start.directory) and not is_moved and not is_default:
                yield Racy(start.name, name, value, name)
        return


def _in_texts(start: Start) -> Iterator[Racy]:
    for found in _IN_TEXT.finditer(" ".join(start.argv)):
        if _is_shared(found[2], start.directory):
            yield Racy(start.name, found[1], found[2], found[1])


def is_guarded(start: Start) -> bool:
    """Does the guard get hold of the program? Then it builds on the node's own disk, and moves nothing else."""
    path = start.environment.get("PYTHONPATH", "").split(":")
    return (
        any(directory.rstrip("/").endswith(_GUARD) for directory in path)
        and start.environment.get("SHAREFS_GUARD") != "0"
        and not any(word in _UNGUARDED for word in start.argv[1:2])
    )


def racy_of(starts: Sequence[Start]) -> list[Racy]:
    """The caches on the share that the programs of a launch would build in, where no guard gets hold of them."""
    return caches_of([start for start in starts if not is_guarded(start) or start.name in _LOSES])


def caches_of(starts: Sequence[Start]) -> list[Racy]:
    """The caches on the share that they name."""
    found: list[Racy] = []
    for start in starts:
        if _builds(start):
            found += [*_variables(start), *_flags(start), *_in_source(start)]
        elif start.name in _CARRIERS:
            found += _in_texts(start)
    return list(dict.fromkeys(found))


def _plain(name: str) -> str:
    return name.replace("-", "_").strip("_+~")


def _answer(racy: Racy, decisions: Decisions, said: str) -> Verdict:
    """How sharefs accounts for one cache that still races."""
    names = {_plain(racy.name), _plain(racy.base)}
    # HF_HOME itself is always kept: that says nothing of what is built below it.
    if any(_plain(kept["flag"]) == _plain(racy.name) for kept in decisions.kept):
        return Verdict.left
    verdict = Verdict.silent
    for one in decisions.diagnoses:
        text = f"{one['subject']} {one['message']} {one['hint']}"
        about = one["code"] in _GENERAL or racy.value in text or any(name in _plain(text) for name in names)
        if about and one["severity"] != "info":
            return Verdict.warned
        if about:
            verdict = Verdict.left
    lines = [line for line in said.splitlines() if line.startswith(("sharefs:", "warning:"))]
    if verdict is Verdict.silent and any(racy.name in line or racy.value in line for line in lines):
        return Verdict.warned
    return verdict


def judge(
    bare: Sequence[Start], wrapped: Sequence[Start], decisions: Decisions, said: str
) -> tuple[Verdict, list[Racy]]:
    """The worst verdict of all caches, and the caches that race in silence. `said`: stderr without the document."""
    racing = racy_of(wrapped)
    if not racing:
        return (Verdict.changed if racy_of(bare) else Verdict.nothing), []
    answers = [(racy, _answer(racy, decisions, said)) for racy in racing]
    order = [Verdict.left, Verdict.warned, Verdict.silent]
    worst = max((answer for _, answer in answers), key=order.index)
    return worst, [racy for racy, answer in answers if answer is Verdict.silent]


_OFFLINE = ("HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def _is_offline(start: Start) -> bool:
    if start.environment.get("HF_DATASETS_OFFLINE", "").lower() in ("0", "off", "no", "false"):
        return False
    return any(start.environment.get(name, "").lower() in ("1", "on", "yes", "true") for name in _OFFLINE)


def _holds_something(path: str) -> bool:
    return os.path.isdir(path) and bool(os.listdir(path))


def _datasets_of(start: Start, holds: Callable[[str], bool]) -> set[str]:
    """Where something lies: an empty cache has nothing that could be read offline."""
    found = [one for one in caches_of([start]) if one.name.endswith(("HF_DATASETS_CACHE", "cache_dir"))]
    return {one.name for one in found if holds(one.value)}


def moved_what_must_stay(
    bare: Sequence[Start], wrapped: Sequence[Start], holds: Callable[[str], bool] = _holds_something
) -> list[str]:
    """What a program cannot do without: datasets that it cannot build anew without a network, models, features."""
    if len(bare) != len(wrapped):
        return []
    wrong = []
    for old, new in zip(bare, wrapped):
        gone = _datasets_of(old, holds) - {one.name for one in caches_of([new])} if _is_offline(old) else set()
        wrong += [f"{old.name}: {name} was moved although it is offline" for name in sorted(gone)]
        is_own = any(word.rpartition("=")[2].startswith(_OWN_CONTENT) for word in old.argv)
        is_own = is_own and not any(word in _LOADERS_ONLY for word in old.argv)
        is_own = is_own or any(_MODELS_ONLY.search(word) for word in old.argv)
        is_own = is_own or any(_DERIVED.search(text) for text in old.settings.values())
        if is_own and old.argv != new.argv:
            wrong.append(f"{old.name}: a cache was moved that is not the datasets library's alone")
        if "two_hubs.py" in old.argv and new.environment.get("HF_HUB_CACHE") != old.environment.get("HF_HUB_CACHE"):
            wrong.append(f"{old.name}: the hub's cache was moved from under one of two models")
    return wrong


def changed_for_nobody(bare: Sequence[Start], decisions: Decisions, made: Sequence[str]) -> list[str]:
    """A launch in which no program builds anything is none of sharefs' business."""
    if not bare or any(_builds(start) or start.name in _CARRIERS for start in bare):
        return []
    # The guard's variables do nothing where no library is imported.
    changes = [one for one in decisions.changes if one.get("rule") != "guard" and not one.get("implied")]
    wrong = ["changed although no program builds anything"] if changes else []
    return wrong + [f"made {path} although no program builds anything" for path in made]
