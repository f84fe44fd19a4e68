import numpy as np
import pyarrow as pa

from coderet.corpora import cutting, store
from coderet.corpora.fingerprints import Threshold, fingerprint
from coderet.records import PAIRS, Draft, documents_batch, qrels_table, queries_table

LONG = "def f(a, b):\n    return " + " + ".join(f"name{i}" for i in range(20))
OTHER = "def g(a, b):\n    return " + " + ".join(f"other{i}" for i in range(20))


def pair(number: int, query: str, code: str, repository: str = "mine"):
    return [f"{repository}/{number}", repository, "f.py", "python", "f", query, code, 1, 2]


def table(*rows):
    return pa.Table.from_pylist([dict(zip(PAIRS.names, row, strict=True)) for row in rows], schema=PAIRS)


def test_copies_of_documents_equal_queries_and_held_out_repositories_are_cut_and_counted(tmp_path):
    documents = documents_batch(["d1", "d2"], ["", ""], [LONG, "x = 1"])
    queries = queries_table(["q1", "q2"], ["Sort the list of numbers.", "sort it"])
    store.write_benchmark(tmp_path / "b", [Draft("d", [documents], queries, qrels_table(["q1"], ["d1"]))])
    pairs = table(
        pair(0, "anything at all here", LONG.replace("name0", "name1")),  # near copy of d1
        pair(1, "sort the list of NUMBERS", OTHER),  # the words of q1
        pair(2, "sort it", OTHER + " + b"),  # the words of q2, which are too few
        pair(3, "something else of no harm", "x  =  1"),  # exact copy of d2
        pair(4, "of a package that is held out", OTHER, "held"),
    )
    prints = fingerprint(pairs["code"], pairs["language"])
    stays, report = cutting.cut(pairs, prints, [tmp_path / "b"], ["held"], Threshold(), 4)
    assert np.flatnonzero(stays).tolist() == [2]
    assert report["held_out_repositories"] == 1
    assert report["b"] == {"copies_of_documents": 2, "equal_to_queries": 1, "examples": ["mine/0", "mine/1", "mine/3"]}
