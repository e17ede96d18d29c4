"""The guard of `sharefs run`. Libraries of a Python program that would build their caches on shared storage, where the
nodes destroy each other's files, build them on the node's own disk.

This file is read at every start of Python, so it only waits for one of the libraries to be imported. libraries.py and
builds.py act then, storage.py finds the place of a cache, and publishing.py copies it to the share.

Environment: SHAREFS_GUARD=0 switches the guard off. SHAREFS_GUARD_BUILD is publish, unique or local,
SHAREFS_GUARD_WHEN is shared or racy, SHAREFS_GUARD_KEEP names variables that are not moved (docs/guard.md).
"""

import _thread
import os
import sys

LIBRARIES = frozenset(("datasets", "evaluate", "transformers", "torch", "triton", "vllm"))


class _Finder:
    """Stands first in sys.meta_path and finds no module by itself. If a finder behind it finds one of the libraries,
    the guard acts before and after that library is executed."""

    def __init__(self):
        self._waiting = set(LIBRARIES)
        self._searching = set()  # pairs of a name and the thread that searches it

    def find_spec(self, name, path=None, target=None):
        if name not in self._waiting:
            return None
        search = (name, _thread.get_ident())
        if search in self._searching:
            return None  # by a finder that asks all finders itself
        self._searching.add(search)
        try:
            # Those in front of this one had their turn.
            others = sys.meta_path[sys.meta_path.index(self) + 1 :] if self in sys.meta_path else sys.meta_path
            for finder in others:
                find_spec = getattr(finder, "find_spec", None)
                spec = find_spec(name, path, target) if find_spec else None
                if spec is not None:
                    self._wrap(spec.loader, name)
                    return spec
        finally:
            self._searching.discard(search)
        return None

    def _wrap(self, loader, name):
        """Replaces exec_module of this one loader, for one call only. The loader stays the same object, because other
        code reads its attributes."""
        execute = getattr(loader, "exec_module", None)
        if execute is None or isinstance(loader, type):
            return

        def exec_module(module):
            if module.__name__ != name:  # a zipimporter loads other modules, too
                return execute(module)
            loader.__dict__.pop("exec_module", None)
            # A program may search a library without importing it, or import it again after a failure.
            libraries = _libraries() if name in self._waiting else None
            if libraries:
                libraries.before(name)
            execute(module)
            self._waiting.discard(name)
            if libraries:
                libraries.after(name, module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass


def _libraries():
    try:
        from sharefs_guard import libraries

        return libraries
    except Exception as problem:
        sys.stderr.write("sharefs: warning: the guard is off: %s: %s\n" % (type(problem).__name__, problem))
        return None


def install():
    """Installs the guard, unless it is installed already or switched off."""
    if os.environ.get("SHAREFS_GUARD") == "0" or sys.version_info < (3, 6):
        return
    if not any(type(finder).__module__ == __name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        for name in LIBRARIES.intersection(sys.modules):  # a .pth file has imported it
            libraries = _libraries()
            if libraries:
                libraries.before(name)
                libraries.after(name, sys.modules[name])
