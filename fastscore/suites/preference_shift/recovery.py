"""Recovery: whether, and how soon after a shift, user and system agree again.

What is compared is a turn's own pair of texts: the test asks whether the system follows what the
user says then, not whether it still serves the preference stated at the shift.
"""

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import first_recovery

from fastscore.suites.columns import place_in_group
from fastscore.suites.preference_shift.options import PreferenceShiftOptions

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def recover_shifts(
    turns: pl.DataFrame,
    n_dialogues: int,
    shifts: pl.DataFrame,
    scores: pl.DataFrame,
    options: PreferenceShiftOptions,
) -> pl.DataFrame:
    """Look for recovery in the window after each shift point.

    Parameters
    ----------
    turns, shifts
        The frames of `read_logs`.
    n_dialogues
        How many conversations there are.
    scores
        ``cc`` and ``cr`` of each turn.
    options
        The test, its thresholds, and the window.

    Returns
    -------
    pl.DataFrame
        One row a shift point, in order: ``dialogue_row``, ``shift``, ``turn``, ``in_dialogue``,
        ``recovered``, ``delay``, ``recovered_cosine``, ``delay_cosine``; delays count from 0 and
        are null without recovery.
    """
    owner = shifts["dialogue_row"].to_numpy()
    turn = shifts["turn"].to_numpy()
    offsets = np.searchsorted(turns["dialogue_row"].to_numpy(), np.arange(n_dialogues + 1))
    by_cosine = scores["cr"].to_numpy() >= options.recovery_cr
    met = scores["cc"].to_numpy() >= options.recovery_cc
    if options.recovery == "cc-or-cr":
        met |= by_cosine

    def delays(test: Mask) -> pl.Series:
        found = first_recovery(test, offsets, owner, turn - 1, max(1, options.window))
        return pl.Series(found).set(pl.Series(found < 0), None)

    delay, delay_cosine = delays(met), delays(by_cosine)
    return pl.DataFrame(
        {
            "dialogue_row": owner,
            "shift": 1 + place_in_group(owner),
            "turn": turn,
            "in_dialogue": turn <= np.diff(offsets)[owner],
            "recovered": delay.is_not_null(),
            "delay": delay,
            "recovered_cosine": delay_cosine.is_not_null(),
            "delay_cosine": delay_cosine,
        }
    )
