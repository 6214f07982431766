"""Advice to who scores logs that the suite cannot read as they are.

Logs are looked at again, by every suite, when scoring has failed: not before is that imported.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from fastscore.logs.inputs.column_map import UnmappedLogError
from fastscore.run.request import Request


@contextmanager
def fitting_suite_named(request: Request) -> Iterator[None]:
    """Say all that must be typed, what to add to it, or which suite reads the logs as they are."""
    try:
        yield
    except UnmappedLogError as error:
        from fastscore.api.reading import hint_for

        error.hint = hint_for(request, error) or error.hint
        raise
