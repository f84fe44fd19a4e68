import subprocess

import pytest

from coderet.benchmarks import benchmark
from coderet.benchmarks.swebench import Choices, changed_files, decoded, is_document
from coderet.corpora.released import json_lines
from coderet.records import DataError

PATCH = """diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,2 +1,2 @@
--- a/not/a/file.py
+-- b
diff --git a/new.py b/new.py
new file mode 100644
--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+1
diff --git a/old.py b/moved.py
--- a/old.py
+++ b/moved.py
@@ -1 +1 @@
-1
+2
"""


def instance(number=1, commit="c1", patch=PATCH, repo="owner/project"):
    return {
        "instance_id": f"owner__project-{number}",
        "repo": repo,
        "base_commit": commit,
        "patch": patch,
        "problem_statement": "It breaks.\r\n",
    }


FILES = {"src/a.py": "a", "old.py": "old", "tests/test_a.py": "t", "read.md": "m"}


@pytest.fixture
def snapshot(write_lines):
    blobs = [{"blob": f"b-{path}", "text": text} for path, text in FILES.items()]
    write_lines("swebench_lite/repos/owner__project.blobs.jsonl", blobs)
    tree = {"instance_id": "owner__project-1", "base_commit": "c1", "files": [[path, f"b-{path}"] for path in FILES]}
    write_lines("swebench_lite/repos/owner__project.trees.jsonl", [tree])
    return write_lines("swebench_lite/swebench_lite_origin.jsonl", [instance(), instance(2, repo="not/wanted")])


ONE = Choices({"owner/project": 1})


def test_a_dataset_is_an_issue_over_the_files_of_its_repository(snapshot, documents_of):
    (draft,) = ONE.collect(snapshot)
    assert draft.name == "owner__project-1"
    assert draft.queries.select(["id", "text"]).to_pylist() == [{"id": "owner__project-1", "text": "It breaks.\r\n"}]
    assert documents_of(draft) == {
        "owner__project-1_src/a.py": {"id": "owner__project-1_src/a.py", "title": "src/a.py", "text": "a"},
        "owner__project-1_old.py": {"id": "owner__project-1_old.py", "title": "old.py", "text": "old"},
    }
    gold = [(row["query_id"], row["document_id"]) for row in draft.qrels.to_pylist()]
    assert gold == [("owner__project-1", f"owner__project-1_{path}") for path in ("src/a.py", "old.py")]


def test_a_clone_gives_the_same_as_the_snapshot_and_goes_before_it(snapshot, documents_of):
    (from_snapshot,) = ONE.collect(snapshot)
    clone = snapshot / "repos" / "owner__project"
    for path, text in FILES.items():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_text(text)
    identity = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(clone), *command], check=True)
    commit = subprocess.run(["git", "-C", str(clone), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    instances = snapshot / "swebench_lite" / "swebench_lite_origin.jsonl"
    instances.write_text(instances.read_text().replace('"c1"', f'"{commit.stdout.strip()}"'))
    (from_clone,) = ONE.collect(snapshot)
    assert documents_of(from_clone) == documents_of(from_snapshot)
    assert from_clone.qrels == from_snapshot.qrels


def test_files_with_a_test_word_in_their_path_are_no_documents():
    kept = ["src/a.py", "contest.py", "latest/b.py", "Tester.py", "a-test.py", "conftest.py"]
    dropped = ["tests/a.py", "a_test.py", "Test/x.py", "x/testing.py", "my test/y.py", "a.test.py", "a.txt", "a.pyi"]
    assert [is_document(path) for path in kept] == [True] * len(kept)
    assert [is_document(path) for path in dropped] == [False] * len(dropped)


def test_changed_files_are_those_of_the_heads_of_a_patch_that_were_there_before():
    assert changed_files(PATCH) == ["src/a.py", "old.py"]


def test_what_is_no_utf8_is_latin_1():
    assert decoded("é".encode()) == "é" and decoded(b"\xef\xbb\xbfx") == "x" and decoded(b"\xe9") == "é"


def test_what_does_not_belong_together_is_refused(snapshot, write_lines):
    with pytest.raises(DataError, match="has 1 instances of these repositories, expected 2"):
        list(Choices({"owner/project": 2}).collect(snapshot))
    with pytest.raises(DataError, match=r"lacks the repository not/wanted: neither a clone .* git clone --bare"):
        list(Choices({"not/wanted": 1}).collect(snapshot))
    name = "swebench_lite/swebench_lite_origin.jsonl"
    write_lines(name, [instance(commit="c2")])
    with pytest.raises(DataError, match="has no tree of owner__project-1 at c2"):
        list(ONE.collect(snapshot))
    write_lines(name, [instance(patch="diff --git a/x.py b/x.py\n--- a/x.py\n")])
    with pytest.raises(DataError, match=r"changes x\.py, which is not among its 2 documents"):
        list(ONE.collect(snapshot))
    write_lines(name, [{"question": "?"}])
    with pytest.raises(DataError, match="is no instance of SWE-bench"):
        list(ONE.collect(snapshot))


def test_every_one_of_the_300_patches_changes_one_file_that_is_no_test(real_data):
    instances = list(json_lines(real_data, "swebench_lite/swebench_lite_origin.jsonl"))
    changed = [changed_files(each["patch"]) for each in instances]
    assert len(instances) == 300 and [len(each) for each in changed] == [1] * 300
    assert all(is_document(path) for each in changed for path in each)
    lite, given = benchmark("swebench-lite").collect.__self__, benchmark("swebench-lite-51").collect.__self__
    assert sum(lite.repositories.values()) == 300 and sum(given.repositories.values()) == 51


def test_bm25_on_the_51_instances(bm25_of, real_data):
    found = bm25_of(benchmark("swebench-lite-51"), real_data)
    assert len(found) == 51
    assert sum(found.values()) / 51 == pytest.approx(47.71, abs=0.005)
