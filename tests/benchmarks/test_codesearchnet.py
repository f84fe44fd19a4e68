"""CodeSearchNet's three readings of MRR, on imagined functions in the released form."""

import gzip
import json

import numpy as np
import pytest
from measured import bm25, collected, figures

from coderet.benchmarks import benchmark, codesearchnet
from coderet.metrics import blocks, scorecards
from coderet.metrics.scorecards import BLOCK_METRICS
from coderet.records import DataError
from coderet.retrievers.answering import answer

WORDS = "sort list queue string file tree hash date socket image token parse".split()


def put(folder, language, count):
    """Functions that share many words, each told from the others by its number."""
    path = folder / "codesearchnet" / language / "final" / "jsonl" / "test" / f"{language}_test_0.jsonl.gz"
    path.parent.mkdir(parents=True)
    records = [
        {
            "repo": "ants/hill",
            "path": "a",
            "func_name": f"Hill.f{number}",
            "language": language,
            "code": "with docstring",
            "code_tokens": [WORDS[number % 5], WORDS[number % 7], WORDS[number % 11]],
            "docstring": "Whole.",
            "docstring_tokens": [WORDS[number % 5], WORDS[number % 7]],
            "url": f"https://github.com/{number}",
            "partition": "test",
        }
        for number in range(count)
    ]
    path.write_bytes(gzip.compress("".join(json.dumps(each) + "\n" for each in records).encode()))
    return folder


def test_the_pool_is_docstring_tokens_to_code_tokens(tmp_path):
    pool = next(codesearchnet.readings(put(tmp_path, "go", 3), ("go",), 3))
    assert pool.queries.select(["id", "text"]).to_pylist()[1] == {"id": "go-000001", "text": "list list"}
    (documents,) = pool.documents
    assert documents.to_pylist()[1] == {"id": "go-000001", "title": "Hill.f1", "text": "list list list"}
    assert pool.qrels["document_id"].to_pylist() == pool.qrels["query_id"].to_pylist()


@pytest.mark.parametrize("count", [1, 999, 1000, 1001, 2279, 6483])
def test_blocks_are_those_of_the_released_code(count):
    np.random.seed(0)  # the released code's own words, from here to the loop
    idxs = np.arange(count)
    np.random.shuffle(idxs)
    size = min(1000, count)
    expected = [idxs[start : start + size].tolist() for start in range(0, count, size)]
    expected = [each for each in expected if len(each) == size]
    assert codesearchnet.blocks(count).tolist() == expected


def test_known_first_rows_of_the_first_block_of_ruby():
    assert codesearchnet.blocks(2279)[0, :5].tolist() == [1676, 1722, 1889, 148, 2189]


def test_what_fills_no_block_is_in_the_pool_only(tmp_path):
    datasets = collected(tmp_path / "b", codesearchnet.readings(put(tmp_path, "go", 11), ("go",), 11, block=4))
    assert {name: len(each.corpus) for name, each in datasets.items()} == {"pool": 11, "block-000": 4, "block-001": 4}
    first = datasets["block-000"]
    assert first.depth == 4 and first.metrics == BLOCK_METRICS
    assert set(first.queries.ids.to_pylist()) == {f"go-{row:06}" for row in codesearchnet.blocks(11, 4)[0]}
    assert sorted(first.queries.ids.to_pylist(), reverse=True) == first.corpus.ids.to_pylist()


def test_a_set_smaller_than_a_block_is_one_block(tmp_path):
    datasets = collected(tmp_path / "b", codesearchnet.readings(put(tmp_path, "go", 7), ("go",), 7))
    assert [(name, len(each.corpus)) for name, each in datasets.items()] == [("pool", 7), ("block-000", 7)]


def test_all_languages_are_mixed_in_the_same_blocks_in_the_order_of_their_files(tmp_path):
    for language in ("go", "java"):
        put(tmp_path, language, 6)
    datasets = collected(tmp_path / "b", codesearchnet.readings(tmp_path, ("go", "java"), 12, block=6))
    rows = codesearchnet.blocks(12, 6)[0]
    expected = {f"go-{row:06}" if row < 6 else f"java-{row - 6:06}" for row in rows}
    assert set(datasets["block-000"].queries.ids.to_pylist()) == expected


def test_both_directions_are_those_of_the_released_code_on_the_same_scores(tmp_path):
    block = collected(tmp_path / "b", codesearchnet.readings(put(tmp_path, "go", 40), ("go",), 40))["block-000"]
    retriever = bm25("code-words")
    retriever.index(block.corpus, tmp_path / "index")
    run, _ = answer(retriever.open(block.corpus, tmp_path / "index"), block, 40, 256)
    card = scorecards.score(block, run, BLOCK_METRICS)
    scores = np.full((40, 40), -np.inf)
    for line, (rows, values) in enumerate(zip(run.rows, run.scores, strict=True)):
        scores[line, rows[rows >= 0]] = values[rows >= 0]
    own = scores[:, block.corpus.rows_of(block.qrels.table["document_id"])]
    distances = -own.T  # released: rows are codes, columns queries, and a tie counts against
    ranks = np.sum(distances <= np.diag(distances)[:, None], axis=-1)
    assert card.values["mrr-1000-paper"].mean() == pytest.approx(np.mean(1 / ranks))
    assert card.values["mrr-1000"].mean() == pytest.approx(np.mean(1 / blocks.block_ranks(own)))
    assert card.values["mrr-1000"].mean() != pytest.approx(np.mean(1 / ranks))


def test_the_pool_is_scored_by_ranking_metrics(tmp_path):
    pool = collected(tmp_path / "b", codesearchnet.readings(put(tmp_path, "go", 12), ("go",), 12))["pool"]
    metrics = benchmark("codesearchnet-go").metrics
    found = figures(pool, bm25("code-words"), tmp_path / "index", metrics)
    assert tuple(found) == metrics and 0 < found["mrr"] <= 100


def test_another_number_of_functions_is_refused(tmp_path):
    with pytest.raises(DataError, match="has 3 test functions of go, expected 14291"):
        list(benchmark("codesearchnet-go").collect(put(tmp_path, "go", 3)))


def test_the_mixed_entry_has_the_functions_of_all_six():
    assert benchmark("codesearchnet-all").documents == "100,529"
