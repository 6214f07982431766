"""Errors that a user can fix, each with an exit code of the command line.

A message is one sentence: the value found, where, and the expected one. ``hint`` is the next step.
Both name an option by its Python name (`lex_weight`), and a command as it is typed in a shell.
"""

import difflib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any, TypeVar, cast

Public = TypeVar("Public", bound=Callable[..., Any])

EXIT_CHECK_FAILED = 1
EXIT_USAGE = 2
EXIT_INPUT_REFUSED = 3
EXIT_INCOMPLETE = 4
EXIT_INTERRUPTED = 130


class FastscoreError(Exception):
    """A condition that the user can understand and mend. It is shown without a traceback.

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

    The names of all metrics would bury the suggestion.
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    others = f"Known: {listed([*map(repr, names)])}."
    if not close:
        return others
    found = f"Did you mean {close[0]!r}?"
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
    """Have a call that lacks an argument, or has an unknown one, name it and show an example.

    It remains a `TypeError`. Decorates a function, or a class for its ``__init__``.
    """
    if isinstance(public, type):
        public.__init__ = _named(public.__init__, public)  # type: ignore[misc]
        return public
    return cast("Public", _named(public, public))


def _named(function: Callable[..., Any], documented: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise  # from the body
            misfit = _misfit(function, documented, arguments, keywords)
        raise misfit

    return call


def _misfit(
    function: Callable[..., Any],
    documented: Callable[..., Any],
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> TypeError:
    import inspect  # late: only a wrong call needs it

    parameters = inspect.signature(function).parameters.values()
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters)
    named = [each for each in parameters if each.kind < each.VAR_KEYWORD]
    named = [each for each in named if each.kind is not each.VAR_POSITIONAL]
    by_place = [each.name for each in named if each.kind is not each.KEYWORD_ONLY]
    given = {*by_place[: len(arguments)], *keywords}
    missing = [each.name for each in named if each.default is each.empty and each.name not in given]
    known = [each.name for each in named if each.name != "self" and each.name[0] != "_"]
    unknown = [] if takes_any else [each for each in keywords if each not in known]
    twice = [each for each in keywords if each in by_place[: len(arguments)]]
    example = _example(documented)
    if unknown:
        found = f"has no argument {unknown[0]!r}"
        example = did_you_mean(unknown[0], known) if known else example
    elif missing:
        *others, last = missing
        found = f"needs {', '.join(others)} and {last}" if others else f"needs {last}"
    elif twice:
        found = f"is given {twice[0]!r} twice"
    else:
        found = "is given too many arguments without names"
        example = f"Its arguments: {', '.join(known)}."
    return TypeError(f"{documented.__name__}() {found}. {example}".rstrip())


def _example(documented: Callable[..., Any]) -> str:
    """Return the first call of a function in the examples of its docstring, on one line."""
    import ast
    import doctest

    for each in doctest.DocTestParser().get_examples(documented.__doc__ or ""):
        for node in ast.walk(ast.parse(each.source)):
            called = getattr(node, "func", None)
            if getattr(called, "attr", "") == documented.__name__:
                text = " ".join((ast.get_source_segment(each.source, node) or "").split())
                text = text.replace("( ", "(").replace(" )", ")").replace(",)", ")")
                return f"For example: {text}"
    return ""
