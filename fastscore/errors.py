"""Errors that a user can fix, each with an exit code of the command line.

Messages are written for the command line. In Python, `worded` rewrites them.

A message is one sentence: the value found, where, and the expected one. ``hint`` is the next step.
"""

import difflib
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

IN_PYTHON = frozenset(
    [
        "agreement",
        "analyse",
        "check",
        "compare",
        "example",
        "explain",
        "inspect",
        "layouts",
        "metrics",
        "report",
        "runs",
        "score",
        "summary",
    ]
)
"""Commands that are also functions of the package, by the same name."""

_NAMES = {
    "column": "columns",
    "judge_column": "judge_columns",
    "judge_range": "judge_scale",
    "max": "maximum",
    "metric": "metrics",
    "min": "minimum",
    "random": "seed",
    "table": "tables",
    "value": "values",
}
"""Parameters whose name differs from their flag."""

_SWITCHES = frozenset(
    [
        "allow_different_signatures",
        "by_group_type",
        "fail_undecided",
        "ignore_memory_keys",
        "legacy_files",
        "merge_speakers",
        "overwrite",
        "plot_keywords",
        "strict",
        "strict_overnight",
        "unpaired",
    ]
)
_PHRASES = (
    ("`fastscore score SUITE INPUT... -o RUN`", "`fastscore.score(logs, suite, output=run)`"),
    ("`fastscore summary RUN --verify`", "`run.damaged()`"),
    ("Run the same `fastscore score` command again", "Score with the same arguments again"),
    ("Run its `fastscore score` command again", "Score with its arguments again"),
    ("Run the same command again", "Score with the same arguments again"),
    ("Choose some with --level", "Choose some with levels"),
    ("METRIC=0.01; or a --config.", "METRIC=0.01."),
    ("--json has all", "`explanations` has all"),
    ("Type --", "Give --"),
)
_VALUE = (
    r"\d+(?:\.\d+)?|[A-Z][A-Z0-9_]*|none|fp32|bf16|llm|embed|ngrams|lexical|published|legacy|dask|ray|"
    r"jaccard|cosine|heuristic|metadata|embedding|columns|tools"
)

_is_command_line = False


@contextmanager
def command_line_words() -> Iterator[None]:
    """Word messages for users of the command line."""
    global _is_command_line
    before, _is_command_line = _is_command_line, True
    try:
        yield
    finally:
        _is_command_line = before


def worded(text: str) -> str:
    """Return a message in the words of its reader: command line or Python."""
    return text if _is_command_line else in_python(text)


def in_python(text: str) -> str:
    """Return a message with Python's names for flags and commands."""
    for typed, called in _PHRASES:
        text = text.replace(typed, called)
    parts = re.split(r"(`fastscore [^`]*`)", text)
    return "".join(
        _call(part) if number % 2 else _parameters(part) for number, part in enumerate(parts)
    )


def _call(command: str) -> str:
    """Write a command as a call, if the package has such a function."""
    _, verb, *words = shlex.split(command.strip("`"))
    if verb not in IN_PYTHON:
        return command
    if verb == "score" and "-o" in words:
        suite, *logs = words[: words.index("-o")]
        inputs = repr(logs[0] if len(logs) == 1 else logs).replace("'", '"')
        return f'`fastscore.score({inputs}, "{suite}")`'
    arguments = [word.lower() if word.isupper() else f'"{word}"' for word in words]
    return f"`fastscore.{verb}({', '.join(arguments)})`" if words else f"`fastscore.{verb}`"


def _parameters(text: str) -> str:
    text = re.sub(r"(?:--column [^\s=]+=\S+ ?)+", _columns, text)
    text = re.sub(r"(?:--value [^\s:]+:\S+ ?)+", _values, text)
    text = re.sub(r"--(min|max|max-null|max-drop) (\w+)=([\d.]*\d)", _limit, text)
    text = re.sub(r"--layout ([\w.-]*\w)", r'layout="\1"', text)
    text = re.sub(rf"(?<![\w-])--([a-z][a-z0-9-]*)(?: ({_VALUE})(?![\w=.-]*\w))?", _flag, text)
    return re.sub(r"(?<![\w-])-o\b", "output=", text)


def _columns(found: re.Match[str]) -> str:
    pairs = re.findall(r"--column ([^\s=]+)=(\S+)", found[0])
    return _mapping("columns", [f'"{name}": "{_bare(path)}"' for name, path in pairs], found[0])


def _values(found: re.Match[str]) -> str:
    by_column: dict[str, list[str]] = {}
    for column, word, meant in re.findall(r"--value ([^\s:]+):([^\s=]*)=(\S*)", found[0]):
        by_column.setdefault(column, []).append(f'"{word}": "{_bare(meant)}"')
    items = [f'"{column}": {{{", ".join(words)}}}' for column, words in by_column.items()]
    return _mapping("values", items, found[0])


def _mapping(name: str, items: list[str], typed: str) -> str:
    end = typed.rstrip()[-1]
    after = end if end in ".,;:" else ""
    return f"{name}={{{', '.join(items)}}}{after}{' ' if typed.endswith(' ') else ''}"


def _limit(found: re.Match[str]) -> str:
    name = found[1].replace("-", "_")
    return f'{_NAMES.get(name, name)}={{"{found[2]}": {found[3]}}}'


def _bare(value: str) -> str:
    return value.rstrip(".,;:").strip("'\"")


def _flag(found: re.Match[str]) -> str:
    name = found[1].replace("-", "_")
    name, value = _NAMES.get(name, name), found[2]
    if name in _SWITCHES:
        return f"{name}=True" + (f" {value}" if value else "")
    if value is None:
        return name
    return f"{name}={value}" if value[0].isdigit() or value.isupper() else f'{name}="{value}"'


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
        return worded(f"{self.message}{between}{self.hint}" if self.hint else self.message)


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


MOST_LISTED = 200


def listed(names: Sequence[str]) -> str:
    """Join names by commas, at most the first few."""
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that is most similar to an unknown one, and list known names.

    Returns
    -------
    str
        ``Did you mean 'x'? Known: 'a', 'x'.`` or only the second sentence.
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    others = f"Known: {listed([*map(repr, names)])}."
    return f"Did you mean {close[0]!r}? {others}" if close else others
