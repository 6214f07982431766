"""What was said in a dialogue before the trace's turn: what history keys count."""

from typing import Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_jit.arrow import join_rows
from fastscore_readers.json.places import Shape
from fastscore_readers.json.tokens import ABSENT, ARRAY, OBJECT

from fastscore.suites.json_values import (
    JsonPlaces,
    JsonValues,
    Problems,
    expect,
    located_texts,
    places,
    python_texts,
)
from fastscore.suites.memory_finance.labels import of_labels

_SPOKEN: Shape = {"role": None, "text": None}
_NEITHER = (False, False)


def read_said(column: JsonValues, turn: JsonPlaces, problems: Problems) -> dict[str, Any]:
    """Read the turns that a memory key can point at.

    They are the dataset's own turns; in their absence the trace's user texts or, where the first
    turn of the trace has none, the trace's turns taken as the dataset's.

    Parameters
    ----------
    column
        The dataset's turns, an array a dialogue.
    turn
        The trace's turns.
    problems
        Where faulty values are noted.

    Returns
    -------
    dict
        A row a turn, those of one kind together: ``dialogue_row``, ``text``, ``role`` and whether
        it is ``told``, a user text of the trace, which has no role.
    """
    lists = expect(column, ARRAY, "an array of turns or null", problems)
    spoken = places(lists, [_SPOKEN], problems).each
    expect(spoken.values, OBJECT, "an object that holds a turn", problems)
    dialogue = turn.values.dialogue
    is_spoken = np.zeros(len(column), np.bool_)
    is_spoken[spoken.values.dialogue] = True
    first = np.append(True, dialogue[1:] != dialogue[:-1]) if len(dialogue) else np.zeros(0, bool)
    is_told = (turn["user_text"].values.tags[first] != ABSENT)[np.cumsum(first) - 1]
    is_told &= ~is_spoken[dialogue]
    taken = np.flatnonzero(~is_told & ~is_spoken[dialogue])
    told = turn["user_text"].values.take(np.flatnonzero(is_told))

    without = told.where(np.zeros(len(told), np.bool_))
    roles = spoken["role"].values, turn["role"].values.take(taken), without
    said = spoken["text"].values, turn["text"].values.take(taken), told
    role = join_rows([located_texts(part, problems) for part in roles])
    texts = [python_texts(part, problems, falsy_is_empty=True) for part in said if len(part)]
    return {
        "dialogue_row": np.concatenate([part.dialogue for part in said]),
        "text": pl.concat(texts) if texts else pl.Series([], dtype=pl.String),
        "role": role,
        "told": np.repeat([False, False, True], [len(part) for part in said]),
    }


def order_history(said: pl.DataFrame, labels: pl.Series) -> dict[str, pl.DataFrame]:
    """Return what history keys count, as rows of `read_said`, by dialogue.

    Returns
    -------
    dict of pl.DataFrame
        ``history``, all turns but those that are told, and ``user_history``, the user turns that
        an assistant answers and those that are told: ``dialogue_row`` and the row ``said``.
    """
    dialogue, told = said["dialogue_row"].to_numpy(), said["told"].to_numpy()
    history = _by_dialogue(np.flatnonzero(~told), dialogue)
    role = said["role"].to_numpy()[history]
    roles = of_labels(role, labels, lambda text: (text == "user", text == "assistant"), _NEITHER)
    by_user, by_assistant = roles.T
    users = history[_answered(by_user, by_assistant, dialogue[history])]
    users = _by_dialogue(np.concatenate([users, np.flatnonzero(told)]), dialogue)
    return {
        name: pl.DataFrame({"dialogue_row": dialogue[rows], "said": rows})
        for name, rows in (("history", history), ("user_history", users))
    }


def _by_dialogue(rows: Indices, dialogue: Indices) -> Indices:
    return rows[np.argsort(dialogue[rows], kind="stable")]


def _answered(by_user: Mask, by_assistant: Mask, dialogue: Indices) -> Indices:
    """Return the user turns that an assistant answers: the first ones since the last answer."""
    users, answered = np.flatnonzero(by_user), np.cumsum(by_assistant)
    exchange = answered[users]
    first = np.ones(len(users), np.bool_)
    first[1:] = (exchange[1:] != exchange[:-1]) | (dialogue[users[1:]] != dialogue[users[:-1]])
    until = answered[np.searchsorted(dialogue, dialogue[users], side="right") - 1]
    return users[first & (until > exchange)]
