"""An environment in conda's layout with a real Python, made on a host from what the guest has."""

from __future__ import annotations

import shlex

from .host import Host

# The interpreter finds its prefix by the path that it is started from, so a link to the environment is its prefix.
_MAKE = """
set -e
umask 022
python=$(readlink -f /usr/bin/python3); version=$(basename "$python")
mkdir -p {env}/bin {env}/conda-meta {env}/lib/$version/site-packages
cp "$python" {env}/bin/$version
ln -s $version {env}/bin/python
cd /usr/lib/$version
cp --preserve=timestamps *.py {env}/lib/$version/
cp -r --preserve=timestamps collections encodings importlib json re lib-dynload {env}/lib/$version/
echo '==> lab <==' >{env}/conda-meta/history
echo 'answer = 42' >{env}/lib/$version/lab_package.py
"""
# Prints [42, PREFIX] if the environment is whole.
PROGRAM = "import json, lab_package, sys; print(json.dumps([lab_package.answer, sys.prefix]))"


def make_environment(host: Host, path: str, user: str) -> None:
    host.run(_MAKE.format(env=shlex.quote(path)), user=user, timeout=300, check=True)
