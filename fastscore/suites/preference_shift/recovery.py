"""Recovery: whether, and how soon after a shift, user and system agree again.

What is compared is a turn's own pair of texts: the test asks whether the system follows what the
user says then, not whether it still serves the preference stated at the shift. Beside it stands
how much of the user's wording the system copies in the same turns.
"""

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices, Mask
from fastscore_kernels import first_recovery

from fastscore.suites.grouping import place_in_group
from fastscore.suites.preference_shift.options import PreferenceShift


def recover_shifts(
    turns: pl.DataFrame,
    n_dialogues: int,
    shifts: pl.DataFrame,
    scores: pl.DataFrame,
    options: PreferenceShift,
) -> pl.DataFrame:
    """Look for recovery, and for copying, in the window from each shift point on.

    Parameters
    ----------
    turns, shifts
        The frames of `read_logs`.
    n_dialogues
        How many conversations there are.
    scores
        ``cc``, ``cr`` and ``i`` of each turn.
    options
        The test, its thresholds, and the window.

    Returns
    -------
    pl.DataFrame
        One row a shift point, in order: ``dialogue_row``, ``shift``, ``turn``, ``in_dialogue``,
        ``recovered``, ``delay``, ``recovered_cosine``, ``delay_cosine``, where delays count from 0
        and are null without recovery; a shift that no turn of its window recovers is unknown, and
        ``recovered`` null, if one of those turns has no score; ``n_window_turns``, the turns of
        the window that have one, ``i_sum`` over them, and ``i_around_shift``, their mean, null
        without any.
    """
    owner = shifts["dialogue_row"].to_numpy()
    turn = shifts["turn"].to_numpy()
    offsets = np.searchsorted(turns["dialogue_row"].to_numpy(), np.arange(n_dialogues + 1))
    by_cosine = scores["cr"].to_numpy() >= options.recovery_cr
    met = scores["cc"].to_numpy() >= options.recovery_cc
    if options.recovery == "cc-or-cr":
        met |= by_cosine

    i_sum, n_scored, n_turns = _sum_in_windows(scores["i"], offsets, owner, turn, options)

    def delays(test: Mask) -> tuple[pl.Series, pl.Series]:
        found = first_recovery(test, offsets, owner, turn - 1, max(1, options.window))
        is_met = pl.Series(found >= 0)
        is_unknown = ~is_met & pl.Series(n_scored < n_turns)
        return pl.Series(found).set(~is_met, None), is_met.set(is_unknown, None)

    delay, recovered = delays(met)
    delay_cosine, recovered_cosine = delays(by_cosine)
    return pl.DataFrame(
        {
            "dialogue_row": owner,
            "shift": 1 + place_in_group(owner),
            "turn": turn,
            "in_dialogue": n_turns > 0,
            "recovered": recovered,
            "delay": delay,
            "recovered_cosine": recovered_cosine,
            "delay_cosine": delay_cosine,
            "n_window_turns": n_scored,
            "i_sum": i_sum,
        }
    ).with_columns(
        pl.when(pl.col("n_window_turns") > 0)
        .then(pl.col("i_sum") / pl.col("n_window_turns"))
        .alias("i_around_shift")
    )


def _sum_in_windows(
    values: pl.Series,
    offsets: Indices,
    owner: Indices,
    turn: Indices,
    options: PreferenceShift,
) -> tuple[Float64Array, Indices, Indices]:
    """Return the sum of the values in each shift's window, their number, and that of its turns."""
    left = np.maximum(np.diff(offsets)[owner] - (turn - 1), 0)
    count = np.minimum(left, max(1, options.window))
    shift = np.repeat(np.arange(len(owner)), count)
    rows = (offsets[owner + 1] - left)[shift] + place_in_group(shift)
    total = np.bincount(shift, values.fill_null(0.0).to_numpy()[rows], len(owner))
    found = np.bincount(shift, values.is_not_null().to_numpy()[rows], len(owner))
    return total.astype(np.float64), found.astype(np.int64), count
