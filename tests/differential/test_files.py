"""Several exports files, what else may lie beside them, and who asks."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from differential.compare import difference, disagreement
from differential.etab import lines_of_check, lines_of_etab
from differential.host import ETC, MAIN, Taken, checked, remove, write_exports
from test_lines import AS_PEOPLE_WRITE_THEM

# By file, "" is /etc/exports. What the numbers of the names are: the list of known differences in the project's issue.
SEVERAL_FILES: dict[str, dict[str, str]] = {
    "the first file wins": {"": "/mnt/share node1(rw)\n", "a": "/mnt/share node1(ro)\n"},
    "in versionsort order": {"10": "/mnt/share node1(rw)\n", "9": "/mnt/share node1(ro)\n"},
    "no main file": {"a": "/mnt/share node1(rw)\n"},
    "only a main file": {"": "/mnt/share node1(rw)\n"},
    "nothing": {},
    "empty files": {"": "", "a": "\n", "b": "# nothing"},
    "an error ends its file only": {"": "/mnt/share node1(rx)\n/mnt/data node1(rw)\n", "a": "/mnt/data node1(ro)\n"},
    "an error in a later file": {"": "/mnt/share node1(rw)\n", "a": "/mnt/data *(rw\n/srv *(rw)\n", "b": "/srv *(ro)\n"},
    "a quote ends with its file": {"a": '/mnt/share "node1(rw)\n', "b": "/mnt/share node1(rw)\n"},
    "a line ends with its file": {"a": "/mnt/share \\", "b": "node1(rw)\n"},
    "defaults end with their file": {"a": "/mnt/share -rw", "b": "/mnt/data node1\n"},
    "one host, two names": {"a": "/mnt/share node1(rw)\n", "b": "/mnt/share node1.lab(ro)\n"},
    "one host, name and address": {"a": "/mnt/share 10.77.0.2(rw)\n", "b": "/mnt/share node1(ro)\n"},
    "one host, another case": {"a": "/mnt/share NODE1(rw)\n", "b": "/mnt/share node1(ro)\n"},
    "one network, another case": {"a": "/mnt/share *.LAB(rw)\n", "b": "/mnt/share *.lab(ro)\n/mnt/data *.lab(rw)\n"},
    "one network, two spellings": {"a": "/mnt/share 10.77.0.0/24(rw)\n", "b": "/mnt/share 10.77.0.1/24(ro)\n"},
    "1 an address of a name in another file": {"a": "/mnt/data both.lab(rw)\n", "b": "/mnt/share 10.77.0.4(rw)\n"},
    "1 a name of an address in another file": {"a": "/mnt/share 10.77.0.4(rw)\n", "b": "/mnt/data both.lab(rw)\n"},
    "1 names that share an address": {"a": "/mnt/data chain.lab(rw)\n", "b": "/mnt/share dual.lab(rw) 10.77.0.6(ro)\n"},
    "1 a chain of names": {"": "/mnt/data 10.77.0.6(rw)\n", "a": "/mnt/data chain.lab(ro)\n", "b": "/srv dual.lab(rw)\n"},
    "3 one directory by a link": {"a": "/mnt/link node1(rw)\n", "b": "/mnt/share node1(ro)\n"},
    "4 flavours in two words": {"a": "/mnt/share -sec=sys:krb5 node1 -rw,no_root_squash 10.77.0.4\n"},
    "5 one missing directory in two spellings": {"a": "/mnt/gone node1(rw)\n", "b": "/mnt/gone/ node1(ro)\n"},
    "5 a loop of links in two spellings": {"a": "/mnt/loop node1(rw)\n", "b": "/mnt//loop node1(ro)\n"},
    "5 a file in two spellings": {"a": "/mnt/file node1(rw)\n", "b": "/mnt/file/ node1(ro)\n/mnt/file/. node1(ro)\n"},
    "everyone, with and without a star": {"a": "/mnt/share\n", "b": "/mnt/share *(rw)\n"},
    "one directory in many spellings": {"a": "/mnt/share/ node1(rw)\n", "b": "/mnt//./share node1(ro)\n"},
}


@pytest.mark.parametrize("name", SEVERAL_FILES)
def test_several_files(name: str) -> None:
    files = {f"/etc/exports.d/{key}.exports" if key else MAIN: text.encode() for key, text in SEVERAL_FILES[name].items()}
    assert disagreement(files) == ""


def test_5_what_is_no_file_is_passed_over() -> None:
    write_exports({MAIN: b"/mnt/share node1(rw)\n"})
    (ETC / "exports.d/folder.exports").mkdir()
    os.mkfifo(ETC / "exports.d/pipe.exports")
    (ETC / "exports.d/linked.exports").symlink_to("folder.exports")
    (ETC / "exports.d/gone.exports").symlink_to("nothing")
    (ETC / "exports.d/z.exports").write_text("/mnt/data node1(rw)\n")
    taken, document = Taken(), checked()
    assert lines_of_etab(taken.etab) == lines_of_check(document)
    assert len(lines_of_etab(taken.etab)) == 2
    assert sorted(one["subject"] for one in document["diagnoses"] if one["code"] == "SF126") == [
        f"/etc/exports.d/{name}.exports" for name in ("folder", "gone", "linked", "pipe")
    ]


def test_5_complete_is_what_exportfs_reads() -> None:
    """xprtsec= is unknown to nfs-utils 2.6.2 and ends the file; where it is known, nothing ends."""
    files = {MAIN: b"/mnt/share node1(rw)\n/mnt/data node1(rw,xprtsec=tls)\n/srv node1(rw)\n"}
    assert disagreement(files) == ""
    complete = [file["complete"] for file in checked()["files"]]
    assert complete == [len(lines_of_check(checked())) == 3]


# What may lie at /etc/exports.d/odd.exports, beside /etc/exports and a file that is read after it.
ODD_ENTRIES = {
    "a directory": lambda path: path.mkdir(),
    "a link to a directory": lambda path: path.symlink_to("/etc"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to its own directory": lambda path: path.symlink_to("."),
    "a link to /dev/null": lambda path: path.symlink_to("/dev/null"),
    "a link to a file": lambda path: path.symlink_to("/mnt/elsewhere"),
    "a link to a file without rights": lambda path: path.symlink_to("/mnt/closed"),
    "a pipe": os.mkfifo,
    "a file without rights": lambda path: (path.write_text("/srv node1(ro)\n"), path.chmod(0)),
    "an empty file": lambda path: path.touch(),
    "a file of another user": lambda path: (path.write_text("/srv node1(ro)\n"), os.chown(path, 1000, 1000)),
    "a file with other names": lambda path: (path.write_text("/srv node1(ro)\n"), os.link(path, path.with_name("o.exports"))),
}


@pytest.mark.parametrize("name", ODD_ENTRIES)
def test_entries_of_exports_d(name: str) -> None:
    Path("/mnt/elsewhere").write_text("/srv *(ro)\n")
    Path("/mnt/closed").write_text("/srv *(ro)\n")
    Path("/mnt/closed").chmod(0)
    write_exports({MAIN: b"/mnt/share node1(rw)\n", "/etc/exports.d/z.exports": b"/mnt/data node1(rw)\n"})
    ODD_ENTRIES[name](ETC / "exports.d/odd.exports")
    assert difference() == ""


# What may lie at /etc/exports.d, and at /etc/exports.
ODD_PLACES = {
    "a file": lambda path: path.write_text("/srv node1(ro)\n"),
    "a link to a directory": lambda path: path.symlink_to("/mnt/share"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a directory without rights": lambda path: path.mkdir(0),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("name", ODD_PLACES)
@pytest.mark.parametrize("place", ["exports", "exports.d"])
def test_odd_places(place: str, name: str) -> None:
    files = {MAIN: b"/mnt/share node1(rw)\n"} if place == "exports.d" else {"/etc/exports.d/z.exports": b"/srv node1(rw)\n"}
    write_exports(files)
    try:
        if place == "exports.d":
            (ETC / place).rmdir()
        ODD_PLACES[name](ETC / place)
        assert difference() == ""
    finally:
        remove(ETC / place)
        (ETC / "exports.d").mkdir(exist_ok=True)


@pytest.mark.parametrize("place", [MAIN, "/etc/exports.d/odd.exports"])
def test_exportfs_is_not_asked_where_it_would_wait(place: str) -> None:
    write_exports({"/etc/exports.d/z.exports": b"/srv node1(rw)\n"})
    os.mkfifo(ETC / "pipe")
    Path(place).symlink_to(ETC / "pipe")
    try:
        found = [(one["code"], one["severity"], one["subject"]) for one in checked()["diagnoses"] if one["severity"] == "error"]
        assert found == [("SF158", "error", "exportfs"), ("SF126", "error", place)]
    finally:
        remove(ETC / "pipe")
        remove(Path(place))


@pytest.mark.parametrize("client", ["fe80::1%eth7", "fe80::1%eth7:1", "fe80::1%7", "node9", "{{ client }}"])
def test_files_that_are_named_are_not_judged_by_this_host(client: str) -> None:
    """Each name resolves, and each interface is there; what can be no name of a host is dropped all the same."""
    Path("/mnt/named").write_text(f"/mnt/share {client}(rw) *(ro)\n")
    done = subprocess.run([os.environ["SHAREFS_BIN"], "export", "check", "--json", "/mnt/named"], capture_output=True, timeout=60, check=False)
    document = json.loads(done.stdout)
    lost = [one["client"] for file in document["files"] for one in file["exports"] if not one["exported"]]
    assert lost == (["{{", "}}"] if "{" in client else [])
    assert {one["code"] for one in document["diagnoses"] if one["severity"] == "error"} == ({"SF122"} if lost else set())


def test_an_ordinary_user_gets_the_same_answer() -> None:
    """In a user namespace, in which exportfs has no right at all."""
    write_exports({MAIN: AS_PEOPLE_WRITE_THEM.encode(), "/etc/exports.d/a.exports": b"/srv node1(ro)\n"})
    expected = lines_of_etab(Taken().etab)
    program = Path("/mnt/sharefs")
    program.touch()
    subprocess.run(["mount", "--bind", os.environ["SHAREFS_BIN"], program], check=True)
    try:
        done = subprocess.run(["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", program, "export", "check", "--json"],
                              capture_output=True, timeout=60, check=False, cwd="/")
    finally:
        subprocess.run(["umount", "-l", program], check=True)
    document = json.loads(done.stdout)
    assert not [one for one in document["diagnoses"] if one["code"] == "SF158"]
    assert lines_of_check(document) == expected
