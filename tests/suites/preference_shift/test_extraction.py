"""Extraction of concepts by words, aliases, character n-grams and vectors."""

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import fastscore
from benchmarks.preference_shift_logs import DATA, read_lines, read_source
from fastscore.errors import UsageError
from fastscore.suites.preference_shift import SUITE, PreferenceShift
from fastscore.suites.preference_shift import concepts as matching
from fastscore.suites.preference_shift.catalogue import Record, compile_records, load_catalogue
from fastscore.suites.preference_shift.concepts import (
    ALIAS_SCHEMA,
    concepts_by_ngrams,
    concepts_of,
    is_word_character,
    matcher_of,
    nearest_concepts,
)
from fastscore.vectors.view import VectorView
from tests.conftest import often
from tests.oracles import preference_shift_concepts as plain
from tests.oracles.ngrams import Published
from tests.suites.preference_shift.conversing import (
    exchange,
    log,
    options,
    read,
    score,
    user,
    write_catalogue,
)


def concepts_from(values, plot=""):
    """Make concepts of fields of values, and of a plot's keywords."""
    catalogue = compile_records([Record("record 1", None, {**values, "plot": plot})])
    fields = ",".join(name for name in values if name in catalogue.fields)
    return concepts_of(
        catalogue, options("none.json", fields=fields, plot_keywords="plot" in catalogue.fields)
    )


def plainly(texts, values, plot="", *, words):
    catalogue = plain.make_catalogue([{**values, "plot": plot}])
    profile = plain.Profile(plot=True, on_words=words)
    return [sorted(plain.concepts(text, catalogue, profile)) for text in texts]


def extracted(texts, concepts, *, words):
    matcher = matcher_of(concepts, pl.DataFrame(schema=ALIAS_SCHEMA), words=words)
    return concepts.names(matcher.extract(pl.Series(texts, dtype=pl.String))).to_list()


PIECES = st.sampled_from(
    ["her", "the", "re", "x", "X", "war", "star wars", "wars", "é", "É", "e\u0301", "İ", "i\u0307",
     "ß", "Σ", "σ", "ς", "ΑΣ", "'", "-", "_", ".", "!", " ", "\n", "\t", "\x00", "3", "1979", "²",
     "電影", "影", "ラ", "ー", "ไทย", "ក", "ad", "film", "İstanbul", "K", "k", "🎬", "the "],
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=8).map("".join)
VALUES = st.lists(st.lists(PIECES, min_size=1, max_size=3).map("".join), max_size=6)


# ends of words: the texts and values of the specification, each value in each text
ENDS = {
    "texts": [
        "an award", "war!", "WAR", "there", "X-Men", "explore x2", "x_y", "Amélie", "Ame\u0301lie",
        "我喜欢星球大战吗", "私はアリエルが好き", "ดูหนังไทยกัน", "phim hoạt hình", "foo!wow", "it's",
        "(1979)", "21979", "9½ weeks", "C3PO", "한국영화",
    ],
    "names": ["war", "her", "x", "am", "ame", "amelie", "星球大战", "アリエル", "หนัง", "hình"],
    "actors": ["!wow", "it", "1979", "9", "3", "한국"],
}  # fmt: skip


@example(**ENDS, words=True)
@example(**ENDS, words=False)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=4, unique=True),
    names=VALUES,
    actors=VALUES,
    words=st.booleans(),
)
def test_values_are_found_as_by_the_plain_scorer(texts, names, actors, words):
    values = {"name": [*names, "fixed"], "actor": [*actors, *names[:2]], "genre": names}
    expected = plainly(texts, values, words=words)
    assert extracted(texts, concepts_from(values), words=words) == expected


WORDS = st.sampled_from(
    ["crew", "Crew", "hunt", "hunted", "planet", "cat", "film", "people", "does", "x", "CREWS",
     "thé", "crewé", "K"]
)  # fmt: skip
SPOKEN = st.lists(
    st.tuples(WORDS, st.sampled_from([" ", "", "-", "5", "'", "ß"])), max_size=12
).map(lambda pairs: "".join(word + between for word, between in pairs))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(texts=st.lists(SPOKEN, min_size=1, max_size=5, unique=True), plot=SPOKEN)
def test_the_first_three_plot_keywords_count(texts, plot):
    values = {"name": ["crew", "planet"]}
    expected = plainly(texts, values, plot, words=True)
    assert extracted(texts, concepts_from(values, plot), words=True) == expected


@pytest.mark.parametrize("limit", [1, 7, 1 << 18])
def test_neither_parts_nor_order_change_a_text(limit, monkeypatch):
    monkeypatch.setattr(matching, "_CHARACTERS_PER_PART", limit)
    values, plot = {"name": ["war", "her", "star wars"]}, "war hunted crew"
    concepts = concepts_from(values, plot)
    texts = ["Star Wars", "", "her war", "İ her", "toward", "", "the crew hunted her war crew"]
    expected = plainly(texts, values, plot, words=True)
    assert extracted(texts, concepts, words=True) == expected
    assert extracted(texts[::-1], concepts, words=True) == expected[::-1]
    assert extracted([], concepts, words=True) == []


def test_only_one_character_grows_in_lower_case():
    growing = [chr(code) for code in range(0x110000) if len(chr(code).lower()) != 1]
    assert growing == [matching._GROWS]


def test_characters_of_words_are_those_of_the_specification():
    points = np.arange(0x110000, dtype=np.uint32)
    found = is_word_character(points)
    sample = np.concatenate((np.arange(0x3100), np.arange(0x3100, 0x110000, 97)))
    expected = [plain.is_word_character(chr(code)) for code in sample.tolist()]
    assert found[sample].tolist() == expected


def test_values_of_every_control_character_still_have_a_separator():
    value = "a" + "".join(map(chr, range(0x20))) + "b"
    concepts = concepts_from({"name": [value, "c"]})
    found = extracted([value, "c", "cc", "c d"], concepts, words=True)
    assert found == [[f"name={value}"], ["name=c"], [], ["name=c"]]


# --- other spellings of values


ALIASES = """spelling,value,field
 Sci-Fi |SF,Science Fiction,genre
rom-com,Romance Film|Drama,
Tongue of Shakespeare,English,language
De Niro,Robert De Niro,actor
"""


def write_aliases(folder, content=ALIASES):
    path = folder / "aliases.csv"
    path.write_text(content)
    return str(path)


def concepts_in(text, catalogue, **values):
    found = score([log(*exchange(text, "..."))], options(catalogue, **values))
    return found["turns"]["user_concepts"][0].to_list()


def test_spellings_mean_their_values_in_both_modes(tmp_path, catalogue):
    aliases = write_aliases(tmp_path)
    said = "A SCI-FI rom-com with De Niro in the tongue of Shakespeare, say an sfumato drama"
    assert concepts_in(said, catalogue) == ["genre=drama"]
    both = [
        "actor=robert de niro",
        "genre=drama",
        "genre=romance",
        "genre=science",
        "language=english",
    ]
    assert concepts_in(said, catalogue, aliases=aliases) == both
    # only substring finds "sf", which is a part of a word
    assert concepts_in("an sfumato", catalogue, aliases=aliases) == []
    found = concepts_in("an sfumato", catalogue, aliases=aliases, match="substring")
    assert found == ["genre=science"]
    assert concepts_in("SF, then", catalogue, aliases=aliases) == ["genre=science"]


@pytest.mark.parametrize("match", ["word", "substring"])
def test_the_digits_of_a_title_are_no_year(tmp_path, match):
    movies = [{"name": "2001: A Space Odyssey", "year": 1968}, {"name": "Amelie", "year": "2001"}]
    fields = {"genre": "Drama", "actor": "X Y", "director": "X Z", "language": "English"}
    path = write_catalogue(tmp_path, [movie | fields for movie in movies])

    def found(said, lines):
        chosen = write_aliases(tmp_path, f"spelling,value,field\n{lines}\n")
        return concepts_in(said, path, aliases=chosen, match=match)

    title = "space odyssey,2001: A Space Odyssey,"
    assert found("that space odyssey", title) == ["name=2001: a space odyssey"]
    # digits alone are a year, and so is any value of which the table says that it is one
    assert found("the year of nine eleven", "nine eleven, 2001 ,") == ["year=2001"]
    assert found("nine eleven", "nine eleven,c. 2001,year") == ["year=2001"]
    with pytest.raises(
        UsageError, match=r"line 2: value is 'c\. 2001', expected a value of a field"
    ):
        found("nine eleven", "nine eleven,c. 2001,")


def test_an_alias_adds_and_never_takes_away(tmp_path, catalogue):
    aliases = write_aliases(tmp_path, "spelling,value\nher,Heat\nheat,Heat\n")
    assert concepts_in("her", catalogue, aliases=aliases) == ["name=heat", "name=her"]
    assert concepts_in("heat", catalogue, aliases=aliases) == ["name=heat"]
    # of a field that is not asked for it means nothing
    assert concepts_in("her drama", catalogue, aliases=aliases, fields="genre") == ["genre=drama"]


def test_gold_constraints_know_aliases_too(tmp_path, catalogue):
    chosen = options(catalogue, aliases=write_aliases(tmp_path))
    turns = [user("?", constraints={"genre": ["sci-fi"]}), {"speaker": "SYSTEM", "text": "an sf"}]
    (row,) = score([log(*turns)], chosen)["turns"].to_dicts()
    assert row["gold_concepts"] == row["system_concepts"] == ["genre=science"]
    assert row["dst_f1"] == 1.0


def test_the_table_stands_in_the_signature(tmp_path, catalogue):
    frame = pl.DataFrame({"session_id": ["1"], "conversation": [exchange("sf", "sf")]})

    def signed(aliases):
        return fastscore.score(
            frame,
            options(catalogue, aliases=aliases),
            embedder=None,
        ).signature

    one = signed(write_aliases(tmp_path))
    assert re.search(r"\|aliases=blake2b:[0-9a-f]{16}\|", one)
    assert one != signed(write_aliases(tmp_path, ALIASES + "x,Heat,name\n"))
    assert "|aliases=none|" in signed("")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("spelling,value\nsf,Horor\n",
         r"aliases.csv: line 2: value is 'Horor', expected a value of a field of the catalogue. "
         r"Did you mean 'horror'\? `fastscore catalogue show` lists the values."),
        ("spelling,value,field\nsf,Drama,genre\nx,Drama,actor\n",
         r"line 3: value is 'Drama', expected a value of the catalogue's field 'actor'. `fast"),
        ("spelling,value,field\nsf,Drama,gener\n",
         r"line 2: field is 'gener', expected a field of the catalogue or nothing. "
         r"Did you mean 'genre'\?"),
        ("spelling,value,field\nsf,crew,plot\n", r"line 2: field is 'plot', expected a field"),
        ("spelling,value\n ,Drama\n", r"line 2: spelling is ' ', expected a text."),
        ("spelling,value\na||b,Drama\n", r"line 2: spelling is '', expected a text."),
        ("spelling,value\nsf\n", r"line 2: 1 cells, expected 2 as in the header."),
        ("alias,value\nsf,Drama\n", r"line 1: the columns are alias, value, expected spelling, "),
        ("spelling,value,filed\nsf,Drama,genre\n", r"line 1: the columns are spelling, value, "
         r"filed, expected .* Did you mean 'field'\?"),
        ("spelling,value\n", r"holds no alias, expected a header and at least one line."),
        ("", r"holds no alias"),
    ],
)  # fmt: skip
def test_what_is_no_table_of_aliases(tmp_path, catalogue, content, message):
    with pytest.raises(UsageError) as raised:
        SUITE.check(options(catalogue, aliases=write_aliases(tmp_path, content)))
    assert re.search(message, str(raised.value)), raised.value


def test_what_is_no_file_of_aliases(tmp_path, catalogue):
    with pytest.raises(UsageError, match=r"none\.csv: cannot be read: No such file"):
        SUITE.check(options(catalogue, aliases=str(tmp_path / "none.csv")))
    with pytest.raises(UsageError, match=r"expected a CSV file with spelling, value and field"):
        SUITE.check(options(catalogue, aliases=catalogue))
    with pytest.raises(UsageError, match="not searched for spellings with extract embed"):
        options(catalogue, aliases=write_aliases(tmp_path), extract="embed")


# --- character n-grams


def check(texts, concepts, chosen):
    """Compare every set with the vectoriser's, field by field."""
    found = concepts.names(concepts_by_ngrams(pl.Series(texts), concepts, chosen)).to_list()
    expected = [[] for _ in texts]
    for (field,), terms in concepts.terms.group_by("field"):
        published = Published(terms["value"].to_list())
        nearest = published.nearest(texts, chosen.embed_top, chosen.embed_threshold)
        for names, values in zip(expected, nearest, strict=True):
            names += [f"{field}={value}" for value in values]
    assert found == [sorted(names) for names in expected]


def test_no_embedder_is_needed_and_constraints_are_found_too(catalogue):
    chosen = options(catalogue, extract="ngrams")
    assert not SUITE.needs_vectors(chosen)
    turns = [
        {"speaker": "USER", "text": "?", "user_meta": {"constraints": {"actor": ["Pacino, Al"]}}},
        {"speaker": "SYSTEM", "text": "al pacino"},
    ]
    (row,) = score([log(*turns)], chosen)["turns"].to_dicts()
    assert row["gold_concepts"] == row["system_concepts"] == ["actor=al pacino"]


def test_plot_keywords_are_matched_beside(catalogue):
    chosen = options(catalogue, extract="ngrams", profile="published", fields="genre")
    tables = score([log(*exchange("horrors of a spaceship crew", "..."))], chosen)
    found = ["genre=horror", "plot=crew", "plot=spaceship"]
    assert tables["turns"]["user_concepts"].to_list() == [found]
    tables = score([log(*exchange("horrors", "crew"))], chosen)
    assert tables["turns"]["user_concepts"].to_list() == [["genre=horror"]]
    assert tables["turns"]["system_concepts"].to_list() == [["plot=crew"]]


def test_real_texts_against_the_vectoriser(tmp_path):
    _, movies = read_source(DATA)
    chosen = options(write_catalogue(tmp_path, movies), extract="ngrams")
    rows = read_lines(DATA, ("redial_sample.jsonl.gz",))
    texts = list(dict.fromkeys(turn[1] for row in rows for turn in row["turns"]))
    texts = texts[: often(60, 2_000)]
    concepts = concepts_of(load_catalogue(chosen.catalogue), chosen)
    assert len(concepts) > 1000
    check(texts, concepts, chosen)
    values = concepts.terms["value"].to_list()
    every = often(60, 20)
    check([*values[::every], *(f"{value}, please" for value in values[7::every])], concepts, chosen)


SPELLED = (
    *("drama", "Drama", "comedy", "rom com", "né", "NÉ", "ΣΑΣ", "ΑΣ", "İs", "x", "ab", "abc"),
    *(" ", "  ", "\t\n", "\u00a0", "\u3000", "\x1c", "-", ", ", "\x00", "\U0001f600", "of the"),
)
texts = st.lists(st.sampled_from(SPELLED), max_size=8).map("".join)


@settings(max_examples=often(30, 400), suppress_health_check=list(HealthCheck))
@given(
    said=st.lists(texts, min_size=1, max_size=6, unique=True),
    values=st.lists(texts, min_size=1, max_size=8),
    top=st.integers(1, 4),
    threshold=st.sampled_from((0.05, 0.35, 0.7)),
)
def test_any_texts_against_the_vectoriser(said, values, top, threshold):
    chosen = PreferenceShift(
        catalogue="x", extract="ngrams", fields="tag,genre", embed_top=top,
        embed_threshold=threshold,
    )  # fmt: skip
    records = [
        Record("", None, {"name": "x", "tag": value, "genre": ["horror", value]})
        for value in values
    ]
    records.append(Record("", None, {"name": "y", "tag": "always"}))
    check(said, concepts_of(compile_records(records), chosen), chosen)


def test_a_threshold_of_nothing_is_refused(catalogue):
    with pytest.raises(UsageError, match="expected one above 0 with extract ngrams"):
        options(catalogue, extract="ngrams", embed_threshold=0.0)


# --- vectors


def view(texts, vectors):
    matrix = np.array(vectors, np.float64)
    return VectorView.from_texts(texts, matrix / np.linalg.norm(matrix, axis=1, keepdims=True))


def test_extraction_equals_cosines_one_by_one(catalogue):
    rng = np.random.default_rng(3)
    texts = [f"text {number}" for number in range(40)] + ["  ", ""]
    chosen = options(catalogue, extract="embed", embed_threshold=0.2, embed_top=2)
    concepts = concepts_of(load_catalogue(catalogue), chosen)
    values = concepts.terms["value"].unique(maintain_order=True).to_list()
    vectors = view(texts + values, rng.normal(size=(len(texts) + len(values), 8)).tolist())
    found = concepts.names(nearest_concepts(pl.Series(texts), concepts, vectors, chosen)).to_list()
    rows = concepts.terms.select("concept", "field", "value").rows()
    matrix = dict(zip(texts + values, vectors.matrix[vectors.codes(texts + values)], strict=True))
    for text, got in zip(texts, found, strict=True):
        expected = []
        for name in {field for _, field, _ in rows} if text.strip() else ():
            ranked = sorted(
                (-float(matrix[text] @ matrix[value]), concept)
                for concept, field, value in rows
                if field == name
            )
            expected += [concept for cosine, concept in ranked[:2] if -cosine >= 0.2]
        assert got == sorted(expected)


def test_of_equal_values_the_first_wins(catalogue):
    chosen = options(catalogue, extract="embed", embed_top=1, fields="genre")
    concepts = concepts_of(load_catalogue(catalogue), chosen)
    values = concepts.terms["value"].to_list()
    vectors = view(["film", *values], [[1.0, 0.0]] * (1 + len(values)))
    found = nearest_concepts(pl.Series(["film"]), concepts, vectors, chosen)
    assert concepts.names(found).to_list() == [["genre=crime"]]


def test_of_almost_equal_values_the_nearest_wins(catalogue):
    """Their cosines differ by less than the margin of the search that chooses candidates."""
    chosen = options(catalogue, extract="embed", embed_top=1, fields="genre")
    concepts = concepts_of(load_catalogue(catalogue), chosen)
    values = concepts.terms["value"].to_list()
    angles = [0.9 - 2e-6 * place for place in range(len(values))]
    vectors = view(
        ["film", *values], [[1.0, 0.0], *([np.cos(angle), np.sin(angle)] for angle in angles)]
    )
    found = nearest_concepts(pl.Series(["film"]), concepts, vectors, chosen)
    assert concepts.names(found).to_list() == [[concepts.terms["concept"].to_list()[-1]]]


def wanted(logs, catalogue, **values):
    chosen = options(catalogue, **values)
    return set(SUITE.texts(read(logs, chosen), chosen).to_list())


def test_only_texts_that_are_compared_get_a_vector(catalogue):
    logs = [
        log(*exchange("a", "b", "c", "d")),
        log(*exchange("e", "f", "g", "h"), shift_events=[]),
        log(*exchange("i", "j")),
    ]
    assert wanted(logs, catalogue) == set()
    assert not SUITE.needs_vectors(options(catalogue))
    assert wanted(logs, catalogue, segments="embedding") == {"a", "c"}
    assert SUITE.needs_vectors(options(catalogue, segments="heuristic"))
    embedded = wanted(logs, catalogue, extract="embed")
    assert embedded >= set("abcdefghij") | {"drama", "al pacino"}


ANGLES = {"start": 0.0, "near": 50.0, "far": 110.0, "same": 111.0}
VECTORS = view(
    list(ANGLES), [[np.cos(np.radians(a)), np.sin(np.radians(a))] for a in ANGLES.values()]
)


def test_boundaries_by_vectors_are_no_shifts(catalogue):
    # concepts are none, so that topics never overlap: every turn begins a segment, as published
    logs = [log(*exchange("start", "x", "near", "x", "far", "x"))]
    tables = score(logs, options(catalogue, segments="embedding"), VECTORS)
    assert tables["segments"]["start_turn"].to_list() == [1, 2, 3]
    assert tables["shifts"].is_empty()
    assert tables["dialogues"]["segments_by"].to_list() == ["embedding"]
    assert tables["turns"]["is_shift"].to_list() == [False] * 3


def test_a_turn_stays_where_words_and_concepts_are_near(catalogue):
    texts = ["drama a", "drama b", "drama c", "drama horror crime d", "horror crime e"]
    angles = [0.0, 56.0, 113.5, 113.5, 113.5]
    vectors = view(texts, [[np.cos(np.radians(a)), np.sin(np.radians(a))] for a in angles])
    logs = [log(*exchange(*(part for text in texts for part in (text, "x"))))]
    tables = score(logs, options(catalogue, segments="embedding"), vectors)
    # cos 56 is above 0.55, cos 57.5 below; 1/3 is below 0.35, 2/3 above
    assert tables["segments"]["start_turn"].to_list() == [1, 3, 4]


def test_segments_by_the_shared_embedder(tmp_path, catalogue, default_model):
    frame = pl.DataFrame(
        {
            "session_id": ["1"],
            "conversation": [
                exchange("A drama please", "drama", "another drama please", "drama",
                         "Now some horror", "horror")
            ],
        }
    )  # fmt: skip
    scores = fastscore.score(
        frame,
        fastscore.PreferenceShift(catalogue=catalogue),
        embedder=default_model,
        store=tmp_path / "s",
    )
    assert scores.tables["segments"]["start_turn"].to_list() == [1, 3]
    meaning = fastscore.score(
        frame,
        fastscore.PreferenceShift(catalogue=catalogue, extract="embed", fields="genre"),
        embedder=default_model,
        store=tmp_path / "s",
    )
    assert "genre=drama" in meaning.tables["turns"]["user_concepts"][0].to_list()
