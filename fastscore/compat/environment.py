"""The environment variables of the published scorer."""

import os
from dataclasses import dataclass

from fastscore.errors import UsageError

DEFAULT_EMBEDDER = "minilm-l6-v2"


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
    primed_files
        How many primed files wait at most; PRELOADED_EVENTS_CACHE_MAX.
    """

    embedder: str
    dim: int | None
    baseline_pairs: int
    baseline_seed: int
    cached_texts: int
    primed_files: int


def read_environment() -> ScorerEnvironment:
    """Read the variables as they are now; an empty one counts as unset.

    Raises
    ------
    UsageError
        If a variable that holds a number does not.
    """
    return ScorerEnvironment(
        embedder=os.environ.get("EMBEDDER_NAME", "").strip() or DEFAULT_EMBEDDER,
        dim=_whole_or_none("EMBED_DIM"),
        baseline_pairs=_whole("BASELINE_PAIRS", 20_000),
        baseline_seed=_whole("BASELINE_SEED", 0),
        cached_texts=_whole("GT_EMBED_CACHE_MAX", 4096),
        primed_files=_whole("PRELOADED_EVENTS_CACHE_MAX", 1024),
    )


def _whole(name: str, default: int) -> int:
    found = _whole_or_none(name)
    return default if found is None else found


def _whole_or_none(name: str) -> int | None:
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"{name} is {text!r}, expected an integer.", f"Mend or unset {name}."
        ) from None
