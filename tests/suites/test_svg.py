"""Figures as SVG: small, and the same to look at."""

import re
import xml.etree.ElementTree as ET

import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure

from fastscore.suites.svg import drawing_settings, svg_of, with_new_letters, with_own_ids


def drawn(kind):
    with rc_context({"svg.fonttype": kind, "svg.hashsalt": "x"}):
        figure = Figure(figsize=(3, 2))
        axis = figure.add_subplot()
        axis.plot([0, 1 / 3, 1], [0.1234567, 2 / 3, 1], "o-")
        axis.set_title("abc <&>")
        return svg_of(figure)


def outlines(svg):
    return re.findall(r'<path id="([^"]*)"[^>]*transform="scale\(0\.015625\)"/>', svg)


def test_places_have_two_decimals_and_nothing_else_is_rounded():
    svg = drawn("path")
    places = re.findall(r' (?:d|x|y)="([^"]*)"', svg)
    numbers = [number for place in places for number in re.findall(r"-?\d+(?:\.\d+)?", place)]
    assert numbers
    assert max(len(number.partition(".")[2]) for number in numbers) == 2
    assert "scale(0.015625)" in svg


def test_what_is_referred_to_is_there_and_nothing_else_has_an_id():
    for kind in ("path", "none"):
        svg = with_own_ids(drawn(kind), "here")
        ids = re.findall(r' id="([^"]*)"', svg)
        assert set(ids) == set(re.findall(r'(?:href="#|url\(#)([^")]*)', svg))
        assert len(ids) == len(set(ids))
        ET.fromstring(svg)


def test_texts_stay_as_they_were_written():
    texts = [text.text for text in ET.fromstring(drawn("none")).iter() if text.tag.endswith("text")]
    assert "abc <&>" in texts
    assert "0.25" in texts


def test_a_page_has_each_letter_once_and_every_other_part_of_both_drawings():
    first, second = (with_own_ids(drawn("path"), name) for name in ("one", "two"))
    known = set()
    page = with_new_letters(first, known) + with_new_letters(second, known)
    assert outlines(page) == outlines(first) == outlines(second)
    assert known == set(outlines(first))
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]*)', page)) == set(ids)
    for svg in (first, second):
        assert not any(name.startswith(("one-DejaVu", "two-DejaVu")) for name in outlines(svg))


@pytest.mark.parametrize("name", [r"a$\foo$b", "$", r"\$", "${$", "a$b$c", r"$\frac{1}$"])
def test_names_are_never_read_as_formulas(name):
    with drawing_settings({"svg.fonttype": "none"}):
        figure = Figure(figsize=(3, 2))
        axis = figure.add_subplot()
        axis.barh([name], [1.0], label=name)
        axis.set_title(name)
        axis.legend()
        axis.text(0, 0, name)
        texts = [element.text for element in ET.fromstring(svg_of(figure)).iter() if element.text]
    assert texts.count(name) == 4
