"""What requests to chat models use up, the budgets that bound it, and the manifest that records it.

A budget holds before a request is sent. A request reserves an upper bound of its tokens: the bytes
of its body, because no token is shorter than one byte, and the most tokens of its answer. The
reservation ends with the answer, which counts instead. A request that timed out may have been
charged for, so its bound stays in the budget.
"""

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, fields
from datetime import UTC, datetime
from operator import add, sub
from pathlib import Path
from typing import Any, Literal

import orjson

from fastscore.errors import EXIT_INCOMPLETE, FastscoreError, RunConflictError, UsageError, counted
from fastscore.files import explain
from fastscore.run.commit import commit_json
from fastscore.version import __version__

Kind = Literal[
    "refused",  # by the model
    "content_filter",  # a filter cut the answer
    "cut_off",  # the limit of tokens did
    "unusable",  # nothing could be read from the answer
    "timed_out",  # nothing came in time
    "rejected",  # the server rejected this request (HTTP 4xx)
    "server_error",  # the server failed (5xx, 429, broken connection)
    "not_kept",  # the answer is not kept, and `--replay` asks for none
]
"""Why a sample has no result."""


class SampleError(Exception):
    """A request that failed for this sample: the next sample may succeed.

    The hint says what to do if it happens to every sample.
    """

    def __init__(self, kind: Kind, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.hint = kind, reason, hint


class UnusableError(Exception):
    """An answer that is not what was asked for, and why."""

    def __init__(self, reason: str, kind: Kind = "unusable") -> None:
        super().__init__(reason)
        self.kind = kind


class TooManyFailuresError(FastscoreError):
    """More samples failed than `--max-failures` allows."""

    exit_code = EXIT_INCOMPLETE


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a sample has no result: the last of so many answers as it came, empty without any."""

    kind: Kind
    reason: str
    answer: str = ""
    attempts: int = 0
    hint: str | None = None


MANIFEST, FAILURES = "manifest.json", "failures.jsonl"


class BudgetError(FastscoreError):
    """The budget is spent; the same command with a larger one goes on."""

    exit_code = EXIT_INCOMPLETE


Prices = tuple[float, float]
"""Prices of one million tokens that are sent, and that are received, in USD."""
NO_PRICES: Prices = (0.0, 0.0)


def parse_prices(given: object) -> Prices:
    """Read prices of a million tokens sent, and of a million received; None for none."""
    numbers = NO_PRICES if given is None else given
    if isinstance(numbers, Sequence) and len(numbers) == 2:
        sent, received = numbers
        if all(type(one) in (int, float) and one >= 0 for one in numbers):
            return float(sent), float(received)
    raise UsageError(
        f"prices is {given!r:.80}, expected two numbers.",
        "They are of a million tokens sent, and received: (0.15, 0.60).",
    )


def cost_of(prices: Prices, prompt_tokens: int, completion_tokens: int) -> float:
    """Return the price of so many tokens."""
    return (prices[0] * prompt_tokens + prices[1] * completion_tokens) / 1e6


@dataclass(frozen=True, slots=True)
class Spent:
    """What requests used up, those sent again included.

    `hits` are answers that were kept before. Tokens are as the server counts them; the unanswered
    ones are bounds of requests that timed out or brought nothing that can be read, which may have
    been charged for. Seconds are added up over all requests.
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

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(*map(sub, astuple(self), astuple(other)))

    @property
    def tokens(self) -> int:
        """All tokens, sent and received."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def most(self) -> tuple[int, int]:
        """The most tokens that may have been sent, and received."""
        return (
            self.prompt_tokens + self.unanswered_prompt_tokens,
            self.completion_tokens + self.unanswered_completion_tokens,
        )

    def line(self, prices: Prices = NO_PRICES) -> str:
        """Describe it in one line, with its cost if there are prices."""
        parts = [
            f"models: {counted(self.requests, 'requests')} ({self.retries:,} retries, "
            f"{self.timeouts:,} time-outs)",
            counted(self.failures, "failed samples"),
            f"{self.hits:,} kept answers used",
            f"{self.prompt_tokens:,} + {self.completion_tokens:,} tokens",
            f"{self.seconds:.1f} s",
        ]
        if any(prices):
            cost = cost_of(prices, self.prompt_tokens, self.completion_tokens)
            parts.append(f"{cost:.4f} USD")
        return ", ".join(parts)


class Meter:
    """What several threads spend, up to a budget; a budget of None has no limit."""

    def __init__(
        self,
        max_requests: int | None = None,
        max_tokens: int | None = None,
        prices: Prices = NO_PRICES,
    ) -> None:
        self.max_requests, self.max_tokens, self.prices = max_requests, max_tokens, prices
        self.spent = Spent()
        self.watchers: list[Callable[[Spent], None]] = []
        self._reserved: list[Spent] = []
        self._changed = threading.Condition()

    def reserve(self, sent: int, received: int, *, is_retry: bool = False) -> Spent:
        """Count a request that is about to be sent; return the most tokens that it may use.

        Waits if the budget covers it once requests under way have ended.
        """
        bound = Spent(unanswered_prompt_tokens=sent, unanswered_completion_tokens=received)
        with self._changed:
            while (exceeded := self._exceeded(bound, self._reserved)) and self._reserved:
                if self._exceeded(bound, []):
                    break
                self._changed.wait()
            if exceeded:
                raise exceeded
            self._reserved.append(bound)
            self.count(Spent(requests=1, retries=int(is_retry)))
            self._tell()
        return bound

    def settle(self, bound: Spent, used: Spent) -> None:
        """End a request's reservation; count what it used.

        Without a response that can be read that is its bound: it may have been charged for.
        """
        with self._changed:
            self._reserved.remove(bound)
            self.count(used)
            self._tell()

    def _tell(self) -> None:
        """Tell watchers what was spent, requests under way at their bound."""
        spent = sum(self._reserved, start=self.spent)
        for watch in self.watchers:
            watch(spent)

    def count(self, more: Spent) -> None:
        """Add to what was spent."""
        with self._changed:
            self.spent += more
            self._changed.notify_all()

    def _exceeded(self, bound: Spent, reserved: list[Spent]) -> BudgetError | None:
        """Return the error of the limit that a request may exceed, if any."""
        spent = self.spent
        total = sum(reserved, start=spent + bound).most
        found = (
            ("max_requests", self.max_requests, spent.requests + 1),
            ("max_tokens", self.max_tokens, sum(total)),
        )
        for name, limit, most in found:
            if limit is not None and most > limit:
                return BudgetError(
                    f"{name}={limit} does not cover the next request, with which up to "
                    f"{most:,} would be spent; {spent.line()}.",
                    # the budget is of one command
                    "Run the same command again to go on: all answers are kept."
                    if spent.requests
                    else "Raise the limit: it does not cover one request.",
                )
        return None


_MAY_CHANGE = ("endpoint", "log_rows", "log_rows_rejected", "only_in_a", "only_in_b", "turns_cut")
"""What may differ when a command goes on with what an earlier one wrote."""


@contextmanager
def spending_recorded(
    path: Path, described: Mapping[str, Any], meter: Meter
) -> Iterator[dict[str, Any]]:
    """Add what is spent in a block to a manifest, however the block ends, and by kill -9 too.

    Yields the outcome, for the block to fill in: its status is ``incomplete`` until then.
    """
    earlier = read_object(path)
    if others := differing(earlier, described, _MAY_CHANGE):
        raise RunConflictError(
            f"{path} records another {others} than is asked for now.",
            "Choose another output, or set overwrite to replace what is there.",
        )
    journal = path.with_suffix(".spending.json")
    known = [one for one in earlier.get("commands", ()) if one.keys() >= _ENTRY]
    killed = read_object(journal)
    is_known = killed.get("id") in [one["id"] for one in known]
    commands = [*known, killed] if killed.keys() >= _ENTRY and not is_known else known
    outcome: dict[str, Any] = {"status": "incomplete"}
    before, begun = meter.spent, {"id": secrets.token_hex(8), "ended": None}

    def entry(spent: Spent) -> dict[str, Any]:
        used, prices = spent - before, meter.prices
        return {
            **begun,
            **asdict(used),
            "tokens": used.tokens,
            "cost": cost_of(prices, used.prompt_tokens, used.completion_tokens),
            "cost_at_most": cost_of(prices, *used.most),
            "prices": prices,
        }

    def commit(commands: list[dict[str, Any]]) -> None:
        names = [name for name in entry(before) if name in _ENTRY - {"id"}]
        total = {name: sum(each[name] for each in commands) for name in names}
        content = {"fastscore": __version__, **described, **outcome, "spent": total}
        commit_json(path, {**content, "commands": commands})

    commit(commands)
    try:
        file = journal.open("wb", buffering=0)
    except OSError as error:
        raise explain(journal, error) from error

    def write(spent: Spent) -> None:
        file.seek(0)
        file.write(orjson.dumps(entry(spent)).ljust(_ENTRY_BYTES))

    meter.watchers.append(write)
    try:
        yield outcome
    finally:
        meter.watchers.remove(write)
        file.close()
        begun["ended"] = datetime.now(UTC).isoformat(timespec="seconds")
        commit([*commands, entry(meter.spent)])
        journal.unlink()


_ENTRY = {"id", "tokens", "cost", "cost_at_most", *(each.name for each in fields(Spent))}
_ENTRY_BYTES = 2048
"""Longer than what a command spends takes: a later entry overwrites all of an earlier one."""


def differing(
    earlier: Mapping[str, Any], described: Mapping[str, Any], may_change: Sequence[str] = ()
) -> str:
    """Name what an earlier description, if there is one, has otherwise."""
    names = (name for name in described if earlier and name not in may_change)
    return " and another ".join(name for name in names if earlier.get(name) != described[name])


def read_object(path: Path) -> dict[str, Any]:
    """Return what a JSON file holds; nothing if it is missing or damaged."""
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}
