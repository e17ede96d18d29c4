"""The layer check must be able to fail: a tree with forbidden arrows is refused, arrow by arrow."""

from pathlib import Path

import check_layers
import pytest

FORBIDDEN = [
    ("src/base/a.cpp", '#include "sys/process.hpp"', "base may not include"),
    ("src/sys/a.cpp", '#include "plan/plan.hpp"', "sys may not include"),
    ("exports/a.cpp", '#include "mounts/state.hpp"', "exports may not include"),
    ("conda/a.hpp", '#include "config/config.hpp"', "conda may not include"),
    ("mounts/a.cpp", '#include "ui/table.hpp"', "mounts may not include"),
    ("src/config/a.cpp", '#include "sys/files.hpp"', "config may not include"),
    ("src/ui/a.cpp", '  #  include "cli/context.hpp"', "ui may not include"),
    ("src/main.cpp", '#include "plan/plan.hpp"', "main may not include"),
    ("mounts/b.cpp", "#include <sys/mount.h>", "only sys may include"),
    ("exports/b.cpp", "#include <CLI/CLI.hpp>", "only cli may include"),
    ("src/plan/b.cpp", '#include "plan.hpp"', "must be included with its part"),
    ("src/other/b.cpp", "", "belongs to no part"),
]
ALLOWED = [
    ("src/cli/a.cpp", '#include "conda/link.hpp"\n#include <CLI/CLI.hpp>'),
    ("src/ui/a.cpp", '#include "base/text.hpp"'),
    ("cachefix/a.cpp", '#include "sys/system.hpp"\n#include <sys/stat.h>'),
    ("src/main.cpp", '#include "cli/app.hpp"'),
]


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


@pytest.mark.parametrize("name,text,expected", FORBIDDEN)
def test_forbidden(tmp_path: Path, name: str, text: str, expected: str) -> None:
    write(tmp_path, name, text)
    found = check_layers.violations(tmp_path)
    assert len(found) == 1 and expected in found[0]


@pytest.mark.parametrize("name,text", ALLOWED)
def test_allowed(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path, name, text)
    assert check_layers.violations(tmp_path) == []
