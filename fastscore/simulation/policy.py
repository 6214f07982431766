"""What a simulated user does how often and says in which words: a TOML file, checked as it is read.

The built-in file ``user.toml`` has the public simulator's rates; its phrases are this project's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastscore.content_hash import hash_bytes
from fastscore.errors import UsageError, did_you_mean
from fastscore.options import TEXT_BYTES, parse_toml, read_option_file
from fastscore.simulation.retrieval import ATTRIBUTES
from fastscore.suites.preference_shift.catalogue import PLOT

Phrases = tuple[str, ...]

_RATES = ("request_other_genre", "contradiction", "shift", "take_focus", "drop_constraint")
_LIMITS = ("anchors", "names", "plot_keywords")
_FIELDS = (*ATTRIBUTES, PLOT)
_PHRASE_KINDS = ("initial", "more", "contradiction", "reactions", "same")


@dataclass(frozen=True, slots=True)
class Policy:
    """A user's policy.

    Parameters
    ----------
    digest
        The hash of the file's bytes.
    rates
        Probabilities by name.
    forced_shift
        The turn from which the first shift waits no longer.
    limits
        The most recommendations or keywords that are considered, by purpose.
    fields, order, bridges
        Fields that can be in focus, the order in which a shift considers them, and those whose
        values lead from one focus to the next.
    follows_system
        Whether details are asked about what the system named.
    unknown
        What they are asked about where there is no title at all.
    phrases
        What is said, by occasion.
    details, shift
        What is said, by topic and by the field of the new focus.
    """

    digest: str
    rates: Mapping[str, float]
    forced_shift: int
    limits: Mapping[str, int]
    fields: tuple[str, ...]
    order: tuple[str, ...]
    bridges: tuple[str, ...]
    follows_system: bool
    unknown: str
    phrases: Mapping[str, Phrases]
    details: Mapping[str, Phrases]
    shift: Mapping[str, Phrases]


def load_policy(path: Path | None = None) -> Policy:
    """Read a policy; the built-in one where no file is named.

    Raises
    ------
    UsageError
        The file cannot be read, is not TOML, or a value in it is not what stands there.
    """
    source = str(path) if path else "the built-in user.toml"
    try:
        built_in = files(__package__).joinpath("user.toml")
        content = read_option_file(path, TEXT_BYTES) if path else built_in.read_bytes()
    except OSError as error:
        raise UsageError(f"{source}: cannot be read: {error.strerror}.") from error
    values = parse_toml(content, source)
    top = _Table(source, "", values)
    top.check(("rates", "turns", "limits", "focus", "reference", "phrases"))
    rates, turns, limits = (top.table(name) for name in ("rates", "turns", "limits"))
    focus, reference, phrases = (top.table(name) for name in ("focus", "reference", "phrases"))
    rates.check(_RATES)
    turns.check(("forced_shift",))
    limits.check(_LIMITS)
    focus.check(("fields", "order", "bridges"))
    reference.check(("follows_system", "unknown"))
    phrases.check((*_PHRASE_KINDS, "details", "shift"))
    details, shift = phrases.table("details"), phrases.table("shift")
    fields = focus.names("fields", _FIELDS)
    shift.check(fields)
    return Policy(
        hash_bytes(content),
        {name: rates.rate(name) for name in _RATES},
        turns.whole("forced_shift"),
        {name: limits.whole(name) for name in _LIMITS},
        fields,
        focus.names("order", fields),
        focus.names("bridges", fields),
        reference.flag("follows_system"),
        reference.phrase("unknown"),
        {name: phrases.phrases(name) for name in _PHRASE_KINDS},
        {name: details.phrases(name) for name in details.values},
        {name: shift.phrases(name) for name in fields},
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the file; messages name the file and the key."""

    source: str
    key: str
    values: Mapping[str, Any]

    def fault(self, name: str, expected: str) -> UsageError:
        return UsageError(
            f"{self.source}: {self.key}{name} is {self.values.get(name)!r:.80}, "
            f"expected {expected}."
        )

    def check(self, required: tuple[str, ...]) -> None:
        for name in self.values:
            if name not in required:
                raise UsageError(
                    f"{self.source}: unknown key {self.key}{name}.", did_you_mean(name, required)
                )
        for name in required:
            if name not in self.values:
                raise UsageError(f"{self.source}: {self.key}{name} is missing.")

    def table(self, name: str) -> "_Table":
        found = self.values[name]
        if not isinstance(found, dict) or not found:
            raise self.fault(name, "a table")
        return _Table(self.source, f"{self.key}{name}.", found)

    def rate(self, name: str) -> float:
        found = self.values[name]
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1:
            raise self.fault(name, "a probability from 0 to 1")
        return float(found)

    def whole(self, name: str) -> int:
        found = self.values[name]
        if isinstance(found, bool) or not isinstance(found, int) or found < 1:
            raise self.fault(name, "a whole number from 1")
        return found

    def flag(self, name: str) -> bool:
        found = self.values[name]
        if not isinstance(found, bool):
            raise self.fault(name, "true or false")
        return found

    def names(self, name: str, known: tuple[str, ...]) -> tuple[str, ...]:
        found = self.values[name]
        if not isinstance(found, list) or not found or not set(map(str, found)) <= set(known):
            raise self.fault(name, f"a list of some of {', '.join(known)}")
        return tuple(found)

    def phrase(self, name: str) -> str:
        found = self.values[name]
        if not isinstance(found, str) or not found.strip():
            raise self.fault(name, "a phrase that is not blank")
        return found

    def phrases(self, name: str) -> Phrases:
        found = self.values[name]
        if not isinstance(found, list) or not found:
            raise self.fault(name, "a list of at least one phrase")
        if not all(isinstance(each, str) and each.strip() for each in found):
            raise self.fault(name, "phrases that are not blank")
        return tuple(found)
