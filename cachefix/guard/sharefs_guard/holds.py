"""Taking hold of functions of a library, so that a failure of the guard is one warning and the library's own function
runs."""

import functools
import inspect
import os

from sharefs_guard import storage


def attempt(function, *arguments, **named):
    """What the function returns; None, and one warning, where it fails."""
    try:
        return function(*arguments, **named)
    except Exception as problem:
        storage.warn("%s: %s: %s" % (function.__name__.strip("_"), type(problem).__name__, problem))
        return None


def hold(owner, name, make):
    """Puts `make(original)` in the place of a function or class method."""
    original = owner.__dict__.get(name)
    if original is None:
        storage.warn("%s.%s is not there in this version: caches may be built on the share" % (owner.__name__, name))
    elif isinstance(original, classmethod):
        function = original.__func__
        setattr(owner, name, classmethod(functools.wraps(function)(make(function))))
    else:
        setattr(owner, name, functools.wraps(original)(make(original)))


def hold_after(owner, name, act):
    """Calls `act(result, *arguments)` behind a function or method; what it returns, if not None, is the result."""

    def make(original):
        def held(*arguments, **named):
            result = original(*arguments, **named)
            changed = attempt(act, result, *arguments, **named)
            return result if changed is None else changed

        return held

    hold(owner, name, make)


def hold_cache_dir(owner, choose, choose_when_refused=None):
    """Of a class that is made with a `cache_dir`: `choose(self, arguments)` returns another one, or None; and so does
    `choose_when_refused` where a file there is another user's."""

    def make(original):
        signature = inspect.signature(original)

        def change(choice, self, arguments, named):
            bound = signature.bind_partial(self, *arguments, **named)
            directory = choice(self, bound.arguments)
            if directory is None:
                return None
            bound.arguments["cache_dir"] = directory
            return bound.args[1:], bound.kwargs

        def __init__(self, *arguments, **named):
            arguments, named = attempt(change, choose, self, arguments, named) or (arguments, named)
            try:
                original(self, *arguments, **named)
            except PermissionError:
                changed = choose_when_refused and attempt(change, choose_when_refused, self, arguments, named)
                if not changed:
                    raise
                original(self, *changed[0], **changed[1])

        return __init__

    hold(owner, "__init__", make)


def is_remote(path):
    return "://" in path


def local_place(directory):
    """The Place of a cache on the share that this node has a directory for; None of any other."""
    directory = os.path.expanduser(str(directory))
    place = None if is_remote(directory) else storage.place_of(directory)
    return place if place is not None and place.kind == "local" else None
