"""The environment variables of the published scorer."""

import os
from dataclasses import dataclass, fields

from fastscore.errors import UsageError
from fastscore.options import expected_number

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
    """

    embedder: str
    dim: int | None
    baseline_pairs: int
    baseline_seed: int
    cached_texts: int


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
        baseline_pairs=_option("BASELINE_PAIRS"),
        baseline_seed=_option("BASELINE_SEED"),
        cached_texts=_whole("GT_EMBED_CACHE_MAX", 4096),
    )


def most_primed_files() -> int:
    """Return how many primed files wait at most; PRELOADED_EVENTS_CACHE_MAX."""
    return max(_whole("PRELOADED_EVENTS_CACHE_MAX", 1024), 1)


def _option(name: str) -> int:
    """Read a variable that stands for the suite's option of the same name, within its bounds."""
    from fastscore.suites.score_dialogue.options import ScoreDialogueOptions

    rules = {field.name: field.metadata for field in fields(ScoreDialogueOptions)}
    value = _whole(name, getattr(ScoreDialogueOptions(), name.lower()))
    wanted = expected_number(value, rules[name.lower()])
    if wanted:
        raise UsageError(f"{name} is {value}, expected {wanted}.", f"Mend or unset {name}.")
    return value


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
