"""The offline heuristic: a guest's behaviour by the words of its messages.

For logs that hold neither states nor tool calls. It reads no order.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import polars as pl
from fastscore_kernels.literals import ITEM

from fastscore.suites.columns import Indices, Mask
from fastscore.suites.distinct import distinct
from fastscore.suites.guest_simulation.orders import Names, normalise
from fastscore.suites.guest_simulation.schema import DEFAULT_STATE, STATE_COLUMNS


@dataclass(frozen=True, slots=True)
class Words:
    """The words of the heuristic, as `plain_words` writes texts.

    Parameters
    ----------
    asks, menu_words
        What a message that explores the menu has: one of the former, or one of the latter and a
        question mark.
    items_at_once
        How many items of the target make an order all at once.
    moods
        Moods with their phrases; the first that fits counts.
    confirmations
        What the restaurant says once the order is complete.
    """

    asks: tuple[str, ...]
    menu_words: tuple[str, ...]
    items_at_once: int
    moods: tuple[tuple[str, tuple[str, ...]], ...]
    confirmations: tuple[str, ...]


@cache
def load_words() -> Words:
    """Read the built-in lexicon."""
    table = tomllib.loads(files(__package__).joinpath("lexicon.toml").read_text(encoding="utf-8"))
    return Words(
        asks=_phrases(table["exploration"]["asks"]),
        menu_words=_phrases(table["exploration"]["menu_words"]),
        items_at_once=table["ordering"]["items_at_once"],
        moods=tuple((mood["name"], _phrases(mood["phrases"])) for mood in table["moods"]),
        confirmations=_phrases(table["completion"]["confirmations"]),
    )


def _phrases(phrases: list[str]) -> tuple[str, ...]:
    return tuple(plain_words(pl.Series(phrases)).to_list())


def plain_words(texts: pl.Series) -> pl.Series:
    """Reduce texts to their words of a-z and 0-9, each between spaces."""
    words = texts.str.to_lowercase().str.replace_all(r"[^a-z0-9]+", " ").str.strip_chars(" ")
    return " " + words + " "


def states_by_words(rows: pl.DataFrame, targets: Names) -> pl.DataFrame:
    """Read the states of guest messages from what was said.

    Parameters
    ----------
    rows
        The rows of whole conversations in order: ``conversation``, ``role``, ``content``,
        ``is_guest``, ``is_exit``.
    targets
        The names in the target orders.

    Returns
    -------
    pl.DataFrame
        A row a guest message: `STATE_COLUMNS`, null in exits.
    """
    words = load_words()
    codes, found = distinct(rows["content"].fill_null(""))
    said = plain_words(found)

    def has(phrases: tuple[str, ...]) -> Mask:
        of_text: Mask = said.str.contains_any(list(phrases)).to_numpy()
        return of_text

    asks = found.str.contains("?", literal=True).to_numpy() & has(words.menu_words)
    explores = (has(words.asks) | asks)[codes]
    mood = np.full(len(found), len(words.moods))
    for rank, (_, phrases) in reversed(list(enumerate(words.moods))):
        mood[has(phrases)] = rank
    confirms = has(words.confirmations)[codes]
    conversation = rows["conversation"].to_numpy()
    guest = rows["is_guest"].to_numpy()
    restaurant = ~guest & rows["role"].ne_missing("system").to_numpy()
    complete = _carried(conversation, restaurant, confirms, start=False)
    named, at_once = _ordering(rows, codes, found, targets, words.items_at_once)
    ordering = _carried(conversation, named, at_once, start=True)
    moods = pl.Series([*(name for name, _ in words.moods), DEFAULT_STATE[2]])
    states = pl.DataFrame(
        {
            "complete": complete,
            "explores": explores,
            "mood": moods.gather(mood[codes]),
            "at_once": ordering,
        }
    ).select(
        pl.when(~rows["is_exit"]).then(expression).alias(name)
        for name, expression in zip(
            STATE_COLUMNS,
            (
                _either("complete", "yes", "no"),
                _either("explores", "explores_menu", "does_not_explore_menu"),
                pl.col("mood"),
                _either("at_once", "all_at_once", "one_by_one"),
            ),
            strict=True,
        )
    )
    return states.filter(rows["is_guest"])


def _either(name: str, yes: str, no: str) -> pl.Expr:
    return pl.when(name).then(pl.lit(yes)).otherwise(pl.lit(no))


def _carried(conversation: Indices, where: Mask, value: Mask, *, start: bool) -> Mask:
    """Carry the latest value, of those ``where``, on through each conversation."""
    last = np.where(where, np.arange(len(where)), -1)
    last = np.maximum.accumulate(last) if len(last) else last
    known = (last >= 0) & (conversation[last] == conversation)
    carried: Mask = np.where(known, value[last], start)
    return carried


def _ordering(
    rows: pl.DataFrame, codes: Indices, found: pl.Series, targets: Names, items_at_once: int
) -> tuple[Mask, Mask]:
    """Tell which messages name items of the target, and which of them order all at once."""
    n_rows = rows.height
    named, at_once = np.zeros(n_rows, np.bool_), np.zeros(n_rows, np.bool_)
    items = np.flatnonzero(targets.kind == ITEM)
    wanted = (
        pl.DataFrame(
            {
                "conversation": targets.conversation[items],
                "item": normalise(targets.name.gather(items)),
            }
        )
        .filter(pl.col("item") != "")
        .unique()
    )
    wanted = wanted.with_row_index("number")
    speaks = pl.DataFrame(
        {
            "conversation": rows["conversation"],
            "at": np.arange(n_rows),
            "said": (" " + normalise(found) + " ").gather(codes),
        }
    ).filter(rows["is_guest"] & ~rows["is_exit"])
    phrase = pl.concat_str(pl.lit(" "), "item", pl.lit(" "))
    pairs = (
        speaks.join(wanted, on="conversation", maintain_order="left")
        .filter(pl.col("said").str.contains(phrase, literal=True))
        .select("conversation", "at", "number")
    )
    conversation, at = pairs["conversation"].to_numpy(), pairs["at"].to_numpy()
    is_new = np.zeros(len(at), np.bool_)
    is_new[np.unique(pairs["number"].to_numpy(), return_index=True)[1]] = True
    counts = np.bincount(at, minlength=n_rows)
    new = np.bincount(at[is_new], minlength=n_rows)
    before = np.cumsum(new) - new
    first = np.searchsorted(rows["conversation"].to_numpy(), np.unique(conversation))
    start = np.zeros(int(conversation.max(initial=-1)) + 1, np.int64)
    start[np.unique(conversation)] = before[first]
    n_wanted = np.bincount(wanted["conversation"].to_numpy(), minlength=len(start))
    mentions = np.flatnonzero(counts)
    owner = rows["conversation"].to_numpy()[mentions]
    left = n_wanted[owner] - (before[mentions] - start[owner])
    named[mentions] = True
    at_once[mentions] = (counts[mentions] >= items_at_once) | ((left > 0) & (left == new[mentions]))
    return named, at_once
