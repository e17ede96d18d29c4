"""Hints of `export check`, typed into the file as they stand."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

# Hints that say what to do on the host, or that leave the choice to the administrator.
_NOT_IN_THE_FILE = re.compile(
    "see exports\\(5\\) for|put the name into /etc/hosts|see `netgroup:`|give the export a file system|export a directory whose"
    "|make a user for|run `ip link`|give both the same options|correct the error above"
    "|correct the (address|network|path)|make it, or correct|see `namei|export a directory with a shorter|its name and its options have|remove it, also where|give each directory a number|only one directory can|rename it to|remove it; `sed|remove it; `tr|remove it; `cat|close it"
    "|remove the empty word|name the client, or|write the network, as|write a prefix length"
    "|write the path from|`[a-z_]+` came with|write the addresses? without|^$|write all defaults in one word"
    "|write shorter values|write the client and its options without|put .* on a file system|see exports|run `exportfs -ra`|`exportfs -r` would end"
)
_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')


class Place:
    """A word of a file, by the place that a diagnosis names."""

    def __init__(self, text: str, subject: str) -> None:
        line, column = (int(number) for number in subject.rsplit(":", 2)[1:])
        self.text = text
        self.at = sum(len(one) + 1 for one in text.split("\n")[: line - 1]) + column - 1
        self.line_end = (text + "\n").index("\n", self.at)
        line_begin = text.rfind("\n", 0, self.at) + 1
        self.begin = self.at
        while self.begin > line_begin and not text[self.begin - 1].isspace():
            self.begin -= 1
        self.end = self.begin
        while self.end < self.line_end and not text[self.end].isspace():
            self.end += 1

    @property
    def word(self) -> str:
        return self.text[self.begin : self.end]

    def put(self, word: str, end: int | None = None) -> str:
        return self.text[: self.begin] + word + self.text[self.end if end is None else end :]

    def put_client(self, client: str) -> str:
        return self.put(client + "".join(self.word.partition("(")[1:]))

    def put_option(self, option: str | None) -> str:
        """The option that begins at the place; None removes it."""
        end = min((i for i in (self.text.find(mark, self.at) for mark in ",) \t\n") if i >= 0), default=len(self.text))
        if option is not None:
            return self.text[: self.at] + option + self.text[end:]
        comma = end < len(self.text) and self.text[end] == ","
        begin = self.at if comma or self.text[self.at - 1] != "," else self.at - 1
        return self.text[:begin] + self.text[end + comma :]

    def without_option(self, option: str) -> str:
        """The first one of this spelling in the word, or else in the defaults of the line."""
        if option not in re.split("[(,)]", self.word):
            begin = self.text.rfind("\n", 0, self.begin) + 1
            found = re.search(rf"\s-\S*?(?<=[-,])({re.escape(option)})(?=[,\s]|$)", self.text[begin : self.line_end])
            assert found, f"there is no `{option}` in {self.text[begin : self.line_end]}"
            return self.cut(begin + found.start(1), begin + found.end(1))
        name, opened, options = self.word.partition("(")
        words = options.removesuffix(")").split(",")
        words.remove(option)
        return self.put(f"{name}{opened}{','.join(words)})")

    def cut(self, begin: int, end: int) -> str:
        """An option, with the comma behind it."""
        return self.text[:begin] + self.text[end + (self.text[end : end + 1] == ",") :]

    def with_option(self, option: str) -> str:
        name, _, options = self.word.partition("(")
        words = [word for word in options.removesuffix(")").split(",") if word]
        return self.put(f"{name}({','.join([*words, option])})")

    def through_list(self) -> int:
        """Where the list that begins in this word ends, blanks or not."""
        end = self.text.find(")", self.begin, self.line_end)
        return self.line_end if end < 0 else end + 1


def _joined(place: Place, match: re.Match[str]) -> str:
    """`write ...` for a list that does not end with its word."""
    if place.text[place.at - 1] == ")" and place.at > place.begin:  # what stands behind it
        return place.put(match[1])
    return place.put(match[1], place.through_list() if "(" in place.word else None)


_FIXES: list[tuple[str, Callable[[Place, re.Match[str]], str]]] = [
    # SF101: the place is the word in parentheses
    (r"remove the space: `(.*)`", lambda place, match: place.text[: place.begin].rstrip(" \t") + place.text[place.begin :]),
    (r"options are written in lower case: `(.*)`", lambda place, match: place.put_option(match[1])),
    (r"did you mean `([a-z_]+=?)`\?", lambda place, match: place.put_option(match[1] + ("0" if match[1].endswith("=") else ""))),
    (r"remove one of the two commas", lambda place, match: place.put_option(None)),
    (r"remove the space before the comma", lambda place, match: place.text[: place.at] + re.sub(
        r"[ \t]+,", ",", place.text[place.at :], count=1)),
    (r"write `(.*)` for the host, or `(.*)` for the network", lambda place, match: place.put_client(match[2])),
    (r"write `\*` to say that everyone is meant", lambda place, match: place.put_client("*")),
    (r"write `([0-9./]+)`", lambda place, match: place.put_client(match[1])),
    (r"write `(.*)`, here and on the clients", lambda place, match: place.put(match[1])),
    (r"write (`.*`), which exportfs takes for no other hosts?", lambda place, match: place.put(" ".join(
        word + "".join(place.word.partition("(")[1:]) for word in match[1].strip("`").split()))),
    (r"write the address without square brackets", lambda place, match: place.put(re.sub(r"[\[\]]", "", place.word))),
    (r"(?:write|separate clients by a space:) `(.*)`", _joined),
    (r"clients are separated by spaces, each with its own options", lambda place, match: place.put(
        place.word.partition("(")[0].replace(",", "".join(place.word.partition("(")[1:]) + " ")
        + "".join(place.word.partition("(")[1:]))),
    (r"remove one of the two", lambda place, match: place.put("")),
    (r"name the clients, or remove `([a-z_]+(?:=0)?)`", lambda place, match: place.without_option(match[1])),
    (r"name the clients, or write `\*` to say that everyone is meant",
     lambda place, match: place.text[: place.line_end].rstrip() + " *" + place.text[place.line_end :]),
    (r"add `fsid=` with a number that no other export has", lambda place, match: place.with_option(
        f"fsid={max((int(number) for number in re.findall(r'fsid=([0-9]{1,6})', place.text)), default=4000) + 1}")),
]


def followed(text: str, diagnosis: dict[str, Any]) -> str | None:
    """The text with the hint followed; None for one that is not to be followed in a file. Unknown ones are a KeyError:
    they belong into one of the two tables."""
    if _NOT_IN_THE_FILE.search(diagnosis["hint"]):
        return None
    for pattern, fix in _FIXES:
        if match := re.fullmatch(pattern, diagnosis["hint"], re.DOTALL):
            return fix(Place(text, diagnosis["subject"]), match)
    raise KeyError(f"nobody follows this hint: {diagnosis['code']}: {diagnosis['hint']}")
