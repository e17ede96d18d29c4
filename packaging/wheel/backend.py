"""Makes the wheel `sharefs-guard`: the package, and the two files by which a Python loads it at its start.

A build backend (PEP 517) that needs nothing but Python: `pip wheel packaging/wheel` uses it, and so does the build of
sharefs: `backend.py VERSION DIRECTORY`.
"""

import base64
import hashlib
import os
import re
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, os.pardir, os.pardir)
PACKAGE = os.path.join(SOURCE, "cachefix", "guard", "sharefs_guard")
# Until Python 3.17 an `import` line of a .pth is executed; from 3.15 on a .start names what to call (PEP 829). install()
# does nothing the second time.
STARTERS = {
    "sharefs_guard.pth": "import sharefs_guard; sharefs_guard.install()\n",
    "sharefs_guard.start": "sharefs_guard:install\n",
}
METADATA = """Metadata-Version: 2.1
Name: sharefs-guard
Version: %s
Summary: Keeps caches of datasets and kernels from being built by several nodes on shared storage at once
Requires-Python: >=3.6
License: Apache-2.0
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: sharefs\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
MADE = (2020, 1, 1, 0, 0, 0)  # the same content gives the same wheel


def project_version():
    with open(os.path.join(SOURCE, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"^project\(sharefs VERSION (\S+)", file.read(), re.MULTILINE).group(1)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None, version=None):
    version = version or project_version()
    information = "sharefs_guard-%s.dist-info" % version
    content = dict(STARTERS)
    for name in sorted(os.listdir(PACKAGE)):
        if name.endswith(".py"):
            with open(os.path.join(PACKAGE, name), encoding="utf-8") as file:
                content["sharefs_guard/" + name] = file.read()
    content[information + "/METADATA"] = METADATA % version
    content[information + "/WHEEL"] = WHEEL
    rows = []
    for name, text in content.items():
        data = text.encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append("%s,sha256=%s,%d\n" % (name, digest, len(data)))
    rows.append("%s/RECORD,,\n" % information)
    content[information + "/RECORD"] = "".join(rows)

    wheel = "sharefs_guard-%s-py3-none-any.whl" % version
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            entry = zipfile.ZipInfo(name, MADE)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, text)
    return wheel


if __name__ == "__main__":
    build_wheel(sys.argv[2], version=sys.argv[1])
