import numpy as np
import pytest

from coderet.benchmarks import contexts
from coderet.corpora import store
from coderet.records import DataError, Draft, Run, documents_batch, problems_table, qrels_table, queries_table

TEXTS = {
    "a": "def add(x, y):\n    return x + y\n",
    "b": "import os\n\n\ndef walk(folder):\n    return os.walk(folder)\n",
    "c": "nothing\nto\nsee\nabout adding numbers\n",
}


@pytest.fixture
def posed(tmp_path):
    """Two queries over three documents; q1 is asked by two problems, its own answer is a."""
    store.write_benchmark(
        tmp_path / "b",
        [
            Draft(
                "only",
                [documents_batch(list(TEXTS), [""] * 3, list(TEXTS.values()))],
                queries_table(["q1", "q2"], ["adding numbers", "walk a folder"], withheld=[["a"], ["b"]]),
                qrels_table(["q1", "q1", "q2"], ["a", "c", "b"], [2, 1, 1]),
                problems=problems_table(["p1", "p2", "p3"], ["q1", "q1", "q2"], [{"n": n} for n in range(3)]),
            )
        ],
    )
    return store.read_dataset(tmp_path / "b", "only"), store.read_problems(tmp_path / "b", "only")


def run_of(dataset, *ranked):
    ids = dataset.corpus.ids.to_pylist()
    rows = np.array([[ids.index(each) for each in hits] for hits in ranked])
    return Run.of(
        dataset.corpus, dataset.queries.ids, rows, -np.arange(rows.shape[1], dtype=float) * np.ones(rows.shape)
    )


def shown(found):
    return [[document.id for document in each] for each in found]


def test_a_problem_is_shown_the_first_hits_of_its_query_less_its_own_answer(posed):
    dataset, problems = posed
    run = run_of(dataset, "abc", "bac")
    assert shown(contexts.contexts(dataset, run, problems, contexts.Taken(2))) == [["b", "c"], ["b", "c"], ["a", "c"]]
    assert shown(contexts.contexts(dataset, run, problems, contexts.Taken(1, "kept"))) == [["a"], ["a"], ["b"]]


def test_the_judgements_are_a_run_by_grade_and_no_hits_are_one_too(posed):
    dataset, problems = posed
    taken = contexts.Taken(5, "kept")
    oracle = contexts.of_judgements(dataset)
    assert shown(contexts.contexts(dataset, oracle, problems, taken)) == [["a", "c"], ["a", "c"], ["b"]]
    assert shown(contexts.contexts(dataset, contexts.without_hits(dataset), problems, taken)) == [[], [], []]


def test_documents_by_lot_are_not_relevant_and_the_same_for_the_same_seed(posed):
    dataset, problems = posed
    taken = contexts.Taken(5, "kept")

    def drawn(seed):
        return shown(contexts.contexts(dataset, contexts.by_lot(dataset, seed), problems, taken))

    by_seed = [drawn(seed) for seed in range(8)]
    assert all([sorted(each) for each in found] == [["b"], ["b"], ["a", "c"]] for found in by_seed)
    assert {"".join(found[2]) for found in by_seed} == {"ac", "ca"} and drawn(3) == by_seed[3]


def test_distractors_stand_behind_what_is_relevant_and_are_not(posed):
    dataset, problems = posed
    run, oracle = run_of(dataset, "bac", "cba"), contexts.of_judgements(dataset)
    taken = contexts.Taken(1, "kept", distractors=1)
    found = contexts.contexts(dataset, run, problems, taken, oracle)
    assert shown(found) == [["a", "c", "b"], ["a", "c", "b"], ["b", "c"]]
    with pytest.raises(DataError, match="distractors: 1 wants the run 'oracle'"):
        contexts.contexts(dataset, run, problems, taken)


def test_a_document_is_cut_to_its_first_whole_lines(posed):
    dataset, problems = posed
    taken = contexts.taken(
        3, "kept", {"kind": "tokens", "size": 4, "tokenizer": "whitespace", "first_only": True}, "first"
    )
    (first, *_) = contexts.contexts(dataset, run_of(dataset, "cab", "bac"), problems, taken)
    assert [each.id for each in first] == ["c#L1-L3", "a#L1-L1", "b#L1-L4"]
    assert first[0].text == "nothing\nto\nsee\n"


def test_or_to_the_chunk_that_shares_most_with_the_query(posed):
    dataset, problems = posed
    taken = contexts.taken(1, "kept", {"kind": "lines", "size": 1, "step": 1}, "best")
    (first, *_) = contexts.contexts(dataset, run_of(dataset, "cab", "bac"), problems, taken)
    assert [(each.id, each.text) for each in first] == [("c#L4-L4", "about adding numbers\n")]


def test_a_run_that_lacks_a_query_is_refused(posed):
    dataset, problems = posed
    whole = run_of(dataset, "abc", "bac")
    part = Run(whole.corpus, whole.query_ids.slice(1), whole.rows[1:], whole.scores[1:])
    with pytest.raises(DataError, match="lacks 2 queries of only, 'q1' among them"):
        contexts.contexts(dataset, part, problems, contexts.Taken(1))
