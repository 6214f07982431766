"""The options of `fastscore.score` by suite, as types.

Written by ``python -m fastscore.suites.typed_options`` from what the suites declare.
"""

from typing import Literal

from fastscore.run_options import RunOptions


class GroupTravelKeywords(RunOptions, total=False):
    """Options of group_travel."""

    address_sim: float
    """Similarity from which a text addresses a preference (M8). Default: 0.45."""

    satisfy_sim: float
    """Similarity from which a place satisfies a preference (M10). Default: 0.42."""

    serendipity_sim: float
    """Similarity from which a place that nobody named is serendipitous (M15). Default: 0.3."""

    m12_target: Literal["plan", "slot"]
    """What M12 compares a preference with: the plan's entries for the slot and the planner's raw
    output, or the entries alone. Default: plan.
    """

    m12_long: Literal["windows", "cut"]
    """How M12 reads what is longer than the model takes: in windows whose vectors are averaged by
    tokens, or, as published, cut at the model's limit. Default: windows.
    """

    negation: Literal["rooms", "all"]
    """Where negations count: in wishes for rooms, or for categories too: one that stands after a
    negator in its clause is then not wished for. Default: rooms.
    """

    strict_overnight: bool
    """Do not let the last stop of a day end after midnight (M16). Default: False."""

    lexicon: str
    """A TOML file of words that replaces the built-in lexicon as a whole."""

    by_group_type: bool
    """Also summarise by group type, and by condition within each. Default: False."""

    legacy_files: bool
    """Also write scores.csv, summary.csv and summary.md, a row a dialogue and a row a metric with
    the conditions side by side. Default: False.
    """


class GuestSimulationKeywords(RunOptions, total=False):
    """Options of guest_simulation."""

    profile: Literal["default", "published"]
    """default: exits and messages without a state are no behaviour, nothing to score is null, tools
    count by name; published: as the public evaluation does it. Default: default.
    """

    states: Literal["auto", "columns", "tools", "heuristic", "llm"]
    """Where a guest's states come from; auto takes the first that a conversation has, llm is what a
    chat model read into files (--states-from). Default: auto.
    """

    states_from: str
    """A folder of the published files of states, exp<k>/<conversation>_states.csv, which count
    instead of the log's state columns.
    """

    personas: str
    """A JSON file of persona attributes by full name, and of test cases, for logs that do not hold
    them.
    """

    level: int
    """The experiment level of conversations that neither a column nor a folder exp<k> gives one; 0
    for none. Default: 0.
    """


class MemoryFinanceKeywords(RunOptions, total=False):
    """Options of memory_finance."""

    profile: Literal["default", "published"]
    """What a reply that is null counts as in a turn of status ok: missing, so that the turn counts
    for no metric (default), or empty, so that it complies (published). Default: default.
    """

    ignore_memory_keys: bool
    """Empty every turn's required memory keys first, as for a baseline without memory: then no turn
    counts for M1. Default: False.
    """

    lexicon: str
    """A TOML file of words that replaces the built-in lexicon as a whole."""

    legacy_files: bool
    """Also write metrics_summary.json, turn_eval.jsonl and report.md as the published evaluation
    does, byte for byte. Default: False.
    """

    legacy_dataset_path: str
    """The dataset that the legacy files name, which no log knows."""


class PreferenceShiftKeywords(RunOptions, total=False):
    """Options of preference_shift."""

    profile: Literal["default", "published", "structured", "legacy"]
    """published: the public evaluation (V4); structured: its successor; legacy: its predecessor, by
    topics instead of concepts; default: the published formulas with values matched as whole words
    and no plot keywords. Default: default.
    """

    catalogue: str
    """The items that concepts come from: JSON, JSON Lines, CSV or Parquet, plain, .gz or .zst.
    Required.
    """

    extract: Literal["lexical", "embed", "ngrams", "llm"]
    """How concepts are found: values that stand in the text, or the values nearest to it in meaning
    by vectors (embed) or in spelling by character n-grams (ngrams), or those that a chat model
    read, in a file (llm). Default: lexical.
    """

    annotations: str
    """With --extract llm: the file of `fastscore annotate concepts`."""

    match: Literal["word", "substring"] | None
    """Values match as whole words or as any substring."""

    aliases: str
    """A CSV table of other spellings of the catalogue's values: spelling, value and, where it means
    one field only, field.
    """

    fields: str | None
    """The catalogue's fields whose values are concepts, with commas between."""

    plot_keywords: bool | None
    """Take keywords of the plots for concepts too."""

    embed_threshold: float
    """With --extract embed or ngrams: the least cosine of a text and a value. Default: 0.35."""

    embed_top: int
    """With --extract embed or ngrams: the most values of one field. Default: 3."""

    alpha: float
    """Weight of CC in TAS. Default: 1.0."""

    beta: float
    """Weight of CR in TAS. Default: 1.0."""

    gamma: float
    """Weight of copying (I) in TAS, subtracted. Default: 1.0."""

    copy_orders: str
    """Orders of the n-grams of copying, with commas between (words). Default: 3,4."""

    recovery: Literal["cc", "cc-or-cr"] | None
    """The recovery test of a turn: CC, or CC or CR, reaches its threshold."""

    recovery_cc: float | None
    """The threshold of CC."""

    recovery_cr: float
    """The threshold of CR, also that of recovery by CR alone. Default: 0.65."""

    window: int
    """Turns in which a shift can be recovered, its own the first; below 1 counts as 1 (turns).
    Default: 3.
    """

    cas_weights: str
    """Weights in CAS of recovery rate, delay, copying, CC and CR; scaled to sum 1. Default:
    0.01,0.02,0.02,0.30,0.15.
    """

    segments: Literal["embedding", "heuristic", "metadata"]
    """Where a conversation without shift metadata is cut: by the user's texts, compared by vectors
    and concepts (embedding) or topic words (heuristic), or not at all (metadata). Default:
    embedding.
    """

    merge_speakers: bool
    """First join consecutive turns of one speaker; a system turn at the start is left aside.
    Default: False.
    """

    legacy_files: bool
    """Also write results.jsonl and the summary CSVs with the published field names. Default: False.
    """


class ScoreDialogueKeywords(RunOptions, total=False):
    """Options of score_dialogue."""

    lex_weight: float
    """Weight of the lexical part; the semantic part has the rest. A part without weight is not
    computed, and at 1 no embedder is needed. Default: 0.5.
    """

    semantic: Literal["calibrated", "cosine", "jaccard"]
    """What semantic similarity is: the cosine calibrated by the dialogue's own baseline, the bare
    cosine, or the Jaccard index of the words (no embedder). Default: calibrated.
    """

    baseline_pairs: int
    """Random pairs of ground truths whose mean cosine is a dialogue's baseline; below 1 counts as 1
    (pairs). Default: 20000.
    """

    baseline_seed: int
    """Seed of those pairs, as Python's random.Random takes it. Default: 0."""

    max_text: int
    """The most characters of a prediction or a ground truth; a row with more is a reject. Edit
    distances of longer texts take minutes (characters). Default: 1000000.
    """

    pppl_model: str
    """A masked language model (`fastscore models export FOLDER --task fill-mask`): reports the
    pseudo-perplexity of predictions and ground truths.
    """

    pppl_weight: float
    """How much a prediction that reads worse than the ground truth is penalised: U_step is
    multiplied by (PPPL of the ground truth / PPPL of the prediction) to this power, at most 1. Not
    part of the published scorer. Default: 0.0.
    """
