"""Makes the wheel `sharefs-guard`: the package, and the two files by which a Python loads it at its start.

A build backend (PEP 517) that needs nothing but Python: `pip wheel packaging/wheel` uses it, and so does the build of
sharefs: `backend.py VERSION DIRECTORY` leaves the wheel there, and in DIRECTORY/share/sharefs/site-packages what pip
would install of it, for `conda share`.
"""

import base64
import hashlib
import os
import re
import shutil
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


def content_of(version):
    """Text by path below site-packages: of the wheel, without its RECORD."""
    information = "sharefs_guard-%s.dist-info/" % version
    content = dict(STARTERS)
    for name in sorted(os.listdir(PACKAGE)):
        if name.endswith((".py", ".txt")):
            with open(os.path.join(PACKAGE, name), encoding="utf-8") as file:
                content["sharefs_guard/" + name] = file.read()
    content[information + "METADATA"] = METADATA % version
    content[information + "WHEEL"] = WHEEL
    return information, content


def add_record(information, content):
    rows = []
    for name, text in content.items():
        data = text.encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append("%s,sha256=%s,%d\n" % (name, digest, len(data)))
    rows.append("%sRECORD,,\n" % information)
    content[information + "RECORD"] = "".join(rows)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None, version=None):
    version = version or project_version()
    information, content = content_of(version)
    add_record(information, content)
    wheel = "sharefs_guard-%s-py3-none-any.whl" % version
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            entry = zipfile.ZipInfo(name, MADE)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, text)
    return wheel


def install(directory, version):
    """As pip does it, which says in INSTALLER who has."""
    information, content = content_of(version)
    content[information + "INSTALLER"] = "sharefs\n"
    add_record(information, content)
    shutil.rmtree(directory, ignore_errors=True)
    for name, text in content.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    build_wheel(sys.argv[2], version=sys.argv[1])
    install(os.path.join(sys.argv[2], "share", "sharefs", "site-packages"), sys.argv[1])
