import numpy as np
import pytest

from coderet.records import NO_HIT, QRELS, Corpus, DataError, Dataset, Qrels, Queries, Run, queries_table
from coderet.retrievers.mixing import SCORES, mixed, settings


def run_of(corpus, *hits):
    """One list of ids a query, best first."""
    ids, width = corpus.ids.to_pylist(), max(1, *map(len, hits))
    rows = np.full((len(hits), width), NO_HIT)
    for query, found in enumerate(hits):
        rows[query, : len(found)] = [ids.index(each) for each in found]
    scores = np.broadcast_to(np.arange(width, 0, -1), rows.shape)
    return Run.of(corpus, queries(len(hits))["id"], rows, scores)


def queries(count):
    names = [f"q{number}" for number in range(count)]
    return queries_table(names, names)


def mixture(corpus, count, *names):
    return Dataset("all", corpus, Queries(queries(count)), Qrels(QRELS.empty_table()), mixed_of=names)


@pytest.fixture
def parts(corpus_of):
    return {"posts": corpus_of({"a": "", "b": "", "c": ""}), "docs": corpus_of({"b": "", "a": ""})}


@pytest.fixture
def whole(corpus_of):
    return corpus_of(dict.fromkeys(("posts/a", "posts/b", "posts/c", "docs/b", "docs/a"), ""))


def hits(run, query):
    ids = run.corpus.ids.to_pylist()
    return [ids[row] for row in run.rows[query].tolist() if row != NO_HIT]


def test_the_first_of_every_source_as_listed_then_the_second(parts, whole):
    runs = {"posts": run_of(parts["posts"], ["c", "a", "b"]), "docs": run_of(parts["docs"], ["b", "a"])}
    run = mixed(mixture(whole, 1, "posts", "docs"), runs, 3)
    assert hits(run, 0) == ["posts/c", "docs/b", "posts/a"]
    assert run.scores[0].tolist() == pytest.approx([1, 1 / 2, 1 / 3])
    other_way = mixed(mixture(whole, 1, "docs", "posts"), dict(reversed(runs.items())), 3)
    assert hits(other_way, 0) == ["docs/b", "posts/c", "docs/a"]


def test_where_a_source_has_no_more_hits_the_others_close_up(parts, whole):
    runs = {"posts": run_of(parts["posts"], ["c", "a"], []), "docs": run_of(parts["docs"], [], [])}
    run = mixed(mixture(whole, 2, "posts", "docs"), runs, 10)
    assert hits(run, 0) == ["posts/c", "posts/a"] and hits(run, 1) == []


def test_it_may_be_deeper_than_any_of_its_sources(parts, whole):
    runs = {"posts": run_of(parts["posts"], ["c", "a", "b"]), "docs": run_of(parts["docs"], ["b", "a"])}
    run = mixed(mixture(whole, 1, "posts", "docs"), runs, 100)
    assert run.depth == 5 and hits(run, 0) == ["posts/c", "docs/b", "posts/a", "docs/a", "posts/b"]


def test_a_source_without_documents_gives_none(parts, corpus_of):
    parts["docs"] = Corpus("docs", parts["docs"].table.slice(0, 0))
    runs = {"docs": run_of(parts["docs"], []), "posts": run_of(parts["posts"], ["b"])}
    whole = corpus_of({f"posts/{each}": "" for each in "abc"})
    assert hits(mixed(mixture(whole, 1, "docs", "posts"), runs, 10), 0) == ["posts/b"]


def test_parts_that_do_not_belong_together_are_refused(parts, whole, corpus_of):
    runs = {"posts": run_of(parts["posts"], ["c"]), "docs": run_of(parts["docs"], ["b"])}
    with pytest.raises(DataError, match="all is mixed of docs, posts, not of posts, docs"):
        mixed(mixture(whole, 1, "docs", "posts"), runs, 10)
    with pytest.raises(DataError, match="the run of posts answers other queries than all asks"):
        mixed(mixture(whole, 2, "posts", "docs"), runs, 10)
    with pytest.raises(DataError, match=r"the documents of posts are not those in .*; collect and search again"):
        mixed(mixture(corpus_of({"docs/a": "", "docs/b": "", "posts/a": ""}), 1, "posts", "docs"), runs, 10)
    more = corpus_of(dict.fromkeys([*whole.ids.to_pylist(), "a/a"], ""))
    with pytest.raises(DataError, match="has 6 documents, its parts 5"):
        mixed(mixture(more, 1, "posts", "docs"), runs, 10)


def test_the_settings_say_of_what_it_is_mixed_and_what_its_scores_are(whole):
    told = settings({"kind": "lucene"}, mixture(whole, 1, "posts", "docs"))
    assert told == {"kind": "lucene", "mixed_of": ["posts", "docs"], "scores": SCORES}


def test_scores_tell_a_thousand_places_apart(corpus_of):
    count = 1000
    parts = {name: corpus_of({f"{number:04}": "" for number in range(count)}) for name in "ab"}
    whole = corpus_of({f"{name}/{number:04}": "" for name in parts for number in range(count)})
    everything = {name: run_of(corpus, corpus.ids.to_pylist()) for name, corpus in parts.items()}
    run = mixed(mixture(whole, 1, "a", "b"), everything, count)
    assert (np.diff(run.scores[0]) < 0).all() and hits(run, 0)[-2:] == ["a/0500", "b/0500"]
