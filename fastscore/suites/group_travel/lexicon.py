"""The suite's fixed words, its lexicon, and texts as tokens: normalised, folded, compared.

A clause ends at ``. , ; ! ?``, at a line end, and before but and however. One search finds a
mention that is not negated: negators and clause ends are first made marks that no word crosses.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices
from fastscore_kernels import number_tokens, replace_characters

from fastscore.settings.options import lexicon_content, parse_lexicon
from fastscore.suites.declarations import Vocabulary
from fastscore.suites.grouping import Ragged, factorize

SLOTS = (
    "traveler_type",
    "travel_purpose",
    "spending_preference",
    "cuisine",
    "attraction",
    "event",
    "lodging",
)
SLOT_ALIASES = {
    "room_type": "lodging",
    "accommodation": "lodging",
    "hotel": "lodging",
    "spending": "spending_preference",
    "restaurant": "cuisine",
    "food": "cuisine",
    "events": "event",
    "attractions": "attraction",
}
ACTIONABLE = ("lodging", "cuisine", "event", "attraction")
CATEGORY_SLOTS = ("cuisine", "event", "attraction")
KIND_OF_SLOT = {
    "lodging": "accommodations",
    "cuisine": "restaurants",
    "event": "events",
    "attraction": "attractions",
}
ROOM_TYPES = ("entire", "private", "shared")
MEALS = ("breakfast", "lunch", "dinner")
STOP = "stop"
PLAN_KINDS = (*MEALS, "accommodation", "attraction", "event", STOP)
"""The kinds of places in a plan."""
SLOT_OF_KIND = {
    **dict.fromkeys(MEALS, "cuisine"),
    "accommodation": "lodging",
    "attraction": "attraction",
    "event": "event",
}
CATALOGUES = ("accommodations", "restaurants", "attractions", "events")
CATALOGUE_COLUMNS = tuple(f"ref_info_{kind}" for kind in CATALOGUES)
FLAGS = ("multi_user", "enable_synthesis", "use_social_theory", "enable_feedback")
CONDITIONS = {
    "C1": (False, False, False, False),
    "C2": (True, False, False, False),
    "C3": (True, True, False, False),
    "C4": (True, True, True, False),
    "C5": (True, True, True, True),
}
CUSTOM = "custom"
INTENTS_OF_SLOTS = (
    "user_provide",
    "sys_synthesize",
    "user_respond",
    "sys_request_vote",
    "user_vote",
    "user_feedback",
    "sys_feedback",
)
PLAIN_INTENTS = ("sys_present_plan", "user_accept_plan", "user_approve_approach")
INTENTS = Vocabulary(
    known=("", *(f"{intent}_*" for intent in INTENTS_OF_SLOTS), *PLAIN_INTENTS), in_any_case=True
)
PROVIDE, SYNTHESIZE, RESPOND, REQUEST_VOTE, VOTE, USER_FEEDBACK, SYS_FEEDBACK = INTENTS_OF_SLOTS
PRESENT_PLAN, ACCEPT_PLAN, APPROVE = PLAIN_INTENTS
FEEDBACK = (USER_FEEDBACK, SYS_FEEDBACK)
SYSTEM_SPEAKERS = ("system", "sys", "assistant", "agent", "planner", "mediator")
EVERYONE = ("all", "everyone", "group")

NULLS = (
    *("", "-", "n/a", "na", "none", "null", "nil", "nan", "unknown", "not applicable"),
    *("no strategy", "no conflict", "tbd"),
)
"""Placeholders for no strategy and no explanation, stripped and casefolded."""
UNFILLED = ("", "na", "n a", "none", "null", "nan", "nil", "tbd")
"""Placeholders for no place in a plan, normalised."""


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """All words that the suite looks for."""

    version: str  # the file's own version; written in every output
    uninformative: frozenset[str]  # words that carry no information in any preference
    # words that carry none in the preferences of a slot
    slot_generic: Mapping[str, tuple[str, ...]]
    category_drop: frozenset[str]  # folded parts of category names that mean nothing
    category_alias: Mapping[str, str]  # other names of folded parts
    categories: Mapping[str, tuple[str, ...]]  # by slot the categories that count in any catalogue
    inverted: tuple[str, ...]  # phrases that are read as "not"
    # words that turn the mention after them round
    room_negators: tuple[str, ...]
    conflict_negators: tuple[str, ...]
    rooms: Mapping[str, tuple[str, ...]]  # by room type the patterns of its mention
    # by room type what a catalogue's normalised room type contains
    room_names: Mapping[str, tuple[str, ...]]
    # patterns that name a conflict; that give away a theory
    conflict: tuple[str, ...]
    theory: tuple[str, ...]


def load_lexicon(path: str = "") -> Lexicon:
    """Read a lexicon."""
    return _parse(path, lexicon_content(path, __package__))


_TOP = ("version", "stop", "filler", "slot_generic", "category", "rooms", "conflict", "theory")
_ROOMS = ("inverted", "negators", "catalogue", *ROOM_TYPES)


@cache
def _parse(path: str, content: bytes) -> Lexicon:
    top = parse_lexicon(path, content, _TOP)
    category = top.table("category", ("drop", "alias", "known"))
    rooms = top.table("rooms", _ROOMS)
    room_names = rooms.table("catalogue", ROOM_TYPES)
    conflict = top.table("conflict", ("negators", "patterns"))
    theory = top.table("theory", ("patterns",))
    return Lexicon(
        version=top.word("version"),
        uninformative=frozenset((*top.words("stop"), *top.words("filler"))),
        slot_generic=top.words_by_name("slot_generic", SLOTS),
        category_drop=frozenset(category.words("drop")),
        category_alias=category.word_by_name("alias"),
        categories=category.words_by_name("known", CATEGORY_SLOTS),
        inverted=rooms.words("inverted"),
        room_negators=rooms.words("negators"),
        conflict_negators=conflict.words("negators"),
        rooms={name: rooms.patterns(name) for name in ROOM_TYPES},
        room_names={name: room_names.words(name) for name in ROOM_TYPES},
        conflict=conflict.patterns("patterns"),
        theory=theory.patterns("patterns"),
    )


_SHORTEST_COMPONENT = 3
_APOSTROPHES = "'’‘`"


@cache
def normal_character(character: str) -> str:
    """Return the replacement of a character: letters and digits without marks, or a space.

    Marks have a combining class and nothing else does, so that characters can be decomposed one
    by one.
    """
    if character == "&":
        return " and "
    decomposed = unicodedata.normalize("NFKD", character)
    bare = "".join(part for part in decomposed if not unicodedata.category(part).startswith("M"))
    kept = (part for part in bare.casefold() if part not in _APOSTROPHES)
    return "".join(" and " if part == "&" else part if part.isalnum() else " " for part in kept)


def normalise(texts: pl.Series) -> pl.Series:
    """Normalise texts: no case, no marks, no apostrophes, words between single spaces.

    Null stays null.
    """
    codes, found = factorize(texts.fill_null("") if texts.null_count() else texts)
    normal = pl.Series(replace_characters(found, normal_character), dtype=pl.String)
    gathered = normal[codes].rename(texts.name)
    return gathered.set(texts.is_null(), None) if texts.null_count() else gathered


def fold(tokens: pl.Expr) -> pl.Expr:
    """Fold plurals: museums to museum, cities to city."""
    length = tokens.str.len_chars()
    plural = tokens.str.ends_with("s") & ~tokens.str.contains("(?:ss|us|is)$")
    return (
        pl.when((length > 4) & tokens.str.ends_with("ies"))
        .then(tokens.str.head(-3) + "y")
        .when((length > 3) & plural)
        .then(tokens.str.head(-1))
        .otherwise(tokens)
    )


@dataclass(frozen=True, slots=True)
class Tokens:
    """Texts as sequences of numbered tokens."""

    # the tokens of each text, plurals folded, (int32 ids, int64 offsets)
    folded: tuple[npt.NDArray[np.int32], Indices]
    # the same texts, unchanged, (int32 ids, int64 offsets)
    plain: tuple[npt.NDArray[np.int32], Indices]
    vocabulary: pl.Series  # the token of each number, String
    fold_of: npt.NDArray[np.int32]  # the number of each token's folded form, int32 (tokens,)


def tokenise(texts: pl.Series) -> Tokens:
    """Cut texts into tokens."""
    found = number_tokens(replace_characters(texts, normal_character))
    vocabulary = pl.Series(found.vocabulary, dtype=pl.String).alias("token")
    folds = pl.select(fold(pl.lit(vocabulary)).alias("token")).to_series()
    numbers, whole = factorize(pl.concat([vocabulary, folds]))
    fold_of = numbers[len(vocabulary) :].astype(np.int32)
    offsets = found.offsets
    return Tokens((fold_of[found.ids], offsets), (found.ids, offsets), whole, fold_of)


def uninformative_tokens(tokens: Tokens, lexicon: "Lexicon") -> tuple[pl.Series, pl.DataFrame]:
    """Return which tokens carry no information anywhere, and which in a slot: ``slot``, ``plain``.

    A token or its fold is listed, or the fold is short and neither digits nor of another script.
    """
    words = tokens.vocabulary
    forms = pl.DataFrame({"plain": words.head(len(tokens.fold_of)), "fold": words[tokens.fold_of]})

    def listed(names: Iterable[str]) -> pl.Expr:
        return pl.any_horizontal(pl.col("plain", "fold").is_in(list(names)))

    fold = pl.col("fold")
    is_ascii = fold.str.len_bytes() == fold.str.len_chars()
    is_short = is_ascii & (fold.str.len_chars() < 3) & ~fold.str.contains("^[0-9]+$")
    everywhere = forms.select(listed(lexicon.uninformative) | is_short).to_series()
    in_slots = [
        forms.select(slot=pl.lit(slot), plain=listed(names).arg_true().cast(pl.Int64))
        for slot, names in lexicon.slot_generic.items()
    ]
    schema = {"slot": pl.String(), "plain": pl.Int64()}
    return everywhere, pl.concat([pl.DataFrame(schema=schema), *in_slots])


def as_ids(rows_of: Ragged) -> tuple[npt.NDArray[np.int32], Indices]:
    """Return ragged numbers as the kernels take token ids."""
    return rows_of[0].astype(np.int32), rows_of[1]


def component(tokens: pl.Series, lexicon: "Lexicon") -> pl.Series:
    """Return what tokens mean as parts of categories, null for nothing."""
    codes, found = factorize(tokens)
    folded = fold(pl.col("token"))
    means = (folded.str.len_chars() >= _SHORTEST_COMPONENT) & ~folded.is_in(
        list(lexicon.category_drop)
    )
    meant = pl.when(means).then(folded.replace(dict(lexicon.category_alias)))
    return found.to_frame("token").select(meant).to_series()[codes]


_CLAUSE_END = r"[.,;!?\n]+|(?i:\b(?:but|however)\b)"
_NEGATOR_MARK = "\x01"
_CLAUSE_MARK = "\x02"
_WORD = r"[\p{L}\p{N}\p{M}]+"
_GAP = rf"[^\p{{L}}\p{{N}}\p{{M}}{_NEGATOR_MARK}{_CLAUSE_MARK}]"
_NO_WORD = r"[^\p{L}\p{N}_]"
_WORDS_BEFORE = 3


def clauses(texts: pl.Series, lexicon: "Lexicon") -> pl.DataFrame:
    """Cut texts into normalised clauses."""
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
