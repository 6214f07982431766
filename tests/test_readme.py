"""The README names targets and pages that exist."""

import re
from pathlib import Path

import pytest

from hatch_build import without_relative_links

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_make_targets_that_are_named_exist() -> None:
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.findall(r"`?make ([a-z-]+)", README)
    assert set(named) <= set(targets)


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), f"{page}: {target}"


def test_the_page_of_the_package_has_no_link_into_the_source_tree() -> None:
    page = without_relative_links(README)
    links = re.findall(r"\]\(([^)]*)\)", page)
    assert all(link.startswith(("https://", "http://")) for link in links), links
    assert "- Install: extras" in page
    assert "docs/report.png" not in page
