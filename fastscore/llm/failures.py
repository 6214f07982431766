"""Samples that fail: why, how many may, and the error when more do.

A sample is one dialogue, text, message or session. A failure costs that sample alone. It is
recorded with its reason, and the same command asks for it again.
"""

import math
from dataclasses import dataclass

from fastscore.errors import EXIT_INCOMPLETE, FastscoreError, UsageError

REFUSED, FILTERED, CUT_OFF, UNUSABLE = "refused", "content_filter", "cut_off", "unusable"
TIMED_OUT, REJECTED, SERVER_ERROR, NOT_KEPT = "timed_out", "rejected", "server_error", "not_kept"
KINDS = (REFUSED, FILTERED, CUT_OFF, UNUSABLE, TIMED_OUT, REJECTED, SERVER_ERROR, NOT_KEPT)
"""The model refused; a filter or a limit of tokens cut its answer; no scores could be read from the
answer; nothing came in time; the server rejected this request (HTTP 4xx) or failed (5xx, 429,
broken connection); the answer is not kept, and `--replay` asks for none."""

DEFAULT_MAX_FAILURES = "5%"


class SampleError(Exception):
    """A request that failed for this sample; the next sample may succeed.

    Parameters
    ----------
    kind
        One of `KINDS`.
    reason
        What happened.
    hint
        What to do if it happens to every sample.
    """

    def __init__(self, kind: str, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.hint = kind, reason, hint


class TooManyFailuresError(FastscoreError):
    """More samples failed than `--max-failures` allows."""

    exit_code = EXIT_INCOMPLETE


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a sample has no result.

    Parameters
    ----------
    kind
        One of `KINDS`.
    reason
        What happened, in words.
    answer
        The last answer as it came; empty if there was none.
    attempts
        How many answers there were.
    hint
        What to do if it happens to every sample.
    """

    kind: str
    reason: str
    answer: str = ""
    attempts: int = 0
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class FailureLimit:
    """The most samples that may fail: a share or a count.

    Parameters
    ----------
    share
        The largest share; None if a count is given.
    count
        The largest count; None if a share is given.
    """

    share: float | None = None
    count: int | None = None

    def allowed(self, samples: int) -> int:
        """Return how many of so many samples may fail."""
        if self.count is not None:
            return self.count
        # 0.07 * 100 is 7.000000000000001, 0.29 * 100 is 28.999999999999996
        return math.floor(round((self.share or 0.0) * samples, 9))

    def __str__(self) -> str:
        return f"{(self.share or 0.0) * 100:g}%" if self.count is None else f"{self.count:,}"


def parse_limit(given: str | float) -> FailureLimit:
    """Read ``--max-failures``: a count (``10``) or a share (``0.05`` or ``5%``).

    Raises
    ------
    UsageError
        It is neither.
    """
    text = str(given).strip()
    try:
        if text.isdecimal():
            return FailureLimit(count=int(text))
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise UsageError(
            f"--max-failures is {text!r}, expected a count such as 10, or a share such as 5% or "
            "0.05."
        )
    return FailureLimit(share=share)


def too_many(
    first: Failure, failed: int, samples: int, limit: FailureLimit, *, noun: str, place: str
) -> TooManyFailuresError | None:
    """Return the error if more samples failed than are allowed.

    Parameters
    ----------
    first
        The failure that the message quotes.
    failed, samples, limit
        How many samples failed, of how many, and how many may.
    noun
        A sample's name, in the plural.
    place
        Where the failures are listed.
    """
    if failed <= limit.allowed(samples):
        return None
    hint = f"{first.hint} " if first.hint else ""
    return TooManyFailuresError(
        f"{failed:,} of {samples:,} {noun} failed, more than --max-failures {limit} allows; "
        f"the first: {first.reason}.",
        f"{hint}All failures are listed in {place}. The same command asks for them again.",
    )
