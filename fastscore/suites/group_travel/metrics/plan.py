"""M16: whether the days of a plan are complete and in order."""

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices

from fastscore.suites.declarations import EvidenceRows, share
from fastscore.suites.group_travel.metrics import sources as use
from fastscore.suites.group_travel.normalise import join_texts
from fastscore.suites.group_travel.terms import MEALS
from fastscore.suites.grouping import factorize, first_of_each, number_keys, offsets_of

_MINUTES_A_DAY = 24 * 60

M16 = share(
    id="M16",
    name="Plan coherence score",
    symbols=(
        ("D", "days of the plan that are not empty"),
        ("T", "days of D with a stop whose times can be read"),
        (r"m_d", "filled meals of day d: breakfast, lunch and dinner"),
        (r"v_d", "1 if the lunch of day d is not its dinner, else 0"),
        (r"o_d", "1 if the stops of day d follow each other in time, else 0"),
    ),
    latex=(r"\mathrm{M16} = \frac{\sum_{d \in D} (m_d + v_d) + \sum_{d \in T} o_d}{4 |D| + |T|}"),
    better="higher",
    numerator="M16_num",
    denominator="M16_den",
    null_when=(use.NO_PLAN,),
    evidence=(EvidenceRows(table="plan_lines", columns=(), text="text"),),
    reading="The share of passed checks. Meals that a day of travel leaves out lower it.",
    example="5 days, 3 of them with times: 5 * 4 + 3 = 23 checks, 21 passed: 21 / 23 = 0.913.",
    note=(
        "Lunch and dinner differ if one of them is empty, not if both are. The last stop may "
        "end after midnight, except with `--strict-overnight`."
    ),
    headline=True,
    uses=(use.PLAN,),
    source="Metric Reference, M16",
)
METRICS = (M16,)


def check_days(
    n_days: Indices, names: pl.DataFrame, stops: pl.DataFrame, strict_overnight: bool
) -> pl.DataFrame:
    """Count the checks of each plan and those that it passes."""
    first_day = offsets_of(n_days)
    n_all = int(first_day[-1])
    meal = names["kind"].to_physical().to_numpy().astype(np.int64)
    served = np.flatnonzero(meal < len(MEALS))
    day = first_day[names["plan"].to_numpy()[served]] + names["day"].to_numpy()[served]
    course = day * len(MEALS) + meal[served]
    dishes, _ = factorize(join_texts(names["normal"].gather(served), number_keys(course)))
    menu = np.full((n_all, len(MEALS)), -1)
    menu.reshape(-1)[course[first_of_each(course)]] = dishes
    timely = _timely_days(stops, first_day, strict_overnight)
    lunch, dinner = (menu[:, MEALS.index(meal)] for meal in ("lunch", "dinner"))
    passed = (menu >= 0).sum(axis=1) + (lunch != dinner) + (timely == 1)
    plan = np.repeat(np.arange(len(n_days)), n_days)
    has_days = np.flatnonzero(n_days)
    return pl.DataFrame(
        {
            "plan": has_days,
            "passed": np.bincount(plan, passed, len(n_days)).astype(np.int64)[has_days],
            "checks": np.bincount(plan, 4 + (timely >= 0), len(n_days)).astype(np.int64)[has_days],
        }
    )


def _timely_days(stops: pl.DataFrame, first_day: Indices, strict_overnight: bool) -> Indices:
    """Tell for each day whether its stops follow each other: 1 or 0, -1 without any interval.

    Parameters
    ----------
    stops
        `fastscore.suites.group_travel.plans.read_stops`.
    first_day : int64 (plans + 1,)
        Where the days of each plan begin.
    strict_overnight
        Whether a day's last stop may not end past midnight.
    """
    timed = stops.drop_nulls(["start", "end"])
    start, end = timed["start"].to_numpy(), timed["end"].to_numpy()
    day = first_day[timed["plan"].to_numpy()] + timed["day"].to_numpy()
    same = day[1:] == day[:-1]
    if not strict_overnight:
        is_last = np.ones(len(day), np.bool_)
        is_last[:-1] = ~same
        end = np.where(is_last & (end < start), end + _MINUTES_A_DAY, end)
    in_time = end > start
    in_time[1:] &= ~same | (start[1:] > start[:-1])
    timely = np.full(first_day[-1], -1)
    timely[day] = 1
    timely[day[~in_time]] = 0
    return timely
