"""Scores of judges and people: read beside a run, and compared with each other.

Every file of ratings is alike, whoever wrote it: a row a dialogue and rater, with scores by
dimension. Dialogues that several raters scored are compared, each pair of raters by Cohen's kappa
with quadratic weights, all raters by Krippendorff's alpha.
"""

import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from itertools import chain, combinations, islice
from os import PathLike, fspath
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from fastscore.errors import InputError, UsageError, counted, listed, names_arguments
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan.shards import plan_shards
from fastscore.logs.read.rows import join_parts, read_shard
from fastscore.logs.samples.records import records
from fastscore.logs.samples.refusals import encoding_error
from fastscore.logs.score_input import ScoreInput
from fastscore.results.judged_runs import JUDGEMENTS
from fastscore.results.metric_text import REASONS, number_text, show_found, under_headings
from fastscore.results.runs import Run
from fastscore.run.manifest import MANIFEST_NAME
from fastscore.settings.options import check_arguments
from fastscore.statistics.agreement import (
    Coefficient,
    Level,
    categorical_agreement,
    krippendorff_alpha,
    weighted_kappa,
)
from fastscore.suites.declarations import (
    LABEL_TABLE,
    NULL_REASONS,
    NULL_REASONS_DTYPE,
    Formula,
    Metric,
    Scale,
    Source,
)
from fastscore.suites.judged import (
    VERDICTS,
    Judged,
    check_scale,
    collect_judged,
    describe_rejects,
    judge_source,
    list_ratings,
)
from fastscore.suites.sums import can_label
from fastscore.terminal.grids import Format, Grid, column_of, html_tables

KEY = "dialogue"
_MOST_CATEGORIES = 1_000
"""Scales of more whole numbers have no categories: such as seconds."""


def read_judgements(file: Any, source: Source) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the rows of a judge's file or frame, and the rejects in `REJECT_SCHEMA`."""
    given = ScoreInput.of(file)
    if given.is_frame:
        parts = [join_parts(given.read(source), source)]
    else:
        with tempfile.TemporaryDirectory(prefix="fastscore-") as scratch:
            files = resolve_inputs(given.paths, source.formats)
            # a sheet in another encoding would lose its rows with umlauts
            for error in filter(None, map(encoding_error, files)):
                raise error
            plan = plan_shards(files, source, scratch=Path(scratch))
            parts = [read_shard(shard, source) for shard in plan.shards]
    rows = pl.concat([part.frame for part in parts])
    # an empty cell of CSV names nothing
    rows = rows.with_columns(
        pl.col("^(model|model_a|model_b|judged_file|judged_by)$").replace("", None)
    )
    return rows, pl.concat([part.rejects for part in parts])


def require_columns(files: Sequence[Any], names: Sequence[str]) -> None:
    """Refuse a name of a column with scores that none of the judges' files has."""
    found: dict[str, None] = {}
    lacking = list(names)
    for file in files if names else ():
        for row in _records(file, names):
            # a judge of ours writes its scores or verdicts as an object
            objects = [each for each in row.values() if isinstance(each, Mapping)]
            found |= dict.fromkeys(chain(row, *objects))
            lacking = [name for name in lacking if name.lower() not in map(str.lower, found)]
            if not lacking:
                return
    if lacking:
        raise UsageError(
            f"{', '.join(judge_names(files))}: no column {lacking[0]!r}, "
            "which judge_columns names.",
            f"Columns: {listed([*found])}.",
        )


def _records(file: Any, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """Yield rows of a file or frame as they are, to see what it contains."""
    given, source = ScoreInput.of(file), judge_source(columns)
    if given.is_frame:
        return given.records(source)
    return chain.from_iterable(map(records, resolve_inputs(given.paths, source.formats)))


def judge_names(files: Sequence[Any]) -> list[str]:
    """Return what files are called: paths as they are, frames and rows by their place."""
    return [
        fspath(file) if isinstance(file, str | PathLike) else f"frame {place}"
        for place, file in enumerate(files, 1)
    ]


JUDGE_TABLE = "judge"
_ROWS_NAMED = 20
_RATERS_NAMED = 5
_PREFIX = f"{JUDGE_TABLE}."
_IDENTITY: dict[str, pl.DataType] = {
    "file": pl.String(),
    "line": pl.Int64(),
    KEY: pl.String(),
    "model": pl.String(),
}


@dataclass(frozen=True, slots=True, repr=False)
class JudgedRun(Run):
    """A run with a table ``judge``, the labels of its dialogues with a judge's scores beside them.

    ``judges`` are named by the file, ``notes`` say what was refused.
    """

    judged: pl.DataFrame = field(default_factory=pl.DataFrame)
    judge_metrics: tuple[Metric, ...] = ()
    judges: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def scan(self, name: str) -> pl.LazyFrame:
        """Scan one table; ``judge`` too."""
        return self.judged.lazy() if name == JUDGE_TABLE else Run.scan(self, name)


def judge_runs(
    runs: Sequence[Run],
    files: Sequence[str | PathLike[str]],
    columns: Sequence[str] = (),
    scale: tuple[float, float] | None = None,
) -> list[JudgedRun]:
    """Join judges' files to runs, one to each; all have the scores that any of the files has."""
    if len(files) != len(runs):
        raise UsageError(
            f"{len(files)} judge's files for {len(runs)} runs, expected one for each run.",
            "Give judge a file for each run, in their order; the same file twice if it has both.",
        )
    paths = [fspath(scores_in(file)) for file in files]
    scale = scale_of(paths, scale)
    require_columns(paths, columns)
    found = [_joined(run, file, columns, scale) for run, file in zip(runs, paths, strict=True)]
    names = list(dict.fromkeys(name for _, judged in found for name in judged.names))
    metrics = tuple(_metric(name, scale) for name in names)
    return [
        _with_table(run, rows, judged, metrics)
        for run, (rows, judged) in zip(runs, found, strict=True)
    ]


def _joined(
    run: Run, file: str, columns: Sequence[str], scale: tuple[float, float]
) -> tuple[pl.DataFrame, Judged]:
    """Return the run's dialogues with their labels, and what a file says of them."""
    dialogues = run.scan(LABEL_TABLE)
    labels = [name for name, dtype in dialogues.collect_schema().items() if can_label(dtype)]
    rows = dialogues.select(labels).collect(engine="streaming")
    place = pl.format("{}:{}", "file", "line") if "line" in labels else pl.col("file")
    conversations = rows.with_row_index("conversation").select(
        "conversation",
        *(
            (pl.col(name) if name in labels else pl.lit(None)).cast(dtype).alias(name)
            for name, dtype in _IDENTITY.items()
        ),
        pl.lit(None, dtype=pl.String).alias("judge"),
    )
    # a judge names dialogues as the log does, or as the run does
    source = run.suite.source
    names = [*source.dialogue_key, *(source.row_id.columns if source.row_id else ())]
    own = next((rows[name].cast(pl.String) for name in names if name in labels), None)
    identity = pl.col(KEY).fill_null(place)
    conversations = conversations.with_columns(
        identity if own is None else pl.coalesce(own, identity).alias(KEY), identity=identity
    )
    judged = collect_judged(
        conversations, read_judgements(Path(file), judge_source(columns)), scale, columns
    )
    if judged.scores.is_empty():
        rejected = describe_rejects(judged)
        raise UsageError(
            f"{file}: it has no score of a dialogue of {run.path}. {rejected}".rstrip(),
            "judge_columns names columns with scores. A row names its dialogue as the run does, "
            f"for one {conversations[KEY].first()!r}.",
        )
    return rows, judged


def _metric(name: str, scale: tuple[float, float]) -> Metric:
    return Metric(
        id=f"{_PREFIX}{name}",
        name=f"judge: {name}",
        table=JUDGE_TABLE,
        formula=Formula(text="the judge's score of the dialogue, the mean over its repeats"),
        scale=Scale("neither", minimum=scale[0], maximum=scale[1]),
        null_when=("missing_input without a score, bad_input where it was refused",),
        source="the judge's file",
        role="headline",
    )


def _with_table(
    run: Run, rows: pl.DataFrame, judged: Judged, metrics: tuple[Metric, ...]
) -> JudgedRun:
    table, reasons = rows.with_row_index("conversation"), []
    bad, missing = (
        pl.lit(reason, pl.Enum(NULL_REASONS)) for reason in ("bad_input", "missing_input")
    )
    for metric in metrics:
        is_it = pl.col("judge") == metric.id.removeprefix(_PREFIX)
        scores = judged.scores.filter(is_it).select(
            "conversation", pl.col("score").alias(metric.id)
        )
        table = table.join(scores, on="conversation", how="left", maintain_order="left")
        refused = judged.refused.filter(is_it)["conversation"].implode()
        reason = pl.when(pl.col("conversation").is_in(refused)).then(bad).otherwise(missing)
        entry = pl.struct(pl.lit(metric.id).alias("metric"), reason.alias("reason"))
        reasons.append(pl.when(pl.col(metric.id).is_null()).then(entry))
    listed_reasons = pl.concat_list(reasons).list.drop_nulls().cast(NULL_REASONS_DTYPE)
    table = table.with_columns(null_reasons=listed_reasons).drop("conversation")
    refusals = describe_rejects(judged).removesuffix(".")
    return JudgedRun(
        **{each.name: getattr(run, each.name) for each in fields(Run)},
        judged=table,
        judge_metrics=metrics,
        judges=judged.judges,
        notes=(f"{run.path}: {refusals}",) if refusals else (),
    )


COEFFICIENTS_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("dimension", "coefficient", "first", "second"), pl.String()),
    **dict.fromkeys(("raters", "n"), pl.Int64()),
    **dict.fromkeys(("value", "low", "high", "difference"), pl.Float64()),
    "reason": pl.String(),
}
"""One row a dimension, coefficient and two raters, or all of them where ``first`` is null: the
dialogues that two or more scored, the value with its 95 % confidence interval, and why one is null.
``weighted_kappa`` has the mean of the second's score minus the first's, too. Categories of
`categorical_agreement` are the whole numbers of the scale, or A, tie and B."""

Write = Callable[[Mapping[str, Any]], str]
_DIMENSIONS_SHOWN = 8
_KAPPA = "weighted_kappa"
_LEVELS: tuple[Level, ...] = ("ordinal", "interval")


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of raters.

    Parameters
    ----------
    raters
        The names of the raters, or of their files.
    coefficients
        One row for each dimension, coefficient and pair of raters (or all raters, if ``first`` is
        null): ``n``, ``value`` with its 95 % confidence interval ``low`` and ``high``, and
        ``reason`` if it is null.
    notes
        What was left out.

    Examples
    --------
    >>> found = fastscore.agreement("judge.csv", "people.csv")
    >>> found.raters
    ('judge.csv', 'people.csv')
    """

    raters: tuple[str, ...]
    coefficients: pl.DataFrame
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        dimensions = ", ".join(self.coefficients["dimension"].unique(maintain_order=True))
        of_all = self.coefficients.filter(pl.col("first").is_null())
        firsts = of_all.unique("dimension", keep="first", maintain_order=True).to_dicts()
        lines = [
            f"  {row['dimension']}: {_NAMES[row['coefficient']]} {number_text(row['value'], 3)} "
            f"(95 % interval: {_interval(row)}; n {row['n']:,})"
            for row in firsts[:_DIMENSIONS_SHOWN]
        ]
        named = f"Agreement of {listed(self.raters, _RATERS_NAMED)} on {dimensions}"
        return "\n".join([named, *lines, "all coefficients in .coefficients"])

    def _repr_html_(self) -> str:
        """Show the tables that are printed, every text escaped, in a notebook."""
        return html_tables(agreement_grids(self))


@names_arguments
def agreement(
    *files: str | PathLike[str] | pl.DataFrame | Sequence[Mapping[str, Any]],
    columns: Sequence[str] = (),
    scale: tuple[float, float] | None = None,
) -> Agreement:
    """Compare the scores that several raters gave to the same dialogues.

    Parameters
    ----------
    *files
        Files of judges or people: JSON, JSON Lines, CSV or Parquet, a row a dialogue and rater.
        Or frames, or lists of dicts. A row has ``dialogue``, the scores in an object ``judge`` or
        in columns, and the rater under ``judged_by``, ``rater`` or ``annotator``. Without that the
        file is the rater. Judged pairs have the verdicts ``A``, ``B`` and ``tie`` in an object
        ``verdict`` or in columns, and the models of A and B under ``model_a`` and ``model_b``.
    columns
        Names of columns with scores, beside ``overall``, the dimensions of the rubric of
        recommenders, and all that a judge scored in an object of these files.
    scale
        The smallest and largest score. Others are left out and counted in a note. Default: the
        scale in the ``summary.json`` of a judge's folder, else 1 to 5.

    Raises
    ------
    InputError
        A file cannot be read, or a rater scored a dialogue of a model twice.
    UsageError
        There are fewer than two raters, they share no dialogue and dimension, or some scored
        dialogues and others pairs.

    Examples
    --------
    >>> judge = pl.DataFrame({"dialogue": ["a", "b", "c"], "overall": [4, 2, 5]})
    >>> people = judge.with_columns(overall=pl.Series([5, 2, 5]))
    >>> judge.write_csv("judge.csv")
    >>> people.write_csv("people.csv")
    >>> fastscore.agreement("judge.csv", "people.csv").coefficients.head(3)
    """
    check_arguments(agreement, locals())
    scale = scale_of([*map(scores_in, files)], scale)
    rated, notes = read_ratings(files, columns, scale)
    ratings = _with_raters(rated, judge_names(files))
    raters = ratings["rater"].unique(maintain_order=True).to_list()
    are_pairs = ratings["is_pair"].any()
    if are_pairs and not ratings["is_pair"].all():
        one, other = (ratings.filter(is_pair=is_pair)["file"][0] for is_pair in (True, False))
        raise UsageError(
            f"{one} has verdicts on pairs, {other} scores of dialogues.",
            "Compare verdicts with verdicts, and scores with scores.",
        )
    if len(raters) < 2:
        raise UsageError(
            f"Only one rater: {', '.join(raters) or 'none'}.",
            "Name two files or more, or one with several raters under 'rater' or 'judged_by'.",
        )
    ratings = with_keys(ratings)
    elsewhere = ratings.filter(pl.col("judged_file").drop_nulls().n_unique().over("thing") > 1)
    if elsewhere.height:
        names = elsewhere["judged_file"].drop_nulls().unique(maintain_order=True)
        notes.append(
            f"{counted(elsewhere['thing'].n_unique(), 'dialogues')} were read from files of "
            f"several names, such as {names[0]} and {names[1]}: are they the same dialogues?"
        )
    whole = range(math.ceil(scale[0]), math.floor(scale[1]) + 1)
    numbers = list(map(float, whole)) if len(whole) <= _MOST_CATEGORIES else []
    categories = sorted(VERDICTS.values()) if are_pairs else numbers
    rows: list[dict[str, Any]] = []
    for name in ratings["dimension"].unique(maintain_order=True):
        # a row a thing: its dialogue, and a column of scores a rater
        wide = ratings.filter(dimension=name).pivot(
            "rater", index=["dialogue", "thing"], values="score"
        )
        if wide.width < 4:
            notes.append(f"{name}: only {wide.columns[2]} scored it; it is not compared.")
        else:
            rows += _compared(name, wide.drop("thing"), categories)
    if not any(row["n"] for row in rows if row["coefficient"] == _KAPPA):
        raise _nothing_shared(ratings, raters)
    return Agreement(tuple(raters), pl.DataFrame(rows, COEFFICIENTS_SCHEMA), tuple(notes))


def _nothing_shared(ratings: pl.DataFrame, raters: Sequence[str]) -> UsageError:
    first = {rater: ratings.filter(rater=rater).row(0, named=True) for rater in raters}
    shown = ", ".join(
        f"{row['dialogue']!r}{'' if row['model'] is None else ' of ' + row['model']} by {rater}"
        for rater, row in first.items()
    )
    return UsageError(
        f"No two raters scored the same dimension of the same dialogue (the first: {shown}).",
        "Dialogues need equal ids, and equal models if they have any, in all files. Name other "
        'columns with scores: columns=["NAME"], in a shell the option judge_column.',
    )


def read_ratings(
    files: Sequence[Any], columns: Sequence[str], scale: tuple[float, float]
) -> tuple[list[pl.DataFrame], list[str]]:
    """Read each file's ratings, a row a score, and describe what was refused."""
    if not files:
        raise UsageError("No file is named.", "Name files with the scores of judges or people.")
    check_scale(scale)
    files = [scores_in(file) for file in files]
    require_columns(files, columns)
    columns = [*dict.fromkeys((*columns, *_dimensions(files)))]
    found = [
        _ratings(file, name, columns, scale)
        for file, name in zip(files, judge_names(files), strict=True)
    ]
    return [ratings for ratings, _ in found], [note for _, notes in found for note in notes]


def scores_in(file: Any) -> Any:
    """Return the scores in a folder that `fastscore judge` wrote, anything else as it is."""
    if isinstance(file, str | PathLike) and Path(file).is_dir():
        paths = [Path(file, name) for name in (JUDGEMENTS, "pairs.jsonl")]
        found = next((path for path in paths if path.is_file()), None)
        if found is None and Path(file, MANIFEST_NAME).is_file():
            raise UsageError(
                f"{file} is a run, which has no scores of judges or people.",
                "Name their files. `fastscore compare RUN --by COLUMN` ranks systems of a run.",
            )
        return found or file
    return file


def scale_of(files: Sequence[Any], scale: tuple[float, float] | None) -> tuple[float, float]:
    """Return the scale that is given, else the one of judges' folders, else 1 to 5."""
    if scale is not None:
        check_scale(scale)
        return scale
    found: dict[tuple[float, float], Path] = {}
    for path in (Path(file) for file in files if isinstance(file, str | PathLike)):
        summary = path.with_name("summary.json")
        if path.name == JUDGEMENTS and summary.is_file():
            with suppress(ValueError, TypeError, AttributeError):
                low, high = json.loads(summary.read_bytes()).get("scale", ())
                found.setdefault((float(low), float(high)), path)
    if len(found) > 1:
        said = (f"{path} from {low:g} to {high:g}" for (low, high), path in found.items())
        raise UsageError(
            f"Judges scored on different scales: {', '.join(said)}.",
            "Compare judges of one scale, or convert scores and name files without summary.json.",
        )
    return next(iter(found), (1.0, 5.0))


def _dimensions(files: Sequence[Any]) -> Iterator[str]:
    """Yield dimensions of judges' objects: people's columns of their names are scores."""
    taken = {key.lower() for column in judge_source(()).columns for key in column.keys}
    for file in files:
        for row in islice(_records(file, ()), _ROWS_NAMED):
            for scores in (row.get("judge"), row.get("verdict")):
                if isinstance(scores, Mapping):
                    yield from (name for name in scores if name.lower() not in taken)


def _ratings(
    file: Any, name: str, columns: Sequence[str], scale: tuple[float, float]
) -> tuple[pl.DataFrame, list[str]]:
    rows, rejects = read_judgements(file, judge_source(columns))
    if rows.is_empty() and rejects.height and set(rejects["reason"]) == {"missing_column"}:
        field, found = rejects.row(0, named=True)["field"], rejects["found"][0]
        raise InputError(
            f"{name}: no column {field!r}; found {found}.",
            f"Rename the column that names the dialogue to {field!r}, and its rater's to 'rater'.",
        )
    ratings, refused = list_ratings(rows, scale, columns)
    notes = []
    if refused.height or rejects.height:
        first = (rejects if refused.is_empty() else refused).row(0, named=True)
        notes.append(
            f"{name}: {counted(rejects.height, 'rows')} and {counted(refused.height, 'scores')} "
            f"were refused, the first at line {first['line']}: {first['field'] or 'row'}: "
            f"{first['reason']} "
            f"({first['found']})."
        )
    if ratings.is_empty():
        told = "".join(f" {note.removeprefix(f'{name}: ')}" for note in notes)
        are_pairs = rows["model_a"].count() > 0
        unread = _unread_columns(file, columns)
        named = [f"{column} ({value!r})" for column, value in unread.items()]
        texts = f" Columns that are not read: {listed(named)}." if named else ""
        likely = next((each for each in unread if _is_number(unread[each])), "NAME")
        if "out of range" in refused["reason"]:
            raise InputError(
                f"{name}: no score was found.{told}",
                "Name the smallest and largest score: scale=(LOW, HIGH), in a shell the "
                "option judge_range.",
            )
        raise InputError(
            f"{name}: no score was found.{told}{texts}",
            "Verdicts are A, B or tie."
            if are_pairs
            else "Scores are numbers in an object 'judge', or in columns that are named: "
            f'columns=["{likely}"], in a shell the option judge_column.',
        )
    if not ratings["is_pair"].any():
        others = _unread_columns(file, columns)
        numbers = [column for column, value in others.items() if _is_number(value)]
        notes += [f"{name}: columns that are not read: {listed(numbers, 10)}"] if numbers else []
    return ratings, notes


def _unread_columns(file: Any, columns: Sequence[str]) -> dict[str, Any]:
    """Return the columns of a file that are not read, each with the first value that it has."""
    known = {key.lower() for column in judge_source(columns).columns for key in column.keys}
    firsts: dict[str, Any] = {}
    for row in islice(_records(file, columns), _ROWS_NAMED):
        # a judge of ours has its scores in an object, and other numbers beside them
        beside = {} if isinstance(row.get("judge"), Mapping) else row
        for name, value in beside.items():
            if name.lower() not in known and value not in (None, ""):
                firsts.setdefault(name, value)
    return firsts


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _with_raters(frames: Sequence[pl.DataFrame], files: Sequence[str]) -> pl.DataFrame:
    """Join the ratings of files under their raters' names; a name of two files gets its file."""
    named = [
        frame.with_columns(
            rater=pl.col("judged_by").fill_null(file), source=pl.lit(number), name=pl.lit(file)
        )
        for number, (frame, file) in enumerate(zip(frames, files, strict=True))
    ]
    is_shared = pl.col("source").n_unique().over("rater") > 1
    of_file = pl.format("{} ({})", "rater", "name")
    return pl.concat(named).with_columns(rater=pl.when(is_shared).then(of_file).otherwise("rater"))


def with_keys(ratings: pl.DataFrame) -> pl.DataFrame:
    """Add ``thing``, what was rated: dialogue and model, and its place where that is not enough."""
    models = pl.col("model").drop_nulls()
    lacking = ratings.filter(pl.col("model").is_null() & (models.n_unique().over("dialogue") > 1))
    if lacking.height:
        row = lacking.row(0, named=True)
        raise InputError(
            f"{row['file']}:{row['line']}: dialogue {row['dialogue']!r} has no model, and other "
            "rows have several models of it.",
            "Give the column 'model' in all files.",
        )
    ratings = ratings.with_columns(
        pl.col("model").fill_null(models.first().over("dialogue")),
        _shortest_names(ratings["judged_file"]),
    )
    place = ["judged_file", "judged_line"]
    keys = [["dialogue", "model"]]
    if not any(ratings[name].has_nulls() for name in place):
        keys.append([*keys[0], *place])
    for key in keys:
        is_twice = ratings.select("rater", "dimension", *key).is_duplicated()
        if not is_twice.any():
            return ratings.with_columns(thing=pl.struct(key))
    first, second = ratings.filter(is_twice).sort("rater", "dimension", *key).rows(named=True)[:2]
    raise InputError(
        f"{first['file']}:{first['line']}: {first['rater']} scored {first['dimension']} of "
        f"dialogue {first['dialogue']!r} more than once, again at "
        f"{second['file']}:{second['line']}.",
        "Keep one of these rows."
        if len(keys) == 2
        else "Keep one of these rows. If they are different dialogues, give 'model', or "
        "'judged_file' and 'judged_line', in all files.",
    )


def _shortest_names(files: pl.Series) -> pl.Series:
    """Name each file by the shortest path of the others that ends its own: folders may differ."""
    paths = {path: PurePath(path).parts for path in files.drop_nulls().unique()}
    known = set(paths.values())
    names = {
        path: "/".join(
            next(parts[at:] for at in range(len(parts) - 1, -1, -1) if parts[at:] in known)
        )
        for path, parts in paths.items()
    }
    return files.replace(names)


def _compared(
    dimension: str, wide: pl.DataFrame, categories: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Yield the coefficients of all raters, then of each pair."""
    raters = wide.columns[1:]
    clusters = wide["dialogue"].rank("dense").to_numpy()
    for pair in ((), *combinations(raters, 2)):
        chosen = [*pair] or raters
        scores = wide.select(pl.col(chosen).fill_null(np.nan)).to_numpy()
        found, difference = dict[str, Coefficient](), None
        if pair:
            a, b = scores.T
            found[_KAPPA] = weighted_kappa(a, b, clusters)
            of_both = (b - a)[np.isfinite(b - a)]
            difference = float(of_both.mean()) if of_both.size else None
        else:
            found = {f"alpha_{one}": krippendorff_alpha(scores, one, clusters) for one in _LEVELS}
        if pair or len(raters) > 2:
            found |= categorical_agreement(scores, categories, clusters)
        first, second = pair or (None, None)
        place = {"dimension": dimension, "first": first, "second": second, "raters": len(chosen)}
        for name, one in found.items():
            of_pair = difference if name == _KAPPA else None
            yield {**place, "coefficient": name, "difference": of_pair, **asdict(one)}


_NAMES = {
    "percent_agreement": "share of equal scores",
    "fleiss_kappa": "Fleiss' kappa",
    "ac1": "Gwet's AC1",
    "ac2": "Gwet's AC2, quadratic",
    "alpha_ordinal": "Krippendorff's alpha, ordinal",
    "alpha_interval": "Krippendorff's alpha, interval",
}


def show_agreement(found: Agreement, *, format: Format = "table") -> None:
    """Print the agreement of raters."""
    content = {"raters": found.raters, "coefficients": found.coefficients, "notes": found.notes}
    show_found(content, agreement_grids(found), format)


def agreement_grids(found: Agreement) -> tuple[Grid, ...]:
    """Lay out the pairs of raters, and all raters."""
    is_kappa = pl.col("coefficient") == _KAPPA
    of_all = ~is_kappa & (pl.col("first").is_null() | (len(found.raters) == 2))
    pairs, every = (found.coefficients.filter(rows).to_dicts() for rows in (is_kappa, of_all))
    title = "Each pair of raters: Cohen's kappa with quadratic weights"
    second = {"second": lambda row: row["second"]}
    difference = {"difference": lambda row: number_text(row["difference"], 3, "+")}
    return (
        _grid(title, pairs, {"first": lambda row: row["first"], **second}, "kappa", difference),
        _grid(
            "All raters", every, {"coefficient": lambda row: _NAMES[row["coefficient"]]}, "value"
        ),
    )


def _grid(
    title: str,
    rows: Sequence[Mapping[str, Any]],
    names: Mapping[str, Write],
    value: str,
    more: Mapping[str, Write] = MappingProxyType({}),
) -> Grid:
    """Lay out coefficients under the names of their dimensions."""
    records, headings = under_headings(rows, lambda row: row["dimension"])
    column = partial(column_of, records)
    first, *others = (column(name, write, right=False, wraps=True) for name, write in names.items())
    cells = tuple(headings.get(place, cell) for place, cell in enumerate(first.cells))
    columns = (
        replace(first, cells=cells),
        *others,
        *([] if more else [column("raters", "{raters:,}".format_map)]),
        column("n", "{n:,}".format_map),
        column(value, lambda row: number_text(row["value"], 3)),
        column("95 % interval", _interval),
        *(column(name, write) for name, write in more.items()),
    )
    return Grid(title, columns, frozenset(headings))


def _interval(row: Mapping[str, Any]) -> str:
    """Write both ends of an interval, or why there is none."""
    return (
        REASONS[row["reason"]] if row["low"] is None else "{low:.3f} to {high:.3f}".format_map(row)
    )
