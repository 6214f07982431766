"""Pseudo-perplexity against a plain forward pass, token by token; masked models."""

import math

import numpy as np
import pytest

from fastscore.errors import ModelError, UsageError
from fastscore.vectors.models import list_masked_models
from fastscore.vectors.perplexity import PerplexityModel
from fastscore.vectors.store import VectorStore, embed_missing
from tests.conftest import fastscore_command
from tests.models.tiny_bert import (
    log_probability,
    make_config,
    make_head,
    make_weights,
)
from tests.vectors.conftest import MASK_ID, MASKED_CONFIG, WORDS

TEXTS = [" ".join(WORDS[start : start + length]) for length in range(1, 7) for start in range(9)]


def plain_log_perplexity(text, max_tokens=16):
    known = {word: row + 4 for row, word in enumerate(WORDS)}
    config = make_config(**MASKED_CONFIG)
    weights = make_weights(config) | make_head(config)
    ids = [2, *[known.get(word, 1) for word in text.split()][: max_tokens - 2], 3]
    places = range(1, len(ids) - 1)
    logs = [log_probability(weights, config, ids, place, MASK_ID) for place in places]
    return -sum(logs) / len(logs)


@pytest.fixture
def model(masked_cache):
    return PerplexityModel("tiny-mlm", cache_dir=masked_cache)


def test_equals_a_plain_forward_pass(model):
    found = model.encode(TEXTS)
    assert found.shape == (len(TEXTS), 1)
    assert found.dtype == np.float32
    np.testing.assert_allclose(
        found[:, 0], [plain_log_perplexity(text) for text in TEXTS], rtol=1e-5, atol=1e-5
    )
    assert (found >= 0).all()


def test_batches_threads_and_company_change_nothing(model, masked_cache, monkeypatch):
    together = model.encode(TEXTS)
    alone = np.concatenate([model.encode([text]) for text in TEXTS[::5]])
    np.testing.assert_array_equal(alone, together[::5])
    other = PerplexityModel("tiny-mlm", threads=3, cache_dir=masked_cache)
    np.testing.assert_array_equal(other.encode(TEXTS), together)
    monkeypatch.setattr("fastscore.vectors.embedder.TOKENS_PER_BATCH", 20)
    monkeypatch.setattr("fastscore.vectors.embedder._TEXTS_PER_WINDOW", 10)
    np.testing.assert_array_equal(model.encode(TEXTS), together)


def test_a_text_without_tokens_has_none(model):
    assert np.isnan(model.encode(["", "w1", "  "])[:, 0]).tolist() == [True, False, True]
    assert model.encode([]).shape == (0, 1)


def test_the_store_keeps_it(model, tmp_path, monkeypatch):
    store = VectorStore.open(model.fingerprint, model.dim, root=tmp_path)
    assert embed_missing([*TEXTS, ""], model, store, texts_per_append=7) == len(TEXTS) + 1
    monkeypatch.setattr(PerplexityModel, "encode", lambda *_, **__: pytest.fail("again"))
    assert embed_missing(TEXTS, model, store) == 0
    view = store.view([*TEXTS, ""])
    logs = view.matrix[view.codes([TEXTS[3], ""]), 0]
    assert math.isclose(logs[0], plain_log_perplexity(TEXTS[3]), rel_tol=1e-5)
    assert np.isnan(logs[1])


def test_null_and_unknown_models_are_refused(model, masked_cache):
    with pytest.raises(UsageError, match="1 of the texts"):
        model.encode(["a", None])
    with pytest.raises(ModelError, match="'other' has not been exported"):
        PerplexityModel("other", cache_dir=masked_cache)


def test_export_command_and_list(tmp_path, masked_folder, masked_cache, monkeypatch):
    command = ["models", "export", masked_folder, "--task", "fill-mask"]
    done = fastscore_command(command, FASTSCORE_CACHE=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("tiny-mlm is in ")
    monkeypatch.setenv("FASTSCORE_CACHE", str(tmp_path))
    (line,) = list_masked_models()
    assert line.split()[:3] == ["tiny-mlm", "fill-mask", "exported"]
    ours = PerplexityModel("tiny-mlm").fingerprint
    assert ours == PerplexityModel("tiny-mlm", cache_dir=masked_cache).fingerprint
    done = fastscore_command([*command[:2], tmp_path / "gone", *command[3:]])
    assert done.returncode == 2
    assert "There is no folder" in done.stderr
