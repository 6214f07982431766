"""Measure extraction by character n-grams against scikit-learn's vectoriser.

Texts are as long as those of the logs that the extraction was published with: half of about 77
characters, half of about 443, made of ReDial's messages. Ours finds the concepts of all of them in
one thread; scikit-learn, with a matrix product for a block of texts at once, those of the first
ones, by turns with ours on the same. Both must find the same sets. Seconds are of processor time.

Usage: python -m benchmarks.ngram_extraction [--quick] [--data FOLDER] [--texts 60000]
"""

import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import polars as pl
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from benchmarks.figures import Figure, describe_host, publish
from benchmarks.preference_shift_logs import DATA, Dialogue, read_source, write_jsonl
from fastscore.suites.preference_shift import PreferenceShift
from fastscore.suites.preference_shift.catalogue import load_catalogue
from fastscore.suites.preference_shift.concepts import Concepts, concepts_of
from fastscore.suites.preference_shift.nearness import concepts_by_ngrams

LENGTHS = (77, 443)
TEXTS_PER_BLOCK = 500
Names = list[list[str]]


def make_texts(dialogues: list[Dialogue], count: int, seed: int) -> list[str]:
    """Join messages at random to distinct texts of the published lengths."""
    rng = random.Random(seed)
    messages = [message.text for dialogue in dialogues for message in dialogue if message.text]
    texts: dict[str, None] = {}
    while len(texts) < count:
        parts = [rng.choice(messages)]
        while sum(map(len, parts)) + len(parts) < LENGTHS[len(texts) % 2]:
            parts.append(rng.choice(messages))
        texts[" ".join(parts)] = None
    return list(texts)


def extract(texts: list[str], concepts: Concepts, options: PreferenceShift) -> Names:
    """Find the concepts of texts by ours."""
    sets = concepts_by_ngrams(pl.Series(texts), concepts, options)
    names: Names = concepts.names(sets).to_list()
    return names


class Vectorised:
    """The same by scikit-learn, fitted beforehand."""

    def __init__(self, concepts: Concepts) -> None:
        self.fields = []
        for _, terms in concepts.terms.group_by("field", maintain_order=True):
            vectoriser = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))
            matrix = vectoriser.fit_transform(terms["value"].to_list())
            self.fields.append((vectoriser, matrix, terms["concept"].to_list()))

    def extract(self, texts: list[str], options: PreferenceShift) -> Names:
        """Find the concepts of texts, a block at a time."""
        found: Names = [[] for _ in texts]
        for start in range(0, len(texts), TEXTS_PER_BLOCK):
            block = texts[start : start + TEXTS_PER_BLOCK]
            for vectoriser, matrix, names in self.fields:
                similar = cosine_similarity(vectoriser.transform(block), matrix)
                ranked = np.argsort(-similar, axis=1, kind="stable")[:, : options.embed_top]
                for row, best in enumerate(ranked):
                    kept = best[similar[row, best] >= options.embed_threshold]
                    found[start + row] += [names[place] for place in kept]
        return [sorted(names) for names in found]


def timed(work: Callable[[], Names]) -> tuple[float, Names]:
    """Return seconds of processor time, and what was found."""
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=DATA)
@click.option("--texts", "n_texts", type=click.IntRange(min=1), default=60_000, show_default=True)
@click.option("--peer-texts", type=click.IntRange(min=1), default=2_000, show_default=True)
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--quick", is_flag=True, help="6,000 texts, 500 for the peer, once.")
def main(data: Path, n_texts: int, peer_texts: int, repeats: int, seed: int, quick: bool) -> None:
    """Compare extraction by n-grams with scikit-learn."""
    if quick:
        n_texts, peer_texts, repeats = 6_000, 500, 1
    click.echo(json.dumps(describe_host()))
    dialogues, movies = read_source(data)
    texts = make_texts(dialogues, n_texts, seed)
    with tempfile.TemporaryDirectory() as folder:
        catalogue = Path(folder) / "catalogue.jsonl"
        write_jsonl(catalogue, movies)
        options = PreferenceShift(catalogue=str(catalogue), profile="structured", extract="ngrams")
        concepts = concepts_of(load_catalogue(options.catalogue), options)
    first = texts[:peer_texts]
    built, _ = timed(lambda: extract(first[:1], concepts, options))
    peer = Vectorised(concepts)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(repeats):
        seconds, found = timed(lambda: extract(first, concepts, options))
        ours.append(seconds)
        seconds, expected = timed(lambda: peer.extract(first, options))
        theirs.append(seconds)
        if found != expected:
            raise click.ClickException("the two find other concepts")
    whole, _ = timed(lambda: extract(texts, concepts, options))
    ratio = statistics.median(theirs) / statistics.median(ours)
    publish(
        [
            Figure(
                what="concepts by n-grams",
                rows=len(first),
                unit="CPU s",
                ours=statistics.median(ours),
                peer="scikit-learn",
                theirs=statistics.median(theirs),
                ratio=ratio,
            )
        ]
    )
    click.echo(
        f"{len(concepts):,} values; texts of {statistics.mean(map(len, texts)):.0f} characters\n"
        f"ours          {whole:.1f} s for {len(texts):,} texts, after {built:.1f} s for the index\n"
        f"ours          {statistics.median(ours):.2f} s for the first {len(first):,}\n"
        f"scikit-learn  {statistics.median(theirs):.2f} s for the same: {ratio:.0f} times as long"
    )


if __name__ == "__main__":
    main()
