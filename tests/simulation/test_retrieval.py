import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastscore.simulation.users import AGENT, USER, Draws, load_retrieval
from tests.conftest import often
from tests.oracles.retrieval import FIELDS, PlainRetrieval
from tests.simulation.worlds import PLOTTED, plotted, sample, sample_movies

WORDS = (
    *("Al Pacino", "drama", "dra", "1994", "199", "Film 1", "detective river", "nothing", "x"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return load_retrieval(plotted(tmp_path_factory.mktemp("catalogue"))), PlainRetrieval(PLOTTED)


@settings(max_examples=often(100, 1_000), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from((*FIELDS, "plot")),
        st.sampled_from(WORDS) | st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
        max_size=5,
    )
)
def test_what_fits_is_what_the_plain_rules_say(made, constraints):
    retrieval, plain = made
    assert list(retrieval.fitting(constraints)) == sorted(plain.fitting(constraints))


def test_values_are_found_as_by_trying_every_one():
    retrieval, plain = sample(), PlainRetrieval(sample_movies())
    chosen = random.Random(2)
    for _ in range(150):
        movie = chosen.choice(retrieval.items)
        people = [value for values in movie.values.values() for value in values]
        text = f"Do you know {movie.title} or {chosen.choice(people)}? I like a Drama of 1994."
        _, found = retrieval.find_values(text)
        for field in FIELDS:
            assert found.get(field) == plain.find(field, text)


def test_a_value_inside_a_word_does_not_count(made):
    retrieval, _ = made
    assert retrieval.find_values("could you help")[1]["name"] == "You"
    assert "name" not in retrieval.find_values("would yours help")[1]
    assert retrieval.find_values("a war drama")[0] == "drama"
    assert retrieval.find_values("an award or a dramatic explore")[0] is None


def test_plot_keywords_are_the_first_words_that_plots_have(made):
    retrieval, plain = made
    text = "About the River, hunts in paris: a MOUNTAIN detective"
    assert retrieval.find_plot_keywords(text) == ["river", "hunts"] == plain.keywords(text, 2)


def test_genres_that_are_offered(made):
    retrieval, plain = made
    assert (
        list(retrieval.available_genres()) == plain.genres() == ["drama", "crime", "romance", "war"]
    )
    assert list(sample().available_genres()) == PlainRetrieval(sample_movies()).genres()


def test_by_hand(made):
    retrieval, _ = made
    # Al Pacino plays in films 2, 5, 8, ..., 38; Dan Director1 made those of 1, 6, 11, ... but for
    # multiples of 4
    assert retrieval.fitting({"actor": "al pacino", "director": "Dan Director1"}) == (11, 26)
    # 'fact' is in no genre: the field is ignored
    assert retrieval.fitting({"genre": "fact", "year": "1992"}) == (2, 9, 16, 23, 30, 37)
    # nothing in common: the union
    assert retrieval.fitting({"name": "Film 1", "genre": "Heist"}) == (1, 40)
    # a genre that nothing has: the published fallback, which this catalogue holds
    assert retrieval.fitting({"genre": "opera"}) == (40,)
    assert len(retrieval.fitting({})) == 42


def test_recommendations_are_cut_and_shuffled_by_the_session_alone():
    retrieval = sample()
    one = retrieval.recommend({"genre": "drama"}, Draws(7, 3, USER), 30)
    again = retrieval.recommend({"genre": "drama"}, Draws(7, 3, USER), 30)
    other = retrieval.recommend({"genre": "drama"}, Draws(7, 3, AGENT), 30)
    assert one == again != other
    assert len(one) == len(set(one)) == 30
    assert len(retrieval.recommend({}, Draws(0, 0, USER), 99)) == 50
    assert len(retrieval.recommend({}, Draws(0, 0, USER), 0)) == 1
