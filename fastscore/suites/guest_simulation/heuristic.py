"""The offline heuristic: a guest's behaviour by the words of its messages.

For logs that hold neither states nor tool calls. It reads no order.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_kernels import count_phrases, keyword_groups, number_hashes, plain_words

from fastscore.suites.grouping import factorize, group_rows
from fastscore.suites.guest_simulation.item_lists import ITEM
from fastscore.suites.guest_simulation.orders import Names, normalise
from fastscore.suites.guest_simulation.rows import Rows
from fastscore.suites.guest_simulation.terms import DEFAULT_STATE
from fastscore.suites.guest_simulation.tool_cells import States

_VALUES = ("yes", "no", "explores_menu", "does_not_explore_menu", "all_at_once", "one_by_one")
_YES, _NO, _EXPLORES, _DOES_NOT_EXPLORE, _AT_ONCE, _ONE_BY_ONE = range(len(_VALUES))


@dataclass(frozen=True, slots=True)
class Words:
    """The words of the heuristic, as `plain_words` writes texts, between spaces.

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
    return tuple(_spaced(pl.Series(plain_words(phrases))).to_list())


def _spaced(words: pl.Series) -> pl.Series:
    """Put spaces around texts, so that what is found in them is whole words."""
    return " " + words + " "


def states_by_words(rows: Rows, targets: Names) -> States:
    """Read the states of guest messages from what was said.

    Parameters
    ----------
    rows
        The rows of whole conversations in order, with the columns ``role`` and ``content``.
    targets
        The names in the target orders.

    Returns
    -------
    States
        A row a guest message; none in exits.
    """
    words = load_words()
    codes, found = factorize(rows["content"].fill_null(""))
    groups = (words.asks, words.menu_words, words.confirmations, *(each for _, each in words.moods))
    bits = keyword_groups(_spaced(pl.Series(plain_words(found))), groups)[:, 0]
    asks, menu, confirms, *moods = (
        bits >> np.uint64(n) & np.uint64(1) > 0 for n in range(len(groups))
    )
    explores = asks | (menu & found.str.contains("?", literal=True).to_numpy())
    # of several moods the first counts, without any the default
    mood = np.select(moods, range(len(moods)), len(moods))
    restaurant = ~rows.is_guest & rows["role"].ne_missing("system").to_numpy()
    complete = _carried(rows.conversation, restaurant, confirms[codes], start=False)
    named, at_once = _ordering(rows, codes, found, targets, words.items_at_once)
    ordering = _carried(rows.conversation, named, at_once, start=True)
    code = np.stack(
        [
            np.where(complete, _YES, _NO),
            np.where(explores[codes], _EXPLORES, _DOES_NOT_EXPLORE),
            len(_VALUES) + mood[codes],
            np.where(ordering, _AT_ONCE, _ONE_BY_ONE),
        ],
        axis=1,
    )
    code[rows.is_exit] = -1
    values = pl.Series([*_VALUES, *(name for name, _ in words.moods), DEFAULT_STATE[2]])
    return States(code[rows.is_guest], values)


def _carried(conversation: Indices, where: Mask, value: Mask, *, start: bool) -> Mask:
    """Carry the latest value, of those ``where``, on through each conversation."""
    last = np.where(where, np.arange(len(where)), -1)
    last = np.maximum.accumulate(last) if len(last) else last
    known = (last >= 0) & (conversation[last] == conversation)
    carried: Mask = np.where(known, value[last], start)
    return carried


def _ordering(
    rows: Rows, codes: Indices, found: pl.Series, targets: Names, items_at_once: int
) -> tuple[Mask, Mask]:
    """Tell which messages name items of the target, and which of them order all at once."""
    items = targets.where(targets.kind == ITEM)
    item, names = factorize(normalise(items.values))
    item = item[items.code]
    given = np.flatnonzero((names != "").to_numpy()[item])
    _, firsts = number_hashes(
        (items.conversation[given] * len(names) + item[given]).astype(np.uint64)
    )
    given = given[firsts]
    conversation = rows.conversation
    owners = items.conversation[given]
    n_owners = 1 + int(max(conversation.max(initial=-1), owners.max(initial=-1)))
    order, offsets = group_rows(owners, n_owners)
    speaks = np.flatnonzero(rows.is_guest & ~rows.is_exit)
    counts, new, left = count_phrases(
        normalise(found),
        codes[speaks],
        names,
        (item[given][order], offsets),
        conversation[speaks],
    )
    named, at_once = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    named[speaks] = counts > 0
    all_left = (left > 0) & (left == new)
    at_once[speaks] = named[speaks] & ((counts >= items_at_once) | all_left)
    return named, at_once
