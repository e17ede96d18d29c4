"""An environment in conda's layout with a real Python, made on a host from what the guest has."""

from __future__ import annotations

import shlex

from .host import Host

# Files with the times of others. Over NFS they are opened as sharefs itself does it, so that the kernel has no delegation
# with which the times are lost (Linux 7.2 loses those of `cp -p`).
_COPY = """
import fcntl, os, shutil, sys

def copy(source, target):
    flags = os.O_WRONLY | os.O_CREAT
    try:
        file = os.open(target, flags | os.O_DIRECT, 0o644)
        fcntl.fcntl(file, fcntl.F_SETFL, 0)
    except OSError: # not every file system knows it
        file = os.open(target, flags, 0o644)
    with open(source, "rb") as reader, open(file, "wb") as writer:
        shutil.copyfileobj(reader, writer)
    shutil.copystat(source, target)

for name in sys.argv[2:]:
    if os.path.isdir(name):
        shutil.copytree(name, os.path.join(sys.argv[1], name), copy_function=copy)
    else:
        copy(name, os.path.join(sys.argv[1], name))
"""
# The interpreter finds its prefix by the path that it is started from, so a link to the environment is its prefix.
_MAKE = """
set -e
umask 022
python=$(readlink -f /usr/bin/python3); version=$(basename "$python")
mkdir -p {env}/bin {env}/conda-meta {env}/lib/$version/site-packages
cp "$python" {env}/bin/$version
ln -s $version {env}/bin/python
cd /usr/lib/$version
python3 -c {copy} {env}/lib/$version *.py collections encodings importlib json re lib-dynload
cd "$(mktemp -d)"
echo 'answer = 42' >lab_package.py
python3 -c {copy} {env}/lib/$version lab_package.py
echo '==> lab <==' >{env}/conda-meta/history
"""
# Prints [42, PREFIX] if the environment is whole.
PROGRAM = "import json, lab_package, sys; print(json.dumps([lab_package.answer, sys.prefix]))"


def make_environment(host: Host, path: str, user: str) -> None:
    host.run(_MAKE.format(env=shlex.quote(path), copy=shlex.quote(_COPY)), user=user, timeout=300, check=True)
