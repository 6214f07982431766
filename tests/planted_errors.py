"""Uses of `fastscore.score`: each line with ``# error`` has one mistake, the others have none."""

import fastscore
from fastscore import Run

logs = ["logs"]
run: Run = fastscore.score(logs, "score_dialogue", limit=3, workers=2)
stored: Run = fastscore.score(logs, fastscore.MemoryFinance(ignore_memory_keys=True), output="run")
weights = fastscore.ScoreDialogue(lex_weight=1, semantic="jaccard")
shift = fastscore.PreferenceShift(catalogue="items.csv", match=None, window=5)
fastscore.score(logs, shift, embedder=None, columns={"text": "content"})

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
