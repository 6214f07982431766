"""What texts say by their wording: rooms that are wanted, conflicts that are named, theory quoted.

A clause ends at ``. , ; ! ?``, at a line end, and before but and however. One search finds a
mention that is not negated: negators and clause ends are first made marks that no word crosses.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from fastscore.suites.group_travel.normalise import normalise
from fastscore.suites.group_travel.terms import ROOM_TYPES

if TYPE_CHECKING:
    from fastscore.suites.group_travel.lexicon import Lexicon

_CLAUSE_END = r"[.,;!?\n]+|(?i:\b(?:but|however)\b)"
_NEGATOR_MARK = "\x01"
_CLAUSE_MARK = "\x02"
_WORD = r"[\p{L}\p{N}\p{M}]+"
_GAP = rf"[^\p{{L}}\p{{N}}\p{{M}}{_NEGATOR_MARK}{_CLAUSE_MARK}]"
_NO_WORD = r"[^\p{L}\p{N}_]"
_WORDS_BEFORE = 3


def clauses(texts: pl.Series, lexicon: "Lexicon") -> pl.DataFrame:
    """Cut texts into normalised clauses.

    Returns
    -------
    pl.DataFrame
        ``row`` of the text and ``clause``, normalised; in order.
    """
    return (
        _mark_clauses(texts, lexicon)
        .str.split(_CLAUSE_MARK)
        .to_frame("clause")
        .with_row_index("row")
        .with_columns(pl.col("row").cast(pl.Int64))
        .explode("clause")
        .with_columns(pl.col("clause").map_batches(normalise, return_dtype=pl.String))
    )


def _mark_clauses(texts: pl.Series, lexicon: "Lexicon") -> pl.Series:
    inverted = rf"(?i)\b(?:{_any_of(lexicon.inverted)})\b"
    return texts.str.replace_all(inverted, "not").str.replace_all(_CLAUSE_END, _CLAUSE_MARK)


def _any_of(words: Sequence[str]) -> str:
    # a list may be empty in a lexicon of one's own: then nothing matches
    return "|".join(re.escape(word) for word in words) if words else r"[^\s\S]"


def affirmed_tokens(texts: pl.Series, lexicon: "Lexicon") -> pl.DataFrame:
    """Return the tokens of texts before which their clause has no negator: ``row``, ``token``."""
    negated = rf"(?:^| )(?:{_any_of(lexicon.room_negators)})(?: .*)?$"
    affirmed = pl.col("clause").str.replace(negated, "").str.split(" ")
    return clauses(texts, lexicon).select("row", affirmed.alias("token")).explode("token")


def wanted_rooms(texts: pl.Series, lexicon: "Lexicon") -> pl.Series:
    """Return the room types that preferences want: List(String), in the order of `ROOM_TYPES`.

    Those that are mentioned and not negated; if there are none, all but the negated ones; empty
    where none is mentioned.
    """
    negator = rf"(?:{_any_of(lexicon.room_negators)})(?: [^ ]+){{0,{_WORDS_BEFORE - 1}}} "
    found = clauses(texts, lexicon)
    mentions = []
    for room in ROOM_TYPES:
        pattern = rf"(?:{'|'.join(lexicon.rooms[room])})(?: |$)"
        mentions += [
            pl.col("clause").str.contains(rf"(?:^| ){pattern}").any().alias(room),
            pl.col("clause").str.contains(rf"(?:^| ){negator}{pattern}").any().alias(f"no {room}"),
        ]
    by_text = found.group_by("row", maintain_order=True).agg(*mentions)
    wanted = [pl.col(room) & ~pl.col(f"no {room}") for room in ROOM_TYPES]
    none_wanted = ~pl.any_horizontal(wanted)
    any_negated = pl.any_horizontal(pl.col(f"no {room}") for room in ROOM_TYPES)
    rooms = [
        pl.when(want | (none_wanted & any_negated & ~pl.col(f"no {room}"))).then(pl.lit(room))
        for room, want in zip(ROOM_TYPES, wanted, strict=True)
    ]
    return by_text.select(pl.concat_list(rooms).list.drop_nulls()).to_series()


def names_conflict(texts: pl.Series, lexicon: "Lexicon") -> pl.Series:
    """Tell which texts name a conflict that they do not deny."""
    negators = rf"(?i)\b(?:{_any_of(lexicon.conflict_negators)})\b"
    marked = (
        _mark_clauses(texts, lexicon)
        .str.replace_all("['’‘`]", "")
        .str.replace_all(negators, _NEGATOR_MARK)
    )
    word = rf"(?:{_WORD}{_GAP}+)"
    few = rf"(?:^|{_CLAUSE_MARK}){_GAP}*{word}{{0,{_WORDS_BEFORE - 1}}}"
    before = rf"(?:{few}|{word}{{{_WORDS_BEFORE}}})"
    no_label = r"\b\s*(?:[^:\s]|$)"
    return marked.str.contains(rf"(?i){before}\b(?:{'|'.join(lexicon.conflict)}){no_label}")


def quotes_theory(texts: pl.Series, lexicon: "Lexicon") -> pl.Series:
    """Tell which texts have a phrase of social choice theory."""
    patterns = "|".join(pattern.replace(" ", r"[\s_-]+") for pattern in lexicon.theory)
    # digits of any kind join words, as a fraction before a letter: \b would part them
    return texts.str.contains(rf"(?i)(?:^|{_NO_WORD})(?:{patterns})(?:{_NO_WORD}|$)")


def catalogue_rooms(room_types: pl.Expr, lexicon: "Lexicon") -> pl.Expr:
    """Return the room type that a catalogue's normalised text means; null for none."""
    rooms = [
        pl.when(room_types.str.contains_any(list(names))).then(pl.lit(room))
        for room, names in lexicon.room_names.items()
    ]
    return pl.coalesce(*rooms)
