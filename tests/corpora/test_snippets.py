import tarfile
from collections import Counter

import pytest

from coderet.corpora.snippets import examples, mine, plain
from coderet.records import PAIRS


def mined(tmp_path, files):
    for name, content in files.items():
        path = tmp_path / "pkg" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    counts = Counter()
    table = mine({"pkg": tmp_path / "pkg"}, counts=counts)
    assert table.schema.equals(PAIRS)
    return table.to_pylist(), dict(counts)


def queries(tmp_path, text, name="a.md"):
    return [pair["query"] for pair in mined(tmp_path, {name: text})[0]]


CODE = "```python\nfor line in open(path):\n    print(line)\n```\n"


def test_the_sentence_above_a_block_and_the_block_are_a_pair(tmp_path):
    (pair,), counts = mined(tmp_path, {"docs/a.md": "Files are lists. Read a file line by line:\n\n" + CODE})
    assert pair == {
        "pair_id": "pkg/docs/a.md:3:example",
        "repository": "pkg",
        "path": "docs/a.md",
        "language": "python",
        "name": "",
        "query": "Read a file line by line",
        "code": "for line in open(path):\n    print(line)",
        "start_line": 3,
        "end_line": 4,
    }
    assert counts == {"kept": 1}


RST = "Read a file line by line{}\n\n{}\n\nMore.\n"
BODY = "   for line in open(path):\n       print(line)"


@pytest.mark.parametrize(
    "text",
    [
        RST.format(":", ".. code-block:: python\n\n" + BODY),
        RST.format(":", ".. code-block:: python\n   :linenos:\n\n" + BODY),
        RST.format("::", BODY),
        RST.format(":", ">>> for line in open(path):\n...     print(line)\nfirst\nsecond"),
        RST.format(":", ".. code::\n\n   >>> for line in open(path):\n   ...     print(line)\n   first"),
        RST.format(":", "~~~py\nfor line in open(path):\n    print(line)\n~~~"),
    ],
    ids=["directive", "options", "literal", "doctest", "session", "tildes"],
)
def test_blocks_of_every_kind_are_read_without_prompts_and_output(tmp_path, text):
    (pair,), _ = mined(tmp_path, {"a.rst": text})
    assert (pair["query"], pair["code"]) == (
        "Read a file line by line",
        "for line in open(path):\n    print(line)",
    )


def test_doctest_lines_go_on_over_output_and_blank_lines_to_the_next_prose():
    first, second = examples(">>> a = 1\n>>> f(a)\n1\n\n>>> g(a)\n2\n\nProse.\n\n>>> h()\n")
    assert first.code.splitlines() == [">>> a = 1", ">>> f(a)", "1", ">>> g(a)", "2"]
    assert (second.code, second.paragraph, second.line) == (">>> h()", "Prose.", 10)


@pytest.mark.parametrize(
    ("above", "query"),
    [
        ("# Merge two sorted lists\n\n", "Merge two sorted lists"),
        ("Merge two sorted lists\n======================\n\n", "Merge two sorted lists"),
        ("# Merge two sorted lists\n\nFor example:\n\n", "Merge two sorted lists"),
        ("# Merge two sorted lists\n\nThis yields both in order:\n\n", "Merge two sorted lists"),
        ("# Lists\n\nThey are long. Merge two sorted lists:\n\n", "Merge two sorted lists"),
        ("# Lists\n\n* Cut one.\n* Merge two sorted lists:\n\n", "Merge two sorted lists"),
        ("# Usage\n\nFor example:\n\n", None),
        ("| Merge two sorted lists |\n\n", None),
    ],
)
def test_a_sentence_that_does_not_stand_by_itself_gives_way_to_the_heading(tmp_path, above, query):
    assert queries(tmp_path, above + CODE) == ([query] if query else [])


def test_a_heading_is_the_query_of_the_first_block_under_it_only(tmp_path):
    other = CODE.replace("path", "other")
    pairs, counts = mined(tmp_path, {"a.md": "# Merge two sorted lists\n\n" + CODE + "\n" + other})
    assert [pair["query"] for pair in pairs] == ["Merge two sorted lists"]
    assert counts == {"kept": 1, "no_text": 1}


DOCSTRING = '''
def merge(a, b):
    """Merge two sorted lists.

    Args:
        a: one.

    Example:
        >>> merge([1], [2])
        [1, 2]

    Equal elements keep the order of the lists.

    >>> merge([1], [1.0])

    Leave one of them empty:

    >>> merge([], [1])
    """
'''


def test_an_example_in_a_docstring_is_asked_for_by_its_summary_or_by_what_leads_up_to_it(tmp_path):
    pairs, _ = mined(tmp_path, {"a.py": DOCSTRING})
    assert [(pair["name"], pair["query"], pair["code"]) for pair in pairs] == [
        ("merge", "Merge two sorted lists.", "merge([1], [2])"),
        ("merge", "Equal elements keep the order of the lists.", "merge([1], [1.0])"),
        ("merge", "Leave one of them empty", "merge([], [1])"),
    ]
    assert [pair["start_line"] for pair in pairs] == [9, 14, 18]


def test_an_example_of_javascript_is_asked_for_by_the_comment_it_stands_in(tmp_path):
    source = """/**
 * Merges two sorted lists.
 *
 * @param {Array} a one
 * @example
 * merge([1], [2]);
 * // => [1, 2]
 * @since 1.0
 */
function merge(a, b) {
  return a;
}
"""
    (pair,), _ = mined(tmp_path, {"lib/a.js": source})
    assert (pair["name"], pair["language"], pair["query"]) == ("merge", "javascript", "Merges two sorted lists.")
    assert pair["code"] == "merge([1], [2]);\n// => [1, 2]"
    assert pair["start_line"] == 5  # where the example begins


def fenced(language, code, above="Read a file line by line:\n\n"):
    return f"{above}```{language}\n{code}\n```\n"


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        ("other_language", fenced("bash", "cat path/to/a/file | less")),
        ("no_code", fenced("", "$ pip install thing --upgrade")),
        ("no_code", fenced("", "Traceback (most recent call last):")),
        ("no_code", fenced("python", "import os\nimport sys")),
        ("no_code", fenced("js", "{ a: [1, 2, }")),
        ("short_code", fenced("python", "f(1)")),
        ("long_code", fenced("python", "value = f(1)\n" * 31)),
        ("short_text", fenced("python", "value = f(1)", "Read files:\n\n")),
        ("long_text", fenced("python", "value = f(1)", "Read " * 41 + "files:\n\n")),
        ("no_text", fenced("python", "value = f(1)", "")),
        ("kept", fenced("", "value = f(1)")),
        ("kept", fenced("ts", "const value: number = f(1);")),
    ],
)
def test_each_rule_drops_and_counts_its_block(tmp_path, cause, text):
    pairs, counts = mined(tmp_path, {"a.md": text})
    assert counts == {cause: 1}
    assert len(pairs) == (cause == "kept")


def test_a_block_that_names_no_language_is_of_the_one_that_the_repository_is_written_in(tmp_path):
    block = fenced("", "value = f(1)")
    pairs, _ = mined(tmp_path, {"a.md": block, "a.js": "f();", "b.js": "f();", "c.py": "f()"})
    assert [pair["language"] for pair in pairs] == ["javascript"]


def test_one_pair_told_twice_is_one_pair_and_tests_and_change_logs_are_not_read(tmp_path):
    text = fenced("python", "value = f(1)")
    files = {"a.md": text, "b.md": text, "tests/c.md": text, "CHANGELOG.md": text, "docs/release_notes/1.md": text}
    pairs, counts = mined(tmp_path, files)
    assert [pair["path"] for pair in pairs] == ["a.md"]
    assert counts == {"kept": 1, "repeated": 1}


@pytest.mark.parametrize(
    ("marked", "seen"),
    [
        ("Use :func:`~os.path.join` or ``+``", "Use join or +"),
        ("See :ref:`the guide <guide>`, `here <http://a.b>`_ [1]_", "See the guide, here"),
        ("A [link](http://a.b/c) and ![image](a.png) **now**", "A link and now"),
        ("Two <b>words</b> of {@link Map|maps}", "Two words of Map"),
        ("snake_case_words and 2 * 3 * 4 stay", "snake_case_words and 2 * 3 * 4 stay"),
    ],
)
def test_marks_are_taken_off(marked, seen):
    assert plain(marked) == seen


def test_pairs_are_the_same_in_any_number_of_processes(tmp_path):
    sources = {}
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(fenced("python", f"value = {name}(1)"))
        with tarfile.open(tmp_path / f"{name}.tgz", "w:gz") as tarball:
            tarball.add(tmp_path / name / "a.md", "package/a.md")
        sources[name] = tmp_path / f"{name}.tgz"
    one, two = mine(sources), mine(sources, processes=2)
    assert one.equals(two) and one["repository"].to_pylist() == ["b", "a"]
