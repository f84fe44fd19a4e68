"""A mixture of sources through the scripts of eval/: collected, searched by Lucene, fused, reranked and scored."""

import json
from itertools import zip_longest

import imagined
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from cross_encoders import write_cross_encoder
from scripts import ROOT, main_of

from coderet import paths
from coderet.corpora import released, store
from coderet.corpora.sources import digest
from coderet.records import NO_HIT

PARTS = ["online-tutorials", "library-documentation"]
TASKS = [
    {"task_id": 7, "intent": "sort a list", "docs": [{"title": "list.sort", "text": ""}]},
    {"task_id": 8, "intent": "binary tree", "docs": []},
]
DOCUMENTATION = {"list.sort": "sort a list of numbers", "bisect": "binary search", "tree": "a tree of numbers"}
TUTORIALS = ["how to sort a list", "how to search a binary tree", "return x"]


def write_raw(folder):
    for name, records in (
        ("coderag_bench/canonical/odex_docs.json", TASKS),
        (
            "neulab/docprompting-conala/conala-docs.jsonl",
            [{"doc_id": title, "doc_content": text} for title, text in DOCUMENTATION.items()],
        ),
    ):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("".join(json.dumps(each) + "\n" for each in records))
    place = folder / "code-rag-bench" / "online-tutorials"
    place.mkdir(parents=True)
    pq.write_table(pa.table({"text": TUTORIALS}), place / "train.parquet")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The whole of eval/ on imagined sources, for two retrievers, their fusion and a reranker over each."""
    root = tmp_path_factory.mktemp("mixed")
    imagined.write_params(root, ROOT)
    raw = yaml.safe_load((root / "params.yaml").read_text())
    lucene = {"kind": "lucene", "fit": {}, "index": {"analyzer": "whitespace", "text_fields": ["text"]}}
    raw["retrievers"] = {"plain": lucene, "learned": {"kind": "bm25s", "fit": {}, "index": {}}}
    settings = {"queries": "odex", "corpora": PARTS, "mixed": True}
    raw["benchmarks"] = {"open": {"kind": "open", "source": ["official"], "depth": 10, **settings}}
    raw["fusions"] = {"both": {"kind": "rrf", "members": ["plain", "learned"]}}
    model = write_cross_encoder(root / "model")
    source = f"file:{model}#sha256={digest(model)}"
    tiny = {"kind": "cross-encoder", "fit": {"source": source}, "top": 3, "below": "keep", "max_tokens": 40}
    raw["rerankers"] = {"tiny": tiny}
    runs = ["plain", "learned", "both", "plain+tiny"]
    raw["grid"] |= {"benchmarks": ["open"], "answered": [], "read": [], "trained": []}
    raw["grid"] |= {"untrained": ["plain", "learned"], "runs": runs}
    raw["grid"] |= {"reranked": ["plain"], "rerankers": ["tiny"]}
    raw["efficiency"] = {"batch_queries": 64, "single_queries": 1, "warm_up": 0}
    raw["scoring"]["resamples"] = 20
    (root / "params.yaml").write_text(yaml.safe_dump(raw))
    write_raw(root / paths.raw("open"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        main_of("eval/collect")("open")
        for name in ("plain", "learned"):
            main_of("train/prepare")(name)
            main_of("eval/index")("open", name)
            main_of("eval/search")("open", name)
        main_of("eval/fuse")("open", "both")
        main_of("train/prepare_reranker")("tiny")
        main_of("eval/rerank")("open", "plain", "tiny")
        for name in runs:
            main_of("eval/score")("open", name)
    return root


def read(root, system, name):
    dataset = store.read_dataset(root / paths.benchmark("open"), name)
    return store.read_run(root / paths.runs("open", system) / f"{name}.arrow", dataset.corpus)


def hits(root, system, name):
    run = read(root, system, name)
    ids = run.corpus.ids.to_pylist()
    return [[ids[row] for row in rows if row != NO_HIT] for rows in run.rows.tolist()]


def interleaved(root, system):
    """What the mixture must be, from the runs of its sources alone."""
    by_source = [[[f"{part}/{each}" for each in query] for query in hits(root, system, part)] for part in PARTS]
    return [
        [each for rank in zip_longest(*of_query) for each in rank if each is not None]
        for of_query in zip(*by_source, strict=True)
    ]


@pytest.mark.parametrize("system", ["plain", "learned", "both"])
def test_a_retriever_s_and_a_fusion_s_mixture_is_of_their_own_runs(root, system):
    found = hits(root, system, "mixed")
    assert found == [each[:10] for each in interleaved(root, system)]
    assert {each.split("/")[0] for each in found[0][:2]} == set(PARTS)
    scores = read(root, system, "mixed").scores[0][: len(found[0])]
    assert scores.tolist() == pytest.approx([1 / place for place in range(1, len(found[0]) + 1)])
    told = store.run_settings(root / paths.runs("open", system) / "mixed.arrow")
    assert told["mixed_of"] == PARTS and "not the retriever's" in told["scores"]


def test_the_corpus_of_a_mixture_is_not_indexed(root):
    assert sorted(each.name for each in (root / paths.index("open", "plain")).iterdir()) == sorted(PARTS)
    assert list(store.read_json(root / paths.result("open", "plain", "index"))["corpora"]) == PARTS
    assert list(store.read_json(root / paths.result("open", "plain", "search"))["datasets"]) == [*PARTS, "mixed"]


def test_the_first_hits_of_a_mixture_are_reranked_by_one_model(root):
    first, reranked = hits(root, "plain", "mixed"), hits(root, "plain+tiny", "mixed")
    for before, after in zip(first, reranked, strict=True):
        assert set(before[:3]) == set(after[:3]) and before[3:] == after[3:]
    assert not np.allclose(read(root, "plain+tiny", "mixed").scores, read(root, "plain", "mixed").scores)


@pytest.mark.parametrize("system", ["plain", "learned", "both", "plain+tiny"])
def test_it_is_judged_where_a_source_is_and_in_no_mean(root, system):
    score = store.read_json(root / paths.result("open", system, "score"))
    documentation, mixture = (score["datasets"][name] for name in ("library-documentation", "mixed"))
    assert not score["datasets"]["online-tutorials"]["metrics"] and mixture["apart"] and mixture["queries"] == 1
    assert score["all"]["mrr"]["value"] == documentation["metrics"]["mrr"]["value"]
    rank = hits(root, system, "mixed")[0].index("library-documentation/0") + 1
    assert mixture["metrics"]["mrr"]["value"] == pytest.approx(1 / rank)


def test_the_official_files_are_those_of_the_settings(root, monkeypatch, capsys):
    monkeypatch.chdir(root)
    monkeypatch.delenv("CODERET_DATA", raising=False)
    monkeypatch.setattr(released, "_check", lambda file, path: None)  # these are imagined
    main_of("eval/gather")("open")
    found = [line.split(":")[0].split()[1] for line in capsys.readouterr().out.splitlines()]
    assert found == [
        "coderag_bench/canonical/odex_docs.json",
        "code-rag-bench/online-tutorials/",
        "neulab/docprompting-conala/conala-docs.jsonl",
    ]
