"""How a command collects garbage: seldom while it runs, not at all as it ends."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS_PER_COLLECTION = 50_000


def collect_seldom() -> None:
    """Search what is imported for garbage seldom."""
    gc.set_threshold(OBJECTS_PER_COLLECTION)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Run a process's last work: what it imported is searched seldom, and not at its exit.

    Python searches all objects once more as it ends, which takes as long as importing them did;
    all memory goes back to the system then anyway.
    """
    collect_seldom()
    try:
        yield
    finally:
        gc.freeze()
