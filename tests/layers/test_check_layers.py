"""The layer check must be able to fail: a tree with forbidden arrows is refused, arrow by arrow."""

from pathlib import Path

import check_layers
import pytest

FORBIDDEN = [
    ("src/base/a.cpp", '#include "sys/process.hpp"', "base may not include"),
    ("src/sys/a.cpp", '#include "plan/plan.hpp"', "sys may not include"),
    ("src/sys/process/a.cpp", '#include "sys/fs/walk.hpp"', "sys/process may not include"),
    ("src/sys/identity/a.hpp", '#include "sys/system.hpp"', "sys/identity may not include"),
    ("src/sys/mounts/a.cpp", '#include "sys/fs/files.hpp"', "sys/mounts may not include"),
    ("src/sys/nfs/a.cpp", '#include "sys/mounting/mounting.hpp"', "sys/nfs may not include"),
    ("src/sys/worker/a.cpp", '#include "sys/layers/layered_command.hpp"', "sys/worker may not include"),
    ("src/sys/a.cpp", '#include "sys/leases/lease.hpp"', "sys/ may not include"),
    ("src/sys/other/a.cpp", '#include "sys/fs/walk.hpp"', "sys/other is on no floor"),
    ("exports/a.cpp", '#include "mounts/state.hpp"', "exports may not include"),
    ("conda/a.hpp", '#include "config/config.hpp"', "conda may not include"),
    ("mounts/a.cpp", '#include "ui/table.hpp"', "mounts may not include"),
    ("src/config/a.cpp", '#include "sys/files.hpp"', "config may not include"),
    ("src/ui/a.cpp", '  #  include "cli/context.hpp"', "ui may not include"),
    ("src/main.cpp", '#include "plan/plan.hpp"', "main may not include"),
    ("mounts/b.cpp", "#include <sys/mount.h>", "only sys may include"),
    ("exports/b.cpp", "#include <yaml-cpp/yaml.h>", "only cachefix, config may include"),
    ("src/tree/a.cpp", '#include "plan/plan.hpp"', "tree may not include"),
    ("src/cli/app.cpp", '#include "cli/commands/mount_support.hpp"', "only commands may include"),
    ("mounts/c.cpp", "if (::stat(path, &status) != 0)", "`::stat(` belongs to src/sys"),
    ("mounts/c.cpp", "return ::access( path, R_OK);", "belongs to src/sys"),
    ("conda/c.cpp", "auto* home = ::getpwnam(name);", "belongs to src/sys"),
    ("src/cli/c.cpp", "std::ifstream file(path);", "belongs to src/sys"),
    ("exports/c.cpp", "::unlinkat(fd, name, 0);", "belongs to src/sys"),
    ("src/sys/fs/c.cpp", "if (::setresuid(uid, uid, uid) != 0)", "another user's ids"),
    ("src/cli/commands/c.cpp", '#include "sys/process/become.hpp"', "may include"),
    ("src/tree/acl.cpp", "", "needs no exception any more"),
    ("src/plan/b.cpp", '#include "plan.hpp"', "must be included with its part"),
    ("src/other/b.cpp", "", "belongs to no part"),
]
ALLOWED = [
    ("src/cli/a.cpp", '#include "conda/link.hpp"\n#include "tree/copy.hpp"'),
    ("src/cli/commands/a.cpp", '#include "cli/commands/mount_support.hpp"'),
    ("src/sys/mounting/a.cpp", '#include "sys/nfs/nfs_probe.hpp"\n#include <sys/mount.h>\n#include "sys/process/child.hpp"'),
    ("src/sys/leases/a.cpp", '#include "sys/system.hpp"\n#include "sys/leases/lease.hpp"'),
    ("src/sys/fs/a.cpp", "::open(path, O_PATH); ::opendir(path);"),
    ("src/plan/a.cpp", "::unlinkat(fd, name, 0); // not ::unlink(path)"),
    ("mounts/a.cpp", "files.open(path); file::stat(x); ::getgroups(0, nullptr); auto access(int);"),
    ("src/ui/a.cpp", '#include "base/text.hpp"'),
    ("cachefix/a.cpp", '#include "sys/system.hpp"\n#include <sys/stat.h>'),
    ("src/main.cpp", '#include "cli/app.hpp"'),
    ("src/sys/process/become.cpp", "::setresuid(uid, uid, uid); ::setgroups(0, nullptr);"),
    ("src/plan/actor_root.cpp", '#include "sys/process/become.hpp"\n::open(root);'),
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
