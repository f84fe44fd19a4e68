import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coderet.benchmarks import benchmark, open_retrieval, open_sources
from coderet.corpora import store
from coderet.corpora.chunking import place_of
from coderet.records import DataError, Draft, qrels_table, queries_table
from coderet.registry import BadValue, fit_arguments

TASKS = [
    {"task_id": 7, "intent": "sort", "docs": [{"title": "b", "text": "short"}]},
    {"task_id": 8, "intent": "walk", "docs": []},
]


@pytest.fixture
def folder(write_lines):
    """ODEX's questions, documentation as a file, tutorials in the hub's layout, two shards."""
    write_lines("coderag_bench/canonical/odex_docs.json", TASKS)
    folder = write_lines(
        "neulab/docprompting-conala/conala-docs.jsonl",
        [{"doc_id": "a", "doc_content": "A"}, {"doc_id": "b", "doc_content": "B"}, {"doc_id": "b", "doc_content": "C"}],
    )
    place = folder / "code-rag-bench" / "online-tutorials" / "data"
    place.mkdir(parents=True)
    for number, texts in enumerate((["How to sort", None], ["How to walk"])):
        table = pa.table({"text": texts, "title": [f"t{number}"] * len(texts), "parsed": [1] * len(texts)})
        pq.write_table(table, place / f"train-0000{number}-of-00002.parquet")
    return folder


def drafts(folder, kind="open", **settings):
    return {each.name: each for each in benchmark(kind).collect(folder, **settings)}


def test_one_dataset_a_source_judged_where_its_documents_are_the_benchmarks_gold(folder, documents_of):
    found = drafts(folder, queries="odex", corpora=["online-tutorials", "library-documentation"])
    assert list(found) == ["online-tutorials", "library-documentation"]
    assert [each.queries["text"].to_pylist() for each in found.values()] == [["sort", "walk"]] * 2
    documentation, tutorials = found["library-documentation"], found["online-tutorials"]
    assert documentation.qrels.select(["query_id", "document_id"]).to_pylist() == [
        {"query_id": "0_7", "document_id": "1"}
    ]
    assert documentation.judged and not tutorials.judged and len(tutorials.qrels) == 0
    assert documents_of(tutorials) == {
        "0": {"id": "0", "title": "t0", "text": "How to sort"},
        "1": {"id": "1", "title": "t0", "text": ""},
        "2": {"id": "2", "title": "t1", "text": "How to walk"},
    }


def test_the_hubs_data_set_goes_before_the_file_and_needs_no_title(folder, documents_of):
    place = folder / "code-rag-bench" / "library-documentation"
    place.mkdir()
    pq.write_table(pa.table({"text": ["only"]}), place / "train.parquet")
    (draft,) = drafts(folder, "open-unjudged", queries="odex", corpora=["library-documentation"]).values()
    assert documents_of(draft) == {"0": {"id": "0", "title": "", "text": "only"}} and not draft.judged


def test_a_kind_without_metrics_is_for_sources_that_hold_no_gold(folder):
    assert benchmark("open-unjudged").metrics == ()
    with pytest.raises(DataError, match=r"none of online-tutorials has .* of odex; take the kind open-unjudged"):
        drafts(folder, queries="odex", corpora=["online-tutorials"])
    with pytest.raises(DataError, match=r"one of online-tutorials, library-documentation .*; take the kind open"):
        drafts(folder, "open-unjudged", queries="odex", corpora=["online-tutorials", "library-documentation"])


def test_what_cannot_be_meant_or_is_missing_is_said(folder):
    with pytest.raises(DataError, match=r"queries is 'odx'; known: .*Did you mean odex\?"):
        drafts(folder, queries="odx", corpora=["online-tutorials"])
    with pytest.raises(DataError, match=r"no source is called 'tutorials'; .*Did you mean online-tutorials\?"):
        drafts(folder, queries="odex", corpora=["tutorials"])
    with pytest.raises(DataError, match="each once"):
        drafts(folder, queries="odex", corpora=["online-tutorials"] * 2)
    with pytest.raises(DataError, match="put the data set code-rag-bench/github-repos-python of the hub into"):
        drafts(folder, queries="odex", corpora=["github-repos"])
    (folder / "code-rag-bench" / "online-tutorials" / "data" / "train-00001-of-00002.parquet").unlink()
    with pytest.raises(DataError):
        for each in drafts(folder, "open-unjudged", queries="odex", corpora=["online-tutorials"]).values():
            list(each.documents)


def test_the_mixture_is_of_all_sources_and_judged_where_one_is(folder, tmp_path):
    settings = {"queries": "odex", "corpora": ["online-tutorials", "library-documentation"], "mixed": True}
    found = drafts(folder, **settings)
    mixture = found["mixed"]
    assert list(found)[-1] == "mixed" and mixture.mixed_of == ("online-tutorials", "library-documentation")
    assert mixture.queries == found["online-tutorials"].queries
    assert mixture.qrels["document_id"].to_pylist() == ["library-documentation/1"]
    store.write_benchmark(tmp_path / "b", found.values())
    assert len(store.read_dataset(tmp_path / "b", "mixed").corpus) == 3 + 3
    assert store.corpora(tmp_path / "b") == ["online-tutorials", "library-documentation"]
    with pytest.raises(DataError, match=r"mixed is true and corpora .*; wanted two or more to mix"):
        drafts(folder, queries="odex", corpora=["library-documentation"], mixed=True)


def test_what_is_withheld_of_a_source_is_withheld_of_the_mixture():
    def source(name, withheld):
        queries = queries_table(["q", "r"], ["?", "!"], withheld=withheld)
        return Draft(name, (), queries, qrels_table(["q"], ["1"]))

    mixture = open_retrieval._mixture([source("a", [["1", "2"], []]), source("b", [["1"], ["3"]])])
    assert mixture.queries["withheld"].to_pylist() == [["a/1", "a/2", "b/1"], ["b/3"]]
    assert mixture.qrels["document_id"].to_pylist() == ["a/1", "b/1"]


def test_of_a_gold_document_that_is_cut_every_chunk_is_gold(folder, write_lines, documents_of):
    rows = [{"doc_id": "a", "doc_content": "A"}, {"doc_id": "b", "doc_content": "1\n2\n3\n"}]
    write_lines("neulab/docprompting-conala/conala-docs.jsonl", rows)
    chunking = {"kind": "lines", "size": 2}
    (draft,) = drafts(folder, queries="odex", corpora=["library-documentation"], chunking=chunking).values()
    assert {each: row["text"] for each, row in documents_of(draft).items()} == {
        "0#L1-L1": "A",
        "1#L1-L2": "1\n2\n",
        "1#L3-L3": "3\n",
    }
    assert draft.qrels["document_id"].to_pylist() == ["1#L1-L2", "1#L3-L3"]
    assert place_of("1#L3-L3")[:2] == ("1", 3)
    with pytest.raises(BadValue, match="chunking is 'lines'; wanted a mapping such as"):
        drafts(folder, queries="odex", corpora=["library-documentation"], chunking="lines")


def test_its_files_follow_from_its_settings():
    def names(queries, *corpora):
        given = {"queries": queries, "corpora": list(corpora), "mixed": True}
        return [each.name for each in benchmark("open").files_of(given)]

    assert names("odex", "library-documentation", "online-tutorials") == [
        "coderag_bench/canonical/odex_docs.json",
        "neulab/docprompting-conala/conala-docs.jsonl",
        "code-rag-bench/online-tutorials/",
    ]
    solutions = names("humaneval", "programming-solutions")
    assert solutions[0] == "humaneval/HumanEval.jsonl" and len(solutions) == len(set(solutions)) == 2
    assert [benchmark("odex").files_of({})] == [benchmark("odex").files]


def test_its_settings_come_from_params():
    given = {
        "queries": "odex",
        "corpora": ["online-tutorials"],
        "chunking": {"kind": "lines", "size": 50, "step": 50},
        "mixed": False,
    }
    assert fit_arguments(benchmark("open").collect, given, "benchmarks.open") == given


def test_every_source_of_the_paper_has_a_name():
    ids = {each.hub_id for each in open_sources.SOURCES.values() if each.hub_id}
    assert ids == {
        "programming-solutions",
        "online-tutorials",
        "library-documentation",
        "stackoverflow-posts",
        "github-repos-python",
    }


def test_humaneval_and_mbpp_find_their_own_solutions_and_withhold_them(real_data, tmp_path):
    for queries, count in (("humaneval", 164), ("mbpp", 500)):
        (draft,) = drafts(real_data, queries=queries, corpora=["programming-solutions"]).values()
        assert len(draft.qrels) == len(draft.queries) == count
        assert draft.queries["withheld"].to_pylist() == [[each] for each in draft.qrels["document_id"].to_pylist()]
        store.write_benchmark(tmp_path / queries, [draft])
        assert len(store.read_corpus(tmp_path / queries, "programming-solutions")) == 1138


def test_of_solutions_and_documentation_mixed_every_second_hit_is_documentation(real_data, bm25_of):
    """A solution that is first of its source is first of the mixture; listed behind the documentation, it is second."""
    solutions, documentation = "programming-solutions", "library-documentation-devdocs"
    settings = {"queries": "humaneval", "mixed": True}
    found = bm25_of(benchmark("open"), real_data, corpora=[documentation, solutions], **settings)
    assert found == {solutions: pytest.approx(100, abs=0.5), "mixed": pytest.approx(100 / np.log2(3), abs=0.5)}


def test_documentation_made_of_devdocs_judges_odex_and_ds1000(real_data):
    for queries, gold in (("odex", 232), ("ds1000", 740)):
        (draft,) = drafts(real_data, queries=queries, corpora=["library-documentation-devdocs"]).values()
        assert len(draft.qrels) == gold
