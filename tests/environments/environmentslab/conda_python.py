"""A Python with conda's package format, rattler's installer and conda-pack."""

from __future__ import annotations

from pathlib import Path

from sharefslab.python_packages import PackageSet, interpreter

_TOOLS = PackageSet("conda-pack", "0.9.2", ("conda-package-handling==2.6.0", "py-rattler==0.28.0", "setuptools==80.9.0"))


def conda_python() -> Path:
    """Its directory, with bin/python."""
    return interpreter(_TOOLS).directory
