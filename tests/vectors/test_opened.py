"""The models that the tasks of a process share, and runs that must not share them."""

import shutil

from fastscore_models import export

from fastscore.run.context import PerplexitySettings
from fastscore.run.request import EmbedderSettings
from fastscore.run.scoring import open_embedder, open_perplexity_model
from tests.models.tiny_bert import make_recipe, word_tokenizer, write_folder
from tests.vectors.conftest import WORDS


def test_runs_whose_caches_differ_share_no_embedder(tiny_cache, tmp_path, monkeypatch):
    other = tmp_path / "cache"
    other.mkdir()
    source = write_folder(other / "source", word_tokenizer(WORDS))
    export(make_recipe(max_tokens=6), other, folder=source)
    settings = EmbedderSettings("tiny", "fp32", None, tmp_path)
    opened = []
    for cache in (tiny_cache, other, tiny_cache):
        monkeypatch.setenv("FASTSCORE_CACHE", str(cache))
        opened.append(open_embedder(settings))
    assert opened[1].recipe.max_tokens == 6 != opened[0].recipe.max_tokens
    assert opened[1].fingerprint != opened[0].fingerprint
    assert opened[2] is opened[0]


def test_runs_whose_caches_differ_share_no_perplexity_model(masked_cache, tmp_path, monkeypatch):
    other = shutil.copytree(masked_cache, tmp_path / "cache")
    settings = PerplexitySettings("tiny-mlm", tmp_path)
    opened = []
    for cache in (masked_cache, other, masked_cache):
        monkeypatch.setenv("FASTSCORE_CACHE", str(cache))
        opened.append(open_perplexity_model(settings))
    assert opened[1] is not opened[0]
    assert opened[2] is opened[0]
