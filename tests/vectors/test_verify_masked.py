"""``fastscore models verify`` of masked language models."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from fastscore_models import export, export_masked

from fastscore.errors import ModelError, UsageError
from fastscore.vectors import models
from fastscore.vectors.models import is_masked_model, verify_masked_model
from fastscore.vectors.perplexity import PerplexityModel
from tests.conftest import fastscore_command
from tests.models.tiny_bert import make_recipe, word_tokenizer, write_folder
from tests.vectors.conftest import WORDS

TEXTS = ["w1", "w2 w3", "w4 w5 w6", "w7 w8 w9"]


@pytest.fixture
def cache(tmp_path, masked_cache, monkeypatch):
    """A copy of the tiny masked model's cache that a test may spoil."""
    root = tmp_path / "cache"
    shutil.copytree(masked_cache / "masked-models", root / "masked-models")
    monkeypatch.setenv("FASTSCORE_CACHE", str(root))
    return root


def verify(cache: Path, *arguments: object):
    return fastscore_command(["models", "verify", *arguments], FASTSCORE_CACHE=str(cache))


def test_the_command_tells_hashes_and_batch_dependence_and_why_no_table(cache, tmp_path):
    (tmp_path / "texts.txt").write_text("w1 w2\n\nw3\nw4 w5\n")
    done = verify(cache, "tiny-mlm", "--texts", tmp_path / "texts.txt")
    assert done.returncode == 0, done.stderr
    files, dependence, table = done.stdout.splitlines()
    digest = PerplexityModel("tiny-mlm", cache_dir=cache).onnx_sha256
    assert files == f"tiny-mlm: files intact (ONNX SHA-256 {digest})"
    assert dependence.startswith("fp32: pseudo-perplexities of 3 texts (0 without tokens), batch")
    assert float(dependence.split()[-1]) <= 1e-6
    assert table.startswith("There is no table of accuracy")


def test_another_precision_is_refused(cache):
    done = verify(cache, "tiny-mlm", "--precision", "bf16")
    assert done.returncode == 2
    assert "'tiny-mlm' runs in fp32 only" in done.stderr


def test_texts_without_tokens_are_counted(cache):
    found = verify_masked_model("tiny-mlm", texts=["w1", " ", "w2 w3"])
    assert (found.texts, found.without_tokens) == (3, 1)
    with pytest.raises(UsageError, match="expected at least 2"):
        verify_masked_model("tiny-mlm", texts=["w1"])
    with pytest.raises(ModelError, match="not finite"):
        verify_masked_model("tiny-mlm", texts=[" ", ""])


def test_company_that_changes_a_perplexity_is_an_error(cache, monkeypatch):
    class Crowded(PerplexityModel):
        def encode(self, texts, *, progress=None):
            found = super().encode(texts, progress=progress)
            return found * np.float32(1 + 1e-4 * (len(texts) > 1))

    monkeypatch.setattr(models, "PerplexityModel", Crowded)
    with pytest.raises(ModelError, match=r"Pseudo-perplexities of tiny-mlm change by 1\.0e-04"):
        verify_masked_model("tiny-mlm", texts=TEXTS)


def test_a_name_of_both_kinds_means_the_embedding_model(cache, tmp_path, masked_folder):
    assert is_masked_model("tiny-mlm")
    export_masked("tiny", cache, masked_folder)
    assert is_masked_model("tiny")
    export(make_recipe(), cache, folder=write_folder(tmp_path / "source", word_tokenizer(WORDS)))
    assert not is_masked_model("tiny")
    (tmp_path / "texts.txt").write_text("w1 w2\nw3\n")
    arguments = ["tiny", "--precision", "fp32", "--texts", tmp_path / "texts.txt"]
    assert "cos mean" in verify(cache, *arguments).stdout
    assert "no table of accuracy" in verify(cache, *arguments, "--task", "fill-mask").stdout
