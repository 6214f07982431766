"""Metrics and suites of users: decorated functions that become declarations like any other."""

import hashlib
import importlib.util
import inspect
import pickle
import re
import textwrap
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass, replace
from functools import partial
from pathlib import Path
from types import CodeType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

import numpy as np
import polars as pl

from fastscore.errors import UsageError, counted, did_you_mean, names_arguments
from fastscore.settings.extras import entry_points, load_entry
from fastscore.suites.base import Events, SignedFunction, Suite, Summarised
from fastscore.suites.declarations import (
    ALL_METRICS,
    NULL_REASONS,
    NULL_REASONS_DTYPE,
    Column,
    ColumnKind,
    Design,
    Formula,
    Metric,
    Needed,
    OutputColumn,
    Scale,
    Source,
    Table,
    empty_rejects,
)
from fastscore.suites.grouping import factorize, first_of_each
from fastscore.suites.identity import IDENTITY, identify, refuse_blank_ids
from fastscore.suites.registry import declare
from fastscore.suites.showing import EvidenceRows

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

GROUP = "fastscore.metrics"
ROW = "dialogue_row"
"""The column of every input that numbers the dialogues, and of every result."""
REASON = "reason"
DIALOGUES = "dialogues"
RESERVED = frozenset({ROW, REASON, "file", "line", "label", "name", "row"})
"""Names that own metrics and the columns of own suites do not have: tables use them."""
DEFAULT_REASON = "not_applicable"
LARGEST = 1e100
"""The largest value of an own metric: sums of squares of such values are finite."""
NULL_RULE = "not_applicable where the function returns null"
_PLAIN, _PLAIN_SCALE = ("id", "name", "table", "source"), ("better", "minimum", "maximum", "unit")
"""The fields of an own metric and its scale that a manifest has, beside its words and its role."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

Better = Literal["higher", "lower", "neither"]
Function = Callable[..., "pl.LazyFrame | pl.DataFrame"]
Frames = Mapping[str, pl.DataFrame]


@dataclass(frozen=True, eq=False)
class OwnMetric:
    """A metric that a function computes, of a suite that others declared."""

    suite: str  # the suite's name
    metric: Metric  # the declaration
    # the tables of the suite, or frames of its events, that the function takes
    inputs: tuple[str, ...]
    code: str  # hash of the function's source
    # the function. None in a run that was opened: its values are in the tables.
    function: Function | None = field(default=None, repr=False)

    def __call__(self, *frames: pl.LazyFrame, **named: pl.LazyFrame) -> Any:
        """Call the function."""
        assert self.function is not None
        return self.function(*frames, **named)

    def __reduce__(self) -> Any:
        """Send the function itself to workers: they cannot import a notebook or a file."""
        try:
            import cloudpickle  # type: ignore[import-untyped]
        except ImportError:  # Ray has its own copy
            from ray import cloudpickle
        return _restored, (self.to_json(), self.suite, cloudpickle.dumps(self.function))

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as plain values, for the manifest."""
        metric = self.metric
        declared = {name: getattr(metric, name) for name in _PLAIN}
        scale = {name: getattr(metric.scale, name) for name in _PLAIN_SCALE}
        texts = {"formula": metric.formula.text, "null_rule": metric.null_rule}
        flags = {"headline": metric.role == "headline"}
        return {
            "metric": declared | scale | texts | flags,
            "inputs": list(self.inputs),
            "code": self.code,
        }

    @classmethod
    def from_json(cls, suite: str, content: Mapping[str, Any]) -> "OwnMetric":
        """Return the declaration that a manifest contains."""
        declared = content["metric"]
        metric = Metric(
            **{name: declared[name] for name in _PLAIN},
            formula=Formula(text=declared["formula"]),
            scale=Scale(**{name: declared[name] for name in _PLAIN_SCALE}),
            null_when=(declared["null_rule"],),
            role="headline" if declared["headline"] else "",
        )
        return cls(suite, metric, tuple(content["inputs"]), content["code"])


def _restored(content: Mapping[str, Any], suite: str, function: bytes) -> OwnMetric:
    return replace(OwnMetric.from_json(suite, content), function=pickle.loads(function))


@names_arguments
def metric(
    *,
    suite: str,
    range: tuple[float | None, float | None],
    better: Better,
    name: str = "",
    unit: str = "1",
    null_rule: str = NULL_RULE,
    headline: bool = False,
) -> Callable[[Function], OwnMetric]:
    """Make a metric of a suite from a function.

    The function's parameters name tables of the suite, or frames of its events. Each comes as a
    LazyFrame with the column ``dialogue_row``. The function returns one row for each
    ``dialogue_row`` of table ``dialogues``: this column, the value and, if it likes, ``reason``.

    Parameters
    ----------
    suite
        The suite's name.
    range
        The smallest and largest value. None: unbounded.
    better
        Which direction is better.
    name
        The full name. Default: the function's name in words.
    unit
        The unit. ``"1"`` for a ratio.
    null_rule
        When the value is null, and with which reason.
    headline
        Whether findings are about the metric.

    Raises
    ------
    UsageError
        The function has no docstring or no source.

    Examples
    --------
    >>> @fastscore.metric(suite="score_dialogue", range=(0, None), better="neither")
    ... def n_steps(dialogues: pl.LazyFrame, steps: pl.LazyFrame) -> pl.LazyFrame:
    ...     '''Number of steps.'''
    ...     counts = steps.group_by("dialogue_row").agg(value=pl.len())
    ...     return dialogues.select("dialogue_row").join(counts, on="dialogue_row", how="left")
    >>> options = fastscore.ScoreDialogue(lex_weight=1.0)
    >>> fastscore.score("logs", options, metrics=[n_steps]).tables["dialogues"]["n_steps"]
    """

    def declare(function: Function) -> OwnMetric:
        id = function.__name__
        declared = declared_metric(
            function, id, range=range, better=better, name=name, unit=unit, null_rule=null_rule
        )
        inputs = tuple(inspect.signature(function).parameters)
        declared = replace(declared, role="headline" if headline else "")
        return OwnMetric(suite, declared, inputs, source_hash(function), function)

    return declare


def declared_metric(
    function: Function,
    id: str,
    *,
    range: tuple[float | None, float | None],
    better: Better,
    name: str = "",
    unit: str = "1",
    null_rule: str = NULL_RULE,
    formula: str = "",
) -> Metric:
    """Declare a metric that a function computes. Its docstring is the formula by default."""
    if not id.isidentifier() or id in RESERVED:
        raise UsageError(
            f"Metric {id!r}: expected a name such as of a function, and none of "
            f"{', '.join(sorted(RESERVED))}."
        )
    if better not in ("higher", "lower", "neither"):
        raise UsageError(
            f"Metric {id!r}: better is {better!r}, expected 'higher', 'lower' or 'neither'."
        )
    if not isinstance(range, tuple) or len(range) != 2:
        raise UsageError(f"Metric {id!r}: range is {range!r}, expected two numbers or None.")
    low, high = range
    text = formula or inspect.getdoc(function)
    if not text:
        raise UsageError(f"{function.__name__!r} has no docstring.", "Describe what it computes.")
    if low is not None and high is not None and not low < high:
        raise UsageError(f"Metric {id!r}: range is {range}, expected a smaller number first.")
    bounds = [bound for bound in range if bound is not None]
    if any(abs(bound) > LARGEST for bound in bounds) or (
        len(bounds) == 2 and bounds[1] - bounds[0] < 1 / LARGEST
    ):
        raise UsageError(
            f"Metric {id!r}: range is {range}, expected numbers from {-LARGEST:g} to {LARGEST:g} "
            f"that differ by {1 / LARGEST:g} at least.",
            "Scale the values.",
        )
    return Metric(
        id=id,
        name=name or id.replace("_", " ").capitalize(),
        table=DIALOGUES,
        formula=Formula(text=" ".join(text.split())),
        scale=Scale(
            better,
            minimum=None if low is None else float(low),
            maximum=None if high is None else float(high),
            unit=unit,
        ),
        null_when=(null_rule,),
        source=f"{Path(function.__code__.co_filename).name}:{function.__name__}",
    )


def source_hash(function: Function) -> str:
    """Hash a function's source, and the code and constants of its module that it uses."""
    text = _written(function, function.__module__, set())
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


_PARTS: Mapping[type, Callable[[Any], object]] = {
    np.ndarray: lambda array: [str(array.dtype), array.shape, array.tolist()],
    pl.Expr: lambda expression: expression.meta.serialize(),
    re.Pattern: lambda pattern: [pattern.pattern, pattern.flags],
    partial: lambda call: [call.func, call.args, call.keywords],
    OwnMetric: lambda metric: metric.function,
}
"""What is all of a value whose repr is cut or has an address."""


def _written(value: Any, module: str = "", seen: set[int] | frozenset[int] = frozenset()) -> str:
    """Write a value alike in every process, and whole: code of the module as its source, once."""

    def write(part: Any) -> str:
        return _written(part, module, seen)

    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{write(a)}: {write(b)}' for a, b in value.items()))}}}"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(write, value)))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write, value))}]"
    for kind, parts in _PARTS.items():
        if isinstance(value, kind):
            return write(parts(value))
    if hasattr(type(value), "__arrow_c_stream__"):  # frames and columns
        frame = pl.DataFrame(value)
        return f"{frame.schema} {write(frame.rows())}"
    if inspect.ismodule(value):
        return value.__name__
    value = inspect.unwrap(value)
    is_code = inspect.isfunction(value) or inspect.isclass(value)
    if is_code and value.__module__ == module:
        if id(value) in seen:
            return str(value.__name__)
        seen |= {id(value)}
        return write(_used_by(value) if inspect.isfunction(value) else _members(value))
    if callable(value) and isinstance(getattr(value, "__name__", None), str):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    text, code = repr(value), write(type(value)) if type(value).__module__ == module else ""
    if _ADDRESS.search(text) and hasattr(value, "__dict__"):  # it does not show the state
        text = f"{type(value).__name__} {write(vars(value))}"
    return f"{code}{_ADDRESS.sub('', text)}"


def _used_by(function: Any) -> list[Any]:
    """Return a function's source, its defaults, and what its names stand for."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except OSError as error:
        raise UsageError(
            f"The source of {function.__name__!r} cannot be read, and the signature needs it.",
            "Define the function in a file or a notebook.",
        ) from error
    used = {*function.__code__.co_freevars}
    codes: list[CodeType] = [function.__code__]
    while codes:
        code = codes.pop()
        used.update(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    known = function.__globals__ | inspect.getclosurevars(function).nonlocals
    named = [(name, known[name]) for name in sorted(used) if name in known]
    return [source, function.__defaults__, function.__kwdefaults__, named]


def _members(kind: type) -> list[Any]:
    """Return a class's bases and its members, without those that Python adds."""
    members: list[Any] = [kind.__bases__]
    for name, each in sorted(vars(kind).items()):
        member = each.fget if isinstance(each, property) else inspect.unwrap(each)
        if inspect.isfunction(member):
            is_written = member.__code__.co_filename != "<string>"  # by a dataclass
        else:
            is_written = not name.startswith("__")
        members += [(name, member)] if is_written else []
    return members


def load_metrics(given: Sequence["str | OwnMetric"], suite: str) -> tuple[OwnMetric, ...]:
    """Return own metrics of a suite: decorated functions, files of them, or entry points' names."""
    found: list[OwnMetric] = []
    for one in given:
        if isinstance(one, OwnMetric):
            metrics = [one]
        elif isinstance(one, str):
            metrics = _metrics_of_file(Path(one)) if one.endswith(".py") else [_installed(one)]
        else:
            raise UsageError(
                f"A metric is of type {type(one).__name__}.",
                "Decorate a function with @fastscore.metric, or name a file or an entry point.",
            )
        chosen = [metric for metric in metrics if metric.suite == suite]
        if not chosen:
            names = ", ".join(f"{each.metric.id} ({each.suite})" for each in metrics) or "none"
            what = one.metric.id if isinstance(one, OwnMetric) else one
            raise UsageError(f"{what}: no metric of suite {suite!r}; found: {names}.")
        found += chosen
    return tuple(found)


def _metrics_of_file(path: Path) -> list[OwnMetric]:
    # not in sys.modules: its functions then travel to workers by value
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError(f"metrics {path}: no such Python file.")
    module = importlib.util.module_from_spec(spec)
    try:
        # not by `exec_module`: kept bytecode hides an edit of the same second and length
        exec(compile(path.read_bytes(), path, "exec"), vars(module))
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"metrics {path}: {_described(error, path)}.") from error
    return [value for value in vars(module).values() if isinstance(value, OwnMetric)]


def _installed(name: str) -> OwnMetric:
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in entries:
        hint = (
            did_you_mean(name, entries)
            if entries
            else "These are metrics that you add: functions, files (.py) or installed ones. All "
            "metrics of the suite are scored anyway."
        )
        raise UsageError(f"metrics {name}: no installed metric of this name.", hint)
    found = load_entry(entries[name], "metric")
    if not isinstance(found, OwnMetric):
        raise UsageError(
            f"metrics {name}: {entries[name].value} is a {type(found).__name__}, expected a "
            "function that is decorated with @fastscore.metric."
        )
    return found


def with_metrics(suite: Suite, own: Sequence[OwnMetric]) -> Suite:
    """Return a suite with more metrics: columns of its table ``dialogues``."""
    if not own:
        return suite
    taken = {column for table in suite.tables for column in table.schema}
    for one in own:
        id = one.metric.id
        if id in taken:
            raise UsageError(
                f"Metric {id!r}: suite {suite.name!r} has a column of this name.",
                "Rename the function.",
            )
        taken.add(id)
    columns = [output_column(one.metric) for one in own]
    metrics = [
        replace(
            one.metric,
            evidence=tuple(EvidenceRows(table=name) for name in one.inputs),
            derivation=f"rows of {' and '.join(one.inputs)}",
        )
        for one in own
    ]
    changes: dict[str, Any] = {
        "tables": tuple(
            replace(table, columns=(*table.columns, *columns)) if table.name == DIALOGUES else table
            for table in suite.tables
        ),
        "metrics": (*suite.metrics, *metrics),
        "score": SignedFunction(
            partial(_score, suite, tuple(own)),
            (*suite.code, *(f"{one.metric.id}:{one.code}" for one in own)),
        ),
    }
    if suite.summarise is not None:
        more = Summarised(metrics=[one.metric for one in own], groups=suite.design.groups)
        changes["summarise"] = lambda *asked: [*suite.summarised(*asked), more]
    return Suite(**(vars(suite) | changes))


def output_column(metric: Metric) -> OutputColumn:
    """Return the column of table ``dialogues`` that contains a metric."""
    return OutputColumn(metric.id, pl.Float64(), metric.name, metric=metric.id, nullable=True)


def _score(
    suite: Suite, own: Sequence[OwnMetric], events: Events, vectors: "VectorView", options: Any
) -> dict[str, pl.DataFrame]:
    tables = suite.score(events, vectors, options)
    scored = tables[DIALOGUES]
    for one in own:
        if one.function is None:  # of an opened run: the values are in its tables
            continue
        inputs = {name: _input(suite, one, name, tables, events) for name in one.inputs}
        result = result_of_call(one.metric.id, one.function, inputs)
        scored = with_values(scored, tables[DIALOGUES], result, (one.metric,))
    return {**tables, DIALOGUES: scored}


def _input(suite: Suite, one: OwnMetric, name: str, tables: Frames, events: Events) -> pl.LazyFrame:
    """Return a table, or a frame of the events, with the rows of their dialogues."""
    dialogues = tables[DIALOGUES].with_row_index(ROW).with_columns(pl.col(ROW).cast(pl.Int64))
    if name == DIALOGUES:
        return dialogues.lazy()
    for table in suite.tables:
        if table.name == name:
            rows = dialogues.select(ROW, "dialogue").lazy()
            return tables[name].lazy().join(rows, on="dialogue", how="left", maintain_order="left")
    frame = events.frames.get(name)
    if frame is None or ROW not in frame.columns:
        numbered = [each for each, found in events.frames.items() if ROW in found.columns]
        known = sorted({*tables, *numbered})
        raise UsageError(
            f"Metric {one.metric.id!r}: parameter {name!r} is no table of {suite.name} and no "
            f"frame of its events with {ROW!r}.",
            did_you_mean(name, known),
        )
    return frame.lazy()


def result_of_call(what: str, function: Function, inputs: Mapping[str, Any]) -> pl.DataFrame:
    """Call a user's function."""
    try:
        found: Any = function(**inputs)
        if isinstance(found, pl.LazyFrame | pl.DataFrame):
            return found.lazy().collect()
    except (Exception, SystemExit) as error:
        path = Path(function.__code__.co_filename)
        raise UsageError(f"{what!r} ({path.name}): {_described(error, path)}.") from error
    library = type(found).__module__.partition(".")[0]
    kind = f"a {library} {type(found).__name__}" if library != "builtins" else repr(found)[:40]
    raise UsageError(f"{what!r} returned {kind}, expected a polars frame.")


def _described(error: BaseException, path: Path) -> str:
    """Describe an exception of a user's file in one line: where it was raised, and what it is."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    line = error.lineno if isinstance(error, SyntaxError) else next(reversed(lines), None)
    place = "" if line is None else f"line {line}, "
    message = str(error).strip().splitlines()
    return f"{place}{type(error).__name__}{': ' + message[0] if message else ''}".rstrip(".")


def with_values(
    scored: pl.DataFrame, dialogues: pl.DataFrame, result: pl.DataFrame, metrics: Sequence[Metric]
) -> pl.DataFrame:
    """Append a function's values to the rows of their dialogues, and reasons for its nulls."""
    what = metrics[0].id if len(metrics) == 1 else ", ".join(one.id for one in metrics)
    found = ", ".join(result.columns)
    values = [name for name in result.columns if name not in (ROW, REASON)]
    if len(metrics) == 1 and len(values) == 1:
        result = result.rename({values[0]: metrics[0].id})
        values = [metrics[0].id]
    if ROW not in result.columns or sorted(values) != sorted(one.id for one in metrics):
        raise UsageError(
            f"{what!r} returned columns {found}; expected {ROW}, "
            f"{', '.join(one.id for one in metrics)} and, if values are null, {REASON}."
        )
    result = _one_row_each(what, result, dialogues)
    given = pl.col(REASON) if REASON in result.columns else pl.lit(None, pl.String)
    reasons = result.select(given.fill_null(DEFAULT_REASON)).to_series()
    unknown = reasons.filter(~reasons.is_in(NULL_REASONS))
    if len(unknown):
        raise UsageError(
            f"{what!r} returned reason {unknown[0]!r}; expected one of {', '.join(NULL_REASONS)}."
        )
    reason = pl.lit(reasons.cast(pl.Enum(NULL_REASONS)))
    for one in metrics:
        column = _checked_values(one, result[one.id], dialogues)
        entry = pl.struct(metric=pl.lit(one.id), reason=reason)
        listed = pl.col("null_reasons").fill_null([]).list.concat(pl.concat_list(entry))
        listed = pl.when(pl.lit(column.is_null())).then(listed).otherwise("null_reasons")
        scored = scored.with_columns(column, null_reasons=listed.cast(NULL_REASONS_DTYPE))
    return scored


def _one_row_each(what: str, result: pl.DataFrame, dialogues: pl.DataFrame) -> pl.DataFrame:
    """Sort a result by dialogue; refuse dialogues that are missing, unknown or there twice."""
    rows = result[ROW]
    if not rows.dtype.is_integer():
        raise UsageError(f"{what!r} returned {ROW} as {rows.dtype}, expected whole numbers.")
    counts = f"{counted(result.height, 'rows')} for {counted(dialogues.height, 'dialogues')}"
    twice = rows.filter(rows.is_duplicated())
    if len(twice):
        raise UsageError(
            f"{what!r} returned dialogue {_name(dialogues, twice[0])} more than once ({counts}).",
            f"Group by {ROW}.",
        )
    numbers = pl.Series(range(dialogues.height), dtype=pl.Int64)
    missing = numbers.filter(~numbers.is_in(rows.cast(pl.Int64).to_list()))
    if len(missing):
        raise UsageError(
            f"{what!r} returned no row for dialogue {_name(dialogues, missing[0])} ({counts}).",
            f"Filter in the aggregate: rows.group_by({ROW!r}).agg(v=column.filter(...).mean()). "
            f"A metric of another table joins to {ROW} of {DIALOGUES!r} from the left.",
        )
    if result.height > dialogues.height:
        raise UsageError(f"{what!r} returned {counts}.", f"Each {ROW} is one of the inputs'.")
    return result.sort(ROW).rechunk()  # literals of several chunks do not broadcast in polars


def _checked_values(metric: Metric, values: pl.Series, dialogues: pl.DataFrame) -> pl.Series:
    """Return values as Float64; refuse other types, and values outside the metric's range."""
    if not (values.dtype.is_numeric() or values.dtype in (pl.Boolean, pl.Null)):
        raise UsageError(f"{metric.id!r} returned values of type {values.dtype}, expected numbers.")
    column = values.cast(pl.Float64).alias(metric.id)
    low = -LARGEST if metric.scale.minimum is None else metric.scale.minimum
    high = LARGEST if metric.scale.maximum is None else metric.scale.maximum
    bad = (~column.is_finite() | (column < low) | (column > high)).fill_null(False)
    if bad.any():
        row = int(bad.arg_true()[0])
        raise UsageError(
            f"{metric.id!r} returned {column[row]:g} for dialogue {_name(dialogues, row)}; "
            f"expected a number from {low:g} to {high:g}."
        )
    return column


def _name(dialogues: pl.DataFrame, row: int) -> str:
    found = dialogues.row(row, named=True)
    place = ":".join(str(found[name]) for name in ("file", "line") if found.get(name) is not None)
    return f"{found['dialogue']!r} ({place})"


_KINDS: dict[Any, ColumnKind] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "json",
    dict: "json",
}
_OR_NULL: dict[Any, ColumnKind] = {kind | None: name for kind, name in _KINDS.items()}
_FIRST = (
    OutputColumn("file", pl.String(), "The log."),
    OutputColumn("line", pl.Int64(), "The first line."),
    OutputColumn("dialogue", pl.String(), "The dialogue's id."),
)
_REASONS = OutputColumn("null_reasons", NULL_REASONS_DTYPE, "Why metrics are null.")


class MetricFacts(TypedDict, total=False):
    """How a metric of `fastscore.suite` is declared. `fastscore.metric` describes the fields."""

    range: Required[tuple[float | None, float | None]]
    better: Required[Better]
    name: str
    unit: str
    null_rule: str
    formula: str


_EXAMPLES = {
    "columns": "{'text': str}",
    "metrics": "{'words': {'range': (0, 1), 'better': 'higher'}}",
}


@names_arguments
def suite(
    *,
    columns: Mapping[str, type | UnionType | Column],
    metrics: Mapping[str, MetricFacts],
    dialogue: str | Sequence[str] = "dialogue",
    repeat: str = "",
    version: int = 1,
    options: type[Any] | None = None,
) -> Callable[[Function], Suite]:
    """Make a suite from a function.

    The function takes ``rows``, a LazyFrame with ``file``, ``line``, the columns and
    ``dialogue_row``, and, if it likes, ``options``. It returns one row for each ``dialogue_row``:
    this column, one for each metric and, if it likes, ``reason``.

    Parameters
    ----------
    columns
        The other columns of a log by name: ``str``, ``int``, ``float``, ``bool``, or ``list`` or
        ``dict`` as JSON text, or a `Column`. A row without a value is rejected. With ``str | None``
        and so on it is read as null.
    metrics
        The metrics by name.
    dialogue
        The column with the dialogue's id. Rows without an id belong to the dialogue of their file,
        elements of an array (``turns[]``) to the dialogue of their line.
        Or several columns that name a dialogue together, such as task and trial. They are columns
        of the table ``dialogues`` too, so that `compare` takes them.
    repeat
        The one of those columns that tells repeats of a task apart: the others name the task, which
        is the pair of comparisons and the unit of intervals.
    version
        Rises whenever a number may change. The signature also has a hash of the source.
    options
        A frozen dataclass of `fastscore.settings.options.option` fields.

    Raises
    ------
    UsageError
        The function has no docstring, no source or other parameters, or a column has another type.

    Examples
    --------
    >>> @fastscore.suite(
    ...     columns={"text": str},
    ...     metrics={"mean_length": {"range": (0, None), "better": "neither"}},
    ... )
    ... def text_length(rows: pl.LazyFrame) -> pl.LazyFrame:
    ...     '''Length of texts.'''
    ...     length = pl.col("text").str.len_chars().mean()
    ...     return rows.group_by("dialogue_row").agg(mean_length=length)
    >>> turns = [{"dialogue": "a", "text": "one"}, {"dialogue": "a", "text": "three"}]
    >>> fastscore.score(turns, text_length).tables["dialogues"]["mean_length"].item()
    4.0
    """
    for name, given in (("columns", columns), ("metrics", metrics)):
        if not isinstance(given, Mapping):
            kind = type(given).__name__
            raise UsageError(f"{name} is of type {kind}, expected a dict: {_EXAMPLES[name]}.")
    reserved = sorted({"file", "line", ROW} & {*columns})
    if reserved:
        raise UsageError(
            f"Column {reserved[0]!r}: every suite has a column of this name.",
            f"Choose another name. For a log's own key, score with "
            f"columns={{NAME: {reserved[0]!r}}}.",
        )
    for id, facts in metrics.items():
        if not isinstance(facts, Mapping) or not MetricFacts.__required_keys__ <= {*facts}:
            raise UsageError(
                f"Metric {id!r} is {facts!r:.60}, expected a dict with range and better.",
                f"For example: metrics={_EXAMPLES['metrics']}.",
            )
        for fact in facts:
            if fact not in MetricFacts.__annotations__:
                advice = did_you_mean(str(fact), MetricFacts.__annotations__)
                raise UsageError(f"Metric {id!r} has an unknown fact {fact!r}.", advice)

    def declare_function(function: Function) -> Suite:
        name, text = function.__name__, inspect.getdoc(function)
        taken = list(inspect.signature(function).parameters)
        if not text:
            raise UsageError(f"{name!r} has no docstring.", "Describe what it computes.")
        if taken not in (["rows"], ["rows", "options"]):
            raise UsageError(f"{name!r} takes {', '.join(taken)}; expected rows or rows, options.")
        declared = tuple(
            replace(declared_metric(function, id, **facts), derivation="lines of the log")
            for id, facts in metrics.items()
        )
        key = (dialogue,) if isinstance(dialogue, str) else tuple(dialogue)
        if repeat and (repeat not in key or len(key) < 2):
            raise UsageError(
                f"Suite {name!r}: repeat {repeat!r} is not one of several columns that name a "
                f"dialogue: {', '.join(key)}."
            )
        several = len(key) > 1
        ids = {
            column: replace(_column(name, column, str, required=several), accepts=("integer",))
            for column in key
        }
        read = [
            _column(name, column, kind, required=column not in key or several)
            for column, kind in (ids | dict(columns)).items()
        ]
        labels = [_label(name, column) for column in read if column.name in key and several]
        table = Table(
            name=DIALOGUES,
            grain="a dialogue",
            columns=(*_FIRST, *labels, *map(output_column, declared), _REASONS),
        )
        names = [column.name for column in table.columns]
        twice = [column for column in dict.fromkeys(names) if names.count(column) > 1]
        if twice:
            raise UsageError(
                f"Suite {name!r}: table {DIALOGUES} would have two columns {twice[0]!r}.",
                "Choose another name. For a log's own key, score with "
                f"columns={{NAME: {twice[0]!r}}}.",
            )
        source = Source(
            columns=tuple(read),
            dialogue_key=key,
            variants=tuple((column, column) for column in key[1:]),
        )
        made = Suite(
            name=name,
            package=function.__module__,
            title=text.splitlines()[0].rstrip("."),
            version=version,
            options=options or make_dataclass(name, [], namespace={"suite": name}, frozen=True),
            source=source,
            tables=(table,),
            metrics=declared,
            design=Design(pair=key).repeated_by(repeat) if repeat else Design(),
            read=partial(_read, source),
            score=SignedFunction(
                partial(_score_by_function, function, table, declared),
                (f"{name}:{source_hash(function)}",),
            ),
        )
        declare(made)
        return made

    return declare_function


def _column(
    suite_name: str, name: str, kind: "type | UnionType | Column", *, required: bool
) -> Column:
    if isinstance(kind, Column):
        return kind
    if kind in _OR_NULL:
        return Column(name, _OR_NULL[kind], needed=Needed(ALL_METRICS))
    if kind not in _KINDS:
        raise UsageError(
            f"Suite {suite_name!r}: column {name!r} is {kind!r}, expected one of "
            f"{', '.join(known.__name__ for known in _KINDS)}, one of these with | None, or a "
            "Column."
        )
    needed = ALL_METRICS if required else ()
    return Column(
        name, _KINDS[kind], otherwise="required" if required else "reject", needed=Needed(needed)
    )


_LABELS: dict[ColumnKind, pl.DataType] = {"text": pl.String(), "integer": pl.Int64()}


def _label(suite_name: str, column: Column) -> OutputColumn:
    """Return a column that names dialogues beside others, as table ``dialogues`` has it."""
    if column.kind not in _LABELS:
        raise UsageError(
            f"Suite {suite_name!r}: column {column.name!r} is of kind {column.kind}, expected str "
            "or int in a column that names dialogues."
        )
    return OutputColumn(
        column.name, _LABELS[column.kind], "One of the columns that name the dialogue."
    )


def _read(source: Source, raw: pl.DataFrame, options: Any) -> Events:
    rows = identify(raw, source)
    number, _ = factorize(rows[IDENTITY])
    refuse_blank_ids(rows[first_of_each(number)], source.dialogue_key[0])
    numbered = rows.with_columns(pl.col(IDENTITY).alias("dialogue"), pl.Series(ROW, number))
    return Events({"rows": numbered.drop(IDENTITY)}, empty_rejects())


def _score_by_function(
    function: Function,
    table: Table,
    metrics: tuple[Metric, ...],
    events: Events,
    vectors: "VectorView",
    options: Any,
) -> dict[str, pl.DataFrame]:
    rows = events.frames["rows"]
    named = [one.name for one in table.columns if one.name in rows.columns and not one.metric]
    dialogues = rows.group_by(ROW, maintain_order=True).agg(pl.col(named).first()).drop(ROW)
    given = {"rows": rows.lazy(), "options": options}
    taken = {name: given[name] for name in inspect.signature(function).parameters}
    result = result_of_call(function.__name__, function, taken)
    scored = dialogues.with_columns(null_reasons=pl.lit([], dtype=NULL_REASONS_DTYPE))
    return {DIALOGUES: with_values(scored, dialogues, result, metrics).select(*table.schema)}
