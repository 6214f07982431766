"""Words of the plain group_travel scorer: tokens, lexical evidence, rooms, categories, regexes.

One text at a time, with the standard library alone, straight from the definitions; see
`tests.oracles.group_travel`.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

LEXICON: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "benchmarks" / "data" / "group_travel_lexicon.json").read_text(
        encoding="utf-8"
    )
)
STOP = frozenset(LEXICON["STOP"].split()) | frozenset(LEXICON["FILL"].split())
SLOT_GENERIC = {slot: frozenset(words.split()) for slot, words in LEXICON["SLOT_GENERIC"].items()}
CATEGORY_DROP = frozenset(LEXICON["CATEGORY_DROP"].split())
CATEGORY_ALIAS: dict[str, str] = LEXICON["CATEGORY_ALIAS"]
CATEGORIES: dict[str, list[str]] = LEXICON["CATEGORY"]
TOP = 6
NO_WORD = re.compile(r"[\W_]+")  # what str.isalnum refuses
APOSTROPHES = str.maketrans("", "", "'’‘`")


def norm(text: str) -> str:
    """Return a text without marks, case, apostrophes and punctuation."""
    decomposed = unicodedata.normalize("NFKD", text)
    unmarked = "".join(c for c in decomposed if unicodedata.category(c)[0] != "M")
    spelled = unmarked.casefold().translate(APOSTROPHES).replace("&", " and ")
    return NO_WORD.sub(" ", spelled).strip()


def tokens(text: str) -> list[str]:
    return norm(text).split()


def fold(token: str) -> str:
    """Return a word without its plural ending."""
    if len(token) > 4 and token.endswith("ies"):
        return token[:-3] + "y"
    if len(token) > 3 and token.endswith("s") and not token.endswith(("ss", "us", "is")):
        return token[:-1]
    return token


def folded(text: str) -> list[str]:
    return [fold(token) for token in tokens(text)]


class Informative:
    """A preference's informative words: all, the first six by rank, and the runs of neighbours."""

    def __init__(self, text: str, slot: str) -> None:
        generic = SLOT_GENERIC.get(slot, frozenset())
        first: dict[str, int] = {}
        counts: Counter[str] = Counter()
        runs: list[list[str]] = [[]]
        for position, token in enumerate(tokens(text)):
            base = fold(token)
            listed = {token, base} & STOP or {token, base} & generic
            if listed or not (len(token) >= 3 or token.isdigit() or not token.isascii()):
                runs.append([])
                continue
            runs[-1].append(base)
            counts[base] += 1
            first.setdefault(base, position)
        self.all = frozenset(counts)
        self.top = sorted(counts, key=lambda t: (-counts[t], -len(t), first[t]))[:TOP]
        self.phrases = [run for run in runs if len(run) >= 2]

    def hits(self, target: frozenset[str]) -> int:
        """Count the top words that are among a target's folded words."""
        return sum(token in target for token in self.top)

    def addressed(self, target: Sequence[str]) -> bool:
        """Whether the folded words of a target address the preference."""
        hits = self.hits(frozenset(target))
        if hits >= 2 or (len(self.all) == 1 and hits == 1):
            return True
        return any(contains_run(target, phrase) for phrase in self.phrases)


def contains_run(words: Sequence[str], run: Sequence[str]) -> bool:
    """Return whether some words occur consecutively, in order, among others."""
    return bool(run) and f" {' '.join(run)} " in f" {' '.join(words)} "


# --- clauses and negation

ALL_BUT = re.compile(r"\b(?:anything|everything|all)\s+but\b", re.IGNORECASE)
CLAUSE_END = re.compile(r"[.,;!?\n]|\b(?:but|however)\b", re.IGNORECASE)


def clauses(text: str) -> list[str]:
    """Cut a text into clauses; "anything but" and its like become "not"."""
    return CLAUSE_END.split(ALL_BUT.sub("not", text))


NEGATORS = frozenset(
    [
        *("no", "not", "never", "without", "avoid", "except", "dont", "cant", "wont", "hate"),
        *("dislike", "skip", "exclude"),
    ]
)
NEGATOR_PAIRS = (("rather", "than"), ("instead", "of"))


def follows_negator(before: Sequence[str]) -> bool:
    """Whether a negator's last word is one of the three words before a mention."""
    return any(
        before[position] in NEGATORS
        or (position > 0 and tuple(before[position - 1 : position + 1]) in NEGATOR_PAIRS)
        for position in range(max(0, len(before) - 3), len(before))
    )


def first_negator(words: Sequence[str]) -> int:
    """Return where the first negator begins; after the last word if there is none."""
    places = (
        place
        for place, word in enumerate(words)
        if word in NEGATORS or tuple(words[place : place + 2]) in NEGATOR_PAIRS
    )
    return next(places, len(words))


# --- rooms

ROOM_TYPES = ("entire", "private", "shared")
ROOMS = {
    "entire": re.compile(
        r"\b(?:(?:entire|whole) (?:home|house|place|apartment|apt|unit|villa)s?"
        r"|places? to ourselves|own (?:house|apartment|place)s?)\b"
    ),
    "private": re.compile(
        r"\b(?:private (?:bed)?rooms?|own rooms?|rooms? to (?:myself|ourselves)|separate rooms?)\b"
    ),
    "shared": re.compile(
        r"\b(?:shared (?:bed)?rooms?|(?:share|sharing) a rooms?|hostels?|dorms?)\b"
    ),
}


def wanted_rooms(text: str) -> frozenset[str]:
    """Return the room types that a lodging preference wants; empty where it names none."""
    mentioned, refused = set(), set()
    for clause in clauses(text):
        words = norm(clause)
        for kind, pattern in ROOMS.items():
            for match in pattern.finditer(words):
                mentioned.add(kind)
                if follows_negator(words[: match.start()].split()):
                    refused.add(kind)
    wanted = mentioned - refused
    if not wanted and refused:
        wanted = set(ROOM_TYPES) - refused
    return frozenset(wanted)


def room_type(value: Any) -> str | None:
    """Return which of the three types an accommodation's room type is."""
    words = norm(str(value))
    if "entire" in words or "whole" in words:
        return "entire"
    return next((kind for kind in ("private", "shared") if kind in words), None)


# --- categories


def components(category: str) -> frozenset[str]:
    """Return the words of a category that count."""
    kept = (token for token in folded(category) if len(token) >= 3 and token not in CATEGORY_DROP)
    return frozenset(CATEGORY_ALIAS.get(token, token) for token in kept)


def all_components(categories: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*map(components, categories))


BUILT_IN = {slot: all_components(categories) for slot, categories in CATEGORIES.items()}


def category_tokens(
    text: str, vocabulary: frozenset[str], *, skip_negated: bool = False
) -> frozenset[str]:
    """Return the words of a preference that are words of categories.

    With `skip_negated` what a clause has after its first negator is left out.
    """
    found: set[str] = set()
    for part in clauses(text) if skip_negated else [text]:
        words = tokens(part)
        bases = map(fold, words[: first_negator(words)] if skip_negated else words)
        found.update(CATEGORY_ALIAS.get(base, base) for base in bases if len(base) >= 3)
    return frozenset(found) & vocabulary


# --- words of the system's turns

CONFLICT = re.compile(
    r"\b(?:conflict\w*|differ(?:s|ed|ent|ence|ences|ing)?|disagree\w*|diverg\w*|compromis\w*"
    r"|trade[\s-]?offs?|middle ground|balanc(?:e|es|ed|ing)|mixed preferences|split between)\b",
    re.IGNORECASE,
)
CONFLICT_NEGATORS = frozenset(("no", "not", "without", "never", "any"))


def speaks_of_conflict(text: str) -> bool:
    """Whether a text names a conflict without denying it; a label ("Conflict:") is not naming."""
    for clause in clauses(text):
        for match in CONFLICT.finditer(clause):
            if clause[match.end() :].lstrip().startswith(":"):
                continue
            if not CONFLICT_NEGATORS.intersection(tokens(clause[: match.start()])[-3:]):
                return True
    return False


THEORY_FAMILIES = (
    "parent(?:s|al)? (?:authority|veto|vote|decides?|hc|budget hc)",
    "(?:elder|elderly|senior) (?:stamina|veto|accessibility (?:hc|constraint))",
    "sub-?group(?:s|ing|ings|ed)?",
    "(?:inter)?generational (?:balance|fairness|equity|harmony)",
    "least misery",
    "most pleasure",
    "log-?roll(?:ing|s|ed)?",
    "(?:approval|borda|plurality|majority) (?:votes?|voting|count|rule)",
    "weighted (?:avg|average|averaging|aggregation)",
    "social (?:choice|theory|welfare)",
    "utilitarian|egalitarian|maximin|rawls(?:ian)?|nash",
    "(?:hard|soft) constraints?",
    "(?:mutual interest|self select(?:ion)?|include both|higher pref(?:erence)? with compensation)"
    " (?:strategy|principle|rule|approach)",
    "[a-z]+(?:_[a-z]+)+",
)
THEORY = re.compile(rf"\b(?:{'|'.join(THEORY_FAMILIES)})\b".replace(" ", r"[\s_-]+"), re.IGNORECASE)
