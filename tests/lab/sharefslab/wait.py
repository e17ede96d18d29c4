"""Waiting for conditions instead of sleeping."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


LONGEST_PAUSE = 0.5


def wait_until(condition: Callable[[], T], timeout: float = 120.0, interval: float = 0.1, what: str = "") -> T:
    """Polls `condition` until its result is true, and returns that result.

    The pauses between two polls grow from `interval` to half a second: most conditions run a command in a guest, and
    tests beside this one need the processor.

    Raises TimeoutError after `timeout` seconds. The condition is always tried at least once, and once more
    at the end, so that a slow machine does not turn a true condition into a failure.
    """
    deadline = time.monotonic() + timeout
    pause = interval
    while True:
        late = time.monotonic() >= deadline
        result = condition()
        if result:
            return result
        if late:
            raise TimeoutError(f"not within {timeout:g} s: {what or condition}")
        time.sleep(pause)
        pause = max(pause, min(pause * 1.2, LONGEST_PAUSE))
