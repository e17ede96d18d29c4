"""Lines of etab as values that can be compared with those of `sharefs export check --json`."""

from __future__ import annotations

import re
from typing import Any

# (directory, client, {flavour: options})
Line = tuple[str, str, tuple[tuple[str, frozenset[str]], ...]]

_PER_FLAVOUR = {"ro", "rw", "secure", "insecure", "root_squash", "no_root_squash", "all_squash", "no_all_squash"}
_SAME_FLAVOUR = {"null": "none", "unix": "sys"}
_SQUASH = re.compile(r"(squash_[ug]ids=.*|[0-9]+(-[0-9]+)?)")


def _unescape(text: bytes) -> bytes:
    return re.sub(rb"\\([0-3][0-7]{2})", lambda match: bytes([int(match[1], 8)]), text)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def _value(option: str) -> str:
    """Numbers as they are meant: exportfs writes unsigned ones with a sign."""
    name, equals, value = option.partition("=")
    if name in ("fsid", "anonuid", "anongid") and re.fullmatch(r"-[0-9]+", value):
        value = str(int(value) % 2**32)
    return name + equals + value


def _flavours(options: list[str]) -> tuple[tuple[str, frozenset[str]], ...]:
    # exportfs 2.6.2 may write such a list without its end, and runs into the next option: mountd cannot read the line
    options = [re.sub("^squash_[ug]ids=anonuid=.*", "anonuid=65534", option) for option in options]
    first = next(i for i, option in enumerate(options) if option.startswith("sec="))
    common = [_value(option) for option in options[:first] if option not in _PER_FLAVOUR and not _SQUASH.fullmatch(option)]
    ids = [option for option in common if option.startswith("fsid=")]
    if len(ids) > 1:  # a number and a UUID: whoever reads both, keeps the UUID
        common = [option for option in common if option not in ids] + [max(ids, key=len)]
    flavours: list[tuple[str, frozenset[str]]] = []
    group: list[str] = []
    own: list[str] = []
    for option in [*options[first:], "sec="]:
        if not option.startswith("sec="):
            own.append(option)
            continue
        flavours += [(name, frozenset(common + own)) for name in group]
        group, own = [_SAME_FLAVOUR.get(name, name) for name in option[4:].split(":") if name], []
    return tuple(flavours)


def broken_lines(etab: bytes) -> list[bytes]:
    """Parts of lines in which a name or value has a line end."""
    return [line for line in etab.split(b"\n") if line and (b"\t" not in line or b",sec=" not in line)]


def lines_of_etab(etab: bytes) -> list[Line]:
    """One for a directory and client; of several mountd takes the first (a client without a name is everyone)."""
    found: dict[tuple[str, str], Line] = {}
    broken = broken_lines(etab)
    for line in etab.split(b"\n"):
        if not line or line in broken:
            continue
        directory, _, rest = line.partition(b"\t")
        client, _, options = rest.partition(b"(")
        key = (_text(_unescape(directory)), _text(client) or "*")
        words = [_text(_unescape(word) if word.startswith((b"refer=", b"replicas=")) else word)
                 for word in options.removesuffix(b")").split(b",")]
        found.setdefault(key, (*key, _flavours(words)))
    return sorted(found.values(), key=repr)


def lines_of_check(document: dict[str, Any]) -> list[Line]:
    found = []
    for file in document.get("files", []):
        for entry in file["exports"]:
            if not entry["exported"]:
                continue
            etab = entry["etab"]
            flavours = tuple((one["sec"], frozenset(one["options"].split(","))) for one in etab["flavours"])
            found.append((etab["directory"], etab["client"], flavours))
    return sorted(found, key=repr)
