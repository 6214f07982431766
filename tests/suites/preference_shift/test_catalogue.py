"""Catalogues: every format, the published normal forms, IDF, and clear errors."""

import csv
import gzip
import io
import json
import math
import re

import polars as pl
import pytest
import zstandard

import fastscore
from fastscore.errors import UsageError
from fastscore.suites.preference_shift.catalogue import (
    PLOT_STOP_WORDS,
    check_fields,
    inverse_document_frequency,
    load_catalogue,
    normalise,
    plot_keywords,
)
from fastscore.suites.preference_shift.concepts import concepts_of
from tests.oracles import preference_shift_concepts as plain
from tests.suites.preference_shift.conversing import MOVIES, exchange, log, options, write_catalogue

RECORDS = [{"title": title, **fields} for title, fields in MOVIES.items()]
NESTED = r"(a deeply nested list|\[{60})"
"""How a list in a thousand lists is shown: each Python's `json` writes another depth."""


def values(catalogue, field):
    return dict(catalogue.field_terms(field).select("value", "n_items").iter_rows())


VALUES = (
    *("Romance Film", "Science Fiction", "Film", "Fiction", "Film noir", "Fantasy Movie Fiction"),
    *(" 1979 (restored)", 1979, 1979.0, "  Zoë SALDAÑA ", None, "   ", "Her Film"),
)


@pytest.mark.parametrize("field", ["genre", "year", "actor", "name"])
def test_values_have_the_published_normal_form(field):
    found = [normalise(field, value) for value in VALUES]
    assert found == [plain.normalise(field, 1979 if value == 1979.0 else value) for value in VALUES]
    assert normalise("genre", "Fantasy Movie Fiction") == "fantasy"


def test_idf_is_the_published_one():
    assert inverse_document_frequency(2164, 1773) == 1.1991834775670656
    assert inverse_document_frequency(2164, 1) == 7.987028459876645
    assert inverse_document_frequency(0, 0) == math.log(2.0) + 1.0


def test_plot_keywords_are_the_words_of_four_letters_that_say_something():
    text = "They DOES what the Crew's cat, Crew and café-owner5 could; with families"
    assert plot_keywords(text) == ["does", "what", "crew", "owner", "could", "families"]
    assert len(PLOT_STOP_WORDS) == 36


def test_a_catalogue_knows_each_value_once_and_counts_its_items(tmp_path):
    catalogue = load_catalogue(write_catalogue(tmp_path))
    assert len(catalogue) == 4
    assert catalogue.items["title"].to_list() == ["Alien", "Heat", "Her", "X"]
    # two genres come out as one, and both count
    assert values(catalogue, "genre") == {
        "horror": 2,
        "science": 1,
        "crime": 1,
        "drama": 2,
        "romance": 1,
    }
    # an actor listed twice is one item's, and the repeat is kept
    pacino = catalogue.field_terms("actor").filter(pl.col("value") == "al pacino")
    assert pacino.select("surface", "n_items", "items").row(0) == ("Al Pacino", 1, [1, 1])
    # a text where a list belongs is one value
    assert values(catalogue, "actor")["mia goth"] == 1
    assert values(catalogue, "year") == {"1979": 1, "1995": 1, "2013": 1}
    assert values(catalogue, "plot")["crew"] == 2
    assert "with" not in values(catalogue, "plot")


def test_a_record_without_a_name_is_called_by_its_key(tmp_path):
    movies = {"Alien": {}, "Heat": {"name": None}, "Her": {"name": "  "}, "X": {"name": "Y"}}
    catalogue = load_catalogue(write_catalogue(tmp_path, movies))
    assert list(values(catalogue, "name")) == ["alien", "y"]


def listed(record, field):
    value = record.get(field, [])
    return [value] if isinstance(value, str) else value


def write(path, format):
    """Write the same records in one of the formats."""
    json_lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
    if format == "json":
        path.write_text(json.dumps(RECORDS))
    elif format == "jsonl":
        path.write_text(json_lines + "\n")
    elif format == "jsonl.gz":
        path.write_bytes(gzip.compress(json_lines.encode()))
    elif format == "jsonl.zst":
        path.write_bytes(zstandard.compress(json_lines.encode()))
    elif format == "parquet":
        rows = [
            record
            | {
                "actor": listed(record, "actor"),
                "year": record["year"] and 1.0 * int(record["year"]),
            }
            for record in RECORDS
        ]
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
    elif format == "csv":
        text = io.StringIO("\ufeff", newline="")
        text.seek(1)
        rows = csv.writer(text)
        rows.writerow(["title", "Name ", "year", "genre", "actor", "director", "language", "plot"])
        for record in RECORDS:
            cells = [record["title"], record["name"], record["year"], "|".join(record["genre"])]
            cells += [json.dumps(listed(record, "actor"))]
            cells += ["|".join(listed(record, field)) for field in ("director", "language")]
            rows.writerow([*cells, record.get("plot")])
        path.write_text(text.getvalue(), newline="")
    return str(path)


@pytest.mark.parametrize("format", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet", "csv"])
def test_all_formats_hold_the_same_catalogue(tmp_path, format):
    expected = load_catalogue(write(tmp_path / "movies.json", "json"))
    found = load_catalogue(write(tmp_path / f"movies.{format}", format))
    fields = ["name", "year", "genre", "actor", "director", "language", "plot"]
    for field in fields:
        assert found.field_terms(field).equals(expected.field_terms(field)), field


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b"{", r"a\.json: not JSON"),
        ("a.json", b"5", "holds a JSON int"),
        ("a.json", b"[]", "holds no item"),
        ("a.json", b'{"Alien": 5}', "record 'Alien' is 5, expected an object of fields"),
        ("a.jsonl", b'{"name": "x"}\n\n[1]\n', r"line 3 is \[1\], expected an object"),
        ("a.jsonl", b"[" * 1000 + b"]" * 1000, rf"line 1 is {NESTED}, expected an obj"),
        ("a.jsonl", b'{"name": "x"}\n{"name"\n', "line 2: not JSON"),
        ("a.csv", b"name,year\nAlien\n", "line 2: 1 cells, expected 2"),
        ("a.csv", b"name,Name\n", "line 1: two columns have the same name"),
        ("a.csv", b'name\n"a\n', "not CSV"),
        ("a.csv", b"name\n\xff\n", "not UTF-8 at byte 5"),
        ("a.parquet", b"PAR1", "not Parquet"),
        ("a.json.gz", b"xx", "cannot be unpacked"),
        ("a.json.zst", b"xx", "cannot be unpacked"),
        ("a.txt", b"", "the suffix names no format"),
    ],
)
def test_what_is_no_catalogue_is_refused_with_its_place(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        load_catalogue(str(path))


def test_every_frame_of_a_compressed_catalogue_is_read(tmp_path):
    lines = [json.dumps(record).encode() + b"\n" for record in RECORDS]
    path = tmp_path / "items.jsonl.zst"
    path.write_bytes(b"".join(map(zstandard.compress, lines)))
    assert len(load_catalogue(str(path))) == len(RECORDS)
    path.write_bytes(zstandard.compress(b"".join(lines))[:-1])
    with pytest.raises(UsageError, match="ends early"):
        load_catalogue(str(path))


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_catalogue_that_unpacks_to_too_much_is_refused(tmp_path, suffix):
    packed = gzip.compress if suffix == ".gz" else zstandard.compress
    path = tmp_path / f"items.jsonl{suffix}"
    path.write_bytes(packed(bytes(100 << 20)))
    with pytest.raises(UsageError, match=r"bytes unpack to \d+,\d{3},\d{3} and more.*250 times"):
        load_catalogue(str(path))


def test_a_field_of_objects_is_refused_only_when_it_is_asked_for(tmp_path):
    path = write_catalogue(tmp_path, [{"name": "a", "cast": [{"who": "b"}], "genre": "drama"}])
    assert len(concepts_of(load_catalogue(path), options(path))) == 2
    with pytest.raises(UsageError, match=r"field 'cast' cannot be used: record 1 has"):
        concepts_of(load_catalogue(path), options(path, fields="cast"))


def test_a_field_of_deeply_nested_lists_is_refused_by_name(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'{"name": "x", "genre": %b}' % (b"[" * 1000 + b"]" * 1000))
    catalogue = load_catalogue(str(path))
    assert re.match(rf"line 1 has {NESTED} there, expected", catalogue.unusable["genre"])


def test_of_very_many_fields_some_are_listed(tmp_path):
    path = write_catalogue(tmp_path, [{f"field {number}": "x" for number in range(10_000)}])
    for wanted, message in (("year", "has none of the fields year"), ("colour", "no field 'colo")):
        with pytest.raises(UsageError, match=rf"{message}.*and 9,\d+ more[.:]") as refused:
            check_fields(load_catalogue(path), [wanted], ["year"])
        assert len(str(refused.value)) < 5000


def test_a_field_that_is_called_nearly_as_a_lacking_one_is_named(tmp_path):
    catalogue = tmp_path / "items.csv"
    catalogue.write_text("title,genres,year\nHeat,crime,1995\n")
    chats = [log(*exchange("crime", "Heat"))]
    options = fastscore.PreferenceShift(catalogue=str(catalogue), segments="metadata")
    run = fastscore.score(chats, options, embedder=None)
    assert any("no field 'genre', and 'genres' is not used" in note for note in run.notes)
    catalogue.write_text("title,genre,year\nHeat,crime,1995\n")
    run = fastscore.score(chats, options, embedder=None)
    assert not any("is not used" in note for note in run.notes)


def test_turns_that_name_no_concept_are_noted_if_most_do_not(tmp_path):
    options = fastscore.PreferenceShift(
        catalogue=write_catalogue(tmp_path, [{"title": "Heat", "genre": "crime"}]),
        segments="metadata",
    )
    empty, named = exchange("my invoice", "which one?"), exchange("crime", "Heat")
    run = fastscore.score([log(*empty, *empty, *named)], options, embedder=None)
    assert any("in 2 of 3 turns neither text names a concept" in note for note in run.notes)
    half = fastscore.score([log(*empty, *named)], options, embedder=None)
    assert not any("neither text" in note for note in half.notes)


def test_unknown_fields_are_refused(tmp_path):
    path = write_catalogue(tmp_path)
    with pytest.raises(UsageError, match=r"no field 'gener'\. Did you mean 'genre'"):
        concepts_of(load_catalogue(path), options(path, fields="gener"))
    with pytest.raises(UsageError, match="none of the fields writer"):
        concepts_of(load_catalogue(path), options(path, fields="writer"))
