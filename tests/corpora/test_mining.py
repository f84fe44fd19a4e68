import json
import tarfile
import zipfile

import pyarrow as pa
import pytest

from coderet.corpora.mining import Filters, Report, doc_tokens, mine, repositories, split_of, summary
from coderet.records import PAIRS, DataError

ADD = '''
def add(a, b):
    """Add two numbers.

    The long story.
    """
    total = a + b
    return total
'''


PAPER = Filters()


def folder(tmp_path, files):
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


def mined(tmp_path, files, filters=PAPER, languages=("python",)):
    report = Report()
    batches = list(mine({"pkg": folder(tmp_path, files)}, languages, filters, report=report))
    return pa.Table.from_batches(batches, PAIRS).to_pylist(), report.as_dict()


def dropped(report):
    return {cause: count for cause, count in report["functions"]["dropped"].items() if count}


def skipped(report):
    return {cause: count for cause, count in report["files"]["skipped"].items() if count}


def test_a_documented_function_becomes_a_pair_of_its_first_paragraph_and_its_code(tmp_path):
    pairs, report = mined(tmp_path, {"m/a.py": ADD})
    assert pairs == [
        {
            "pair_id": "pkg/m/a.py:2:add",
            "repository": "pkg",
            "path": "m/a.py",
            "language": "python",
            "name": "add",
            "query": "Add two numbers.",
            "code": "def add(a, b):\n    total = a + b\n    return total",
            "start_line": 2,
            "end_line": 8,
        }
    ]
    assert report["functions"]["kept"] == report["functions"]["seen"] == 1
    assert report["kept_by_repository"] == {"pkg": 1}


BODY = "    a = 1\n    return a\n"
ONE_DROPPED = {
    "no_docstring": "def f():\n" + BODY,
    "syntax_error": 'def f():\n    """Does a thing."""\n    a = = 1\n    b = 1\n    return a\n',
    "special_method": 'class A:\n  def __init__(self):\n    """Make an A."""\n    self.a = 1\n    self.b = 2\n',
    "test_name": 'def test_f():\n    """Does a thing."""\n' + BODY,
    "short_docstring": 'def f():\n    """Does things"""\n' + BODY,
    "short_code": 'def f():\n    """Does a thing."""\n\n    return 1\n',
    "long_code": 'def f():\n    """Does a thing."""\n' + "    a = 1\n" * 9 + BODY,
}


@pytest.mark.parametrize("cause", ONE_DROPPED)
def test_each_filter_drops_and_counts_its_function_alone(tmp_path, cause):
    pairs, report = mined(tmp_path, {"a.py": ADD + ONE_DROPPED[cause]}, Filters(max_code_lines=10))
    assert [pair["name"] for pair in pairs] == ["add"]
    assert dropped(report) == {cause: 1}
    assert report["functions"]["seen"] == 2


@pytest.mark.parametrize(
    ("cause", "filters"),
    [
        ("special_method", Filters(drop_special_methods=False)),
        ("test_name", Filters(drop_tests=False)),
        ("short_docstring", Filters(min_doc_tokens=2)),
        ("short_code", Filters(min_code_lines=2)),
        ("long_code", Filters()),
    ],
)
def test_each_filter_can_be_turned_off(tmp_path, cause, filters):
    pairs, report = mined(tmp_path, {"a.py": ONE_DROPPED[cause]}, filters)
    assert len(pairs) == 1
    assert dropped(report) == {}


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("pkg/tests/a.py", "test"),
        ("pkg/test_a.py", "test"),
        ("pkg/a_test.py", "test"),
        ("pkg/conftest.py", "test"),
        ("pkg/_vendor/a.py", "vendored"),
        ("pkg/third_party/a.py", "vendored"),
        ("pkg/latest/contest.py", None),
        ("pkg/testament.py", None),
        ("pkg/vendor.py", None),
    ],
)
def test_test_and_vendored_files_are_told_by_whole_parts_of_their_path(tmp_path, path, cause):
    pairs, report = mined(tmp_path, {path: ADD})
    assert skipped(report) == ({cause: 1} if cause else {})
    assert len(pairs) == (cause is None)
    kept, _ = mined(tmp_path, {path: ADD}, Filters(drop_tests=False, drop_vendored=False))
    assert len(kept) == 1


def test_files_that_are_no_text_are_skipped_and_counted_and_the_rest_is_counted_by_encoding(tmp_path):
    _, report = mined(
        tmp_path,
        {
            "binary.py": b"def f():\0",
            "deep.py": b" " * 500 + b"pass\n",
            "bom.py": b"\xef\xbb\xbf" + ADD.encode(),
            "latin.py": ADD.encode() + b"# \xe9\n",
            "empty.py": b"",
            "broken.py": ADD + "def f(:\n",
        },
    )
    assert report["files"]["seen"] == 6
    assert skipped(report) == {"binary": 1, "too_deep": 1}
    assert report["files"]["read"] == 4
    assert report["files"]["by_encoding"] == {"latin-1": 1, "utf-8": 2, "utf-8-sig": 1}
    assert report["files"]["with_errors"] == 1


def test_the_report_is_json(tmp_path):
    _, report = mined(tmp_path, {"a.py": ADD})
    assert json.loads(json.dumps(report)) == report


def test_two_functions_of_one_name_on_one_line_have_two_pair_ids(tmp_path):
    function = "/** Does a thing. */ var f = function () {\n a;\n b;\n};"
    pairs, _ = mined(
        tmp_path, {"a.js": function.replace("\n", " ") + function}, Filters(min_code_lines=1), ["javascript"]
    )
    ids = [pair["pair_id"] for pair in pairs]
    assert len(ids) == len(set(ids))


OTHERS = {
    "go": ("a.go", "package a\n// F does a thing.\nfunc F() int {\n\treturn 1\n}\n", "F does a thing."),
    "java": ("A.java", "class A {\n  /** Does a thing. */\n  int f() {\n    return 1;\n  }\n}\n", "Does a thing."),
    "javascript": ("a.js", "// Does a thing.\nfunction f() {\n  return 1;\n}\n", "Does a thing."),
    "php": ("a.php", "<?php\n/** Does a thing. */\nfunction f() {\n  return 1;\n}\n", "Does a thing."),
    "ruby": ("a.rb", "# Does a thing.\ndef f\n  1\nend\n", "Does a thing."),
    "python": ("a.py", ADD, "Add two numbers."),
    "typescript": ("a.ts", "/** Does a thing. */\nfunction f(): number {\n  return 1;\n}\n", "Does a thing."),
}


def test_all_languages_are_mined_together(tmp_path):
    pairs, _ = mined(tmp_path, {name: source for name, source, _ in OTHERS.values()}, languages=list(OTHERS))
    assert {pair["language"]: pair["query"] for pair in pairs} == {name: each[2] for name, each in OTHERS.items()}


@pytest.mark.parametrize(
    ("name", "source", "language"),
    [
        ("A.java", "class A {\n  /** Makes an A. */\n  A() {\n    a();\n  }\n}\n", "java"),
        ("A.java", "class A {\n  /** Shows an A. */\n  String toString() {\n    return a;\n  }\n}\n", "java"),
        ("a.js", "class A {\n  /** Makes an A. */\n  constructor() {\n    a();\n  }\n}\n", "javascript"),
        ("a.php", "<?php class A {\n  /** Makes an A. */\n  function __construct() {\n    a();\n  }\n}\n", "php"),
        ("a.rb", "class A\n  # Makes an A.\n  def initialize\n    a\n  end\nend\n", "ruby"),
    ],
)
def test_constructors_and_special_methods_of_every_language_are_dropped(tmp_path, name, source, language):
    pairs, report = mined(tmp_path, {name: source}, languages=[language])
    assert pairs == []
    assert dropped(report) == {"special_method": 1}


JS = "/** Does a thing. */\nfunction f() {\n  return 1;\n}\n"


@pytest.mark.parametrize(
    ("path", "content", "cause"),
    [
        ("package/dist/a.js", JS, "bundled"),
        ("package/lib/a.min.js", JS, "bundled"),
        ("package/umd/a.ts", JS, "bundled"),
        ("package/lib/a.js", JS + "a(); " * 1001, "minified"),
        ("package/lib/a.js", JS.replace("\n", " ") * 20, "minified"),
        ("package/lib/a.js", "/* @generated by a tool */\n\n" + JS, "generated"),
        ("package/lib/a.js", "// Code generated by x. DO NOT EDIT.\n\n" + JS, "generated"),
        ("package/node_modules/b/a.js", JS, "vendored"),
        ("package/__tests__/a.js", JS, "test"),
        ("package/lib/a.spec.ts", JS, "test"),
        ("package/lib/distance.js", JS, None),
        ("package/lib/admin.js", JS, None),
        ("package/lib/a.js", JS + "a();\n" * 40 + "a(); " * 900, None),
    ],
)
def test_javascript_that_a_tool_wrote_is_passed_over(tmp_path, path, content, cause):
    languages = ["javascript", "typescript"]
    pairs, report = mined(tmp_path, {path: content}, languages=languages)
    assert skipped(report) == ({cause: 1} if cause else {})
    assert len(pairs) == (cause is None)
    if cause in ("bundled", "minified", "generated"):
        kept, _ = mined(tmp_path, {path: content}, Filters(drop_built=False, min_code_lines=1), languages)
        assert kept


def test_a_line_to_a_linter_is_no_query_and_the_words_around_it_are(tmp_path):
    told = JS.replace("/** Does a thing. */", "// eslint-disable-next-line no-var\n// @ts-ignore\n// Does a thing.")
    (pair,), _ = mined(tmp_path, {"a.js": told}, languages=["javascript"])
    assert pair["query"] == "Does a thing."
    silent = JS.replace("/** Does a thing. */", "/* istanbul ignore next */")
    pairs, report = mined(tmp_path / "b", {"a.js": silent}, languages=["javascript"])
    assert not pairs and dropped(report) == {"short_docstring": 1}


def test_sources_of_several_languages_are_mined_together_if_each_has_one_of_them(tmp_path):
    one, other = folder(tmp_path / "one", {"a.py": ADD}), folder(tmp_path / "other", {"a.js": JS})
    table = pa.Table.from_batches(mine({"one": one, "other": other}, ["python", "javascript"]))
    assert table["language"].to_pylist() == ["python", "javascript"]
    with pytest.raises(DataError, match=r"other has no file ending in \.py, \.rb"):
        list(mine({"one": one, "other": other}, ["python", "ruby"]))


def test_a_package_of_npm_is_mined_as_it_was_fetched(tmp_path):
    source = folder(tmp_path / "source", {"a.js": JS})
    own = tmp_path / "raw" / "@own+net"
    own.mkdir(parents=True)
    with tarfile.open(own / "net-2.0.0.tgz", "w:gz") as tarball:
        tarball.add(source / "a.js", "package/lib/net.js")
    table = pa.Table.from_batches(mine(repositories(tmp_path / "raw"), ["javascript"]))
    assert table["pair_id"].to_pylist() == ["@own+net/package/lib/net.js:2:f"]


def many(tmp_path):
    sources = {}
    for name in ("b", "a"):
        files = {f"m{number:03}.py": ADD.replace("add", f"add{number}") for number in range(130)}
        sources[name] = folder(tmp_path / name, files)
    return sources


def test_pairs_come_in_the_same_order_for_any_number_of_processes(tmp_path):
    sources = many(tmp_path)
    one, two = Report(), Report()
    alone = pa.Table.from_batches(mine(sources, report=one))
    together = pa.Table.from_batches(mine(sources, processes=2, report=two))
    assert alone.num_rows == 260
    assert alone["repository"].to_pylist() == ["b"] * 130 + ["a"] * 130
    assert alone.equals(together)
    assert one.as_dict() == two.as_dict()


def test_an_error_in_a_process_is_the_error_of_the_miner(tmp_path):
    path = tmp_path / "a-1.whl"
    path.write_bytes(b"no zip")
    with pytest.raises(DataError, match=r"a-1\.whl cannot be read"):
        list(mine({"a": path}, processes=2))


def test_a_wheel_and_an_sdist_are_mined_without_unpacking(tmp_path):
    source = folder(tmp_path / "source", {"pkg/a.py": ADD})
    with zipfile.ZipFile(tmp_path / "My_Pkg-1.0-py3-none-any.whl", "w") as archive:
        archive.write(source / "pkg/a.py", "pkg/a.py")
    with tarfile.open(tmp_path / "other-2.0.tar.gz", "w:gz") as tarball:
        tarball.add(source / "pkg/a.py", "other-2.0/pkg/a.py")
    found = repositories(tmp_path)
    assert list(found) == ["my-pkg", "other", "source"]
    table = pa.Table.from_batches(mine(found))
    assert table["pair_id"].to_pylist() == [
        "my-pkg/pkg/a.py:2:add",
        "other/other-2.0/pkg/a.py:2:add",
        "source/pkg/a.py:2:add",
    ]


def test_two_versions_of_one_package_are_refused(tmp_path):
    for version in ("1.0", "2.0"):
        zipfile.ZipFile(tmp_path / f"pkg-{version}-py3-none-any.whl", "w").close()
    with pytest.raises(DataError, match=r"pkg by name as is .*; keep one"):
        repositories(tmp_path)


def test_two_sources_may_not_have_a_package_of_one_name(tmp_path):
    for source in ("one", "two"):
        folder(tmp_path / source, {"pkg/a.py": ADD, f"{source}-only/a.py": ADD})
    with pytest.raises(DataError, match=r"two has pkg, pkg by name as is .*one/pkg; keep one"):
        repositories(tmp_path / "one", tmp_path / "two")
    with pytest.raises(DataError, match=r"three has no folder and no archive"):
        repositories(tmp_path / "one", tmp_path / "three")


@pytest.mark.parametrize("form", ["folder", "tarball"])
def test_a_repository_without_source_is_an_error_not_an_empty_result(tmp_path, form):
    path = folder(tmp_path / "pkg", {"a.txt": "text"})
    if form == "tarball":
        path = tmp_path / "pkg-1.tar.gz"
        with tarfile.open(path, "w:gz") as tarball:
            tarball.add(tmp_path / "pkg" / "a.txt", "a.txt")
    with pytest.raises(DataError, match=r"has no file ending in \.py"):
        list(mine({"pkg": path}))


def test_a_folder_without_repositories_and_an_unknown_language_are_errors(tmp_path):
    with pytest.raises(DataError, match="no folder and no archive to mine"):
        repositories(tmp_path / "missing")
    with pytest.raises(DataError, match="'pyton'; known: cpp, go, java"):
        list(mine({"pkg": tmp_path}, ["pyton"]))


@pytest.mark.parametrize(
    ("docstring", "query"),
    [
        ("Add two\n  numbers.\n\nMore.", "Add two numbers."),
        ("Add.\n \t\nMore.", "Add."),
        ("Add.\n@param a one", "Add."),
        ("Add.\n:param a: one", "Add."),
        ("Add.\n>>> add(1, 2)", "Add."),
        ("Mail a@b.org.", "Mail a@b.org."),
        ("See\n:func:`add` for it.", "See :func:`add` for it."),
        ("@return one", ""),
        ("", ""),
    ],
)
def test_the_query_is_the_first_paragraph_on_one_line_before_any_tag(docstring, query):
    assert summary(docstring) == query


def test_docstring_tokens_are_words_brackets_and_runs_of_marks():
    assert doc_tokens("Return x, 'y' and f() -- see [1]...") == [
        "Return", "x", "y", "and", "f", "()", "--", "see", "[", "1", "]", "...",
    ]  # fmt: skip


def test_a_repository_is_on_one_side_whatever_else_is_split():
    fractions = {"train": 0.9, "valid": 0.1}
    sides = {name: split_of(name, 13, fractions) for name in (f"package-{number}" for number in range(2000))}
    assert all(split_of(name, 13, fractions) == side for name, side in sides.items())
    share = sum(side == "valid" for side in sides.values()) / len(sides)
    assert 0.08 < share < 0.12
    assert any(split_of(name, 14, fractions) != side for name, side in sides.items())


def test_the_side_is_what_sha_256_says():
    # `printf 13:requests | sha256sum` begins with ff470183, and 0xff470183 / 2**32 = 0.9972
    assert split_of("requests", 13, {"train": 0.997, "valid": 0.003}) == "valid"
    assert split_of("requests", 13, {"train": 0.998, "valid": 0.002}) == "train"


@pytest.mark.parametrize("fractions", [{"train": 0.5, "valid": 0.4}, {"train": 1.0, "valid": 0.0}])
def test_fractions_must_be_positive_and_sum_to_one(fractions):
    with pytest.raises(ValueError, match="wanted positive ones that sum to 1"):
        split_of("pkg", 13, fractions)
