import json
import subprocess

import pytest

from coderet.benchmarks import benchmark
from coderet.benchmarks.answering import Document
from coderet.benchmarks.answers import swebench
from coderet.benchmarks.answers.swebench import Edit, Patch

FILES = {
    "pack/area.py": "def area(a, b):\n    return a + b\n\n\ndef twice(a):\n    return a + a\n",
    "other.py": "x = 1",
}
DIFF = """diff --git a/pack/area.py b/pack/area.py
--- a/pack/area.py
+++ b/pack/area.py
@@ -1,2 +1,2 @@
 def area(a, b):
-    return a + b
+    return a * b
"""
PROBLEM = {"instance_id": "o__p-1", "problem_statement": "Area is wrong.", "patch": DIFF}
BLOCK = """I would change this:

### pack/area.py
```python
<<<<<<< SEARCH
    return a + b
=======
    return a * b
>>>>>>> REPLACE
```
"""


def patched(completion, files=FILES):
    return swebench.patch(files, swebench.read(PROBLEM, completion, "chat"))


def test_the_issue_the_files_and_the_form_of_edits():
    parts = swebench.prompt(PROBLEM, [Document("o__p-1_pack/area.py", "pack/area.py", "x")], "chat")
    assert "Area is wrong." in parts.before and parts.documents == ("# pack/area.py\nx",)
    assert "<<<<<<< SEARCH" in parts.after


def test_the_papers_files_have_their_lines_counted_from_0():
    parts = swebench.paper_prompt(PROBLEM, [Document("1", "a.py", "x\ny")], "chat")
    assert parts.documents == ("[start of a.py]\n0 x\n1 y\n[end of a.py]",)


@pytest.mark.parametrize("completion", [BLOCK, f"<patch>\n{DIFF}</patch>", f"```diff\n{DIFF}```", DIFF])
def test_a_block_and_a_diff_make_the_same_patch(completion, tmp_path):
    made = patched(completion)
    assert made.cause == "" and made.text.startswith("diff --git a/pack/area.py b/pack/area.py\n--- a/pack/area.py\n")
    assert "-    return a + b\n+    return a * b\n" in made.text
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "area.py").write_text(FILES["pack/area.py"])
    subprocess.run(["git", "apply"], input=made.text.encode(), cwd=tmp_path, check=True)
    assert "return a * b" in (tmp_path / "pack" / "area.py").read_text()


def test_a_diff_is_found_by_its_lines_whatever_numbers_it_has():
    assert patched(DIFF.replace("-1,2 +1,2", "-40,7 +41,9")).text == patched(DIFF).text


def test_a_second_block_without_a_path_is_of_the_same_file():
    more = "<<<<<<< SEARCH\n    return a + a\n=======\n    return 2 * a\n>>>>>>> REPLACE\n"
    assert list(swebench.blocks(BLOCK + more))[1] == Edit("pack/area.py", "    return a + a\n", "    return 2 * a\n")
    assert "+    return 2 * a\n" in patched(BLOCK + more).text


def test_blanks_at_the_ends_of_lines_may_differ():
    files = {"pack/area.py": "def area(a, b):  \n    return a + b \n"}
    assert patched(DIFF, files).text.count("\n+") == 3  # the head's +++ beside both lines


@pytest.mark.parametrize(
    ("completion", "cause"),
    [
        ("Nothing has to change.", "no edit"),
        (BLOCK.replace("pack/area.py", "pack/gone.py"), "unknown file"),
        (BLOCK.replace("return a + b", "return a - b"), "lines found nowhere"),
        (BLOCK.replace("return a * b", "return a + b"), "nothing changed"),
    ],
)
def test_an_answer_that_makes_no_patch_is_told_by_its_cause(completion, cause):
    assert patched(completion) == Patch("", cause)


def test_lines_that_stand_twice_make_no_patch():
    assert patched(BLOCK, {"pack/area.py": "    return a + b\n" * 2}).cause == "lines found in several places"


def test_a_file_without_a_last_line_feed_is_said_to_be_one():
    assert swebench.difference("other.py", "x = 1", "x = 2") == (
        "diff --git a/other.py b/other.py\n--- a/other.py\n+++ b/other.py\n@@ -1 +1 @@\n-x = 1\n"
        "\\ No newline at end of file\n+x = 2\n\\ No newline at end of file\n"
    )


def test_the_patch_of_most_samples_is_taken_and_the_earliest_of_equals():
    one, other, none = Patch("1"), Patch("2"), Patch("", "no edit")
    assert swebench.majority([one, other, other, none, none, none]) == other
    assert swebench.majority([other, one]) == other
    assert swebench.majority([none]) == none and swebench.majority([]).cause == "no sample"


def test_predictions_have_the_form_that_the_harness_reads():
    made = swebench.predictions("bm25+model", {"o__p-1": Patch("diff"), "o__p-2": Patch("", "no edit")})
    assert made[1] == {"instance_id": "o__p-2", "model_name_or_path": "bm25+model", "model_patch": ""}


def test_patches_are_counted_by_sample_and_by_instance():
    ballots = {"a": [Patch("1"), Patch("", "no edit")], "b": [Patch("", "no edit")]}
    chosen = {name: swebench.majority(patches) for name, patches in ballots.items()}
    assert swebench.tally(ballots, chosen) == {
        "instances": 2,
        "instances_with_patch": 1,
        "samples": 3,
        "samples_with_patch": 1,
        "without_patch": {"no edit": 2},
    }
    assert swebench.lines(swebench.predictions("m", chosen)).count("\n") == 2


def test_an_answer_is_graded_by_the_file_that_it_edits():
    graded = swebench.grade(PROBLEM, swebench.read(PROBLEM, BLOCK, "chat"))
    assert graded == {"edited": 1.0, "right_file": 1.0}
    nothing = swebench.grade(PROBLEM, swebench.read(PROBLEM, swebench.negative(PROBLEM), "chat"))
    assert nothing == {"edited": 0.0, "right_file": 0.0}


def test_the_reference_patches_of_51_instances_are_made_again_from_their_edits(real_data, tmp_path):
    """They leave the same files; seven say it with other lines, for git and difflib align them otherwise."""
    otherwise = 0
    for draft in benchmark("swebench-lite-51").collect(real_data):
        problem = json.loads(draft.problems["problem"][0].as_py())
        gold = {each.path for each in swebench.hunks(problem["patch"])}
        files = {}
        for batch in draft.documents:
            for path, text in zip(batch["title"].to_pylist(), batch["text"].to_pylist(), strict=True):
                if path in gold:
                    files[path] = text
        made = swebench.patch(files, swebench.read(problem, swebench.reference(problem), "chat"))
        assert made.cause == "", problem["instance_id"]
        folder = tmp_path / problem["instance_id"]
        assert applied(problem["patch"], files, folder / "gold") == applied(made.text, files, folder / "made")
        otherwise += changes(made.text) != changes(problem["patch"])
    assert otherwise == 7


def applied(patch, files, folder):
    """The files as git leaves them."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    subprocess.run(["git", "apply"], input=patch.encode(), cwd=folder, check=True)
    return {path: (folder / path).read_text(encoding="utf-8") for path in files}


def changes(patch):
    return [line for line in patch.splitlines() if not line.startswith(("index ", "@@"))]
