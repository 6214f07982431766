"""Whose vector stores are read: those that nobody else can have written, unless told."""

import os
from pathlib import Path

from fastscore_jit.objects import is_kept_from_others

from fastscore.errors import StoreError

TRUST_VARIABLE = "FASTSCORE_TRUST_STORE"


def check_trusted(folder: Path) -> None:
    """Refuse a store that is another user's or that others can write to.

    Raises
    ------
    StoreError
        It is, and ``$FASTSCORE_TRUST_STORE`` is not set.
    """
    if os.environ.get(TRUST_VARIABLE, "0") not in ("", "0") or not hasattr(os, "getuid"):
        return
    if folder.exists() and not is_kept_from_others(folder):
        raise StoreError(
            f"{folder}: this vector store, or a folder above it, is another user's or writable "
            "for all: its vectors may not be what the model made.",
            "Mend its owner or permissions, name another with --store, or trust it with "
            "--trust-store.",
        )
