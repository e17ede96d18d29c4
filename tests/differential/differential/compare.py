"""Where `sharefs export check` differs from the real exportfs, for what lies on this host."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from differential.etab import broken_lines, lines_of_check, lines_of_etab
from differential.host import MAIN, Taken, checked, write_exports


def disagreement(files: Mapping[str, bytes]) -> str:
    """What exportfs makes of the files beside what `export check` says; "" for the same."""
    write_exports(files)
    return f"{dict(files)}\n{found}" if (found := difference()) else ""


_COMPLAINT = re.compile(r"^exportfs: (/etc/exports[^\n]*?): ?[0-9]+: ([^\n]*)", re.MULTILINE)
_NOT_OPENED = re.compile(r"^exportfs: can't open (/etc/exports[^\n]*) for reading", re.MULTILINE)
_NO_DIRECTORY = re.compile(r"^exportfs: Failed to stat (/[^\n]*): ", re.MULTILINE)


def is_heard(complaint: re.Match[str], errors: list[str]) -> bool:
    """An error in this file, on a line that has the option at which exportfs stops. (It does not count all lines itself.)"""
    lines = Path(complaint[1]).read_bytes().decode(errors="replace").split("\n")
    places = [int(one[len(complaint[1]) + 1 :].split(":")[0]) for one in errors if one.startswith(complaint[1] + ":")]
    option = re.search('"(.*)"', complaint[2])
    written = option and any(option[1] in line for line in lines)  # it may be quoted or escaped
    return any(not written or option[1] in lines[place - 1] for place in places)


def unheard_complaints(said: str, document: dict[str, Any]) -> list[str]:
    """Lines at which exportfs stops, files that it cannot open and directories that it does not find, of which `export
    check` says nothing."""
    found = document["diagnoses"]
    errors = [one["subject"] for one in found if one["severity"] == "error"]
    about = {one["subject"] for one in found}
    missing = " ".join(one["message"] for one in found if one["code"] in ("SF123", "SF138"))
    return [
        *(match[0] for match in _COMPLAINT.finditer(said) if not is_heard(match, errors)),
        *(match[0] for match in _NOT_OPENED.finditer(said) if match[1] not in about and os.path.lexists(match[1])),
        *(match[0] for match in _NO_DIRECTORY.finditer(said) if f"`{match[1]}`" not in missing),
    ]


def difference() -> str:
    """As disagreement(), for what lies there now."""
    taken = Taken()
    document = checked()
    theirs, ours = lines_of_etab(taken.etab), lines_of_check(document)
    said = ""
    unasked = [one for one in document["diagnoses"] if one["code"] == "SF158"]
    if taken.exit_code < 0:  # what it would have made of the files nobody knows
        return "" if [one["severity"] for one in unasked] == ["error"] else f"nothing is said of its crash: {taken.said}"
    if theirs != ours:
        only_theirs = [line for line in theirs if line not in ours]
        only_ours = [line for line in ours if line not in theirs]
        said += f"etab has {only_theirs}\nexport check says {only_ours}\n"
    # exportfs reads etab as mountd does: each line that it does not give back is one that no client gets. Of a client with
    # a blank it makes another one.
    listed = subprocess.run(["exportfs", "-s"], capture_output=True, timeout=60, check=False, cwd="/").stdout
    readable = not any(one["code"] == "SF141" for one in document["diagnoses"])
    merged = any(one["code"] == "SF144" for one in document["diagnoses"])  # by the names that etab has for two hosts
    given_back = all(where and f" {client}(".encode() in listed for where, client, _ in theirs)  # one space behind the longest paths
    given_back = given_back and len(listed.splitlines()) >= len(theirs) and not broken_lines(taken.etab)
    if not merged and readable != given_back:
        said += f"etab is {'not ' if readable else ''}readable\n"
    if unasked:
        said += "exportfs was not asked\n"
    if unheard := unheard_complaints(taken.said, document):
        said += f"nothing is said of {unheard}\n"
    return f"{said}exportfs said: {taken.said}" if said else ""


def diagnoses_of(text: str | Mapping[str, bytes]) -> list[dict[str, Any]]:
    write_exports({MAIN: text.encode()} if isinstance(text, str) else text)
    # that the directory is a part of its file system is seen only where there is an export of it
    return [one for one in checked()["diagnoses"] if one["code"] != "SF136"]
