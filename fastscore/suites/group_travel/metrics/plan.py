"""M9 to M11, M15 and W1 to W3: whether the plan's places are real, and please the members.

A plan and a catalogue that belong together make an itinerary. Dialogues with equal plans and equal
catalogues share one, and everything about it is found once. A name is looked up once in each
catalogue, whichever itineraries have it.

A preference for an actionable slot is satisfied if any of four channels fires: the room type
(lodging), a category (the other slots), two informative tokens, or the similarity of a chosen
place.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from polars import col as C

from fastscore.suites.declarations import Formula, Metric, NullRule, Scale
from fastscore.suites.group_travel.lexicon import (
    CATEGORY_SLOTS,
    KIND_OF_SLOT,
    SLOT_OF_KIND,
    affirmed_tokens,
    component,
    normalise,
    wanted_rooms,
)
from fastscore.suites.group_travel.metrics import sources as use
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
    from fastscore.suites.group_travel.catalogue import Catalogue
    from fastscore.suites.group_travel.events import Plans
    from fastscore.suites.group_travel.lexicon import Lexicon

M9 = use.ratio(
    "M9",
    "Plan grounding rate",
    Formula(
        r"\mathrm{M9} = \frac{|G|}{|P|}",
        ("P", "distinct places of the plan, stops included"),
        ("G", "places of P whose name the catalogue has"),
    ),
    null_when=(
        use.NO_PLAN,
        NullRule(~C("has_catalogue"), "missing_input", "the dialogue has no catalogue"),
        NullRule(C("M9_den") == 0, "missing_input", "the plan names no place"),
    ),
    evidence=(EvidenceRows(table="places", names=("place",), columns=("grounded",)),),
    reading="The share of places that exist. Names are compared in normal form, never roughly.",
    example="15 places, all of them in the catalogue: 15 / 15 = 1.",
    note="The 45 published plans of TravelPlanner have 943 of 946 places.",
    uses=(use.PLAN, use.CATALOGUE),
)
M15 = use.ratio(
    "M15",
    "Serendipity score",
    Formula(
        r"\mathrm{M15} = \frac{|\{g \in G \setminus N \mid m_g \ge \theta\}|}{|G|}",
        ("G", "places of the plan that the catalogue has"),
        ("N", "places of G whose name is part of a preference"),
        (r"m_g", "greatest similarity of a record of place g and a preference of the dialogue"),
        (r"\theta", "threshold `--serendipity-sim`, 0.30"),
    ),
    null_when=(
        use.UNKNOWN_PREFERENCE,
        use.NO_PLAN,
        NullRule(C("M15_den") == 0, "missing_input", "no place is in the catalogue"),
        use.NO_PREFERENCE,
        use.NO_EMBEDDER,
    ),
    evidence=(
        EvidenceRows(
            table="places",
            names=("place",),
            columns=("grounded", "explicit", "similarity", "serendipitous"),
            where=C("grounded"),
        ),
    ),
    reading="The share of real places that no preference names and that are near one.",
    example="12 places, 2 of them named, 8 of the other 10 near a preference: 8 / 12 = 0.667.",
    note=(
        "A name is part of a preference if its words follow each other there. A single word "
        "of fewer than three letters never is."
    ),
    uses=(use.PREFERENCES, use.PLAN, use.CATALOGUE, use.EMBEDDER),
)

_SHORTEST_NAME = 3


@dataclass(frozen=True, slots=True)
class GroundedPlaces:
    """The places of itineraries, looked up in their catalogues."""

    # a row a distinct place of an itinerary: `itinerary`, `place` (its name as it is first), `key`,
    # `is_grounded`
    places: pl.DataFrame
    place_texts: pl.DataFrame  # the texts of the records of each place: `place_row`, `text`
    slot_names: pl.DataFrame  # a row a name for a slot of an itinerary: `itinerary`, `slot`, `name`
    # its records: `itinerary`, `slot`, `name`, `text`, `room`, `components`
    slot_records: pl.DataFrame


def ground_places(
    itineraries: pl.DataFrame, plans: "Plans", catalogue: "Catalogue", cells: pl.DataFrame
) -> GroundedPlaces:
    """Look the places of itineraries up in their catalogues.

    An itinerary is a ``plan`` with a ``catalogue``; ``cells`` are those of catalogues. A name for
    a slot is looked up in the slot's kind of catalogue before any other.
    """
    slot = C("kind").cast(pl.String).replace_strict(SLOT_OF_KIND, default=None)
    names = plans.names.select("plan", "name", slot=slot).unique(maintain_order=True)
    named = itineraries.join(names, on="plan", maintain_order="left_right").drop("plan")
    forms = name_forms(names["name"].unique(maintain_order=True))
    records = cells.join(catalogue.records, on="cell").with_columns(C("kind").cast(pl.String))

    found = _find(named.select("catalogue", "name"), forms, records)
    places = (
        named.join(found, on=["catalogue", "name"], maintain_order="left")
        .unique(["itinerary", "key"], keep="first", maintain_order=True)
        .with_columns(place_row=pl.int_range(pl.len()))
    )
    place_texts = places.filter("is_grounded").join(
        records, on=["catalogue", "key"], maintain_order="left_right"
    )

    for_slots = named.drop_nulls("slot").with_columns(
        kind=C("slot").replace_strict(KIND_OF_SLOT, return_dtype=pl.String)
    )
    in_kind = _find(for_slots.select("catalogue", "kind", "name"), forms, records)
    of_slots = for_slots.join(in_kind, on=["catalogue", "kind", "name"], maintain_order="left")
    elsewhere = of_slots.filter(~C("is_grounded")).drop("key", "is_grounded")
    elsewhere = elsewhere.join(found, on=["catalogue", "name"], maintain_order="left")
    slot_records = [
        of_slots.join(records, on=["catalogue", "kind", "key"], maintain_order="left_right"),
        elsewhere.join(records, on=["catalogue", "key"], maintain_order="left_right"),
    ]
    columns = ["itinerary", "slot", "name", "text", "room", "components"]
    return GroundedPlaces(
        places.select("itinerary", "key", "is_grounded", place="name"),
        place_texts.select("place_row", "text"),
        of_slots.select("itinerary", "slot", "name"),
        pl.concat(frame.select(columns) for frame in slot_records),
    )


def name_forms(names: pl.Series) -> pl.DataFrame:
    """Return ``name`` and ``key``: the forms of names that catalogues are searched for, in order.

    The whole name, without a part in brackets at its end, up to its last comma; all normalised.
    """
    bare = names.str.extract(r"(?s)^(.*?)\s*\([^()]*\)\s*$")
    first = names.str.extract(r"(?s)^(.*),")
    return pl.concat(
        pl.DataFrame({"name": names, "key": normalise(form)}) for form in (names, bare, first)
    ).filter(C("key") != "")


def _find(names: pl.DataFrame, forms: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Return ``key`` and ``is_grounded`` of names: the first form that a record has, else the last.

    Records are those of the name's ``catalogue``, and of its ``kind`` if names have one.
    """
    on = ["key", *(name for name in names.columns if name != "name")]
    known = records.select(on).unique().with_columns(has_record=True)
    key, has_record = C("key"), C("has_record")
    return (
        names.unique(maintain_order=True)
        .join(forms, on="name", how="left", maintain_order="left_right")
        .join(known, on=on, how="left", maintain_order="left")
        .group_by(names.columns, maintain_order=True)
        .agg(
            key=pl.coalesce(key.filter(has_record).first(), key.last(), pl.lit("")),
            is_grounded=has_record.any(),
        )
    )


def check_itineraries(
    itineraries: pl.DataFrame, plans: "Plans", catalogue: "Catalogue", cells: pl.DataFrame
) -> pl.DataFrame:
    """Return the checks of M16 that the days of itineraries pass, and ``has_catalogue``."""
    filled = cells.join(catalogue.records, on="cell", how="semi")["catalogue"].unique()
    return itineraries.join(plans.checks, on="plan", how="left", maintain_order="left").select(
        "itinerary",
        M16_num="passed",
        M16_den="checks",
        has_catalogue=C("catalogue").is_in(filled.implode()),
    )


def score_places(
    frames: dict[str, pl.DataFrame], similarity: Similarity, options: GroupTravel
) -> pl.DataFrame:
    """Score the places of each dialogue's plan."""
    numbered = frames["places"].with_columns(place_row=pl.int_range(pl.len()))
    places = (
        frames["dialogues"]
        .select("dialogue_row", "itinerary")
        .join(numbered, on="itinerary", maintain_order="left_right")
        .with_columns(row=pl.int_range(pl.len()))
    )
    # each text of a place's record asks for itself; the nearest of them counts
    records = frames["place_texts"].with_columns(vector=similarity.vectors["place_texts"])
    asking = places.join(records, on="place_row", maintain_order="left_right")
    nearest = asking.select(
        "row",
        similarity=similarity.nearest(
            asking["vector"], asking["dialogue_row"], "pairs", frames["pairs"]["dialogue_row"]
        ),
    )
    found = places.join(
        nearest.group_by("row").agg(C("similarity").max()),
        on="row",
        how="left",
        maintain_order="left",
    ).join(_said_words(frames["pairs"]), on="dialogue_row", how="left", maintain_order="left")
    key, is_near = C("key"), reaches(found["similarity"], options.serendipity_sim)
    is_long_enough = key.str.contains(" ", literal=True) | (key.str.len_chars() >= _SHORTEST_NAME)
    is_named = C("said").str.contains(pl.format(" {} ", key), literal=True)
    explicit = (is_long_enough & is_named).fill_null(False)
    return found.select(
        "dialogue_row",
        "place",
        "key",
        grounded="is_grounded",
        explicit=pl.when("is_grounded").then(explicit),
        similarity="similarity",
        serendipitous=pl.when(C("similarity").is_not_null()).then(~explicit & is_near),
    )


def _said_words(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return all preferences of each dialogue, normalised, with spaces around each word."""
    words = pairs.select("dialogue_row", said=normalise(pairs["preference"]))
    return words.group_by("dialogue_row").agg(pl.format(" {} ", "said").str.join("\n"))


def count_places(places: pl.DataFrame) -> pl.DataFrame:
    """Count the numerators and denominators of M9 and M15 in each dialogue."""
    return places.group_by("dialogue_row").agg(
        M9_num=C("grounded").sum(),
        M9_den=pl.len(),
        M15_num=C("serendipitous").sum(),
        M15_den=C("grounded").sum(),
    )


CHANNELS = ("room", "category", "lexical", "semantic")
LEAST_HITS = 2
"""Informative tokens that satisfy a preference by words alone."""
_USES = (use.PREFERENCES, use.PLAN, use.PLAN_TEXT, use.CATALOGUE, use.EMBEDDER)
OF_PAIRS = (
    use.UNKNOWN_ACTIONABLE,
    use.NO_PLAN,
    NullRule(C("M10_den") == 0, "not_applicable", "no actionable preference is stated"),
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
            C("no_category"),
            "missing_input",
            "the text or the member of a preference for a slot with categories was not given",
        ),
        use.NO_PLAN,
        NullRule(C("M10b_den") == 0, "not_applicable", "no preference names a category"),
    ),
    evidence=(
        use.of_pairs("category_channel", "category_tokens", where=C("slot").is_in(CATEGORY_SLOTS)),
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
METRICS = (W1, W2, W3, M10, M10B, M11, M9, M15)

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
    texts = stated.filter(C("slot") == "lodging").unique(maintain_order=True)
    rooms = texts.with_columns(wanted_rooms=wanted_rooms(texts["preference"], lexicon))
    found = stated.join(rooms, on=stated.columns, how="left", maintain_order="left")
    return found.select(
        C("wanted_rooms").fill_null([]), category_tokens=_category_tokens(frames, lexicon, options)
    )


def _category_tokens(
    frames: dict[str, pl.DataFrame], lexicon: "Lexicon", options: GroupTravel
) -> pl.Series:
    """Return the parts of categories of the slot's catalogue that each pair names."""
    pairs = frames["pairs"].select(
        "catalogue", "slot", text="preference", pair=pl.int_range(pl.len())
    )
    named = pairs.filter(C("slot").is_in(CATEGORY_SLOTS))
    texts = named["text"].unique(maintain_order=True)
    if options.negation == "all":
        words = affirmed_tokens(texts, lexicon)
    else:
        split = normalise(texts).str.split(" ").to_frame("token").with_row_index("row")
        words = split.explode("token")
    tokens = (
        words.select(
            text=pl.lit(texts).gather(C("row")), component=component(words["token"], lexicon)
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
    ).with_columns(lexical=C("hits") >= LEAST_HITS)
    is_chosen = pl.when(C("choice").is_not_null())
    by_any = pl.any_horizontal(C(CHANNELS).fill_null(False))
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
    is_asked = C("choice").is_not_null() & (C("wish").list.len() > 0)
    return pairs.select(pl.when(is_asked).then(C("pair").is_in(met.implode()))).to_series()


def count_satisfaction(pairs: pl.DataFrame) -> pl.DataFrame:
    """Count the numerators and denominators of M10 and M10b, and the channels that fire."""
    by_category = C("category_channel")
    return pairs.group_by("dialogue_row").agg(
        M10_num=C("satisfied").sum(),
        M10_den=C("satisfied").count(),
        M10b_num=by_category.sum(),
        M10b_den=by_category.filter(C("slot").is_in(CATEGORY_SLOTS)).count(),
        **{f"n_{channel}_channel": C(f"{channel}_channel").sum() for channel in CHANNELS},
    )


def satisfy_members(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the members with an actionable preference.

    ``satisfaction`` is the s_i of W1 to W3, ``semantic_mean`` the x_i of M13.
    """
    similarity = C("slot_similarity")
    return (
        pairs.filter(C("satisfied").is_not_null())
        .group_by("member_row", maintain_order=True)
        .agg(
            C("dialogue_row", "member").first(),
            pairs=pl.len().cast(pl.Int64),
            satisfied=C("satisfied").sum().cast(pl.Int64),
            semantic_mean=use.ascending_sum("slot_similarity") / similarity.count(),
        )
        .with_columns(satisfaction=C("satisfied") / C("pairs"))
    )


def measure_welfare(members: pl.DataFrame) -> pl.DataFrame:
    """Measure W1 to W3 and M11 of each dialogue, whatever the order of its members."""
    s, n = C("satisfaction"), pl.len()
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
    geometric_mean = C("mean_log").map_batches(np.exp, return_dtype=pl.Float64)
    nash = pl.when(C("W2") > 0.0).then(geometric_mean).otherwise(0.0)
    return welfare.with_columns(W3=nash).drop("mean_log")


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
        entered=C("text").str.join("; ")
    )
    chosen = chosen.join(entered, on=["plan", "slot"], how="left", maintain_order="left")
    name = C("name").alias("text")
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
    return targets.filter(C("text").str.strip_chars() != "")
