"""Acts when a library is imported: sets variables before it is executed, and replaces its functions (builds.py)
afterwards."""

import os

from sharefs_guard import holds, publishing, storage

_OF_DATASETS = ("HF_MODULES_CACHE", "HF_XET_CACHE")  # all other variables are for programs that compile


def before(name):
    """Called just before the library is executed: sets the variables that it reads."""
    holds.attempt(_set_variables, name)


def after(name, module):
    """Called just after the library was executed."""
    if name in ("datasets", "evaluate"):
        holds.attempt(_hold_library, name, module)


def _hold_library(name, module):
    from sharefs_guard import builds

    (builds.hold_datasets if name == "datasets" else builds.hold_evaluate)(module)


# Variables


def _default_of(name, default):
    environment = dict(os.environ)
    home = environment.get("HOME") or "~"
    environment.setdefault("XDG_CACHE_HOME", home + "/.cache")
    environment.setdefault("HF_HOME", environment["XDG_CACHE_HOME"] + "/huggingface")
    environment.setdefault("TRITON_HOME", home)
    variable, _, rest = default.lstrip("$").partition("/")
    return os.environ.get(name) or (environment[variable] + "/" + rest if default else "")


def read_variables():
    """Yields the variables of caches.txt that the guard sets: name, default (empty: the variable is only set in place
    of a value), and whether code is compiled there."""
    for line in storage.read_table():
        names, *fields = line.split(" | ")
        row = dict(field.partition(": ")[::2] for field in fields)
        if line.startswith("variable ") and "guard" in row:
            default = row["default"] if row["guard"] == "default" else ""
            for name in names.split()[1:]:
                yield name, default, "code" in row


def _set_variables(library):
    for name, default, holds_code in read_variables():
        if library in ("datasets", "evaluate") and name not in _OF_DATASETS:
            continue
        path = _default_of(name, default)
        place = storage.place_of(path) if path else None
        if place is None or not place.directory or storage.keeps(name):  # no directory: datasets are built on the share
            continue
        if holds_code and os.statvfs(place.directory).f_flag & os.ST_NOEXEC:
            continue
        if name in os.environ and storage.speaks():
            storage.report("%s is %s instead of %s" % (name, place.directory, path))
        if name == "HF_MODULES_CACHE":
            _share_modules(place)
        os.environ[name] = place.directory


def _share_modules(place):
    """Copies downloaded code of datasets, metrics and models from the share, so that it is there offline, too. What
    this process downloads is copied to the share when it ends."""
    publishing.add_missing_files(place.share, place.directory)
    if storage.publishes():
        publishing.at_exit(holds.attempt, publishing.add_missing_files, place.directory, place.share)
