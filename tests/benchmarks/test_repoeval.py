"""A repository of two files: `long.py` has 60 numbered lines, `copy.py` is its first 20."""

import zipfile

import pytest

from coderet.benchmarks import BENCHMARKS, benchmark
from coderet.benchmarks.repoeval import Choices, windows
from coderet.corpora import store
from coderet.corpora.released import json_lines
from coderet.records import DataError

REPOSITORY = "owner_project"
LINES = [f"line {i}" for i in range(60)]
FILES = {f"{REPOSITORY}/pack/long.py": "\n".join(LINES) + "\n", f"{REPOSITORY}/copy.py": "\n".join(LINES[:20]) + "\n"}
TASK_FILE = "repoeval/function_level_completion_2k_context_codex.test.jsonl"


def task(hole, answer, start=0, path="pack/long.py", repository=REPOSITORY):
    return {
        "prompt": "\n".join(LINES[start:hole]),
        "metadata": {
            "task_id": f"{repository.replace('_', '--')}/idx",
            "ground_truth": "".join(f"{line}\n" for line in LINES[hole : hole + answer]),
            "fpath_tuple": [repository, *path.split("/")],
            "context_start_lineno": start,
            "lineno": hole,
            "function_name": "f",
        },
    }


def choices(tasks=1, leak_free=True, repositories=(REPOSITORY,), level="function"):
    return Choices(level, repositories, tasks, leak_free)


@pytest.fixture(autouse=True)
def mapped_tests(write_lines):
    write_lines("coderag_bench/repoeval_task_id2tests.json", [{f"{REPOSITORY}/0": ["pack/long_test.py"]}])


@pytest.fixture
def folder(write_lines):
    rows = [{"path": path, "text": text} for path, text in FILES.items()]
    return write_lines(f"repoeval/repositories/function_level/{REPOSITORY}.jsonl", rows)


def test_a_window_has_half_its_lines_before_its_centre_as_far_as_the_file_goes():
    found = windows({"a.py": "\n".join(LINES)}, 20, 20)
    assert [each.places for each in found] == [(("a.py", 0, 10),), (("a.py", 10, 30),), (("a.py", 30, 50),)]
    assert found[1].text == "\n".join(LINES[10:30])


def test_an_odd_window_has_its_middle_line_after_the_centre():
    assert [each.places[0] for each in windows({"a.py": "1\n2\n3\n4\n5\n6"}, 3, 3)] == [("a.py", 0, 2), ("a.py", 2, 5)]


def test_windows_of_equal_text_are_one_named_by_the_first_place_and_the_last_ones_end():
    same = "\n".join(LINES[:4])
    found = windows({"b/x.py": same, "c.py": "head\n" + same + "\nrest"}, 4, 1)
    (twice,) = (each for each in found if len(each.places) == 2 and each.text == same)
    assert twice.places == (("b/x.py", 0, 4), ("c.py", 1, 5))
    assert twice.id == "b-x.py_0-5"


def test_empty_files_have_no_window():
    assert windows({"__init__.py": ""}, 50, 10) == []


def test_gold_are_the_windows_of_the_file_that_touch_the_prompt_or_the_line_after_it(folder, write_lines, documents_of):
    write_lines(TASK_FILE, [task(hole=30, answer=5, start=20)])
    (draft,) = choices(leak_free=False).collect(folder, window=10, step=10)
    # long.py has 0-5, 5-15, 15-25, 25-35, 35-45, 45-55, all its own but the first, which copy.py brought.
    assert draft.name == REPOSITORY
    assert draft.queries.to_pylist() == [
        {"id": f"{REPOSITORY}/0", "text": "\n".join(LINES[20:30]), "excluded": [], "withheld": []}
    ]
    gold = [f"{REPOSITORY}-pack-long.py_15-25", f"{REPOSITORY}-pack-long.py_25-35"]
    assert draft.qrels["document_id"].to_pylist() == gold
    document = documents_of(draft)[gold[0]]
    assert document["title"] == f"{REPOSITORY}-pack-long.py" and document["text"] == "\n".join(LINES[15:25])


def test_a_window_that_begins_with_the_line_after_the_prompt_is_gold(folder, write_lines):
    write_lines(TASK_FILE, [task(hole=35, answer=1, start=26), task(hole=34, answer=1, start=26)])
    (draft,) = choices(tasks=2, leak_free=False).collect(folder, window=10, step=10)
    of_query = [row["document_id"].rpartition("_")[2] for row in draft.qrels.to_pylist()]
    assert of_query == ["25-35", "35-45", "25-35"]


def test_equal_windows_are_gold_from_the_start_of_the_first_to_the_end_of_the_last(write_lines):
    twice = "\n".join([*LINES[:25], *LINES[5:15], *LINES[35:]])
    folder = write_lines(
        f"repoeval/repositories/function_level/{REPOSITORY}.jsonl",
        [{"path": f"{REPOSITORY}/pack/long.py", "text": twice}],
    )
    write_lines(TASK_FILE, [task(hole=20, answer=1, start=18)])
    (draft,) = choices(leak_free=False).collect(folder, window=10, step=10)
    name = f"{REPOSITORY}-pack-long.py"
    assert draft.qrels["document_id"].to_pylist() == [f"{name}_5-35", f"{name}_15-25"]


def test_leak_free_no_window_that_shows_the_hole_is_a_hit_or_gold(folder, write_lines):
    write_lines(TASK_FILE, [task(hole=30, answer=8, start=20)])
    (draft,) = choices().collect(folder, window=10, step=10)
    name = f"{REPOSITORY}-pack-long.py"
    assert draft.queries["excluded"].to_pylist() == [[f"{name}_25-35", f"{name}_35-45"]]
    assert draft.qrels["document_id"].to_pylist() == [f"{name}_15-25"]


def test_leak_free_a_copy_of_the_same_text_elsewhere_shows_the_hole_too(folder, write_lines):
    write_lines(TASK_FILE, [task(hole=3, answer=1), task(hole=40, answer=1)])
    first, _ = next(choices(tasks=2).collect(folder, window=10, step=10)).queries["excluded"].to_pylist()
    assert first == [f"{REPOSITORY}-copy.py_0-5"]  # files go by path, so copy.py is named


def test_tasks_are_numbered_in_the_files_order_within_their_repository(folder, write_lines):
    other = "deep_mind"
    write_lines(f"repoeval/repositories/function_level/{other}.jsonl", [{"path": f"{other}/a.py", "text": "1\n2\n3"}])
    write_lines(
        TASK_FILE,
        [
            task(30, 1, 20),
            task(1, 1, path="a.py", repository=other),
            task(40, 1, 20),
            task(9, 1, repository="not_kept"),
        ],
    )
    drafts = choices(tasks=3, repositories=(other, REPOSITORY)).collect(folder, window=10, step=10)
    assert {each.name: each.queries["id"].to_pylist() for each in drafts} == {
        other: [f"{other}/0"],
        REPOSITORY: [f"{REPOSITORY}/0", f"{REPOSITORY}/1"],
    }


def test_repositories_may_be_folders_or_the_released_zip(write_lines, tmp_path, documents_of):
    write_lines(TASK_FILE, [task(30, 1, 20)])
    place = tmp_path / "repoeval" / "repositories"
    place.mkdir()
    with zipfile.ZipFile(place / "function_level.zip", "w") as archive:
        for path, text in FILES.items():
            archive.writestr(f"function_level/{path}", text.replace("\n", "\r\n"))
        archive.writestr("function_level/other/a.py", "not ours")
        archive.writestr(f"function_level/{REPOSITORY}/read.me", "not Python")
    (packed,) = choices().collect(tmp_path, window=10, step=10)
    for path, text in FILES.items():
        file = place / "function_level" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (place / "function_level.zip").unlink()
    (unpacked,) = choices().collect(tmp_path, window=10, step=10)
    assert documents_of(packed) == documents_of(unpacked)
    assert packed.qrels == unpacked.qrels and len(packed.qrels) == 1


def test_line_and_api_holes_are_read_from_their_own_files(write_lines, documents_of):
    for level in ("line", "api"):
        hole = task(30, 1, 20)
        hole["metadata"]["line_no"] = hole["metadata"].pop("lineno")
        folder = write_lines(f"repoeval/{level}_level_completion_1k_context_codex.test.jsonl", [hole])
        write_lines(
            f"repoeval/repositories/line_and_api_level/{REPOSITORY}.jsonl",
            [{"path": path, "text": text} for path, text in FILES.items()],
        )
        (draft,) = choices(level=level, repositories=None).collect(folder, window=20, step=10, context="1k")
        assert draft.name == REPOSITORY and len(draft.queries) == 1


def test_what_is_missing_or_not_repoevals_is_said(folder, write_lines, tmp_path):
    with pytest.raises(DataError, match="make data BENCHMARK"):
        list(choices().collect(folder))
    write_lines(TASK_FILE, [task(30, 1)])
    with pytest.raises(DataError, match="has 1 tasks of these repositories, expected 2"):
        list(choices(tasks=2).collect(folder))
    with pytest.raises(DataError, match=r"lacks the repository deep_mind: neither .*/deep_mind\.jsonl nor a folder"):
        list(choices(tasks=1, repositories=("deep_mind", REPOSITORY)).collect(folder))
    with pytest.raises(DataError, match="wanted a step from 1 to the window"):
        list(choices().collect(folder, window=10, step=11))
    with pytest.raises(DataError, match="context is '3k'; RepoCoder has 1k, 2k, 4k"):
        list(choices().collect(folder, context="3k"))
    write_lines(TASK_FILE, [task(30, 1, path="gone.py")])
    with pytest.raises(DataError, match=r"has no file owner_project/gone\.py, which a task is about"):
        list(choices().collect(folder))
    write_lines(TASK_FILE, [{"prompt": "x", "metadata": {"task_id": "a/0"}}])
    with pytest.raises(DataError, match="is no task of RepoEval"):
        list(choices().collect(folder))


def test_repositories_weigh_alike_however_many_tasks_they_have():
    kinds = [name for name in BENCHMARKS if name.startswith("repoeval")]
    assert len(kinds) == 6 and {benchmark(name).mean for name in kinds} == {"datasets"}


# The real files

PAPER = {  # nDCG@10 of BM25 in percent, as reproduced by Lucene's own BM25 on the paper's windows
    "amazon-science_patchcore-inspection": 99.1,
    "deepmind_tracr": 92.4,
    "google_lightweight_mmm": 90.5,
    "lucidrains_imagen-pytorch": 83.2,
    "maxhumber_redframes": 99.1,
}
LEAK_FREE = {
    "amazon-science_patchcore-inspection": 100.0,
    "deepmind_tracr": 94.97,
    "google_lightweight_mmm": 96.34,
    "lucidrains_imagen-pytorch": 87.87,
    "maxhumber_redframes": 100.0,
}


def test_bm25_gives_the_papers_figure_for_each_repository(bm25_of, real_data):
    assert bm25_of(benchmark("repoeval-5-paper"), real_data) == pytest.approx(PAPER, abs=0.1)


def test_bm25_without_the_leak(bm25_of, real_data):
    assert bm25_of(benchmark("repoeval-5"), real_data) == pytest.approx(LEAK_FREE, abs=0.005)


def test_no_window_of_the_holes_own_lines_is_left_to_be_a_hit(real_data):
    tasks = {}
    for each in json_lines(real_data, TASK_FILE):
        tasks.setdefault(each["metadata"]["fpath_tuple"][0], []).append(each["metadata"])
    left = 0
    for draft in benchmark("repoeval-5").collect(real_data):
        (batch,) = draft.documents
        assert len(draft.queries) == len(tasks[draft.name])
        for query, hole in zip(draft.queries.to_pylist(), tasks[draft.name], strict=True):
            own, start = "-".join(hole["fpath_tuple"]), hole["lineno"]
            for name in batch["id"].to_pylist():
                path, _, lines = name.rpartition("_")
                if path == own and name not in query["excluded"]:
                    first, last = map(int, lines.split("-"))
                    assert last <= start or first >= start + len(hole["ground_truth"].splitlines())
                    left += 1
    assert left > 5000


def test_33_answers_stand_word_for_word_in_a_window_of_another_place(real_data):
    answers: dict[str, list[str]] = {}
    for each in json_lines(real_data, TASK_FILE):
        hole = each["metadata"]
        answers.setdefault(hole["fpath_tuple"][0], []).append("\n".join(hole["ground_truth"].splitlines()))
    shown = 0
    for draft in benchmark("repoeval-5").collect(real_data):
        texts = {row["id"]: row["text"] for batch in draft.documents for row in batch.to_pylist()}
        for query, answer in zip(draft.queries.to_pylist(), answers[draft.name], strict=True):
            shown += any(answer in text for name, text in texts.items() if name not in query["excluded"])
    assert shown == 33


def test_each_dataset_of_the_five_repositories_can_be_scored(real_data, tmp_path):
    names = store.write_benchmark(tmp_path / "b", benchmark("repoeval-5").collect(real_data))
    gold = {}
    for name in names:
        dataset = store.read_dataset(tmp_path / "b", name)
        gold[name] = (len(dataset.queries), len(set(dataset.qrels.table["query_id"].to_pylist())), len(dataset.corpus))
    assert gold == {
        "amazon-science_patchcore-inspection": (32, 30, 142),
        "deepmind_tracr": (146, 146, 913),
        "google_lightweight_mmm": (64, 64, 954),
        "lucidrains_imagen-pytorch": (67, 67, 733),
        "maxhumber_redframes": (42, 13, 208),
    }
