"""The weights of concepts in CR, from the catalogue that a run was scored with."""

import hashlib
from pathlib import Path

import polars as pl

from fastscore.suites.preference_shift.analysis.scored import Scored
from fastscore.suites.preference_shift.concepts import concept_idf


def read_weights(scored: Scored) -> tuple[pl.DataFrame | None, str]:
    """Read the catalogue that the run names, if it is still there as it was.

    Returns
    -------
    tuple
        Every concept's weight (concept, idf) and an empty text, or None and what is missing.
    """
    path = Path(scored.options.catalogue)
    try:
        digest = hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()
    except OSError as error:
        return None, f"{path}: the run's catalogue cannot be read ({error.strerror})."
    if f"catalogue=blake2b:{digest}" not in scored.signature.split("|"):
        return None, f"{path}: not the catalogue that the run was scored with."
    return concept_idf(scored.options), ""
