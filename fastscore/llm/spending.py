"""What requests to chat models use up, the budgets that bound it, and the manifest that records it.

A budget holds before a request is sent. A request reserves an upper bound of its tokens: the bytes
of its body, because no token is shorter than one byte, and the most tokens of its answer. The
reservation ends with the answer, which counts instead. A request that timed out may have been
charged for, so its bound stays in the budget.
"""

import math
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from fastscore.errors import EXIT_INCOMPLETE, FastscoreError, UsageError, counted
from fastscore.run.commit import commit_json
from fastscore.version import __version__
from fastscore.wording import parameter

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


class UnusableError(Exception):
    """An answer that is not what was asked for.

    Parameters
    ----------
    reason
        Why.
    kind
        One of `KINDS`.
    """

    def __init__(self, reason: str, kind: str = UNUSABLE) -> None:
        super().__init__(reason)
        self.kind = kind


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


def outcome_of(kinds: Sequence[str], *, is_complete: bool = True) -> dict[str, Any]:
    """Describe a command's outcome: its status, and its failures by kind."""
    return {
        "status": "complete" if is_complete and not kinds else "incomplete",
        "failures": dict(sorted(Counter(kinds).items())),
    }


def too_many(
    first: Failure | None, failed: int, samples: int, limit: FailureLimit, *, noun: str, place: str
) -> TooManyFailuresError | None:
    """Return the error if more samples failed than are allowed.

    Parameters
    ----------
    first
        The failure that the message quotes; None without any.
    failed, samples, limit
        How many samples failed, of how many, and how many may.
    noun
        A sample's name, in the plural.
    place
        Where the failures are listed.
    """
    if first is None or failed <= limit.allowed(samples):
        return None
    hint = f"{first.hint} " if first.hint else ""
    return TooManyFailuresError(
        f"{failed:,} of {samples:,} {noun} failed, more than --max-failures {limit} allows; "
        f"the first: {first.reason}.",
        f"{hint}All failures are listed in {place}. The same command asks for them again.",
    )


MANIFEST = "manifest.json"


class BudgetError(FastscoreError):
    """The budget is spent; the same command with a larger one goes on."""

    exit_code = EXIT_INCOMPLETE


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of one million tokens.

    Parameters
    ----------
    prompt, completion
        Of tokens that are sent, and of tokens that are received.
    currency
        The currency of both.
    """

    prompt: float = 0.0
    completion: float = 0.0
    currency: str = "USD"

    @property
    def are_given(self) -> bool:
        """Whether there is a price."""
        return self.prompt > 0 or self.completion > 0

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of so many tokens."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


@dataclass(frozen=True, slots=True)
class Spent:
    """What requests used up.

    Parameters
    ----------
    requests
        Requests that were sent, retries included.
    retries
        Requests that were sent again after a failure that may pass.
    timeouts
        Requests without a response in time.
    failures
        Samples that failed.
    hits
        Answers that were kept before, and were not asked for.
    prompt_tokens, completion_tokens
        Tokens sent and received, as the server counts them.
    unanswered_prompt_tokens, unanswered_completion_tokens
        Upper bounds of the tokens of requests that timed out or brought nothing that can be read.
        They may have been charged for.
    seconds
        Time that the server took, added up over all requests.
    """

    requests: int = 0
    retries: int = 0
    timeouts: int = 0
    failures: int = 0
    hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unanswered_prompt_tokens: int = 0
    unanswered_completion_tokens: int = 0
    seconds: float = 0.0

    def __sub__(self, other: "Spent") -> "Spent":
        one, two = asdict(self), asdict(other)
        return Spent(**{name: one[name] - two[name] for name in one})

    @property
    def tokens(self) -> int:
        """All tokens, sent and received."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def most(self) -> "Bound":
        """The most tokens that it may have been."""
        return Bound(
            self.prompt_tokens + self.unanswered_prompt_tokens,
            self.completion_tokens + self.unanswered_completion_tokens,
        )

    def line(self, prices: Prices | None = None) -> str:
        """Describe it in one line, with its cost if there are prices."""
        parts = [
            f"models: {counted(self.requests, 'requests')} ({self.retries:,} retries, "
            f"{self.timeouts:,} time-outs)",
            counted(self.failures, "failed samples"),
            f"{self.hits:,} kept answers used",
            f"{self.prompt_tokens:,} + {self.completion_tokens:,} tokens",
            f"{self.seconds:.1f} s",
        ]
        if prices is not None and prices.are_given:
            cost = prices.cost(self.prompt_tokens, self.completion_tokens)
            parts.append(f"{cost:.4f} {prices.currency}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Bound:
    """The most tokens that a request may use."""

    prompt_tokens: int
    completion_tokens: int

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Bound") -> "Bound":
        return Bound(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The budget: the most requests, tokens and cost; None for no limit."""

    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None
    prices: Prices = field(default_factory=Prices)


class Meter:
    """Counts what several threads spend and holds them to the limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.spent = Spent()
        self._reserved: list[Bound] = []
        self._changed = threading.Condition()

    def reserve(self, bound: Bound, *, is_retry: bool = False) -> None:
        """Count a request that is about to be sent.

        Waits if the budget covers it once requests under way have ended.

        Raises
        ------
        BudgetError
            The request may exceed the budget.
        """
        with self._changed:
            while (exceeded := self._exceeded(bound, self._reserved)) and self._reserved:
                if self._exceeded(bound, []):
                    break
                self._changed.wait()
            if exceeded:
                raise exceeded
            self._reserved.append(bound)
            self.count(requests=1, retries=int(is_retry))

    def settle(self, bound: Bound, **spent: float) -> None:
        """End a request's reservation; count what it really spent."""
        with self._changed:
            self._reserved.remove(bound)
            self.count(**spent)

    def lose(self, bound: Bound, *, timeouts: int = 0) -> None:
        """End the reservation of a request without a response that can be read.

        It may have been charged for, so its bound stays in the budget.
        """
        self.settle(
            bound,
            timeouts=timeouts,
            unanswered_prompt_tokens=bound.prompt_tokens,
            unanswered_completion_tokens=bound.completion_tokens,
        )

    def count(self, **more: float) -> None:
        """Add to what was spent."""
        with self._changed:
            spent = asdict(self.spent)
            self.spent = Spent(**{**spent, **{name: spent[name] + n for name, n in more.items()}})
            self._changed.notify_all()

    def _exceeded(self, bound: Bound, reserved: list[Bound]) -> BudgetError | None:
        """Return the error of the limit that a request may exceed, if any."""
        limits, spent = self.limits, self.spent
        total = sum(reserved, start=spent.most + bound)
        cost = limits.prices.cost(total.prompt_tokens, total.completion_tokens)
        found: tuple[tuple[str, float | None, float], ...] = (
            ("max_requests", limits.requests, spent.requests + 1),
            ("max_tokens", limits.tokens, total.tokens),
            ("max_cost", limits.cost, cost),
        )
        for name, limit, most in found:
            # costs are sums of products: equal ones may differ in the last digit
            if limit is not None and most > limit * (1 + 1e-12):
                return BudgetError(
                    f"{parameter(name, limit)} does not cover the next request, with which up to "
                    f"{_number(most)} would be spent; {spent.line()}.",
                    "Raise the limit and run the same command again: all answers are kept.",
                )
        return None


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


@contextmanager
def spending_recorded(
    path: Path, described: Mapping[str, Any], meter: Meter
) -> Iterator[dict[str, Any]]:
    """Add what is spent in a block to a manifest, however the block ends.

    Parameters
    ----------
    path
        The manifest, a JSON file. It is created if it is not there.
    described
        What is asked for.
    meter
        Counts what is spent.

    Yields
    ------
    dict
        The outcome, for the block to fill in. Its status is ``incomplete`` until the block changes
        it.
    """
    outcome: dict[str, Any] = {"status": "incomplete"}
    before = meter.spent
    try:
        yield outcome
    finally:
        _record(path, {**described, **outcome}, meter.spent - before, meter.limits.prices)


def _record(path: Path, described: Mapping[str, Any], spent: Spent, prices: Prices) -> None:
    try:
        earlier = orjson.loads(path.read_bytes())["commands"]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        earlier = []
    used = {
        **asdict(spent),
        "tokens": spent.tokens,
        "cost": prices.cost(spent.prompt_tokens, spent.completion_tokens),
        "cost_at_most": prices.cost(spent.most.prompt_tokens, spent.most.completion_tokens),
    }
    ended = datetime.now(UTC).isoformat(timespec="seconds")
    commands = [*earlier, {"ended": ended, **used, "prices": asdict(prices)}]
    total = {name: sum(each[name] for each in commands) for name in used}
    content = {"fastscore": __version__, **described, "spent": total, "commands": commands}
    commit_json(path, content)
