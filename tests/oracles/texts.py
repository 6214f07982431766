"""Plain-Python oracles of the kernels over characters, tokens and targets, by their docstrings."""

import re
from collections.abc import Callable, Sequence


def replace_characters(texts: Sequence[str], replacement: Callable[[str], str]) -> list[str]:
    replaced = ("".join(map(replacement, text)) for text in texts)
    return [" ".join(part for part in text.split(" ") if part) for text in replaced]


def plain_words(texts: Sequence[str], without: Sequence[str]) -> list[str]:
    reduced = [re.sub("[^a-z0-9]", " ", text.lower()).split() for text in texts]
    return [" ".join(word for word in words if word not in without) for words in reduced]


def count_phrases(
    texts: Sequence[str],
    text: Sequence[int],
    phrases: Sequence[str],
    wanted: Sequence[Sequence[int]],
    owner: Sequence[int],
) -> list[tuple[int, int, int]]:
    left = [set(of_owner) for of_owner in wanted]
    counts = []
    for row, of_row in zip(text, owner, strict=True):
        had = {each for each in wanted[of_row] if f" {phrases[each]} " in f" {texts[row]} "}
        new = had & left[of_row]
        counts.append((len(had), len(new), len(left[of_row])))
        left[of_row] -= new
    return counts


def number_tokens(texts: Sequence[str]) -> tuple[list[list[int]], list[str]]:
    numbers: dict[str, int] = {}
    sequences = [
        [numbers.setdefault(token, len(numbers)) for token in text.split(" ") if token]
        for text in texts
    ]
    return sequences, list(numbers)


def count_token_hits(queries: Sequence[list[int]], targets: Sequence[list[list[int]]]) -> list[int]:
    return [
        sum(token in [t for text in target for t in text] for token in query)
        for query, target in zip(queries, targets, strict=True)
    ]


def find_phrases(phrases: Sequence[list[int]], targets: Sequence[list[list[int]]]) -> list[bool]:
    found = []
    for phrase, target in zip(phrases, targets, strict=True):
        joined = [token for text in target for token in text]
        starts = range(len(joined) - len(phrase) + 1)
        found.append(bool(phrase) and any(joined[s : s + len(phrase)] == phrase for s in starts))
    return found


def string_changes(texts: Sequence[str]) -> list[bool]:
    return [place > 0 and text != texts[place - 1] for place, text in enumerate(texts)]


def outer_whitespace(texts: Sequence[str]) -> list[bool]:
    return [text[:1].isspace() or text[-1:].isspace() for text in texts]
