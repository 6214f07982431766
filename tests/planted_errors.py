"""Uses of fastscore: each line with ``# error`` has one mistake, the others have none."""

from pathlib import Path

import polars as pl

import fastscore
from fastscore import Run

logs = ["logs"]
run: Run = fastscore.score(logs, "score_dialogue", limit=3, workers=2)
stored: Run = fastscore.score(logs, fastscore.MemoryFinance(ignore_memory_keys=True), output="run")
weights = fastscore.ScoreDialogue(lex_weight=1, semantic="jaccard")
shift = fastscore.PreferenceShift(catalogue=Path("items.csv"), match=None, window=5)
fastscore.score(logs, shift, embedder=lambda texts: [[1.0] for _ in texts])
fastscore.Scorer("score_dialogue", "steps", embedder="minilm-l6-v2")
fastscore.score(logs, shift, embedder=None, columns={"text": "content"})
column = pl.Series(["a", None])
embedder = fastscore.Embedder("minilm-l6-v2", threads=2)
vectors: pl.Series = embedder.embed(column, dim=64)
kept: pl.Series = fastscore.VectorStore.of(embedder, root="store").get_or_embed(["a", "b"])
distance: pl.Expr = fastscore.text.levenshtein("a", pl.col("b"))
distances: pl.Series = fastscore.text.levenshtein(column, column)
cosine: pl.Expr = fastscore.sets.idf_cosine("a", "b", idf={"x": 1.0})
means: pl.DataFrame = run.scan("turns").collect().join(run.tables["dialogues"], on="dialogue")
differences: pl.DataFrame = fastscore.compare(run, stored, pair_by="dialogue").differences
fastscore.explain(run, random=True, seed=1)
fastscore.report(run, output="page.html", texts=False)

misspelt = fastscore.ScoreDialogue(lexweight=1.0)  # error
text = fastscore.ScoreDialogue(lex_weight="1")  # error
others = fastscore.MemoryFinance(lex_weight=1.0)  # error
choice = fastscore.PreferenceShift(catalogue="items.csv", extract="lexicl")  # error
fastscore.score(logs, "score_dialogue", lex_weight=1.0)  # error
fastscore.score(logs, weights, worker=2)  # error
fastscore.score(logs, weights, workers="2")  # error
fastscore.score(logs, "score_dialog")  # error
fastscore.score("score_dialogue", logs)  # error
fastscore.score(logs, fastscore.ScoreDialogue)  # error
fastscore.score(logs, weights, embedder=3)  # error
fastscore.example("score_dialog", "folder")  # error
fastscore.Scorer("score_dialogue", "dialogue")  # error
fastscore.VectorStore.of("minilm-l6-v2")  # error
embedder.embed([1, 2])  # error
fastscore.text.levenshtein("a", column)  # error
fastscore.text.ngram_overlap("a", "b", n="2")  # error
fastscore.sets.idf_cosine("a", "b")  # error
run.tables["dialogue"].head()  # error
run.scan("turn")  # error
run.to_pandas("dialogue")  # error
fastscore.compare(run, stored, pairby="dialogue")  # error
fastscore.compare(run, stored, test="wilcoxon")  # error
fastscore.explain(run, worst="cas", sead=1)  # error
fastscore.report(run, output="page.html", text=False)  # error
fastscore.open_run("run").tables["step"].head()  # error
fastscore.PreferenceShift(catalogue="items.csv", aliases=3)  # error
fastscore.opne_run("run")  # error
