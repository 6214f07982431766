"""What a suite declares: data, no behaviour.

A suite names the columns that it reads (`Source`), the options that it takes (a frozen dataclass
whose fields come from `option`), the tables that it writes (`Table`) and the metrics in them
(`Metric`). Flags, validation, documentation, Parquet metadata and signatures derive from these.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cache
from itertools import groupby
from typing import Any, Literal, get_args

import polars as pl

from fastscore.errors import UsageError
from fastscore.suites.chats import ChatLayout, ChatRows
from fastscore.suites.formulas import plain_formula
from fastscore.suites.showing import EvidenceRows, Row

ColumnKind = Literal["text", "integer", "number", "boolean", "json"]
Coercion = Literal["boolean", "integer", "number", "string", "falsy"]
NullReason = Literal["not_applicable", "missing_input", "bad_input", "no_vector"]
LABEL_TABLE = "dialogues"
"""The table with the labels."""
ALL_METRICS = ("all",)
"""In `Needed.by`: all metrics of a suite, or the ones that it is known for."""

NULL_REASONS: tuple[NullReason, ...] = ("not_applicable", "missing_input", "bad_input", "no_vector")

RejectReason = Literal[
    "not_json",
    "not_an_object",
    "not_utf8",
    "nested_too_deeply",
    "line_too_long",
    "bad_quoting",
    "wrong_cell_count",
    "no_header",
    "missing_column",
    "duplicate_column",
    "lone_surrogate",
    "wrong_type",
    "missing_field",
    "out_of_range",
    "unpaired_turn",
    "truncated_compression",
    "damaged_compression",
    "broken_document",
    "text_too_long",
]

REJECT_REASONS: tuple[RejectReason, ...] = get_args(RejectReason)
"""All reasons for which a line, a row or a part of one is rejected, one word for one fault."""
UNREAD_REST = ("truncated_compression", "damaged_compression", "broken_document")
"""The reasons after which nothing more of a file is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """The words of a text column that mean something to a suite."""

    # all of them; one that ends in ``*`` stands for all that begin so. Others are counted while
    # rows are scored, and named. Empty: any word.
    known: tuple[str, ...] = ()
    in_any_case: bool = False  # whether the suite takes these words stripped and in any case
    needed: tuple[str, ...] = ()  # words without each of which little can be scored
    # columns and words of which at least one must be in a row, or nothing can be scored: this
    # column's, or another's that serves as well, with ``*`` as in `known`
    any_needed: tuple[tuple[str, str], ...] = ()

    def includes(self, word: str) -> bool:
        """Tell whether a word means something to the suite."""
        plain = word.strip().casefold() if self.in_any_case else word
        begins = tuple(each[:-1] for each in self.known if each.endswith("*"))
        return not self.known or plain in self.known or (begins != () and plain.startswith(begins))


ANY_WORDS = Vocabulary()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """Where a log has a column, and what its words mean there."""

    # where the value is, in place of the name: a key, or keys joined by dots that lead into nested
    # objects. Of an item, from its object on.
    path: str = ""
    # values of a text column that are replaced: as found, as the suite knows them. An object of an
    # array in which the empty word is meant is left out.
    words: tuple[tuple[str, str], ...] = ()
    # the value of rows that have none, from the name of a folder of their file
    default: str | None = None


_NOT_MAPPED = Mapped()


@dataclass(frozen=True, slots=True)
class Needed:
    """What a suite needs a column for."""

    # the metrics that are null without it: their ids, or `ALL_METRICS` where no run is worth
    # anything without it. Where it is absent or null in every row of a run, the run ends before
    # scoring (all metrics) or says so first (some). A column of the same name among the ``items``
    # of another serves as well: of two, either is enough.
    by: tuple[str, ...] = ()
    # the metrics that have another value without it, not null: a run in which it is absent or null
    # in every row says so first
    affects: tuple[str, ...] = ()
    # what else gives the column's content: an option's name, then anything in words
    given_by: tuple[str, ...] = ()
    # as `Column.only_where`, of a column that is read in every row: where it is missed
    where: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A field that a suite reads from each row of a log."""

    name: str  # the field's name; also the column's name in the raw frame
    # ``text`` (String), ``integer`` (Int64), ``number`` (Float64), ``boolean`` (Boolean) or
    # ``json`` (String: the value's own JSON text, of any type; of CSV the cell's text, which nobody
    # has read: it may be no JSON)
    kind: ColumnKind
    _: KW_ONLY
    # values of other types that are taken too: ``boolean`` (true is 1), ``integer`` (its decimal
    # digits, in a text column), ``number`` (truncated towards zero, in an integer column),
    # ``string`` (read as Python's ``int`` or ``float`` reads it), ``falsy`` (0, 0.0, false, [] and
    # {} are the empty text)
    accepts: tuple[Coercion, ...] = ()
    # what becomes of a row whose value has another type or is out of range: ``reject`` lists the
    # row as a reject; ``null`` keeps the row and makes the value null. ``required`` rejects also
    # rows in which the field is absent or null.
    otherwise: Literal["reject", "null", "required"] = "reject"
    aliases: tuple[str, ...] = ()  # other names of the field; the declared name wins
    # the name of a text column that is read in every row, and a value: in rows where that column
    # has another value or none, the field is not read, so it is null and never a fault. Not for
    # columns of the dialogue key.
    only_where: tuple[str, str] | None = None
    description: str = ""  # the field's content, one line
    needed: Needed = Needed()  # what the suite needs the column for
    # of a ``json`` column with an array of objects: the fields that the suite reads of each, by the
    # same declarations; only ``name``, ``kind``, ``aliases``, ``needed`` and ``vocabulary`` count
    items: tuple["Column", ...] = ()
    # of a text column whose words mean something to the suite: these words
    vocabulary: Vocabulary = ANY_WORDS

    @property
    def required(self) -> bool:
        """Whether a row without the field is a reject."""
        return self.otherwise == "required"

    @property
    def mapped(self) -> Mapped:
        """What a map of columns and the file's folders say of it: nothing until there is one."""
        return _NOT_MAPPED

    def remapped(self, **changes: Any) -> "MappedColumn":
        """Return the column as a map of columns has it, with changes of what the map says."""
        declared = {one.name: getattr(self, one.name) for one in dataclasses.fields(Column)}
        return MappedColumn(**declared, mapped=dataclasses.replace(self.mapped, **changes))

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys under which the value is looked for, best first; the first may be a path."""
        return (self.mapped.path or self.name, *self.aliases)


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedColumn(Column):
    """A column of which a map of columns or the file's folders say something."""

    mapped: Mapped = _NOT_MAPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class RowId:
    """The id of a row that is a dialogue by itself."""

    # the columns that are read for the id. Without `read` the first one contains it.
    columns: tuple[str, ...]
    # a column that is set only in rows that are dialogues, whatever the format. Empty: the format
    # alone decides (`Source.row_dialogues`).
    holder: str = ""
    # reads the id of each row from the columns, null for none
    read: Callable[[pl.DataFrame], pl.Series] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """How the rows of a log are read."""

    columns: tuple[Column, ...]  # the fields that are read; all others are ignored
    # the columns that name a dialogue together. Rows in which the first of them is null (in CSV
    # also empty) belong to the dialogue that is their file.
    dialogue_key: tuple[str, ...] = ()
    # the formats that are accepted, of ``csv``, ``json``, ``jsonl`` and ``parquet``; files of
    # others are refused. ``.json`` files are read as JSON Lines by a source without ``json``.
    formats: tuple[str, ...] = ("jsonl", "parquet")
    # formats in which a row without a key is a dialogue of its own, not its file's: every row where
    # there is no dialogue key
    row_dialogues: tuple[str, ...] = ()
    # the id of a row that is a dialogue without a key, None if it has no other name than its place
    row_id: RowId | None = None
    # columns that tell apart dialogues of one id, such as the model that answers, each with the
    # word before its value in the dialogue's name: see `suites.identity`
    variants: tuple[tuple[str, str], ...] = ()
    # whether the key names a dialogue within its file only. Otherwise rows of one key in two files
    # are refused: one dialogue cannot be cut in two.
    key_within_file: bool = False
    # a column of kind ``json`` that takes an array in the place where a row's object is expected: a
    # whole ``.json`` document, or a line of JSON Lines, is then one row, and its other columns are
    # null. Without one, the elements of a ``.json`` document's array are rows.
    array_column: str | None = None
    # how many bytes of input are scored together unless the user says otherwise: as many as a
    # shard's fixed cost, some hundred operations on columns, is small beside
    shard_bytes: int = 32 << 20
    # the path of an array in each line whose elements are the rows, when a column map says so:
    # columns whose path begins with it and ``[].`` are in the element, the others beside the array.
    # Each line is then a dialogue of its own unless a key names it.
    rows: str = ""
    # the names of columns whose place the user gave: a path that leads nowhere is then an error
    asked_for: frozenset[str] = frozenset()
    # how chats become rows of the suite; None if the suite does not score chats
    chat_rows: ChatRows | None = None
    chat: "Chat | None" = None  # how these logs are read as chats, if a layout says so
    # a regular expression: what it finds in a file's path is all of it that values depend on,
    # beside the columns ``file``. Empty for nothing. A run whose logs were moved keeps its scores
    # if these parts are the same.
    read_in_path: str = "(?s).+"

    @property
    def joins_turns(self) -> bool:
        """Whether each row that is read is a turn, and those of a dialogue become one row."""
        chat = self.chat
        return chat is not None and chat.layout.is_row_per_turn and chat.rows.can_be_turns

    @property
    def document_chat(self) -> "Chat | None":
        """How documents are converted one by one; None if columns at paths read them."""
        return None if self.chat is None or self.chat.is_plain else self.chat

    def column(self, name: str) -> Column:
        """Return the column of a name."""
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """How logs are read as chats."""

    layout: ChatLayout  # where the parts of chats are
    rows: ChatRows  # how they become rows of the suite
    # how the rows that are made of chats are read; of rows that are turns, each turn
    native: Source
    # whether the layout is compiled to paths of columns. Other layouts read each document.
    is_plain: bool
    # the suite's words for the words of speakers that the layout knows
    words: Mapping[str, str] = dataclasses.field(compare=False)
    # the keys of a dialogue and of a turn that the suite reads by their own names
    kept_beside: frozenset[str]
    kept_of_turn: frozenset[str]
    json_of_turn: tuple[str, ...]  # those of `kept_of_turn` that are read as JSON


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of an output table."""

    name: str  # the column's name in the Parquet file
    dtype: pl.DataType  # its polars data type
    description: str  # its content, one line, with its unit if it has one
    _: KW_ONLY
    metric: str | None = None  # the id of the `Metric` that it contains, or None
    nullable: bool = False  # whether it may contain nulls


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A named output at one grain."""

    name: str  # the table's name and that of its folder in a run directory
    grain: str  # what one row is
    # the columns, in order. ``dialogue`` names a row's dialogue in every table of a suite. It is
    # found and explained by its name, and read again by ``file`` of the table ``dialogues``.
    columns: tuple[OutputColumn, ...]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """The table's polars schema, column by column in order."""
        return {column.name: column.dtype for column in self.columns}


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How dialogues are grouped and compared, in columns of table ``dialogues``."""

    # what two dialogues that are a pair have in common: their dialogue, under two models
    pair: tuple[str, ...] = ("dialogue",)
    # what was drawn from a population: the unit of intervals and tests. Default: the pair.
    unit: tuple[str, ...] = ()
    repeat: str = ""  # what tells repeated runs of one dialogue apart; empty for nothing
    groups: tuple[str, ...] = ()  # what the summary groups by
    # tables and denominators (`Metric.micro`) that count what a dialogue asks for, whoever answers.
    # The side of a pair with a smaller count lacks input.
    asked: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Take the pair as the unit."""
        if not self.unit:
            object.__setattr__(self, "unit", self.pair)

    def clustered_by(self, columns: str | None) -> "Design":
        """Return the design whose unit is columns, separated by commas; None for its own unit."""
        if columns is None:
            return self
        return dataclasses.replace(self, unit=tuple(map(str.strip, columns.split(","))))

    def repeated_by(self, column: str) -> "Design":
        """Return the design in which a column tells repeats apart, and so is no part of a pair.

        Raises
        ------
        UsageError
            Nothing else makes two dialogues a pair.
        """
        pair, unit = (tuple(one for one in of if one != column) for of in (self.pair, self.unit))
        if not pair:
            raise UsageError(
                f"The column {column!r} tells repeats apart, and pairs are by it alone.",
                "Name with pair_by what repeats of a dialogue have in common.",
            )
        return dataclasses.replace(self, pair=pair, unit=unit, repeat=column)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the design names."""
        repeat = (self.repeat,) if self.repeat else ()
        return tuple(dict.fromkeys((*self.pair, *self.unit, *repeat)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Values that a metric's source document reads alike; a bound that is None is none."""

    reading: str  # what the document calls them, a few words
    # bounds that belong to the band
    at_least: float | None = None
    at_most: float | None = None
    # bounds that do not
    above: float | None = None
    below: float | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    """The values that a metric can have, and how its source reads them."""

    better: Literal["higher", "lower", "neither"]  # which direction is better
    # the bounds, None where unbounded. Default: a share, from 0 to 1.
    minimum: float | None = 0.0
    maximum: float | None = 1.0
    unit: str = "1"  # the unit; "1" for a ratio
    # how the source reads values; of several bands that contain a value, the first counts. Values
    # that the source says nothing of are in none.
    bands: tuple[Band, ...] = ()
    # the column of the metric's table by which its definition differs, such as a maximum for each
    # level. Rows of two of its values are neither pooled nor compared. Empty if there is none.
    by: str = ""

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The minimum and the maximum."""
        return self.minimum, self.maximum


@dataclass(frozen=True, slots=True, init=False)
class Formula:
    """A metric's formula."""

    # the formula in LaTeX. Empty if there is only `text`.
    latex: str
    symbols: tuple[tuple[str, str], ...]  # its symbols in LaTeX and their meanings in words
    text: str  # the formula in plain text; of `latex` unless it is given

    def __init__(self, latex: str = "", *symbols: tuple[str, str], text: str = "") -> None:
        """Write the formula in plain text."""
        object.__setattr__(self, "latex", latex)
        object.__setattr__(self, "symbols", symbols)
        object.__setattr__(self, "text", text or plain_formula(latex))


@dataclass(frozen=True, slots=True)
class Ratio:
    """A value that is the quotient of two columns of its row, or of its row's evidence."""

    # the columns
    above: str
    below: str
    # the formula with values, as in `Metric.derivation`. Default: above / below.
    working: str = ""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Rows in which a definition gives the value, whatever the dialogue."""

    # a column of the metric's table and its value in these rows
    column: str
    value: str | int | bool
    # the conditions of the study in whose dialogues the column has another value, if there are
    # conditions: only there the metric says something
    only_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NullRule:
    """A condition under which a metric has no value."""

    # the condition over the rows that the metric is computed from. Null counts as false.
    when: pl.Expr = dataclasses.field(compare=False)
    # the reason that the row lists; None: the metric is switched off, and no reason is listed
    reason: NullReason | None
    text: str  # the condition in words, after "if": ``the dialogue has no plan``


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A published number: its name, its definition, its scale and its reasons for nulls.

    Parameters
    ----------
    id
        The metric's id as its paper prints it; also the column's name.
    name
        Its full name.
    table
        The table with its column.
    formula
        Its formula and the symbols in it.
    scale
        Its range, its direction and its unit.
    null_when
        When it is null, and with which reason: the first rule that holds counts. The suite
        computes nulls from it by `fastscore.suites.columns.find_nulls`. A text before the rules, or
        in their place, is how people read them.
    source
        The document and section that define it.
    micro
        Columns of the same table: numerator and denominator whose sums give the micro average.
    evidence
        What shows the value's parts.
    derivation
        The formula with values, as a format string of columns of its row and its evidence:
        ``min({satisfaction})``, a function that returns it for a row and the options, or the
        columns whose `Ratio` it is. Default: the ratio of `micro`.
    reading
        How to read a value, a sentence or two.
    example
        A worked example: inputs and result.
    note
        What the source leaves open and how it is decided, or how values differ from the source.
    role
        ``headline``: its source reports it in its main table. Findings are about headline metrics,
        and corrections for many tests run over them (`fastscore.suites.base`). ``part``: a part or
        a count beside the numbers that a reader looks for first, shown only where everything is
        asked for.
    uses
        The parts of a log that it is computed from, by the suite's own names; empty where the suite
        does not say.
    same_test_as
        The id of another metric, if a test of this one is a test of the other: a monotone copy, or
        the same number by row of another table. Empty if it is a number of its own.
    fixed_where
        Where the definition gives the value: 0 where a part of the system is off. One is enough.
    baselines
        The trivial agents whose scores on the same log are shown beside it, by what they do:
        ``always refusing``. The suite's `trivial_agents` computes them.
    """

    id: str
    name: str
    table: str = LABEL_TABLE
    formula: Formula
    scale: Scale
    null_when: tuple[NullRule | str, ...] = ()
    source: str
    micro: tuple[str, str] | None = None
    evidence: tuple[EvidenceRows, ...] = ()
    derivation: str | Ratio | Callable[[Row, Any], str] = ""
    reading: str = ""
    example: str = ""
    note: str = ""
    role: Literal["headline", "", "part"] = ""
    uses: tuple[str, ...] = ()
    same_test_as: str = ""
    fixed_where: tuple[Fixed, ...] = ()
    baselines: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """Its name, with the id unless that is the name."""
        return self.name if self.name == self.id else f"{self.name} ({self.id})"

    @property
    def null_rules(self) -> tuple[NullRule, ...]:
        """The rules that nulls are computed from."""
        return tuple(rule for rule in self.null_when if not isinstance(rule, str))

    @property
    def null_rule(self) -> str:
        """When it is null, as one sentence: ``missing_input if A, or if B; no_vector if C``."""
        if self.null_when and isinstance(self.null_when[0], str):
            return self.null_when[0]
        sentences = []
        for reason, of_reason in groupby(self.null_rules, key=lambda rule: rule.reason):
            conditions = ", or if ".join(rule.text for rule in of_reason)
            sentences.append(f"{reason or 'null without a reason'} if {conditions}")
        return "; ".join(sentences) or "never"

    @property
    def can_be_null(self) -> bool:
        """Whether a row may have no value."""
        return self.null_rule != "never"

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions of the study in which it says something; empty for all."""
        return tuple(dict.fromkeys(name for fixed in self.fixed_where for name in fixed.only_in))


def metrics_using(metrics: Iterable[Metric], part: str) -> tuple[str, ...]:
    """Return the ids of the metrics that are computed from a part of a log."""
    return tuple(metric.id for metric in metrics if part in metric.uses)


PARTIAL_REJECTS = "partial_rejects"
"""The count of rejects that do not weigh against ``--max-rejects``: their row is scored."""

UNPAIRED_TURNS, PAIRED_TURNS = "unpaired_turns", "turns"
"""The counts of messages that pair with no reply, or with no question, and of pairs."""

REPLACED_ROWS = "replaced_rows"
"""The count of rows that a later row of the same dialogue replaces."""

FLAGS_AS_TEXT = "flags_as_text"
"""The count of texts such as "False" that the definition takes for true."""

NO_SUCH_STEP = "no_such_step"
"""The count of predictions for a step that their utterance does not have."""

INCOMPLETE = "incomplete_utterances"
"""The count of utterances that no row completes."""

REPEATED_ROWS = "repeated_rows"
"""The count of messages that equal an earlier row of their dialogue in every column."""

THOUGHTS, TAGS, ODD_LETTERS = "thoughts", "tags", "odd_letters"
"""The counts of rows of chats with thoughts in tags, and with letters of which there are others."""

NOTED_COUNTS = {
    REPEATED_ROWS: (
        "rows",
        ("repeats", "repeat"),
        "an earlier row of the same dialogue in every column that is read: such rows count twice",
    ),
    REPLACED_ROWS: (
        "rows",
        ("is", "are"),
        "replaced by a later row for the same step or utterance: the last row counts; if they are "
        "of several systems, map the key that names the system: --column miner_uid=KEY",
    ),
    INCOMPLETE: (
        "utterances",
        ("has", "have"),
        "no utterance_complete and so no score: means are over the others (n_incomplete counts)",
    ),
    FLAGS_AS_TEXT: (
        "dialogues",
        ("has", "have"),
        "a valid_dialog that is a text such as 'False', which counts as true by the definition: "
        "write it without quotes to leave the dialogue out",
    ),
    NO_SUCH_STEP: (
        "predictions",
        ("is", "are"),
        "unscored, as the utterance has no such step: steps count from 0, and there are as many "
        "as the highest revealed step says, or else as there are predictions",
    ),
    THOUGHTS: ("rows", ("has", "have"), "thoughts in tags such as <think>, which count as said"),
    TAGS: (
        "rows",
        ("has", "have"),
        "tags of HTML such as <p>, which count as said: to leave them out, write the log anew by "
        'jq -c \'walk(if type == "string" then gsub("<[^>]*>"; " ") else . end)\'',
    ),
    ODD_LETTERS: (
        "rows",
        ("has", "have"),
        "curly apostrophes, no-break spaces, entities of HTML or letters with separate accents "
        "(not in NFC), which are other characters except to metrics that fold them",
    ),
}
"""What a run notes of counts, which are then no counts of the run: a noun, its verbs, the rest."""

ROW_SCHEMA: dict[str, pl.DataType] = {
    "file": pl.String(),
    "line": pl.Int64(),
    "byte_offset": pl.Int64(),
}
"""The columns before the declared ones in every raw frame: the input as it was given,
the 1-based line (or Parquet row) and the byte at which the row starts (null for Parquet)."""

REJECT_SCHEMA: dict[str, pl.DataType] = {
    **ROW_SCHEMA,
    **dict.fromkeys(("field", "reason", "found", "expected", "raw"), pl.String()),
}
"""One row a reject: where it stood, what was found, what was expected, the raw text (cut)."""

REJECTS_TABLE: dict[str, pl.DataType] = {
    **REJECT_SCHEMA,
    "count": pl.Int64(),
    "last_line": pl.Int64(),
}
"""A run's rejects: how many a row counts, of which the last is on ``last_line``. Of a file
with very many the first are listed, one row each; of the others each reason is counted."""

NULL_REASONS_DTYPE = pl.List(pl.Struct({"metric": pl.String(), "reason": pl.Enum(NULL_REASONS)}))
"""The data type of every table's ``null_reasons`` column."""


@cache
def empty_rejects() -> pl.DataFrame:
    """Return a frame of rejects with no row."""
    return pl.DataFrame(schema=REJECT_SCHEMA)


def rejects_of(rows: pl.DataFrame, **about: pl.Expr | pl.Series | str) -> pl.DataFrame:
    """Make rejects of rows with their places; texts are the same in all, what is not told null."""
    told = {name: pl.lit(what) if isinstance(what, str) else what for name, what in about.items()}
    missing = {name: pl.lit(None) for name in REJECT_SCHEMA.keys() - {*rows.columns, *about}}
    return rows.with_columns(**told, **missing).select(
        pl.col(name).cast(dtype) for name, dtype in REJECT_SCHEMA.items()
    )
