"""How a command ends: without a last search for garbage, unless its user wants one."""

import gc

COLLECT_AT_EXIT = "FASTSCORE_COLLECT_AT_EXIT"


NO = frozenset(("", "0", "false", "f", "no", "n", "off"))
"""What the variable says where it says no."""


def skip_last_collection() -> None:
    """End the process, which does nothing else after this, without a last search for garbage.

    Python searches all objects once more as it ends, which takes as long as importing them did;
    all memory goes back to the system then anyway.
    """
    gc.freeze()
