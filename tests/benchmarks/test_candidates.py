"""Among which functions a needle is looked for, on a repository of six functions of ten lines each, twice."""

import pytest

from coderet.benchmarks import candidates, needles, windows
from coderet.benchmarks.answers import needles as answers
from coderet.benchmarks.needles import Needle, Repository
from coderet.corpora import store
from coderet.metrics import scorecards
from coderet.metrics.needles import pieces
from coderet.records import DataError, Run

BODY = "".join(f"    step{line} = first + {line}\n" for line in range(8))
TWIN = f"def twin(first):\n{BODY}    return first\n"


def repository(name: str) -> Repository:
    own = [f"def {name}_{place}(first):\n{BODY}    return step{place}\n" for place in range(5)]
    files = {"a.py": "\n\n".join(own), "b.py": TWIN}
    functions = [span for path, text in files.items() for span in needles.spans(path, text, "python")]
    return Repository(name, "python", files, functions, [Needle(2, "gives step two"), Needle(5, "gives the first")])


def dataset(tmp_path, drafts, name):
    store.write_benchmark(tmp_path / "b", drafts)
    return store.read_dataset(tmp_path / "b", name)


def draft(among=None, **settings):
    return needles.draft(repository("one"), among=among, **settings)


def test_all_functions_of_the_repository_by_default(tmp_path):
    found = dataset(tmp_path, [draft()], "one")
    assert len(found.corpus) == 6 and len(found.exclusions[0]) == 0


def test_among_the_needles_nothing_else_is_hit(tmp_path):
    found = dataset(tmp_path, [draft(candidates.among("needles", 0))], "one")
    assert len(found.exclusions[0]) == 2 * 4
    nothing = Run.of(found.corpus, found.queries.ids, [[-1], [-1]], [[0.0], [0.0]])
    card = scorecards.score(found, nothing, ["recall@1", "relative-rank"])
    assert card.ranks.candidates.tolist() == [2, 2] and card.random["recall@1"] == 0.5


def test_in_a_window_every_place_of_a_needle_is_a_query_of_its_own(tmp_path):
    size = 3 * pieces(TWIN)
    among = candidates.among("window", size)
    made = draft(among, depths=2)
    found = dataset(tmp_path, [made], "one")
    ids = found.queries.ids.to_pylist()
    assert len(ids) == 4 and ids == [f"one/{n}@{d}" for n in (0, 1) for d in ("0.250", "0.750")]
    assert made.problems["query_id"].to_pylist() == ids
    for own, excluded in zip(ids, found.queries.table["excluded"].to_pylist(), strict=True):
        text = windows.window(repository("one"), 2 if "/0@" in own else 5, float(own[-5:]), size, pieces).text
        shown = {each.partition(":")[2] for each in found.corpus.ids.to_pylist()} - {
            each.partition(":")[2] for each in excluded
        }
        assert shown == {
            name for name in (*(f"one_{n}" for n in range(5)), "twin") if f"def {name}(" in text and whole(text, name)
        }


def whole(text: str, name: str) -> bool:
    ending = "return first" if name == "twin" else f"return step{name[-1]}"
    return f"def {name}(first):\n{BODY}    {ending}\n" in text + "\n"


def test_among_all_of_a_language_equal_functions_of_any_repository_are_relevant(tmp_path):
    drafts = list(candidates.drafted([needles.draft(repository(name)) for name in ("one", "two")], "language"))
    assert drafts[1].documents == "one"
    store.write_benchmark(tmp_path / "b", drafts)
    found = store.read_dataset(tmp_path / "b", "two")
    assert len(found.corpus) == 12 and found.corpus.name == "one"
    gold = {(row["query_id"], row["document_id"].partition("/")[0]) for row in found.qrels.table.to_pylist()}
    assert gold == {("two/0", "two"), ("two/1", "one"), ("two/1", "two")}


def test_a_size_belongs_to_a_window_and_to_nothing_else():
    for found in (("window", 0), ("needles", 2048)):
        with pytest.raises(DataError, match="wanted a window of so many tokens with candidates: window"):
            candidates.among(*found)
    with pytest.raises(DataError, match="candidates is 'all'; wanted one of repository, needles, window, language"):
        candidates.among("all", 0)


def test_what_is_known_of_a_problem_is_its_language_the_place_of_the_needle_and_what_is_shown():
    made = draft()
    problem = {"needle": 2, "shared": made.shared}
    text = repository("one").text(2)
    whole_file = "# Path: a.py\n" + repository("one").files["a.py"]
    known = {"language": "python", "candidates": 6.0}
    assert answers.facts(problem, whole_file) == known | {"depth": "0.5", "shown": 5.0}
    assert answers.facts(problem, f"{text}\n{whole_file.replace(text, '')}")["depth"] == "0.0"
    for context in ("", text[:-1]):  # a needle that is cut is none
        assert answers.facts(problem, context) == known | {"shown": 0.0}


def test_a_method_that_is_laid_out_anew_is_found_and_so_is_one_without_its_comments():
    text = "class A:\n    def f(self):\n        # why\n        a = 1\n        return a\n"
    one = Repository("one", "python", {"a.py": text}, needles.spans("a.py", text, "python"), [Needle(0, "gives one")])
    problem = {"needle": 0, "shared": needles.draft(one).shared}
    for context in (one.laid_out(0), text.replace("        # why\n", "")):
        assert answers.facts(problem, context)["depth"]
    assert answers.facts(problem, one.laid_out(0))["shown"] == 1.0
