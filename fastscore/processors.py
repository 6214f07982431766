"""How many processors this process may use."""

import os

from fastscore_jit.system import processors

from fastscore.errors import UsageError

THREADS_VARIABLE = "FASTSCORE_THREADS"


def available_processors() -> int:
    """Count the processors that the process may run on; all of them where none can say.

    ``$FASTSCORE_THREADS`` says how many of them are its own where several processes share them.

    Raises
    ------
    UsageError
        The variable is no whole number from 1 on.
    """
    told = os.environ.get(THREADS_VARIABLE)
    if told:
        if not told.isdecimal() or int(told) < 1:
            raise UsageError(f"{THREADS_VARIABLE} is {told!r}, expected a whole number from 1 on.")
        return int(told)
    return processors()
