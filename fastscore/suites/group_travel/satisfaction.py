"""M10: whether what the plan chose for a slot satisfies what a member wants, by four channels."""

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices

from fastscore.suites.columns import list_column
from fastscore.suites.group_travel.catalogue import component
from fastscore.suites.group_travel.evidence import Informative, TextCodes, count_hits
from fastscore.suites.group_travel.lexicon import Lexicon
from fastscore.suites.group_travel.normalise import normalise
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.similarity import Similarity, reaches
from fastscore.suites.group_travel.terms import CATEGORY_SLOTS
from fastscore.suites.group_travel.wording import affirmed_tokens, wanted_rooms
from fastscore.suites.grouping import factorize, group_rows, offsets_of, take

_LEAST_HITS = 2


def state_wishes(
    frames: dict[str, pl.DataFrame], lexicon: Lexicon, options: GroupTravel
) -> pl.DataFrame:
    """Read what preferences want by name.

    Returns
    -------
    pl.DataFrame
        For each pair ``wanted_rooms`` (lodging) and ``category_tokens`` (the other actionable
        slots), lists that are empty where nothing is named.
    """
    pairs = frames["pairs"]
    is_lodging = (pairs["slot"] == "lodging").to_numpy()
    codes, texts = factorize(pairs["preference"].filter(pl.Series(is_lodging)))
    rooms = pl.Series("wanted_rooms", [[]], dtype=pl.List(pl.String)).new_from_index(
        0, pairs.height
    )
    if is_lodging.any():
        wanted = wanted_rooms(texts, lexicon).gather(codes)
        place = np.cumsum(is_lodging) - 1
        rooms = pl.select(
            pl.when(pl.Series(is_lodging))
            .then(pl.lit(wanted).gather(pl.Series(np.maximum(place, 0))))
            .otherwise(pl.lit(rooms))
        ).to_series()
    return pl.DataFrame(
        {
            "wanted_rooms": rooms,
            "category_tokens": _category_tokens(frames, lexicon, options),
        }
    )


def _category_tokens(
    frames: dict[str, pl.DataFrame], lexicon: Lexicon, options: GroupTravel
) -> pl.Series:
    """Return the parts of categories of the slot's catalogue that each pair names."""
    slots = frames["pairs"]["slot"].replace_strict(_CATEGORY_SLOT, default=-1)
    slot = slots.cast(pl.Int64).to_numpy()
    named = np.flatnonzero(slot >= 0)
    codes, texts = factorize(frames["pairs"]["preference"].gather(named))
    if options.negation == "all":
        words = affirmed_tokens(texts, lexicon)
    else:
        split = normalise(texts).str.split(" ").to_frame("token").with_row_index("row")
        words = split.explode("token")
    tokens = (
        words.select("row", component(words["token"], lexicon).alias("component"))
        .drop_nulls()
        .unique(maintain_order=True)
    )
    vocabulary = frames["vocabulary"]
    numbers, components = factorize(pl.concat([tokens["component"], vocabulary["component"]]))

    def place(catalogue: Indices, slot: Indices, component: Indices) -> Indices:
        found: Indices = (catalogue * len(CATEGORY_SLOTS) + slot) * len(components) + component
        return found

    known = place(
        vocabulary["catalogue"].to_numpy(),
        vocabulary["slot"].replace_strict(_CATEGORY_SLOT, return_dtype=pl.Int64).to_numpy(),
        numbers[tokens.height :],
    )
    token, offsets = take(group_rows(tokens["row"].to_numpy(), len(texts)), codes)
    pair = np.repeat(named, np.diff(offsets))
    asked = place(frames["pairs"]["catalogue"].to_numpy()[pair], slot[pair], numbers[token])
    is_known = np.isin(asked, known)
    sizes = np.bincount(pair[is_known], minlength=len(slot))
    return list_column(components.gather(numbers[token][is_known]), offsets_of(sizes))


_CATEGORY_SLOT = {slot: number for number, slot in enumerate(CATEGORY_SLOTS)}


def satisfy_pairs(
    frames: dict[str, pl.DataFrame],
    wishes: pl.DataFrame,
    texts: TextCodes,
    informative: Informative,
    similarity: Similarity,
    options: GroupTravel,
) -> pl.DataFrame:
    """Find what satisfies each pair.

    Returns
    -------
    pl.DataFrame
        For each pair the columns of `schema.PAIRS` from ``room_channel`` to ``satisfied``.
    """
    choice = frames["pairs"]["choice"].to_numpy()
    n_choices = int(choice.max(initial=-1)) + 1
    chosen = choice >= 0
    room = _any_common(choice, wishes["wanted_rooms"], frames["choice_rooms"])
    category = _any_common(choice, wishes["category_tokens"], frames["choice_components"])

    places = frames["choice_places"]["choice"]
    targets = texts.targets(
        texts.grouped("choice_texts", frames["choice_texts"]["choice"].to_numpy(), n_choices + 1)
    )
    # pairs without a choice ask the last target, which has no text
    hits = count_hits(informative, np.where(chosen, choice, n_choices), targets)
    lexical = hits >= _LEAST_HITS
    nearest = similarity.nearest(
        similarity.rows.get("pairs", np.zeros(0, np.int64)),
        similarity.grouped("choice_places", places, n_choices),
        choice,
    )
    semantic = reaches(nearest, options.satisfy_sim)
    satisfied = room.fill_null(False) | category.fill_null(False) | pl.Series(lexical | semantic)
    no_choice = pl.Series(~chosen)
    return pl.DataFrame(
        {
            "room_channel": room,
            "category_channel": category,
            "lexical_hits": pl.Series(hits).set(no_choice, None),
            "lexical_channel": pl.Series(lexical).set(no_choice, None),
            "place_similarity": pl.Series(nearest, nan_to_null=True),
            "semantic_channel": pl.Series(semantic).set(no_choice, None),
            "satisfied": satisfied.set(no_choice, None),
        }
    )


def _any_common(choice: Indices, wishes: pl.Series, chosen: pl.DataFrame) -> pl.Series:
    """Tell which pairs wish for something that was chosen; null where nothing is named."""
    asked = (
        pl.DataFrame({"choice": choice, "wish": wishes})
        .with_row_index("pair")
        .filter((pl.col("choice") >= 0) & (pl.col("wish").list.len() > 0))
    )
    met = (
        asked.explode("wish")
        .join(chosen.rename({chosen.columns[1]: "wish"}), on=["choice", "wish"], how="semi")
        .select("pair")
        .unique()
    )
    answer = np.zeros(len(choice), np.int8)
    answer[asked["pair"].to_numpy()] = 1
    answer[met["pair"].to_numpy()] = 2
    return pl.Series(answer == 2).set(pl.Series(answer == 0), None)


def compare_slots(frames: dict[str, pl.DataFrame], similarity: Similarity) -> pl.DataFrame:
    """Compare pairs with the plan's entries and with the resolution of their slot.

    Returns
    -------
    pl.DataFrame
        For each pair ``slot_similarity`` (M12; 0 where the plan has nothing) and
        ``resolution_similarity`` (M14), null where not applicable, where the preference stands for
        nothing or without vectors; and ``is_compared`` and ``is_resolved``, whether the two are
        null for want of vectors only.
    """
    pairs = frames["pairs"]
    said = pairs["compared"] >= 0
    wanted = similarity.rows.get("pairs", np.zeros(0, np.int64))
    choice, slot_row = pairs["choice"].to_numpy(), pairs["slot_row"].to_numpy()
    to_slot = similarity.to_targets(wanted, choice)
    if similarity.is_on:
        to_slot = np.where((choice >= 0) & (wanted >= 0) & np.isnan(to_slot), 0.0, to_slot)
    resolution = _row_by_owner(similarity, "resolutions", frames["resolutions"], slot_row)
    resolution = np.where(pairs["actionable"].to_numpy(), resolution, -1)
    explained = pairs["slot_row"].is_in(frames["resolutions"]["slot_row"].implode())
    return pl.DataFrame(
        {
            "is_compared": said & (pairs["choice"] >= 0),
            "is_resolved": said & pairs["actionable"] & explained,
            "slot_similarity": pl.Series(to_slot, nan_to_null=True),
            "resolution_similarity": pl.Series(
                similarity.pairwise(wanted, resolution), nan_to_null=True
            ),
        }
    )


def _row_by_owner(
    similarity: Similarity, name: str, frame: pl.DataFrame, owners: Indices
) -> Indices:
    """Return the row of the one text of each owner in a frame, -1 where it has none."""
    row_of = np.full(int(owners.max(initial=-1)) + 2, -1, np.int64)
    if similarity.is_on:
        row_of[frame[frame.columns[0]].to_numpy()] = similarity.rows[name]
    # a negative owner finds the last entry, which nobody has
    found: Indices = row_of[owners]
    return found
