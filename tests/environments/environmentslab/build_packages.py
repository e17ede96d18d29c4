"""Makes a channel: a package with a real Python and files of every kind with a prefix, and a noarch one with entry points.

usage: conda's python build_packages.py CHANNEL; then the same with `install PREFIX CACHE CHANNEL` as often as wanted.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import rattler
from conda_package_handling import api

PLACEHOLDER = ("/home/builder/conda-bld/python_1700000000000/_h_env" + "_placehold" * 30)[:255]
_P = PLACEHOLDER.encode()
_EMPTY = hashlib.sha256(b"").hexdigest()
_VERSION = "3.11.9"

# path -> content, mode of the placeholder, permissions
_FILES: dict[str, tuple[bytes, str | None, int]] = {
    "bin/pydoc3": (b"#!" + _P + b"/bin/python3.11\nprint('pydoc')\n", "text", 0o755),
    "bin/perlish": (b"#!" + _P + b"/bin/perl -w\n# in " + _P + b"/lib\n", "text", 0o755),
    "bin/optioned": (b"#!" + _P + b"/bin/python -o test -x\nprint('optioned')\n", "text", 0o755),
    "bin/of-distlib": (b"#!/bin/sh\n'''exec' \"" + _P + b"/bin/python\" \"$0\" \"$@\"\n' '''\nprint('of-distlib')\n", "text", 0o755),
    "bin/env-script": (b"#!/usr/bin/env python\nprint('" + _P + b"')\n", "text", 0o755),
    "bin/binary": (b"\x7fELF\0" + _P + b"/lib:" + _P + b"/etc\0rest\0" + _P + b"\0\1\2\3", "binary", 0o755),
    "lib/libwide.so": (b"\0\1" + PLACEHOLDER.encode("utf-16-le") + b"\0\0\2\2" + PLACEHOLDER.encode("utf-32-be") + bytes(4) + b"\3", "binary", 0o644),
    "lib/python3.11/_sysconfigdata_x.py": (b"build = {'INC': '-I" + _P + b"/include', 'L': '-L" + _P + b"/lib'}\n", "text", 0o644),
    "lib/pkgconfig/z.pc": (b"prefix=" + _P + b"\nlibdir=${prefix}/lib\n", "text", 0o644),
    "share/wide.txt": (("in " + PLACEHOLDER + "/x\n").encode("utf-16-be"), "text", 0o644),
    "share/plain.txt": (b"nothing of interest\n", None, 0o644),
}  # fmt: skip
_TOOL = b"import _sysconfigdata_x\ndef main():\n    print('tool', _sysconfigdata_x.build['INC'])\n"


def _python_files() -> dict[str, tuple[bytes, str | None, int]]:
    """Debian's Python, as far as the tests need it."""
    files = dict(_FILES)
    files["bin/python3.11"] = (Path("/usr/bin/python3.11").read_bytes(), None, 0o755)
    library = Path("/usr/lib/python3.11")
    for path in sorted(library.rglob("*")):
        relative = path.relative_to(library)
        if path.is_file() and path.suffix in (".py", ".so") and relative.parts[0] not in ("test", "idlelib", "lib2to3", "dist-packages"):
            files[f"lib/python3.11/{relative}"] = (path.read_bytes(), None, 0o644)
    # Debian looks into dist-packages.
    customize = b"import site, sys\nsite.addsitedir(sys.prefix + '/lib/python3.11/site-packages')\n"
    files["lib/python3.11/sitecustomize.py"] = (customize, None, 0o644)
    return files


def _package(channel: Path, name: str, files: dict[str, tuple[bytes, str | None, int]], links: dict[str, str], **index: Any) -> None:
    with tempfile.TemporaryDirectory() as directory:
        source, paths = Path(directory), []
        for path, (content, mode, permissions) in files.items():
            file = source / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            file.chmod(permissions)
            entry = {"_path": path, "path_type": "hardlink", "sha256": hashlib.sha256(content).hexdigest(), "size_in_bytes": len(content)}
            paths.append(entry | ({"file_mode": mode, "prefix_placeholder": PLACEHOLDER} if mode else {}))
        for path, target in links.items():
            (source / path).symlink_to(target)
            paths.append({"_path": path, "path_type": "softlink", "sha256": _EMPTY, "size_in_bytes": 0})
        info = source / "info"
        info.mkdir()
        entry_points = index.pop("entry_points", None)
        record = {"name": name, "version": _VERSION, "build": "0", "build_number": 0, "depends": [], "subdir": "linux-64"} | index
        (info / "index.json").write_text(json.dumps(record))
        (info / "paths.json").write_text(json.dumps({"paths": paths, "paths_version": 1}))
        (info / "files").write_text("".join(entry["_path"] + "\n" for entry in paths))
        if entry_points:
            link = {"noarch": {"type": "python", "entry_points": entry_points}, "package_metadata_version": 1}
            (info / "link.json").write_text(json.dumps(link))
        out = channel / record["subdir"]
        out.mkdir(parents=True, exist_ok=True)
        # What it takes by default is for packages that are downloaded often, and took most of the time of a test file here.
        api.create(str(source), None, str(out / f"{name}-{_VERSION}-0.conda"), compression_level=1)
        (out / f"{name}.json").write_text(json.dumps(record))


def build(channel: Path) -> None:
    shutil.rmtree(channel, ignore_errors=True)
    _package(channel, "python", _python_files(), {"bin/python": "python3.11"}, python_site_packages_path="lib/python3.11/site-packages")
    _package(channel, "tool", {"site-packages/tool/__init__.py": (_TOOL, None, 0o644)}, {}, subdir="noarch", noarch="python",
             depends=["python"], entry_points=["tool = tool:main"])  # fmt: skip


def _record(channel: Path, index: dict[str, Any]) -> rattler.RepoDataRecord:
    file = channel / index["subdir"] / f"{index['name']}-{_VERSION}-0.conda"
    content = file.read_bytes()
    package = rattler.PackageRecord(
        index["name"], _VERSION, rattler.BuildString("0"), 0, index["subdir"], noarch=index.get("noarch"), size=len(content),
        sha256=hashlib.sha256(content).digest(), depends=index["depends"],
        python_site_packages_path=index.get("python_site_packages_path"),
    )  # fmt: skip
    return rattler.RepoDataRecord(package, file.name, file.as_uri(), channel.as_uri())


def install(prefix: Path, cache: Path, channel: Path) -> None:
    records = [_record(channel, json.loads(path.read_text())) for path in sorted(channel.glob("*/*.json"))]
    asyncio.run(rattler.install(records, target_prefix=prefix, cache_dir=cache, show_progress=False))


if __name__ == "__main__":
    if sys.argv[1] == "install":
        install(*map(Path, sys.argv[2:]))
        os._exit(0)  # rattler's threads may crash the interpreter when it ends
    else:
        build(Path(sys.argv[1]))
