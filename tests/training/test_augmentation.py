import numpy as np
import pytest

from coderet.corpora import syntax
from coderet.training.augmentation import Draws, masked, name_query, pool_of, questions, renamings


def test_the_name_as_query_is_the_functions_own_split_into_words():
    assert name_query("HttpClient.getResponseHeaders_v2", 12) == "get response headers v 2"
    assert name_query("read_configuration", 12) == "read configuration"


def test_names_that_are_short_or_wordless_ask_for_nothing():
    # CodeSearchNet wants 12 characters, here of the function's own name
    assert name_query("SomeVeryLongClass.run", 12) is None
    assert name_query("read_a_file", 12) is None and name_query("read_a_fille", 12) == "read a fille"
    assert name_query("_____________", 12) is None


def test_the_own_name_is_masked_wherever_it_stands_alone():
    code = "def parse_tree(x):\n    # parse_tree calls itself\n    return self.parse_tree(x) + parse_tree_all(x)\n"
    hidden = masked(code, "Reader.parse_tree")
    assert hidden == "def _(x):\n    # _ calls itself\n    return self._(x) + parse_tree_all(x)\n"
    assert syntax.tree(hidden.encode(), "python") is not None
    assert masked("$parse = parse()", "parse") == "$parse = _()"


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        (
            "Returns the name of a file. It may be None.",
            [
                "return the name of a file",
                "how to return the name of a file",
                "python return the name of a file",
                "return name file",
            ],
        ),
        (
            "Copies two lists",
            ["copy two lists", "how to copy two lists", "python copy two lists"],
        ),
        (
            "This method fetches rows: all of them.",
            [
                "fetch rows: all of them",
                "how to fetch rows: all of them",
                "python fetch rows: all of them",
                "fetch rows: all them",
            ],
        ),
        (
            "The status of v1.2 builds.",
            ["the status of v1.2 builds", "python the status of v1.2 builds", "status v1.2 builds"],
        ),
        ("read lines", ["how to read lines", "python read lines"]),  # the plain form is the query itself
        ("Norm of ``f``, e.g. 1.", ["norm of f, e.g. 1", "python norm of f, e.g. 1", "norm f, e.g. 1"]),
        ("Deprecated.", []),
    ],
)
def test_questions_follow_rules(query: str, asked: list[str]):
    assert questions(query, "python") == asked


def test_renamed_code_differs_parses_and_is_the_same_for_the_same_seed():
    code = "def area(width, height):\n    size = width * height\n    return size\n"
    pool = pool_of([(code.replace("size", "surface"), "python"), ("broken(", "python")])
    assert pool == {"python": ["width", "height", "surface"]}

    def made() -> list[str]:
        return list(renamings(code, "python", 4, ["left", "right", "top"], np.random.default_rng(1)))

    first = made()
    assert first == made() and len(first) == 4 and len(set(first)) > 1 and code not in first
    assert all(syntax.tree(each.encode(), "python") is not None and "def area(" in each for each in first)
    assert list(renamings("x = ", "python", 4, [], np.random.default_rng(1))) == []


def test_draws_follow_from_seed_epoch_row_and_what_alone():
    rows = np.arange(20_000)
    drawn = Draws(7, 3).of(rows, 0)
    some = np.array([19_999, 5, 77])
    assert np.array_equal(Draws(7, 3).of(some, 0), drawn[some])
    for other in (Draws(8, 3).of(rows, 0), Draws(7, 4).of(rows, 0), Draws(7, 3).of(rows, 1), Draws(3, 7).of(rows, 0)):
        assert abs(np.corrcoef(drawn, other)[0, 1]) < 0.03  # four standard errors of 20,000
    assert drawn.min() >= 0 and drawn.max() < 1 and abs(drawn.mean() - 0.5) < 0.01
    counts = np.histogram(drawn, 20, (0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 44  # chi-squared, 19 degrees of freedom: one in a thousand above


def test_draws_are_splitmix64s():
    # The reference's first number for the state 0 is 0xE220A8397B1DCDAF (Vigna, splitmix64.c).
    from coderet.training.augmentation import _GOLDEN, _mixed

    with np.errstate(over="ignore"):
        assert int(_mixed(np.uint64(0) + _GOLDEN)) == 0xE220A8397B1DCDAF
