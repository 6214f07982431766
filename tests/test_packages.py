"""The conda recipe and the container file agree with the package."""

import re
import tomllib
from pathlib import Path

import pytest

from fastscore.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECIPE = ROOT / "conda" / "recipe.yaml"
CONTAINER = (ROOT / "Containerfile").read_text(encoding="utf-8")
CONDA_NAMES = {"ahocorasick-rs": "ahocorasick_rs", "xxhash": "python-xxhash"}


@pytest.fixture(scope="module")
def recipe():
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(RECIPE.read_text(encoding="utf-8"))


def bounds(requirement):
    """Return name and versions of a requirement, without spaces."""
    name, versions = re.match(r"([\w-]+)\s*(.*)", requirement).groups()
    return name, versions.replace(" ", "")


def test_the_recipe_is_of_this_version(recipe):
    assert recipe["context"]["version"] == __version__
    assert recipe["package"]["name"] == PROJECT["name"]
    assert recipe["about"]["summary"] == PROJECT["description"]


def test_the_recipe_asks_for_what_the_package_asks_for(recipe):
    extras = PROJECT["optional-dependencies"]
    asked = dict(bounds(each) for each in recipe["requirements"]["run"])
    assert asked.pop("python") == PROJECT["requires-python"]
    # kernels are compiled at their first use, so their compiler is needed
    wanted = dict(bounds(each) for each in [*PROJECT["dependencies"], *extras["compile"]])
    assert asked == {CONDA_NAMES.get(name, name): versions for name, versions in wanted.items()}
    embed = dict(map(bounds, extras["embed"]))
    for name, versions in map(bounds, recipe["requirements"]["run_constraints"]):
        assert embed[name] == versions


def test_the_recipe_has_the_commands_of_the_package(recipe):
    found = dict(each.split(" = ") for each in recipe["build"]["python"]["entry_points"])
    assert found == PROJECT["scripts"]


def test_the_recipe_renders():
    rattler = pytest.importorskip("rattler_build")
    (variant,) = rattler.Stage0Recipe.from_file(RECIPE).render()
    rendered = variant.recipe.to_dict()
    assert rendered["package"] == {"name": PROJECT["name"], "version": __version__}


def test_the_container_has_a_chosen_base_and_a_user_without_rights():
    lines = [line for line in CONTAINER.splitlines() if not line.startswith("#")]
    assert lines[0].startswith("ARG BASE=")
    assert {line.split()[1] for line in lines if line.startswith("FROM")} == {"${BASE}"}
    commands = [line for line in lines if re.match("(USER|ENTRYPOINT|CMD) ", line)]
    assert commands == ["USER fastscore", 'ENTRYPOINT ["fastscore"]', 'CMD ["--help"]']
