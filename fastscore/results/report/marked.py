"""Texts of logs in a page: escaped, with the evidence in them marked."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from fastscore.suites.showing import Mark

LONGEST_TEXT = 4_000


def marked(text: str, marks: Sequence[Mark]) -> Markup:
    """Return a text as markup in which nothing but the marks is markup.

    Parameters
    ----------
    text
        A text of a log; what is beyond `LONGEST_TEXT` characters is left out and counted.
    marks
        Places in it, ascending and apart from each other.
    """
    shown = text[:LONGEST_TEXT]
    parts = []
    place = 0
    for mark in marks:
        start, stop = max(place, mark.start), min(mark.stop, len(shown))
        if start >= stop:
            continue
        kind = "good" if mark.good else "bad"
        parts.append(escape(shown[place:start]))
        parts.append(
            Markup('<mark class="{}" title="{}">{}</mark>').format(
                kind, mark.label, shown[start:stop]
            )
        )
        place = stop
    parts.append(escape(shown[place:]))
    if len(text) > LONGEST_TEXT:
        left_out = Markup('<span class="cut"> … {:,} more characters</span>')
        parts.append(left_out.format(len(text) - LONGEST_TEXT))
    return Markup("").join(parts)
