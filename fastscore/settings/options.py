"""Values of options by one set of rules: flags, environment, files in TOML, Python."""

import dataclasses
import errno
import inspect
import math
import os
import select
import stat
import textwrap
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from fastscore_jit.system import open_descriptor, processors
from fastscore_jit.threads import POLL_SECONDS, raise_if_stopped

from fastscore.errors import UsageError, did_you_mean
from fastscore.files import is_utf8

THREADS_VARIABLE = "FASTSCORE_THREADS"
TRUST_VARIABLE = "FASTSCORE_TRUST_STORE"


def available_processors() -> int:
    """Count the processors of this process, or its share, ``$FASTSCORE_THREADS``."""
    value = os.environ.get(THREADS_VARIABLE)
    if value:
        if not value.isdecimal() or int(value) < 1:
            raise UsageError(f"{THREADS_VARIABLE} is {value!r}, expected a whole number from 1 on.")
        return int(value)
    return processors()


CHANGES_SCORE = "Options that change the score"
WRITES_MORE = "What else is written"


def option(
    default: Any,
    *,
    help: str,
    minimum: float | None = None,
    maximum: float | None = None,
    unit: str = "",
    signed: bool = True,
    names_file: bool = False,
    names_folder: str = "",
    built_in: str = "",
    names_masked_model: bool = False,
    required: bool = False,
    heading: str = "",
) -> Any:
    """Declare a suite's option as a dataclass field.

    Parameters
    ----------
    default
        The value without the option. The field's annotation is its type, a ``Literal`` its choices.
    help
        One line for ``--help`` and the docs.
    minimum, maximum
        Inclusive bounds of a number; NaN is always refused.
    unit
        The unit of a number.
    signed
        Whether the option changes numbers, and so is part of the signature.
    names_file
        Whether the value is a file's path; the signature then has the hash of its content.
    names_folder
        The pattern of files in a folder's path; the signature then hashes their names and content.
    built_in
        The file beside the module of the options if the value is empty; the signature hashes it.
    names_masked_model
        Whether the value names a masked language model; the signature then has its fingerprint.
    required
        Whether the option is required. The suite raises an error without it.
    heading
        Its heading in ``--help``, with at most fifteen options per heading. Default: the heading of
        options that change the score, or of additional files if it is not `signed`.
    """
    rules = locals() | {"heading": heading or (CHANGES_SCORE if signed else WRITES_MORE)}
    return dataclasses.field(default=rules.pop("default"), metadata=rules)


if TYPE_CHECKING:

    class FilePath:
        """The type of an option that names a file or a folder: any path is given, text is kept."""

        def __get__(self, of: object, kind: object) -> str: ...
        def __set__(self, of: object, value: str | os.PathLike[str]) -> None: ...
else:
    FilePath = str | os.PathLike[str]

_Options = TypeVar("_Options")


def documented(options: type[_Options]) -> type[_Options]:
    """Add a section of parameters to the docstring of a class of options: the help of each."""
    begin, examples, end = inspect.cleandoc(options.__doc__ or "").partition("Examples\n")
    lines = ["Parameters", "----------"]
    for field in dataclasses.fields(options):  # type: ignore[arg-type]
        lines += [field.name, textwrap.indent(textwrap.fill(field.metadata["help"], 92), "    ")]
    options.__doc__ = "\n".join([begin.rstrip(), "", *lines, "", examples + end])
    return options


class SuiteOptions(Protocol):
    """The options of a suite: a frozen dataclass of `option` fields.

    A ``Literal`` annotation lists the choices of an option.
    """

    suite: ClassVar[str]
    """The suite's name."""


def option_values(options: Any) -> dict[str, Any]:
    """Return an options object's values by name, in declared order."""
    return {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}


MOST_INTEGER = 2**63 - 1
"""The largest integer that JSON of a manifest holds."""


def build_options(declared: type[Any], values: Mapping[str, Any]) -> Any:
    """Return a validated options object with values by name, as from flags and manifests."""
    fields = [field.name for field in dataclasses.fields(declared)]
    for name in values:
        if name not in fields:
            raise UsageError(f"Unknown option {name!r}.", did_you_mean(name, fields))
    options = declared(**values)
    check_values(options)
    return options


@cache
def types_of(declared: type[Any]) -> dict[str, Any]:
    """Return the types of a class's fields, by their names."""
    return get_type_hints(declared)


def check_values(options: Any) -> None:
    """Check every value of an options object. Its class calls this in ``__post_init__``."""
    types = types_of(options.__class__)
    for field in dataclasses.fields(options):
        given = getattr(options, field.name)
        value = checked_value(field.name, given, types[field.name], field.metadata)
        if value is not given:
            object.__setattr__(options, field.name, value)


def setting(
    default: Any,
    help: str = "",
    *,
    heading: str = "",
    minimum: float | None = None,
    maximum: float | None = None,
    unit: str = "",
    flags: tuple[str, ...] = (),
    metavar: str | None = None,
    example: Mapping[str, Any] | int | None = None,
    environment: bool = False,
    in_manifest: bool = False,
) -> Any:
    """Declare a field of a request: what its values keep to, and its option on the command line.

    Bounds of a list hold for its items. ``in_manifest``: a run's manifest has it.
    """
    rules = dict(locals())
    return dataclasses.field(default=rules.pop("default"), metadata=rules)


def settings_of(request: Any) -> tuple["dataclasses.Field[Any]", ...]:
    """Return the fields of a request, or of its class, that `setting` declares."""
    return tuple(each for each in dataclasses.fields(request) if each.metadata)


def check_settings(request: Any) -> None:
    """Check what a request is given. Its class calls this in ``__post_init__``."""
    for each in settings_of(request):
        value = checked_setting(each, getattr(request, each.name))
        object.__setattr__(request, each.name, value)


def checked_setting(declared: "dataclasses.Field[Any]", value: Any) -> Any:
    """Return the value of a setting, a path as `Path` if it is declared as one."""
    name, hint, rules = declared.name, declared.type, declared.metadata
    if hint in (Path, Path | None):
        path = checked_value(name, value, str | os.PathLike[str] | None, rules)
        return path if path is None else Path(path)
    if value_type(hint) not in _PLAIN:
        return value  # who declares it reads it
    value = checked_value(name, value, hint, rules)
    if isinstance(value, str) and not takes_paths(hint) and not is_utf8(value):
        raise UsageError(f"{name} is {value!r}, expected text that is UTF-8.")
    (inner, *_) = get_args(hint) or (None,)
    if value_type(hint) is Sequence and inner in (int, str):
        for place, item in enumerate(value):
            checked_value(f"{name}[{place}]", item, inner, rules)
    return value


_PLAIN = (str, int, float, bool, Mapping, Sequence)


@cache
def _expected_by(hint: Any) -> tuple[type[Any], tuple[str, ...]]:
    """Return the type of an option's value, and its choices."""
    return value_type(hint), allowed_values(hint)


def checked_value(name: str, value: Any, hint: Any, rules: Mapping[str, Any]) -> Any:
    """Return an option's value, a path as text and an integer as the float that is expected."""
    if value is None and NoneType in get_args(hint):
        return None
    expected, choices = _expected_by(hint)
    if expected in (Mapping, Sequence) and (
        isinstance(value, str) or not isinstance(value, expected)
    ):
        wanted = "a list" if expected is Sequence else f"a dict: {rules['example']}"
        raise UsageError(f"{name} is of type {type(value).__name__}, expected {wanted}.")
    if isinstance(value, os.PathLike) and takes_paths(hint):
        value = os.fspath(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if is_whole and abs(value) > MOST_INTEGER:
        bits = value.bit_length()
        raise UsageError(f"{name} is an integer of {bits:,} bits, expected one of at most 63.")
    if expected is float and is_whole:
        value = float(value)
    if not isinstance(value, expected) or (expected is int and not is_whole):
        if takes_paths(hint):
            advice = path_advice(value)
            if isinstance(value, Mapping | list):
                advice = f'Write it to a file: Path("{name}.json").write_text(json.dumps(value)).'
            kind = type(value).__name__
            raise UsageError(f"{name} is of type {kind}, expected a path.", advice)
        kind = describe_number(int, rules) if expected is int else expected.__name__
        raise UsageError(f"{name} is {value!r:.80}, expected {kind}.")
    if expected in (int, float):
        wanted = expected_number(value, rules, expected)
        if wanted:
            raise UsageError(f"{name} is {value!r}, expected {wanted}.")
    if choices and value not in choices:
        raise UsageError(f"{name} is {value!r}.", did_you_mean(str(value), choices))
    return value


_NO_BOUNDS = {"minimum": None, "maximum": None}
_OF_METRIC = {"example": {"METRIC": 0.4}}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "alpha": {"above": 0, "below": 1},
    "equal_within": _OF_METRIC,
    "level": {"minimum": 0},
    "margin": {"above": 0},
    "max_drop": _OF_METRIC,
    "max_null": _OF_METRIC,
    "maximum": _OF_METRIC,
    "minimum": _OF_METRIC,
    "no_worse": _OF_METRIC,
    "plan": {"above": 0},
    "seed": {"minimum": 0},
}
"""What the values of arguments keep to, beside their types, in every function that has them."""


def check_arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Check a function's arguments by its annotations and `ARGUMENTS`; skip other types."""
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in given:
            continue
        value, hint = given[name], parameter.annotation
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        rest = {part for part in parts if not (takes_path(part) or part in (str, NoneType))}
        several = next((part for part in rest if get_origin(part) is Sequence), None)
        if parameter.kind is parameter.VAR_POSITIONAL:
            _check_items(name, value, hint)
        elif value is not None and (pair := [each for each in parts if get_origin(each) is tuple]):
            _check_tuple(name, value, len(get_args(pair[0])))
        elif several is not None:
            _check_several(name, value, several, or_one=str in parts)
        elif len(rest) + (str in parts) <= 1 and all(map(_is_plain, rest)):
            checked_value(name, value, hint, _NO_BOUNDS | ARGUMENTS.get(name, {}))


def _is_plain(hint: Any) -> bool:
    return hint in (int, float, bool) or get_origin(hint) in (Literal, Mapping)


def _check_several(name: str, value: Any, hint: Any, *, or_one: bool) -> None:
    (inner,) = get_args(hint)
    if or_one and isinstance(value, str | os.PathLike):
        return
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
        wanted = f"{_noun(inner)} or a list" if or_one else "a list"
        kind = type(value).__name__
        advice = path_advice(value) if takes_paths(inner) else None
        raise UsageError(f"{name} is of type {kind}, expected {wanted}.", advice)
    _check_items(name, value, inner)


def _check_items(name: str, values: Sequence[Any], hint: Any) -> None:
    """Check that items are texts, or paths; items of other types are not looked at."""
    parts = get_args(hint) or (hint,)
    if not all(part is str or takes_path(part) for part in parts):
        return
    kinds = (str, os.PathLike) if takes_paths(hint) else str
    for place, value in enumerate(values):
        if not isinstance(value, kinds):
            kind = type(value).__name__
            advice = path_advice(value) if takes_paths(hint) else None
            raise UsageError(f"{name}[{place}] is of type {kind}, expected {_noun(hint)}.", advice)


def path_advice(value: object) -> str | None:
    """Say how rows, a frame or a run become a path, which a model is asked about."""
    if isinstance(value, Mapping) or hasattr(value, "columns"):
        return 'Write rows to a file: polars.DataFrame(rows).write_ndjson("chats.jsonl").'
    return "Give its folder, run.path." if hasattr(value, "manifest") else None


def _check_tuple(name: str, value: Any, n: int) -> None:
    is_listed = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == n
    if not is_listed or not all(type(each) in (int, float) and each == each for each in value):
        raise UsageError(f"{name} is {value!r:.80}, expected {n} numbers.")


def _noun(hint: Any) -> str:
    return "a path" if takes_paths(hint) else "a text"


def value_type(hint: Any) -> type[Any]:
    """Return the type of an option's value: str of ``Literal["a", "b"] | None``."""
    if get_origin(hint) is Literal:
        return str
    origin: type[Any] | None = get_origin(hint)
    if origin in (Mapping, Sequence, tuple):
        return origin
    inner = next((part for part in get_args(hint) if part is not NoneType), None)
    found: type[Any] = hint if inner is None else value_type(inner)
    return found


def allowed_values(hint: Any) -> tuple[str, ...]:
    """Return the choices of an option: the values of its ``Literal``, empty without one."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(value for part in get_args(hint) for value in allowed_values(part))


def takes_paths(hint: Any) -> bool:
    """Tell whether an option's value may be a path."""
    return any(map(takes_path, get_args(hint)))


def takes_path(hint: Any) -> bool:
    """Tell whether one type is that of paths."""
    return get_origin(hint) is os.PathLike


def flag_name(name: str) -> str:
    """Return the command-line flag of an option: ``lex_weight`` is ``--lex-weight``."""
    return "--" + name.replace("_", "-")


def environment_name(name: str) -> str:
    """Return the environment variable of an option: ``FASTSCORE_LEX_WEIGHT``."""
    return "FASTSCORE_" + name.upper()


def describe_number(kind: type[Any], rules: Mapping[str, Any]) -> str:
    """Describe the numbers that an option takes: kind, bounds, unit and an example."""
    text = _bounds("an integer" if kind is int else "a number", rules)
    unit, example = rules.get("unit"), rules.get("example")
    text += f" ({unit})" if unit else ""
    return f"{text}, such as {example}" if isinstance(example, int | float) else text


def expected_number(value: float, rules: Mapping[str, Any], kind: type[Any] = float) -> str:
    """Return the expected value if a number is outside an option's bounds, else an empty text."""
    low, high = rules["minimum"], rules["maximum"]
    above, below = rules.get("above"), rules.get("below")
    outside = (low is not None and value < low) or (high is not None and value > high)
    outside |= (above is not None and value <= above) or (below is not None and value >= below)
    if above is not None and math.isinf(value):
        return _bounds("a finite number", rules)
    return describe_number(kind, rules) if outside or math.isnan(value) else ""


def _bounds(noun: str, rules: Mapping[str, Any]) -> str:
    if "above" in rules:
        below = f" and below {rules['below']}" if "below" in rules else ""
        return f"{noun} above {rules['above']}{below}"
    low, high = (
        f"{bound:,}" if isinstance(bound, int) else f"{bound:g}" if bound is not None else ""
        for bound in (rules["minimum"], rules["maximum"])
    )
    if low and high:
        return f"{noun} from {low} to {high}"
    if low:
        return f"{noun} of at least {low}"
    return f"{noun} of at most {high}" if high else noun


TEXT_BYTES = 16 << 20
"""Maximum size of configurations, layouts, lexicons and other TOML files."""
TABLE_BYTES = 1 << 30
"""Maximum size of catalogues, personas, annotations and aliases."""

_STEP = 1 << 20


def read_option_file(
    path: str | os.PathLike[str], most: int = TABLE_BYTES, *, takes_pipe: bool = False
) -> bytes:
    """Return a file's content; an `OSError` if it is no regular file, or larger than `most`.

    A pipe, which is read only once, is taken if `takes_pipe`. Waiting for it can be interrupted.
    """
    descriptor = open_descriptor(path, wait=False)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        is_pipe = takes_pipe and stat.S_ISFIFO(status.st_mode)
        if not (is_pipe or stat.S_ISREG(status.st_mode)):
            raise OSError(errno.EINVAL, "it is no regular file: write its content to one")
        if status.st_size > most:
            raise _too_large(most)
        parts, size = [], 0
        while part := _read(descriptor, is_pipe=is_pipe):
            size += len(part)
            if size > most:
                raise _too_large(most)
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _read(descriptor: int, *, is_pipe: bool) -> bytes:
    """Read some bytes, none at the end. For a pipe, wait until there are any."""
    raise_if_stopped()
    if is_pipe and hasattr(select, "poll"):
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        while not waiting.poll(1000 * POLL_SECONDS):
            raise_if_stopped()
    try:
        return os.read(descriptor, _STEP)
    except BlockingIOError:
        raise OSError(errno.EINVAL, "it is no file on disk and holds nothing now") from None


def _too_large(most: int) -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {most >> 20:,} MiB")


def read_named_file(
    path: str | os.PathLike[str], source: str, *, takes_pipe: bool = False
) -> bytes:
    """Return a file's content of at most `TEXT_BYTES`; a `UsageError` names the source."""
    try:
        return read_option_file(path, TEXT_BYTES, takes_pipe=takes_pipe)
    except OSError as error:
        raise UsageError(f"{source}: cannot be read: {error.strerror}.") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file, or a pipe, of at most `TEXT_BYTES`."""
    return parse_toml(read_named_file(path, str(path), takes_pipe=True), str(path))


MAP_TABLES = ("columns", "values")
CHECK_TABLE = "check"


def read_configuration(path: Path, suites: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tables of a configuration file, of runs and of checks, and its other values."""
    content = read_toml(path)
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    known = (*suites, *MAP_TABLES, CHECK_TABLE)
    for name in tables:
        if name not in known:
            raise UsageError(f"{path}: unknown table [{name}].", did_you_mean(name, known))
    return tables, {name: value for name, value in content.items() if name not in tables}


def parse_toml(content: bytes, name: str) -> dict[str, Any]:
    """Parse a TOML file's content; messages name the file."""
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{name}: not TOML: {error}.") from error
    except RecursionError as error:
        raise UsageError(f"{name}: nested too deeply, expected tables of plain values.") from error


_PATTERNS_CHARACTERS = 20_000


def _is_expression(pattern: str) -> bool:
    import polars as pl

    try:
        pl.select(pl.lit("").str.contains(pattern))
    except pl.exceptions.ComputeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class TomlTable:
    """A table of a TOML file. Values are checked as they are read: messages name file and key."""

    source: str  # what messages call the file
    key: str  # the table's own key with dots; empty for the whole file
    values: Mapping[str, Any]  # the table's values by name
    hint: str | None = None  # what an error about a value advises

    def fault(self, name: str, found: object, expected: str) -> UsageError:
        """Return the error that names a value and what is expected."""
        return UsageError(
            f"{self.source}: {self._full(name)} is {found!r:.80}, expected {expected}.", self.hint
        )

    def table(
        self, name: str, required: Collection[str], optional: Collection[str] = ()
    ) -> "TomlTable":
        """Return a table that has all required names, and no others but the optional ones."""
        table = self._inner(name, "a table")
        table.check_names(required, optional)
        return table

    def tables(
        self, name: str, required: Collection[str], optional: Collection[str] = ()
    ) -> "tuple[TomlTable, ...]":
        """Return a list of tables, each as by `table`."""
        found = self.values[name]
        if not isinstance(found, list):
            raise self.fault(name, found, "a list of tables")
        numbered = {f"{name}[{position}]": entry for position, entry in enumerate(found)}
        entries = replace(self, values=numbered)
        return tuple(entries.table(entry, required, optional) for entry in numbered)

    def flag(self, name: str) -> bool:
        """Return true or false; false where the name is not there."""
        found = self.values.get(name, False)
        if not isinstance(found, bool):
            raise self.fault(name, found, "true or false")
        return found

    def whole(self, name: str, least: int | None = None) -> int:
        """Return a whole number, of at least `least` if that is given."""
        found = self.values[name]
        if type(found) is not int or (least is not None and found < least):
            raise self.fault(name, found, "a whole number" + (f" from {least}" if least else ""))
        return found

    def rate(self, name: str) -> float:
        """Return a number from 0 to 1."""
        found = self.values[name]
        if type(found) not in (int, float) or not 0 <= found <= 1:
            raise self.fault(name, found, "a probability from 0 to 1")
        return float(found)

    def text(self, name: str) -> str:
        """Return a text that is not blank."""
        return self._text(name, self.values[name])

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of one text or more."""
        found = self.values[name]
        if not isinstance(found, list) or not found:
            raise self.fault(name, found, "a list of at least one text")
        return tuple(self._text(name, text) for text in found)

    def texts_by_name(self, name: str) -> dict[str, tuple[str, ...]]:
        """Return a table of lists of one text or more under any names, at least one."""
        inner = self._inner(name, "a table of lists of texts")
        if not inner.values:
            raise self.fault(name, inner.values, "a table of at least one list of texts")
        return {each: inner.texts(each) for each in inner.values}

    def choices(self, name: str, known: Collection[str]) -> tuple[str, ...]:
        """Return a list of some of the known words."""
        found = self.values[name]
        if not isinstance(found, list) or not found or not set(map(str, found)) <= set(known):
            raise self.fault(name, found, f"a list of some of {', '.join(known)}")
        return tuple(found)

    def word(self, name: str) -> str:
        """Return a word: text on one line that is not blank."""
        return self._word(name, self.values[name])

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list of words, which may be empty."""
        found = self.values[name]
        if not isinstance(found, list):
            raise self.fault(name, found, "a list of words")
        return tuple(self._word(name, word) for word in found)

    def patterns(self, name: str) -> tuple[str, ...]:
        """Return a list of one regular expression or more, in the syntax of polars."""
        found = self.values[name]
        if not isinstance(found, list) or not found:
            raise self.fault(name, found, "a list of at least one pattern")
        for pattern in found:
            if not isinstance(pattern, str) or not pattern.strip():
                raise self.fault(name, pattern, "a pattern that is not blank")
        # what is longer takes minutes to compile, or more memory than the expression may have
        if (length := sum(map(len, found))) > _PATTERNS_CHARACTERS:
            raise UsageError(
                f"{self.source}: {self._full(name)} holds {length:,} characters, expected patterns "
                f"of at most {_PATTERNS_CHARACTERS:,} together.",
                self.hint,
            )
        for pattern in found:
            if not _is_expression(pattern):
                raise self.fault(name, pattern, "a regular expression")
        if not _is_expression("(?i)" + "|".join(found)):
            raise self.fault(name, found, "patterns that are one regular expression together")
        return tuple(found)

    def word_by_name(self, name: str) -> dict[str, str]:
        """Return a table of words under any names."""
        inner = self._inner(name, "a table of words")
        return {each: inner.word(each) for each in inner.values}

    def words_by_name(
        self, name: str, known: Collection[str] | None = None
    ) -> dict[str, tuple[str, ...]]:
        """Return a table of lists of words under any names, or some of the known ones."""
        inner = self._inner(name, "a table of lists of words")
        if known is not None:
            inner.check_names((), known)
        return {each: inner.words(each) for each in inner.values}

    def check_names(self, required: Collection[str], optional: Collection[str] = ()) -> None:
        """Refuse a table with another name than these, or without a required one."""
        known = (*required, *optional)
        for name in self.values:
            if name not in known:
                raise UsageError(
                    f"{self.source}: unknown key {self._full(name)}.", did_you_mean(name, known)
                )
        for name in required:
            if name not in self.values:
                raise UsageError(f"{self.source}: {self._full(name)} is missing.")

    def _full(self, name: str) -> str:
        return f"{self.key}.{name}" if self.key else name

    def _inner(self, name: str, expected: str) -> "TomlTable":
        found = self.values[name]
        if not isinstance(found, dict):
            raise self.fault(name, found, expected)
        return replace(self, key=self._full(name), values=found)

    def _text(self, name: str, found: object) -> str:
        if not isinstance(found, str) or not found.strip():
            raise self.fault(name, found, "a text that is not blank")
        return found

    def _word(self, name: str, found: object) -> str:
        # texts that are searched as one are joined by line ends, which no word may bridge
        if not isinstance(found, str) or not found.strip() or "\n" in found:
            raise self.fault(name, found, "a word that is not blank, on one line")
        return found


_LEXICON = "lexicon.toml"


def lexicon_content(path: str, package: str) -> bytes:
    """Return the bytes of a lexicon."""
    return read_named_file(path, f"lexicon {path}") if path else _built_in(package)


@cache
def _built_in(package: str) -> bytes:
    return files(package).joinpath(_LEXICON).read_bytes()


def parse_lexicon(path: str, content: bytes, required: Collection[str]) -> TomlTable:
    """Parse what `lexicon_content` returned for a path."""
    source = path or "the built-in lexicon"
    hint = f"The built-in {_LEXICON} shows the layout."
    table = TomlTable(source, "", parse_toml(content, source), hint)
    table.check_names(required)
    return table
