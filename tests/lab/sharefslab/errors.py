"""What can go wrong in the lab itself, apart from what a test provokes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .host import Completed


class LabError(Exception):
    """The lab could not do what was asked; the message says why."""


class GuestDied(LabError):
    """The guest's kernel is gone although nobody ended it."""


class CommandTimeout(LabError):
    """A command did not end within its time; `completed` holds its output so far.

    `stuck` is true if even SIGKILL did not end it, as happens to processes that wait in the kernel.
    """

    def __init__(self, message: str, completed: Completed, stuck: bool) -> None:
        super().__init__(message)
        self.completed = completed
        self.stuck = stuck


class CommandFailed(LabError):
    """A command that had to succeed did not."""

    def __init__(self, message: str, completed: Completed) -> None:
        super().__init__(message)
        self.completed = completed
