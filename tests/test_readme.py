"""The README names targets and pages that exist, and links lead to headings."""

import functools
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from hatch_build import without_relative_links

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_make_targets_that_are_named_exist():
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE)
    assert set(named) <= set(targets)


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]


@functools.cache
def anchors(page):
    """Return the anchors of a page's headings, as GitHub and the site make them; both, or none."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    found, taken = set(), Counter()
    for heading in re.findall(r"^#+ +(.+)$", text, flags=re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        on_site = re.sub(r"-+", "-", slug.encode("ascii", "ignore").decode())
        if slug == on_site and not taken[slug]:  # a second heading has another suffix there
            found.add(slug)
        taken[slug] += 1
    return found


@pytest.mark.parametrize("page", [path.relative_to(ROOT).as_posix() for path in PAGES])
def test_links_lead_somewhere(page):
    for target in re.findall(
        r"\]\((?!https?:)([^)\s]+)\)", (ROOT / page).read_text(encoding="utf-8")
    ):
        name, _, anchor = target.partition("#")
        file = (ROOT / page).parent / name if name else ROOT / page
        assert file.exists(), f"{page}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.resolve()), f"{page}: {target}"


def test_significance_and_judges_are_linked():
    assert {"docs/significance.md", "docs/judging.md"} <= set(re.findall(r"\]\(([^)#]+)", README))


def test_the_page_of_the_package_has_no_link_into_the_source_tree():
    page = without_relative_links(README)
    links = re.findall(r"\]\(([^)]*)\)", page)
    assert all(link.startswith(("https://", "http://")) for link in links), links
    assert "| Install, platforms |" in page
    assert "docs/report.png" not in page


def test_the_first_block_works_in_a_clone_on_a_machine_with_nothing():
    first = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)[0]
    assert [line.split("#")[0].split() for line in first.splitlines()] == [
        ["make", "demo"],
        ["make", "test"],
    ]
    # what pip cannot find yet is not offered as if it could
    before = README.split("pip install", 1)[0]
    assert "not on a package index yet" in before


def demo_commands():
    """The commands of the demo after the setup, as make would run them."""
    done = subprocess.run(
        # started by make itself, as in CI, it would also name the folders it enters
        ["make", "--dry-run", "--always-make", "--no-print-directory", "demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    start = next(row for row, line in enumerate(lines) if line.startswith('echo "Scoring 200'))
    return [line for line in lines[start:] if not line.startswith("echo")]


def test_the_demo_ends_with_the_comparison():
    verbs = [re.findall(r"fastscore (\w+)", command)[0] for command in demo_commands()]
    assert verbs == ["models", "score", "report", "compare"]


@pytest.mark.slow
def test_the_demo_finds_what_the_readme_shows(tmp_path, default_model):
    logs = tmp_path / "runs" / "demo" / "logs"
    command = ["benchmarks/miner_logs.py", "--dialogues", "200", "--miners", "2", "--output", logs]
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True)
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parent.parent)
    shown = ""
    for each in demo_commands():
        done = subprocess.run(each, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        shown = done.stdout
    (finding,) = re.findall(r"```text\n(1 against 0.*?)```", README, re.DOTALL)
    assert " ".join(shown.split()).startswith(" ".join(finding.split()))
    assert (tmp_path / "runs" / "demo" / "report.html").exists()
