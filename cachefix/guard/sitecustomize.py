"""Python runs this file at its start if its directory stands in PYTHONPATH. It installs the guard, then runs the
sitecustomize that would have run without it."""

import os
import sys


def _install():
    # A failure here must not be more than one line on stderr.
    try:
        import sharefs_guard

        sharefs_guard.install()
    except Exception as problem:
        sys.stderr.write("sharefs: warning: the guard is off: %s: %s\n" % (type(problem).__name__, problem))


def _search_working_directory():
    """`sharefs run` ends the guard's directory with a slash if PYTHONPATH was not set. If the program's script has
    lengthened that, Python without the guard finds an empty element, which is the working directory. It is searched
    last here, because a script may just as well have left the empty element out."""
    ours = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
    elements = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if ours in elements and len(elements) > 1:
        try:
            here = os.getcwd()
        except OSError:
            return  # it was removed
        if here not in map(os.path.abspath, sys.path):
            sys.path.append(here)


def _run_the_next():
    import _frozen_importlib
    import _frozen_importlib_external

    ours = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry or ".") != ours]
    spec = _frozen_importlib_external.PathFinder.find_spec(__name__, others)
    if spec is None or spec.loader is None:
        return
    module = _frozen_importlib.module_from_spec(spec)
    sys.modules[__name__] = module
    spec.loader.exec_module(module)


_search_working_directory()
if sys.version_info >= (3, 6):
    _install()
    _run_the_next()
