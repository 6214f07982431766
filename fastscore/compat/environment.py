"""The environment variables of the published scorer, and those of our perplexity penalty."""

import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TypeVar

from fastscore.errors import UsageError
from fastscore.options import expected_number

DEFAULT_EMBEDDER = "minilm-l6-v2"
DEVICES = ("EMBED_DEVICE", "BB_SCORER_DEVICE")
"""What forms of the script call the variable that names their device."""

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class ScorerEnvironment:
    """What the environment says.

    Parameters
    ----------
    embedder
        A model's name, recipe file or hub id; EMBEDDER_NAME.
    dim
        Leading dimensions to keep, None for all; EMBED_DIM.
    baseline_pairs, baseline_seed
        BASELINE_PAIRS and BASELINE_SEED.
    cached_texts
        How many vectors a process keeps from call to call; GT_EMBED_CACHE_MAX.
    pppl_model, pppl_weight
        Our own PPPL_MODEL and PPPL_WEIGHT: a masked language model, empty for none, and the weight
        of the perplexity penalty.
    """

    embedder: str
    dim: int | None
    baseline_pairs: int
    baseline_seed: int
    cached_texts: int
    pppl_model: str
    pppl_weight: float


def read_environment() -> ScorerEnvironment:
    """Read the variables as they are now; an empty one counts as unset.

    Raises
    ------
    UsageError
        If a variable that holds a number does not, or one beyond what is taken.
    """
    return ScorerEnvironment(
        embedder=os.environ.get("EMBEDDER_NAME", "").strip() or DEFAULT_EMBEDDER,
        dim=_whole_or_none("EMBED_DIM"),
        baseline_pairs=_option("BASELINE_PAIRS", int),
        baseline_seed=_option("BASELINE_SEED", int),
        cached_texts=_whole("GT_EMBED_CACHE_MAX", 4096),
        pppl_model=os.environ.get("PPPL_MODEL", "").strip(),
        pppl_weight=_option("PPPL_WEIGHT", float),
    )


def other_device() -> str:
    """Return the variable that asks for another device than the processor, as ``name=value``."""
    asked = {name: os.environ.get(name, "").strip() for name in DEVICES}
    others = [
        f"{name}={value}" for name, value in asked.items() if value.lower() not in ("", "cpu")
    ]
    return others[0] if others else ""


def most_primed_files() -> int:
    """Return how many primed files wait at most; PRELOADED_EVENTS_CACHE_MAX."""
    return max(_whole("PRELOADED_EVENTS_CACHE_MAX", 1024), 1)


def _option(name: str, read: Callable[[str], Number]) -> Number:
    """Read a variable that stands for the suite's option of the same name, within its bounds."""
    from fastscore.suites.score_dialogue.options import ScoreDialogue

    rules = {field.name: field.metadata for field in fields(ScoreDialogue)}
    found = _number_or_none(name, read)
    value: Number = getattr(ScoreDialogue(), name.lower()) if found is None else found
    wanted = expected_number(value, rules[name.lower()])
    if wanted:
        raise UsageError(f"{name} is {value}, expected {wanted}.", f"Mend or unset {name}.")
    return value


def _whole(name: str, default: int) -> int:
    found = _whole_or_none(name)
    return default if found is None else found


def _whole_or_none(name: str) -> int | None:
    return _number_or_none(name, int)


def _number_or_none(name: str, read: Callable[[str], Number]) -> Number | None:
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    try:
        return read(text)
    except ValueError:
        wanted = "an integer" if read is int else "a number"
        raise UsageError(
            f"{name} is {text!r}, expected {wanted}.", f"Mend or unset {name}."
        ) from None
