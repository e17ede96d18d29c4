"""What a test of a launcher's options asks of sharefs: where it finds the program behind each one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from .getopt import ATTACHED, RealOption
from .sharefs import Sharefs

# A value that an option of any launcher would be glad to take: it is the name of no program.
VALUE_WORD = "7"


def _words_of(option: RealOption, attaches: bool) -> list[list[str]]:
    """The spellings of one option with its values."""
    long = option.name.startswith("--")
    attached = [option.name + ("=" if long else "") + VALUE_WORD]
    if option.takes == ATTACHED:
        return [[option.name], attached]
    apart = [option.name, *[VALUE_WORD] * option.takes]
    return [apart, attached] if attaches and option.takes == 1 else [apart]


def misread_options(
    sharefs: Sharefs, launcher: Sequence[str], options: Iterable[RealOption], left: Collection[str],
    operands: Sequence[str] = (), attaches: bool = True,
) -> list[str]:  # fmt: skip
    """Each option of the real launcher with which sharefs finds another program than the launcher would run.

    `left`: options that sharefs shall not understand; one that it does understand is named too. `attaches`: a value may
    stand in the option's word.
    """
    wrong = []
    for option in options:
        for words in _words_of(option, attaches):
            argv = [*launcher, *words, *operands, "./print_arguments", "--cache_dir", "x"]
            index = sharefs.ask(argv).index
            expected = None if option.name in left else len(argv) - 3
            if index != expected:
                wrong.append(f"{' '.join(argv)}: program at {index}, not at {expected}")
    return wrong
