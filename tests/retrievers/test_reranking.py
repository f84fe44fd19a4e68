import json

import numpy as np
import pyarrow as pa
import pytest

from coderet.encoders import encoding
from coderet.records import NO_HIT, DataError, Queries, Run, queries_table
from coderet.registry import UnknownName
from coderet.retrievers import reranking
from coderet.retrievers.reranking import Tally, rerank


class Lengths:
    """Scores a pair by a table, or else by the document's length; notes what it was asked."""

    fingerprint = "lengths"
    parameters = 0

    def __init__(self, scores=(), fingerprint="lengths"):
        self.fingerprint, self.table, self.asked = fingerprint, dict(scores), []

    def scores(self, queries, documents):
        pairs = list(zip(queries.to_pylist(), documents.to_pylist(), strict=True))
        self.asked += pairs
        return np.array([self.table.get(pair, len(pair[1])) for pair in pairs], np.float32)


@pytest.fixture
def corpus(corpus_of):
    return corpus_of({"a": "1", "b": "22", "c": "333", "d": "22", "e": "55555"}, {"a": "the title"})


def queries_of(*texts):
    return Queries(queries_table([f"q{at}" for at in range(len(texts))], texts))


def run_of(corpus, *hits):
    ids, width = corpus.ids.to_pylist(), max(1, *map(len, hits)) if hits else 1
    rows, scores = np.full((len(hits), width), NO_HIT), np.zeros((len(hits), width))
    for query, names in enumerate(hits):
        rows[query, : len(names)] = [ids.index(each) for each in names]
        scores[query, : len(names)] = np.arange(len(names), 0, -1)
    return Run.of(corpus, pa.array([f"q{at}" for at in range(len(hits))], pa.large_string()), rows, scores)


def hits(run):
    ids = run.corpus.ids.to_pylist()
    return [
        [(ids[r], s) for r, s in zip(*both, strict=True) if r != NO_HIT]
        for both in zip(run.rows.tolist(), run.scores.tolist(), strict=True)
    ]


def test_the_first_hits_are_put_into_the_order_of_their_new_scores_and_the_others_dropped(corpus):
    result = rerank(Lengths(), queries_of("x"), run_of(corpus, "abce"), top=3)
    assert hits(result) == [[("c", 3), ("b", 2), ("a", 1)]]
    assert result.depth == 3


def test_equal_new_scores_stand_in_the_one_order(corpus):
    assert hits(rerank(Lengths(), queries_of("x"), run_of(corpus, "bda"), top=3)) == [[("d", 2), ("b", 2), ("a", 1)]]


def test_the_others_may_be_kept_behind_in_their_order_with_scores_that_descend(corpus):
    result = rerank(Lengths(), queries_of("x"), run_of(corpus, "abec"), top=2, below="keep")
    assert hits(result) == [[("b", 2), ("a", 1), ("e", 0), ("c", -1)]]


def test_kept_hits_that_were_equal_stay_equal(corpus):
    run = Run.of(corpus, pa.array(["q0"], pa.large_string()), np.array([[0, 1, 2, 3, 4]]), np.array([[5, 4, 4, 4, 1]]))
    result = rerank(Lengths(), queries_of("x"), run, top=1, below="keep")
    assert result.rows.tolist() == [[0, 1, 2, 3, 4]] and result.scores.tolist() == [[5, 4, 4, 4, 3]]


@pytest.mark.parametrize("lowest", [-1e30, 3e38, 1e9, 0.0, -1e-40])
def test_kept_hits_descend_from_any_score(corpus, lowest):
    table = {("x", "1"): lowest}
    result = rerank(Lengths(table), queries_of("x"), run_of(corpus, "abec"), top=1, below="keep")
    assert [name for name, _ in hits(result)[0]] == list("abec")
    assert (np.diff(result.scores[0]) < 0).all()


def test_queries_with_fewer_hits_or_none_are_answered(corpus):
    result = rerank(Lengths(), queries_of("x", "y", "z"), run_of(corpus, "", "a", "bce"), top=2, below="keep")
    assert [[name for name, _ in each] for each in hits(result)] == [[], ["a"], ["c", "b", "e"]]
    assert len(rerank(Lengths(), queries_of(), run_of(corpus), top=2)) == 0


def test_each_distinct_pair_of_texts_is_scored_once(corpus):
    model, tally = Lengths(), Tally()
    result = rerank(model, queries_of("x", "y", "x"), run_of(corpus, "bda", "bd", "ad"), top=3, tally=tally)
    assert model.asked == [("x", "22"), ("x", "1"), ("y", "22")]
    assert (tally.hits, tally.pairs) == (7, 3)
    assert [[name for name, _ in each] for each in hits(result)] == [["d", "b", "a"], ["d", "b"], ["d", "a"]]


def test_documents_are_read_as_their_text_fields_say(corpus):
    model = Lengths()
    rerank(model, queries_of("x"), run_of(corpus, "ab"), top=2, text_fields=("title", "text"))
    assert model.asked == [("x", "the title 1"), ("x", "22")]


def test_scores_are_kept_between_calls_by_model_query_and_document(corpus, tmp_path):
    run = run_of(corpus, "abc", "ae")
    first = rerank(Lengths(), queries_of("x", "y"), run, top=2, cache=tmp_path)
    again = Lengths()
    assert hits(rerank(again, queries_of("x", "y"), run, top=2, cache=tmp_path)) == hits(first) and again.asked == []
    rerank(again, queries_of("x", "z"), run, top=3, cache=tmp_path)
    assert again.asked == [("x", "333"), ("z", "1"), ("z", "55555")]
    other = Lengths(fingerprint="other")
    rerank(other, queries_of("x", "y"), run, top=1, cache=tmp_path)
    assert other.asked == [("x", "1"), ("y", "1")]


def test_query_and_document_do_not_run_together_in_the_key(corpus_of, tmp_path):
    corpus, model = corpus_of({"a": "bc", "b": "c"}), Lengths()
    rerank(model, queries_of("a", "ab"), run_of(corpus, "a", "b"), top=1, cache=tmp_path)
    assert model.asked == [("a", "bc"), ("ab", "c")]


def test_a_killed_call_loses_at_most_a_shard(corpus_of, tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "SHARD", 2)
    corpus = corpus_of({name: name * at for at, name in enumerate("abcdef", 1)})

    class Dies(Lengths):
        def scores(self, queries, documents):
            if len(self.asked) >= 4:
                raise KeyboardInterrupt
            return super().scores(queries, documents)

    with pytest.raises(KeyboardInterrupt):
        rerank(Dies(), queries_of("x"), run_of(corpus, "abcdef"), top=6, cache=tmp_path)
    again = Lengths()
    assert hits(rerank(again, queries_of("x"), run_of(corpus, "abcdef"), top=6, cache=tmp_path))[0][0] == ("f", 6)
    assert again.asked == [("x", "eeeee"), ("x", "ffffff")]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_names_query_and_document_and_keeps_nothing(corpus, tmp_path, bad):
    run = run_of(corpus, "a", "eb")
    with pytest.raises(DataError, match=r"1 of 3 pairs .* not finite: query 'q1' and document 'b' have"):
        rerank(Lengths({("y", "22"): bad}), queries_of("x", "y"), run, top=2, cache=tmp_path)
    again = Lengths()
    rerank(again, queries_of("x", "y"), run, top=2, cache=tmp_path)
    assert len(again.asked) == 3


def test_a_run_of_other_queries_is_refused(corpus):
    with pytest.raises(DataError, match="a run of 1 queries is not one of these 2; search them again"):
        rerank(Lengths(), queries_of("x", "y"), run_of(corpus, "a"), top=1)


def test_lone_queries_are_timed_whole_and_only_where_they_have_hits(corpus):
    model = Lengths()
    run = run_of(corpus, "", "ba", "dc", "e")
    asked = queries_of("w", "x", "y", "z")
    seconds = reranking.lone_queries(model, asked, run, top=1, text_fields=("text",), number=1, warm_up=1)
    assert len(seconds) == 1 and model.asked == [("x", "22"), ("y", "22")]
    nothing = run_of(corpus, "")
    assert (
        len(reranking.lone_queries(model, queries_of("x"), nothing, top=1, text_fields=("text",), number=5, warm_up=1))
        == 0
    )


# --- its folder and its place in params.yaml


def test_a_folder_of_another_kind_or_of_none_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"holds no reranker .* run: dvc repro prepare-reranker@bge"):
        reranking.load(tmp_path / "bge", "cross-encoder", {})
    (tmp_path / "bge").mkdir()
    (tmp_path / "bge" / "reranker.json").write_text(json.dumps({"kind": "other", "format": 1}))
    with pytest.raises(DataError, match="wanted kind 'cross-encoder', format 1; run: dvc repro prepare-reranker@bge"):
        reranking.load(tmp_path / "bge", "cross-encoder", {})


def test_misspelt_settings_are_refused_with_their_place_and_the_nearest(tmp_path):
    for wrong, near in (("max_token", "max_tokens"), ("text_field", "text_fields"), ("belw", "below")):
        with pytest.raises(
            UnknownName, match=rf"^params.yaml: rerankers.bge.{wrong} is not a setting; .* mean {near}\?"
        ):
            reranking.load(tmp_path / "bge", "cross-encoder", {wrong: 1})
    with pytest.raises(UnknownName, match=r"rerankers.bge.kind is 'crossencoder'; .* Did you mean cross-encoder\?"):
        reranking.load(tmp_path / "bge", "crossencoder", {})
    with pytest.raises(UnknownName, match=r"^x.fit.sourc is not a setting; .* Did you mean source\?"):
        reranking.prepare("cross-encoder", {"sourc": "file:x"}, tmp_path, "x")
