"""CoIR's ten tasks by two protocols, on small folders of the hub's layout; cases D3 to D5."""

import shutil
from dataclasses import replace
from pathlib import Path

import coir_folders
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from coderet import benchmarks
from coderet.benchmarks import coir
from coderet.corpora import store
from coderet.corpora.census import census
from coderet.records import DataError
from coderet.registry import fit_arguments

SMALL = coir_folders.tasks()
PUBLISHED = yaml.safe_load((Path(__file__).parents[2] / "data" / "published" / "coir.yaml").read_text(encoding="utf-8"))


def collected(raw, tmp_path, name, **settings):
    record = coir.benchmarks(SMALL)[name]
    folder = tmp_path / "collected"
    names = store.write_benchmark(folder, record.collect(raw, **settings))
    return {each: store.read_dataset(folder, each) for each in names}


def texts(dataset):
    return dict(zip(dataset.corpus.ids.to_pylist(), dataset.corpus.table["text"].to_pylist(), strict=True))


@pytest.fixture
def raw(tmp_path):
    return tmp_path / "raw"


def test_there_are_ten_tasks_by_two_protocols_each_with_a_line_in_the_table():
    names = [f"{family}-{task}" for family in ("coir", "mteb") for task in PUBLISHED["tasks"]]
    assert list(coir.BENCHMARKS) == names
    assert all(benchmarks.benchmark(name) is coir.BENCHMARKS[name] for name in names)


def test_names_revisions_and_sizes_are_those_published():
    for name, said in PUBLISHED["tasks"].items():
        task = coir.TASKS[name]
        assert (task.mteb_name, task.mteb_place, task.revision) == (
            said["mteb_name"],
            said["mteb_path"],
            said["mteb_revision"],
        )
        sizes = {key: (size.queries, size.documents) for key, size in task.sizes.items()}
        exact = said.get("exact_by_language", {name: said["exact"]})
        assert sizes == {key: (each["queries"], each["documents"]) for key, each in exact.items()}
        pairs = [f"{task.repository}-{key}" if task.languages else task.repository for key in task.sizes]
        assert set(said["coir_hf"]) == {f"{each}-{part}" for each in pairs for part in ("queries-corpus", "qrels")}


def test_mteb_files_are_pinned_and_a_data_set_that_nobody_pins_says_so():
    (file,) = coir.BENCHMARKS["mteb-stackoverflow-qa"].files
    assert file.place == "hub:datasets/mteb/StackOverflowQA@7b46f5ebd2365278c1bb025986dda2fee893bbf5"
    (file,) = coir.BENCHMARKS["coir-stackoverflow-qa"].files
    assert (file.name, file.place) == ("CoIR-Retrieval/stackoverflow-qa/", "")
    assert "no revision of it is pinned" in file.how
    assert all(record.files[0].place for name, record in coir.BENCHMARKS.items() if name != "coir-stackoverflow-qa")


@pytest.mark.parametrize("task", SMALL)
@pytest.mark.parametrize("choices", coir.PROTOCOLS.values(), ids=coir.PROTOCOLS)
def test_the_queries_of_the_test_split_are_asked_of_all_partitions(raw, tmp_path, task, choices):
    coir_folders.write(raw, SMALL[task], choices)
    datasets = collected(raw, tmp_path, f"{choices.family}-{task}")
    assert list(datasets) == (list(coir_folders.LANGUAGES) if SMALL[task].languages else [task])
    for dataset in datasets.values():
        assert dataset.queries.ids.to_pylist() == [f"q{number}" for number in range(12, 20)]
        assert set(dataset.corpus.ids.to_pylist()) == {f"c{number}" for number in range(20)} | {"q14"}
        judged = dataset.qrels.table.to_pydict()
        assert judged["document_id"] == [each.replace("q", "c") for each in judged["query_id"]]


@pytest.mark.parametrize("choices", coir.PROTOCOLS.values(), ids=coir.PROTOCOLS)
@pytest.mark.parametrize("task", ["cosqa", "codesearchnet"])
def test_both_families_of_data_sets_give_the_same_datasets(raw, tmp_path, task, choices):
    coir_folders.write(raw / "one", SMALL[task])
    coir_folders.write_pairs(raw / "other", SMALL[task])
    one, other = (collected(raw / name, tmp_path / name, f"{choices.family}-{task}") for name in ("one", "other"))
    assert list(one) == list(other)
    for name in one:
        assert one[name].corpus.digest == other[name].corpus.digest
        assert one[name].queries.table.equals(other[name].queries.table)
        assert one[name].qrels.table.equals(other[name].qrels.table)


def test_coir_2024_reads_the_text_alone_and_mteb_joins_title_one_space_and_text(raw, tmp_path):
    coir_folders.write(raw, SMALL["apps"])
    rows = {each["_id"]: each for each in coir_folders.rows(len("apps"))[1]}
    tool, mteb = (collected(raw, tmp_path / name, f"{name}-apps")["apps"] for name in ("coir", "mteb"))
    assert rows["c9"]["title"] and rows["c9"]["text"] != rows["c9"]["text"].strip()
    assert texts(tool)["c9"] == rows["c9"]["text"]
    assert texts(mteb)["c9"] == f"{rows['c9']['title']} {rows['c9']['text'].rstrip()}"
    assert texts(mteb)["c11"] == rows["c11"]["text"].strip()  # mteb strips where there is no title too
    for dataset in (tool, mteb):  # so that text_fields cannot change what is read
        assert set(dataset.corpus.table["title"].to_pylist()) == {""}


def test_a_document_with_the_querys_id_is_no_hit_in_coir_2024_and_stays_one_in_mteb(raw, tmp_path):
    coir_folders.write(raw, SMALL["apps"])
    tool, mteb = (collected(raw, tmp_path / name, f"{name}-apps")["apps"] for name in ("coir", "mteb"))
    assert tool.queries.table["excluded"].to_pylist() == [[each] for each in tool.queries.ids.to_pylist()]
    assert tool.queries.largest_exclusion == 1 and mteb.queries.largest_exclusion == 0


def test_equal_documents_of_other_partitions_are_counted(raw, tmp_path):
    coir_folders.write(raw, SMALL["apps"])
    counts, groups = census(collected(raw, tmp_path, "coir-apps")["apps"])
    assert (counts["duplicate_groups"], counts["affected_queries"]) == (1, 1)
    assert groups is not None


def test_a_missing_null_and_empty_title_give_the_same_text(raw, tmp_path):
    folder = coir_folders.write(raw, SMALL["apps"]) / "corpus"
    digests = []
    for title in ("", None, "gone"):
        for path in folder.iterdir():
            table = pq.read_table(path).drop_columns(["title"])
            if title != "gone":
                table = table.append_column("title", pa.array([title] * len(table), pa.string()))
            pq.write_table(table, path)
        digests.append(collected(raw, tmp_path / str(title), "mteb-apps")["apps"].corpus.digest)
    assert len(set(digests)) == 1


def test_a_copy_whose_columns_and_splits_are_called_otherwise_is_read(raw, tmp_path):
    task = SMALL["stackoverflow-qa"]
    folder = coir_folders.write(raw, task, coir.MTEB)
    for part in ("queries", "corpus"):
        for path in sorted((folder / part).iterdir()):
            pq.write_table(pq.read_table(path).rename_columns({"_id": "id"}), path)
            path.rename(path.with_name(path.name.replace(part, "test")))
    (folder / "data").rename(folder / "qrels")
    (folder / "README.md").unlink()
    assert len(collected(raw, tmp_path, "mteb-stackoverflow-qa")["stackoverflow-qa"].corpus) == 21


def test_the_cutoffs_of_the_protocol_are_taken_up_to_100_unless_more_are_asked_for(raw, tmp_path):
    coir_folders.write(raw, SMALL["apps"])
    record = coir.BENCHMARKS["mteb-apps"]
    assert record.headline == "ndcg@10" and len(record.metrics) == 6 * 6 + len(coir.TIES)
    assert {"ndcg@100", "mrr@20", "hit@1"} < set(record.metrics) and "ndcg@1000" not in record.metrics
    assert len(coir.BENCHMARKS["coir-apps"].metrics) == 4 * 5 + len(coir.TIES)
    settings = fit_arguments(record.collect, {"cutoffs": [10, 1000]}, "params.yaml: benchmarks.mteb-apps")
    asked = collected(raw, tmp_path, "coir-apps", **settings)["apps"].metrics
    assert asked == (
        "ndcg@10",
        *coir.TIES,
        "ndcg@1000",
        "map@10",
        "map@1000",
        *(f"{m}@{k}" for m in ("recall", "precision") for k in (10, 1000)),
    )


def test_the_choices_are_told_with_the_task():
    tool, mteb = (dict(coir.BENCHMARKS[f"{name}-apps"].choices) for name in ("coir", "mteb"))
    assert {name for name in tool if tool[name] != mteb[name]} == {
        "protocol",
        "document text",
        "own-id documents",
        "cutoffs",
    }
    assert (mteb["task"], mteb["mteb task"], tool["own-id documents"]) == ("apps", "AppsRetrieval", "removed")
    assert all(record.mean == "datasets" for record in coir.BENCHMARKS.values())


# Files that are not those of the task


def test_other_counts_than_published_are_refused(raw, tmp_path):
    coir_folders.write(raw, SMALL["apps"])
    with pytest.raises(DataError, match="apps has 21 documents, expected 8765; the files are not those of this"):
        store.write_benchmark(tmp_path / "b", coir.BENCHMARKS["coir-apps"].collect(raw))
    assert not (tmp_path / "b").exists()
    fewer = {"apps": replace(SMALL["apps"], sizes={"apps": coir.Size(9, 21)})}
    with pytest.raises(DataError, match="apps has 8 queries, expected 9"):
        store.write_benchmark(tmp_path / "b", coir.benchmarks(fewer)["coir-apps"].collect(raw))


def test_the_folder_of_another_task_and_half_a_pair_are_told_with_what_is_wanted(raw, tmp_path):
    coir_folders.write(raw, SMALL["cosqa"])
    with pytest.raises(DataError, match=r"lacks apps of CoIR: wanted a folder CoIR-Retrieval/apps .*there is: CoIR-R"):
        collected(raw, tmp_path, "coir-apps")
    coir_folders.write_pairs(raw, SMALL["apps"])
    shutil.rmtree(raw / "CoIR-Retrieval" / "apps-qrels")
    with pytest.raises(DataError, match="both CoIR-Retrieval/apps-queries-corpus and CoIR-Retrieval/apps-qrels"):
        collected(raw, tmp_path, "coir-apps")
    shutil.move(raw / "CoIR-Retrieval" / "cosqa", raw / "CoIR-Retrieval" / "CodeSearchNet")
    with pytest.raises(DataError, match="has no config python-queries; there are: queries, corpus, default"):
        collected(raw, tmp_path, "coir-codesearchnet")


def test_a_half_downloaded_corpus_leaves_what_was_collected_before(raw, tmp_path):
    folder = coir_folders.write(raw, SMALL["apps"])
    before = collected(raw, tmp_path, "coir-apps")["apps"].corpus.digest
    (folder / "corpus" / "corpus-00001-of-00002.parquet").unlink()
    with pytest.raises(DataError, match=r"1 of 2 files of corpus; missing: corpus-00001-of-00002\.parquet"):
        collected(raw, tmp_path, "coir-apps")
    assert store.read_dataset(tmp_path / "collected", "apps").corpus.digest == before


def test_a_document_without_text_and_ids_that_collide_are_refused(raw, tmp_path):
    path = coir_folders.write(raw, SMALL["apps"]) / "corpus" / "corpus-00000-of-00002.parquet"
    whole = pq.read_table(path)
    broken = whole.set_column(3, "text", pa.array([None, *whole["text"].to_pylist()[1:]]))
    pq.write_table(broken, path)
    with pytest.raises(DataError, match="1 rows of a batch have no text, 'c0' among them"):
        collected(raw, tmp_path, "coir-apps")
    pq.write_table(whole.set_column(0, "_id", pa.array(["c1", *whole["_id"].to_pylist()[1:]])), path)
    with pytest.raises(DataError, match="1 document ids stand twice, 'c1' among them"):
        collected(raw, tmp_path, "coir-apps")


def test_a_judged_query_that_there_is_not_is_refused(raw, tmp_path):
    path = coir_folders.write(raw, SMALL["apps"]) / "data" / "test-00000-of-00002.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "query-id", pa.array(["q99", *table["query-id"].to_pylist()[1:]])), path)
    with pytest.raises(DataError, match="apps has 7 queries, expected 8"):
        collected(raw, tmp_path, "coir-apps")


def test_graded_and_float_judgements_are_taken_as_they_are(raw, tmp_path):
    for path in (coir_folders.write(raw, SMALL["apps"]) / "data").glob("test-*"):
        table = pq.read_table(path)
        pq.write_table(table.set_column(2, "score", pa.array([0.5] * len(table))), path)
    grades = collected(raw, tmp_path, "mteb-apps")["apps"].qrels.table["grade"].to_pylist()
    assert grades == [0.5] * 8
