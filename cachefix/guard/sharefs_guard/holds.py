"""Replaces functions of a library in a way that a failure of the guard is only one warning, and the library's own
function runs."""

import functools
import inspect

from sharefs_guard import storage


def attempt(function, *arguments, **named):
    """Returns the result of the function; None, after one warning, if it fails. What a signal handler of the program
    raises is no failure of the guard, and goes on to the program."""
    try:
        return function(*arguments, **named)
    except Exception as problem:
        storage.pass_on(problem)
        storage.warn("%s: %s: %s" % (function.__name__.strip("_"), type(problem).__name__, problem))
        return None


def hold(owner, name, make):
    """Replaces a function or class method by `make(original)`."""
    original = owner.__dict__.get(name)
    if original is None:
        storage.warn("%s.%s is not there in this version: caches may be built on the share" % (owner.__name__, name))
        return
    is_of_class = isinstance(original, classmethod)
    function = original.__func__ if is_of_class else original
    held = functools.wraps(function)(make(function))
    held.__signature__ = inspect.signature(function)  # inspect.getfullargspec() does not follow __wrapped__
    setattr(owner, name, classmethod(held) if is_of_class else held)


def hold_after(owner, name, act):
    """Calls `act(result, *arguments)` after a function or method. If `act` does not return None, its value is the
    result."""

    def make(original):
        def held(*arguments, **named):
            result = original(*arguments, **named)
            changed = attempt(act, result, *arguments, **named)
            return result if changed is None else changed

        return held

    hold(owner, name, make)


def hold_cache_dir(owner, default, moves):
    """Makes a class with this node's directory as its `cache_dir`, if that lies on the share and
    `moves(self, arguments, place, is_refused)` is true. `default` returns the directory of a call that names none.
    `is_refused`: a PermissionError came without it, because a file there belongs to another user."""

    def make(original):
        signature = inspect.signature(original)

        def change(self, arguments, named, is_refused):
            bound = signature.bind_partial(self, *arguments, **named)
            place = local_place(bound.arguments.get("cache_dir") or default())
            if place is None or not moves(self, bound.arguments, place, is_refused):
                return None
            bound.arguments["cache_dir"] = place.directory
            return bound.args[1:], bound.kwargs

        def __init__(self, *arguments, **named):
            changed = attempt(change, self, arguments, named, False) or (arguments, named)
            try:
                return original(self, *changed[0], **changed[1])
            except PermissionError:
                changed = attempt(change, self, arguments, named, True)
                if not changed:
                    raise
            return original(self, *changed[0], **changed[1])

        return __init__

    hold(owner, "__init__", make)


def local_place(directory):
    """Returns the Place of a cache on the share if this node has a directory for it, else None."""
    place = storage.place_of(str(directory))
    return place if place is not None and place.kind == "local" else None
