"""Models for the tests: a tiny one made here, and the default one, exported once."""

import os
import shutil
from pathlib import Path

import pytest
from fastscore_models.export import export, export_masked
from fastscore_models.recipe import DownloadError, load_recipe

from fastscore.files import cache_root
from fastscore.vectors.embedder import Embedder
from tests.models.tiny_bert import make_recipe, word_tokenizer, write_folder, write_masked_folder

WORDS = [f"w{number}" for number in range(26)]


@pytest.fixture(scope="session")
def tiny_cache(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    export(make_recipe(), cache, folder=write_folder(cache / "source", word_tokenizer(WORDS)))
    return cache


MASKED_CONFIG = {"vocab_size": len(WORDS) + 5}
MASK_ID = len(WORDS) + 4


@pytest.fixture(scope="session")
def masked_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("masked") / "tiny-mlm"
    return write_masked_folder(folder, word_tokenizer(WORDS, mask=True), **MASKED_CONFIG)


@pytest.fixture(scope="session")
def masked_cache(tmp_path_factory, masked_folder):
    cache = tmp_path_factory.mktemp("masked_cache")
    export_masked("tiny-mlm", cache, masked_folder)
    return cache


@pytest.fixture
def tiny(tiny_cache):
    return Embedder("tiny", cache_dir=tiny_cache)


@pytest.fixture
def own_cache(tmp_path, tiny_cache):
    """A copy of the tiny model's cache that a test may spoil."""
    return Path(shutil.copytree(tiny_cache / "models", tmp_path / "own" / "models")).parent


@pytest.fixture(scope="session")
def minilm():
    """The default model; exported into the cache if it is not there yet."""
    try:
        export(load_recipe("minilm-l6-v2"), cache_root())
    except DownloadError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the default model is not in the cache and cannot be fetched: {error}")
    return Embedder("minilm-l6-v2")
