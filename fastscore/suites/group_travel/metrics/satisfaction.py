"""M10, M10b, M11 and W1 to W3: whether the plan satisfies members' preferences, by four channels.

A preference for an actionable slot is satisfied if any channel fires: the room type (lodging), a
category (the other slots), two informative tokens, or the similarity of a chosen place.
"""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from fastscore.suites.declarations import Formula, Metric, NullRule, Scale
from fastscore.suites.group_travel.lexicon import (
    CATEGORY_SLOTS,
    affirmed_tokens,
    component,
    normalise,
    wanted_rooms,
)
from fastscore.suites.group_travel.metrics import sources as use
from fastscore.suites.group_travel.metrics.places import GroundedPlaces
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.similarity import (
    Informative,
    Similarity,
    TextCodes,
    count_hits,
    reaches,
)
from fastscore.suites.showing import EvidenceRows

if TYPE_CHECKING:
    from fastscore.suites.group_travel.lexicon import Lexicon
    from fastscore.suites.group_travel.plans import Plans

CHANNELS = ("room", "category", "lexical", "semantic")
LEAST_HITS = 2
"""Informative tokens that satisfy a preference by words alone."""
_USES = (use.PREFERENCES, use.PLAN, use.PLAN_TEXT, use.CATALOGUE, use.EMBEDDER)
OF_PAIRS = (
    use.UNKNOWN_ACTIONABLE,
    use.NO_PLAN,
    NullRule(pl.col("M10_den") == 0, "not_applicable", "no actionable preference is stated"),
)
"""What makes metrics of actionable preferences null."""
_SHARES = (
    ("A_i", "actionable preferences of member i"),
    ("S_i", "preferences of $A_i$ that the plan satisfies by any channel (M10)"),
    ("s_i", "satisfied share of member i, $|S_i| / |A_i|$"),
)
_N = ("N", "number of members with an actionable preference")
_MEMBERS = EvidenceRows(
    within="members", names=("member",), columns=("satisfaction", "satisfied", "pairs")
)

_of_members = partial(
    Metric,
    scale=Scale("higher", by="multi_user"),
    null_when=OF_PAIRS,
    evidence=(_MEMBERS,),
    role="headline",
    baselines=(use.QUOTING,),
    uses=_USES,
)
"""Metrics over the satisfied shares of members."""

W1 = _of_members(
    id="W1",
    name="Utilitarian welfare",
    formula=Formula(r"\mathrm{W1} = \frac{1}{N} \sum_{i=1}^{N} s_i", *_SHARES, _N),
    scale=Scale("higher"),
    micro=("W1_num", "W1_den"),
    derivation="mean of {satisfaction}",
    reading="The average satisfaction. It equals M10 if members state equally many preferences.",
    example="s = 1, 0.75, 0.5, 1: 3.25 / 4 = 0.8125.",
    note="The source calls W1 identical to M10. M10 counts preferences, W1 averages members.",
    source="Metric Reference, W1",
)
W2 = _of_members(
    id="W2",
    name="Egalitarian welfare",
    formula=Formula(r"\mathrm{W2} = \min_i s_i", *_SHARES),
    derivation="min({satisfaction})",
    reading="The satisfaction of the worst-off member.",
    example="s = 1, 0.75, 0.5, 1: 0.5.",
    source="Metric Reference, W2",
)
W3 = _of_members(
    id="W3",
    name="Nash welfare",
    formula=Formula(r"\mathrm{W3} = \left(\prod_{i=1}^{N} s_i\right)^{1/N}", *_SHARES, _N),
    derivation="geometric mean of {satisfaction}",
    reading="The geometric mean, which inequality lowers. Always W2 <= W3 <= W1.",
    example="s = 1, 0.75, 0.5, 1: 0.375^(1/4) = 0.7825.",
    source="Metric Reference, W3",
)
M10 = use.ratio(
    "M10",
    "Member slot satisfaction rate",
    Formula(
        r"\mathrm{M10} = \frac{|S|}{|A|}",
        ("A", "actionable preferences of all members"),
        ("S", "preferences of A that the plan satisfies by any channel"),
    ),
    null_when=OF_PAIRS,
    evidence=(
        use.of_pairs(
            "satisfied", *(f"{channel}_channel" for channel in CHANNELS), "place_similarity"
        ),
    ),
    reading="The share of satisfied preferences. Raw output makes the lexical channel permissive.",
    example="4 members with 4 slots each, 14 satisfied: 14 / 16 = 0.875.",
    note="Four channels satisfy a preference: room, category, lexical and semantic.",
    uses=_USES,
    role="",
)
M10B = use.ratio(
    "M10b",
    "Category lookup satisfaction rate",
    Formula(
        r"\mathrm{M10b} = \frac{|S|}{|C|}",
        ("C", "preferences for cuisine, event or attraction that name a category"),
        ("S", "preferences of C that share a category with a chosen place"),
    ),
    null_when=(
        NullRule(
            pl.col("no_category"),
            "missing_input",
            "the text or the member of a preference for a slot with categories was not given",
        ),
        use.NO_PLAN,
        NullRule(pl.col("M10b_den") == 0, "not_applicable", "no preference names a category"),
    ),
    evidence=(
        use.of_pairs(
            "category_channel", "category_tokens", where=pl.col("slot").is_in(CATEGORY_SLOTS)
        ),
    ),
    reading="The category channel alone, over preferences that name a category.",
    example="12 preferences name a category, 8 match: 8 / 12 = 0.667.",
    uses=(use.PREFERENCES, use.PLAN, use.CATALOGUE),
    role="",
)
M11 = _of_members(
    id="M11",
    name="All-constraints satisfied rate",
    formula=Formula(r"\mathrm{M11} = \frac{|\{i \mid s_i = 1\}|}{N}", *_SHARES, _N),
    micro=("M11_num", "M11_den"),
    reading="A single user is satisfied more easily than a group: compare groups of equal size.",
    example="4 members, of whom 2 have all their preferences satisfied: 2 / 4 = 0.5.",
    source="Metric Reference, M11",
)
METRICS = (W1, W2, W3, M10, M10B, M11)

FIRINGS = tuple(
    Metric(
        id=f"n_{channel}_channel",
        name=f"Firings of the {channel} channel",
        formula=Formula(text=f"actionable preferences that are satisfied {by}"),
        scale=Scale("neither", maximum=None, unit="pairs"),
        source="Metric Reference, M10",
        micro=(f"{channel}_fired", "M10_den"),
        role="part",
    )
    for channel, by in (
        ("room", "by their room type"),
        ("category", "by a category"),
        ("lexical", "by tokens"),
        ("semantic", "by similarity"),
    )
)
"""How often each channel of M10 fires: no metrics of their own, but rows of the summary. The
numerator, which the summary adds up, is the count itself."""


def state_wishes(
    frames: dict[str, pl.DataFrame], lexicon: "Lexicon", options: GroupTravel
) -> pl.DataFrame:
    """Read what preferences want by name."""
    stated = frames["pairs"].select("slot", "preference")
    texts = stated.filter(pl.col("slot") == "lodging").unique(maintain_order=True)
    rooms = texts.with_columns(wanted_rooms=wanted_rooms(texts["preference"], lexicon))
    found = stated.join(rooms, on=stated.columns, how="left", maintain_order="left")
    return found.select(
        pl.col("wanted_rooms").fill_null([]),
        category_tokens=_category_tokens(frames, lexicon, options),
    )


def _category_tokens(
    frames: dict[str, pl.DataFrame], lexicon: "Lexicon", options: GroupTravel
) -> pl.Series:
    """Return the parts of categories of the slot's catalogue that each pair names."""
    pairs = frames["pairs"].select(
        "catalogue", "slot", text="preference", pair=pl.int_range(pl.len())
    )
    named = pairs.filter(pl.col("slot").is_in(CATEGORY_SLOTS))
    texts = named["text"].unique(maintain_order=True)
    if options.negation == "all":
        words = affirmed_tokens(texts, lexicon)
    else:
        split = normalise(texts).str.split(" ").to_frame("token").with_row_index("row")
        words = split.explode("token")
    tokens = (
        words.select(
            text=pl.lit(texts).gather(pl.col("row")), component=component(words["token"], lexicon)
        )
        .drop_nulls()
        .unique(maintain_order=True)
    )
    known = named.join(tokens, on="text", maintain_order="left_right").join(
        frames["vocabulary"],
        on=["catalogue", "slot", "component"],
        how="semi",
        maintain_order="left",
    )
    of_pairs = known.group_by("pair", maintain_order=True).agg("component")
    found = pairs.join(of_pairs, on="pair", how="left", maintain_order="left")
    return found["component"].fill_null([])


def satisfy_pairs(
    frames: dict[str, pl.DataFrame],
    wishes: pl.DataFrame,
    texts: TextCodes,
    informative: Informative,
    similarity: Similarity,
    options: GroupTravel,
) -> pl.DataFrame:
    """Find what satisfies each pair: any of four channels, of those that a plan chose for."""
    choice = frames["pairs"]["choice"]
    chosen = texts.said("choice_texts", frames["choice_texts"]["choice"])
    of_places = frames["choice_places"]["choice"]
    wish = similarity.vectors["pairs"]
    nearest = similarity.nearest(wish, choice, "choice_places", of_places)
    fired = pl.DataFrame(
        {
            "choice": choice,
            "room": _any_common(choice, wishes["wanted_rooms"], frames["choice_rooms"]),
            "category": _any_common(choice, wishes["category_tokens"], frames["choice_components"]),
            "hits": count_hits(texts, informative, choice, chosen),
            "place_similarity": nearest,
            "semantic": reaches(nearest, options.satisfy_sim),
        }
    ).with_columns(lexical=pl.col("hits") >= LEAST_HITS)
    is_chosen = pl.when(pl.col("choice").is_not_null())
    by_any = pl.any_horizontal(pl.col(CHANNELS).fill_null(False))
    return fired.select(
        room_channel="room",
        category_channel="category",
        lexical_hits=is_chosen.then("hits"),
        lexical_channel=is_chosen.then("lexical"),
        place_similarity="place_similarity",
        semantic_channel=is_chosen.then("semantic"),
        satisfied=is_chosen.then(by_any),
    )


def _any_common(choice: pl.Series, wishes: pl.Series, chosen: pl.DataFrame) -> pl.Series:
    """Tell which pairs wish for something that was chosen; null where nothing is named."""
    pairs = pl.DataFrame({"choice": choice, "wish": wishes}).with_row_index("pair")
    met = (
        pairs.explode("wish")
        .join(chosen.rename({chosen.columns[1]: "wish"}), on=["choice", "wish"], how="semi")
        .select("pair")
        .to_series()
    )
    is_asked = pl.col("choice").is_not_null() & (pl.col("wish").list.len() > 0)
    return pairs.select(pl.when(is_asked).then(pl.col("pair").is_in(met.implode()))).to_series()


def count_satisfaction(pairs: pl.DataFrame) -> pl.DataFrame:
    """Count the numerators and denominators of M10 and M10b, and the channels that fire."""
    by_category = pl.col("category_channel")
    return pairs.group_by("dialogue_row").agg(
        M10_num=pl.col("satisfied").sum(),
        M10_den=pl.col("satisfied").count(),
        M10b_num=by_category.sum(),
        M10b_den=by_category.filter(pl.col("slot").is_in(CATEGORY_SLOTS)).count(),
        **{f"n_{channel}_channel": pl.col(f"{channel}_channel").sum() for channel in CHANNELS},
    )


def satisfy_members(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the members with an actionable preference.

    ``satisfaction`` is the s_i of W1 to W3, ``semantic_mean`` the x_i of M13.
    """
    similarity = pl.col("slot_similarity")
    return (
        pairs.filter(pl.col("satisfied").is_not_null())
        .group_by("member_row", maintain_order=True)
        .agg(
            pl.col("dialogue_row", "member").first(),
            pairs=pl.len().cast(pl.Int64),
            satisfied=pl.col("satisfied").sum().cast(pl.Int64),
            semantic_mean=use.ascending_sum("slot_similarity") / similarity.count(),
        )
        .with_columns(satisfaction=pl.col("satisfied") / pl.col("pairs"))
    )


def measure_welfare(members: pl.DataFrame) -> pl.DataFrame:
    """Measure W1 to W3 and M11 of each dialogue, whatever the order of its members."""
    s, n = pl.col("satisfaction"), pl.len()
    log = pl.when(s > 0.0).then(s).otherwise(1.0).map_batches(np.log, return_dtype=pl.Float64)
    welfare = (
        members.with_columns(log=log)
        .group_by("dialogue_row")
        .agg(
            W1_num=use.ascending_sum("satisfaction"),
            W1_den=n,
            W2=s.min(),
            mean_log=use.ascending_sum("log") / n,
            M11_num=(s == 1.0).sum(),
            M11_den=n,
        )
    )
    geometric_mean = pl.col("mean_log").map_batches(np.exp, return_dtype=pl.Float64)
    return welfare.with_columns(
        W3=pl.when(pl.col("W2") > 0.0).then(geometric_mean).otherwise(0.0)
    ).drop("mean_log")


def choices_of(
    itineraries: pl.DataFrame,
    plans: "Plans",
    grounded: GroundedPlaces,
    choices: pl.DataFrame,
    options: GroupTravel,
) -> dict[str, pl.DataFrame]:
    """Return what itineraries chose for slots.

    All frames have ``choice``. ``choice_places``: ``text``, a place's record or, where it has
    none, its name. ``choice_texts``: all that may contain lexical evidence. ``choice_targets``:
    what M12 compares, in one text or in parts. ``choice_rooms`` and ``choice_components``: room
    types of the records, and the parts of their categories.
    """
    raw = plans.plans.select("raw_output", plan=pl.int_range(pl.len()))
    chosen = choices.join(itineraries, on="itinerary", maintain_order="left").join(
        raw, on="plan", how="left", maintain_order="left"
    )
    of_slot = ["itinerary", "slot"]
    names = choices.join(grounded.slot_names, on=of_slot, maintain_order="left_right")
    records = choices.join(grounded.slot_records, on=of_slot, maintain_order="left_right")
    bare = names.join(records, on=["choice", "name"], how="anti", maintain_order="left")
    described = records.select("choice", "text")
    entered = plans.entries.group_by("plan", "slot", maintain_order=True).agg(
        entered=pl.col("text").str.join("; ")
    )
    chosen = chosen.join(entered, on=["plan", "slot"], how="left", maintain_order="left")
    name = pl.col("name").alias("text")
    return {
        "choice_places": pl.concat([described, bare.select("choice", name)]),
        "choice_texts": pl.concat(
            [names.select("choice", name), described, chosen.select("choice", text="raw_output")]
        ),
        "choice_targets": _targets(chosen["entered"].fill_null(""), chosen["raw_output"], options),
        "choice_rooms": records.select("choice", "room").drop_nulls(),
        "choice_components": records.select("choice", component="components")
        .explode("component")
        .drop_nulls(),
    }


def _targets(entered: pl.Series, raw: pl.Series, options: GroupTravel) -> pl.DataFrame:
    """Return what M12 compares, by choice: the plan's entries and its raw output.

    Read in windows they are two texts, as the raw output is that of every slot; blank ones are
    left out.
    """
    parts = [entered] if options.m12_target == "slot" else [entered, raw]
    if options.m12_long == "cut" and len(parts) == 2:
        parts = [entered + "\n" + raw]
    targets = pl.concat(
        pl.DataFrame({"choice": np.arange(len(part)), "text": part}) for part in parts
    )
    return targets.filter(pl.col("text").str.strip_chars() != "")
