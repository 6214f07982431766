"""Errors that a user can fix, each with an exit code of the command line.

A message is one sentence: the value found, where, and the expected one. ``hint`` is the next step.
Both name an option by its Python name (`lex_weight`), and a command as it is typed in a shell.
"""

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any, TypeVar, cast

Public = TypeVar("Public", bound=Callable[..., Any])

EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_INPUT_REFUSED = 3
EXIT_INCOMPLETE = 4
EXIT_INTERRUPTED = 130


class FastscoreError(Exception):
    """A condition that the user can understand and mend. Commands show it without a traceback.

    Parameters
    ----------
    message
        What was found, where, and what was expected.
    hint
        What to do next, a full sentence.

    Examples
    --------
    >>> try:
    ...     fastscore.open_run("nowhere")
    ... except fastscore.FastscoreError as error:
    ...     print(error.message)
    nowhere: no run there (no manifest.json).
    """

    exit_code = EXIT_USAGE

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def reason(self) -> str:
        """The first line of the message, for lists of errors."""
        return self.message.partition("\n")[0]

    def __str__(self) -> str:
        between = "\n" if "\n" in self.message else " "
        return f"{self.message}{between}{self.hint}" if self.hint else self.message


class UsageError(FastscoreError):
    """An option, a name or a configuration that fastscore cannot use."""


class InputError(FastscoreError):
    """Input that cannot be scored at all: nothing matched, unreadable, or too many rejects."""

    exit_code = EXIT_INPUT_REFUSED


class ModelError(FastscoreError):
    """An embedding model that is missing, damaged or cannot run here."""


class StoreError(FastscoreError):
    """A vector store that cannot be read or written."""

    exit_code = EXIT_INCOMPLETE


class RunError(FastscoreError):
    """A run directory that cannot be written, read or resumed."""

    exit_code = EXIT_INCOMPLETE


class RunConflictError(RunError):
    """A run directory that belongs to another writer or another signature."""

    exit_code = EXIT_USAGE


class MemoryLimitError(RunError):
    """Work that takes more memory than it may."""


def counted(n: int, noun: str) -> str:
    """Write a count with its noun, given in the plural, in singular or plural."""
    return f"{n:,} {noun if n != 1 else noun.removesuffix('s')}"


def listed(names: Sequence[str], most: int = 200, between: str = ", ") -> str:
    """Join the first names, and say how many more there are."""
    more = f"{between.strip(', ')} and {len(names) - most:,} more" if len(names) > most else ""
    return between.join(names[:most]) + more


MOST_SUGGESTED = 40
"""Above this number, known names are not listed beside a suggestion."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that is most similar to an unknown one, and list known names.

    Case does not count. The names of all metrics would bury the suggestion.
    """
    import difflib  # late: a name that is known needs no other

    names = sorted(known)
    wanted, folded = name.casefold(), {each.casefold(): each for each in reversed(names)}
    close = difflib.get_close_matches(wanted, folded, n=1, cutoff=0.5)
    close = close or [key for key in folded if len(wanted) > 3 and wanted in key][-1:]
    others = f"Known: {listed([*map(repr, names)])}."
    if not close:
        return others
    found = f"Did you mean {folded[close[0]]!r}?"
    return f"{found} {others}" if len(names) <= MOST_SUGGESTED else found


_PACKAGE = os.path.dirname(__file__) + os.sep


def warn_caller(note: str, category: type[Warning]) -> None:
    """Warn at the line that called this package."""
    level, found = 1, 1
    frame: FrameType | None = sys._getframe(0)
    while frame is not None:  # other packages' frames may be in between
        level += 1
        found = level if frame.f_code.co_filename.startswith(_PACKAGE) else found
        frame = frame.f_back
    warnings.warn(note, category, stacklevel=found)


def names_arguments(public: Public) -> Public:
    """Have a call with an unknown argument suggest one; it remains a `TypeError`.

    Decorates a function, or a class for its ``__init__``.
    """
    is_class = isinstance(public, type)
    function: Callable[..., Any] = public.__init__ if is_class else public

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # from the body
            parameters = inspect.signature(function).parameters
            known = [name for name in parameters if name != "self" and not name.startswith("_")]
            unknown = next((name for name in keywords if name not in known), None)
            by_name = [each.name for each in parameters.values() if each.kind is each.KEYWORD_ONLY]
            if unknown is not None:
                found = f"{public.__name__}() has no argument {unknown!r}."
                misfit = TypeError(f"{found} {did_you_mean(unknown, known)}")
            elif by_name and str(error).endswith("given"):
                misfit = TypeError(f"{error}. Give by name: {', '.join(by_name)}.")
            else:
                raise
        raise misfit

    if is_class:
        public.__init__ = call  # type: ignore[method-assign]
        return public
    return cast("Public", call)
