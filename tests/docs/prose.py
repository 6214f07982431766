"""Measures of the prose of user pages and of `--help`: sentences, semicolons, code blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MEAN_WORDS = 16.0
LONG_SENTENCE = 30
LONG_SHARE = 0.06
SEMICOLONS = 0.03
CODE_BLOCKS = 8.0

SHORTEST_SENTENCE = 4
"""Texts of fewer words, such as labels in a table, do not count as sentences."""

_FENCE = re.compile(r"^(```+|~~~+)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[\"')\]*]*\s+(?=\S)")
_WORD = re.compile(r"[^\W_][\w'’.,/-]*")


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, list item, table cell or heading of a page, and its first line."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Figures:
    """The measured figures of some texts."""

    words: int
    sentences: int
    long: int
    semicolons: int
    blocks: int

    @property
    def mean(self) -> float:
        """Words per sentence."""
        return self.words / max(self.sentences, 1)

    @property
    def long_share(self) -> float:
        """Sentences of more than 30 words / all sentences."""
        return self.long / max(self.sentences, 1)

    @property
    def semicolon_share(self) -> float:
        """Semicolons / sentences."""
        return self.semicolons / max(self.sentences, 1)

    @property
    def blocks_per_thousand_words(self) -> float:
        """Code blocks in 1,000 words of prose."""
        return 1000 * self.blocks / max(self.words, 1)

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(
            self.words + other.words,
            self.sentences + other.sentences,
            self.long + other.long,
            self.semicolons + other.semicolons,
            self.blocks + other.blocks,
        )

    def __str__(self) -> str:
        return (
            f"{self.mean:.1f} words a sentence, {self.long_share:.1%} long, "
            f"{100 * self.semicolon_share:.1f} semicolons in 100 sentences"
        )


def texts_of_page(page: str) -> Iterator[Text]:
    """Yield the prose of a Markdown page: paragraphs, list items, table cells; no code."""
    fence, first, gathered = "", 0, list[str]()
    for number, line in enumerate([*page.splitlines(), ""], start=1):
        mark = _FENCE.match(line.strip())
        is_code = bool(fence or mark)
        if mark and not fence:
            fence = mark[1]
        elif fence and line.strip() == fence:
            fence = ""
        is_block = is_code or not line.strip() or line.lstrip().startswith(("|", "#", "<", "!["))
        if gathered and (is_block or _ITEM.match(line)):
            yield Text(first, " ".join(gathered))
            gathered = []
        if is_block:
            if not is_code and line.lstrip().startswith("|"):
                yield from (Text(number, cell) for cell in _cells(line))
        elif not (line.startswith("    ") and not gathered):  # indented code
            first = first if gathered else number
            gathered.append(_ITEM.sub("", line).strip())


def _cells(row: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", re.sub(r"`[^`]*`", lambda code: code[0].replace("|", "/"), row))
    return [cell.strip() for cell in cells if cell.strip(" -:")]


def plain(text: str) -> str:
    """Return a text without markup: code is one word, a link is its words."""
    text = re.sub(r"`[^`]+`", "code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", text)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that is plain."""
    return [part for part in _END.split(text) if len(_WORD.findall(part)) >= SHORTEST_SENTENCE]


def measure(texts: list[str], blocks: int = 0) -> Figures:
    found = [sentence for text in texts for sentence in sentences(plain(text))]
    lengths = [len(_WORD.findall(sentence)) for sentence in found]
    return Figures(
        words=sum(lengths),
        sentences=len(found),
        long=sum(length > LONG_SENTENCE for length in lengths),
        semicolons=sum(sentence.count(";") for sentence in found),
        blocks=blocks,
    )


def measure_page(page: str) -> Figures:
    blocks = len(re.findall(r"^\s*```+\S*\n.*?^\s*```+$", page, re.DOTALL | re.MULTILINE))
    return measure([each.text for each in texts_of_page(page)], blocks)


BANNED = {
    r"(?<!un)\bstands?\b(?! alone)|\bstood\b": "name what it does: contains, is, is listed",
    r"\bfor want of\b": "because ... is missing",
    r"\bbut for\b": "except for, or: without",
    r"\bunless told\b|\bunless (?:it|one) says\b": "default: ...",
    r"\b(?:is|are|was|were) no\b(?! longer| more)(?! \w+er\b)": "negate the verb: is not, has no",
    r"\bas good as none\b|\bas none\b": "is treated as missing",
    r"\b(\w{3,}s)\b (?:[\w' ]{0,60} )?by \1\b": "A / B for a ratio",
    r"\b(?:null|empty|missing|refused|rejected|0|1) where\b": "if or when",
    r"\bthat of\b|\bthose of\b": "repeat the noun",
    r"\bas above\b|\blikewise\b": "repeat it",
    r"\bnobody\b|\bwhoever\b|\bwhatever\b|\bwhat no\b": "name the thing",
    r"\bone's own\b|\bof one's\b": "your own",
    r"\bleft aside\b|\banew\b|\bthereof\b|\bthe least\b": "skipped, again, of it, minimum",
    r"\b(?:page|file|table|line|signature|manifest|report|run|log|suite|outcome|message|command|"
    r"summary|option|column|row|fastscore) (?:says?|tells?|knows?|holds?|loses?)\b": (
        "software and texts contain, show, report or list"
    ),
    r"\bsays? nothing\b|\btells? nothing\b": "has no effect, or: does not contain",
    r"\b(?:is|are) what\b": "name the thing",
}
"""Constructions that readers stumble over: a pattern, and what to write instead."""


def banned_in(texts: Iterator[Text] | list[Text]) -> list[tuple[int, str, str]]:
    """Return the banned constructions: line, what was found, what to write instead."""
    return [
        (each.line, found[0], instead)
        for each in texts
        for pattern, instead in BANNED.items()
        for found in re.finditer(pattern, plain(each.text), re.IGNORECASE)
    ]
