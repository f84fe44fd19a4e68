import json

import pytest

from coderet.benchmarks import needles, needles_pypi
from coderet.benchmarks.answers import needles as answers
from coderet.corpora import store, syntax
from coderet.records import DataError
from coderet.registry import BadValue

VERBS = "collect remove reverse flatten compare measure".split()


def function(verb: str, place: int) -> str:
    return (
        f"def {verb}_things(things):\n"
        f'    """The things that somebody wants to {verb} are looked at here, one after the other.\n\n'
        f'    Args:\n        things: what {verb}_things gets\n    """\n'
        f"    {verb}ed = []\n    for thing in things:\n        {verb}ed.append({verb}(thing, {place}))\n"
        f"    return {verb}ed\n"
    )


@pytest.fixture
def package(tmp_path):
    own = tmp_path / "raw" / "some" / "some"
    own.mkdir(parents=True)
    for place, verb in enumerate(VERBS):
        imports = f"from some.{VERBS[place + 1]}s import x\n\n\n" if place + 1 < len(VERBS) else ""
        (own / f"{verb}s.py").write_text(
            f"{imports}{function(verb, place)}\n\ndef plain{place}():\n    return {place}\n"
        )
    (own / "twice.py").write_text(
        function("twice", 1) + "\n\nclass A:\n    def twice_things(self):\n        return 1\n"
    )
    (own / "tests").mkdir()
    (own / "tests" / "more.py").write_text(function("test", 1))
    return tmp_path / "raw"


def test_a_package_is_a_dataset_of_its_functions_without_their_documentation(package, tmp_path):
    store.write_benchmark(tmp_path / "b", needles_pypi.collect(package, needles=4))
    dataset = store.read_dataset(tmp_path / "b", "some")
    assert len(dataset.corpus) == 14 and len(dataset.queries) == 4
    assert not any('"""' in text for text in dataset.corpus.texts().to_pylist())
    for query in dataset.queries.table.to_pylist():
        assert query["text"].endswith("are looked at here, one after the other.")
    shared = store.read_problems(tmp_path / "b", "some").shared
    assert list(shared["files"])[:2] == ["some/measures.py", "some/compares.py"]  # the imported one first
    assert not any('"""' in text for text in shared["files"].values())
    assert shared["facts"]["of a name that others have"] == 1 and "some/tests/more.py" not in shared["files"]


def test_the_same_needles_are_drawn_again_and_others_by_another_seed(package):
    drawn = [next(needles_pypi.collect(package, needles=3, seed=seed)) for seed in (1, 1, 2)]
    asked = [draft.queries["text"].to_pylist() for draft in drawn]
    assert asked[0] == asked[1] != asked[2]


def test_a_sample_of_the_problems_has_a_name_of_its_own(package, tmp_path):
    store.write_benchmark(tmp_path / "b", needles_pypi.collect(package, needles=4, posed=2))
    assert store.problem_sets(tmp_path / "b") == ["some:small"]
    assert len(store.read_problems(tmp_path / "b", "some:small")) == 2
    assert len(store.read_dataset(tmp_path / "b", "some").queries) == 4


def test_the_needle_s_own_lines_are_a_perfect_answer(package):
    draft = next(needles_pypi.collect(package, needles=4))
    for each in draft.problems["problem"].to_pylist():
        problem = json.loads(each) | {"shared": draft.shared}
        assert set(answers.grade(problem, answers.read(problem, answers.reference(problem), "chat")).values()) == {1.0}
        assert needles.of_shared(draft.shared).text(problem["needle"]) in answers.window(problem, 200, len).text


def test_a_package_that_gives_too_few_is_named_with_the_causes(package):
    with pytest.raises(
        DataError, match=r"some gives 6 needles, wanted 10: of 14 functions 7 undocumented, 6 candidates"
    ):
        list(needles_pypi.collect(package))
    with pytest.raises(DataError, match="languages has 'cobol'; known: cpp, go"):
        list(needles_pypi.collect(package, languages=["python", "cobol"]))


@pytest.mark.parametrize(
    ("language", "source", "plain"),
    [
        ("python", 'class A:\n def f(self):\n  """é"""\n  return 1\n', "class A:\n def f(self):\n  return 1\n"),
        ("python", 'def f():\n    """Only this."""\n', "def f():\n    pass\n"),
        ("go", "package p\n\n// F does.\n// It.\nfunc F() {}\n", "package p\n\nfunc F() {}\n"),
        ("java", "class A {\n  /** Does\n   * it. */\n  void f() { }\n}\n", "class A {\n  void f() { }\n}\n"),
        ("rust", "/// Does.\n#[inline]\nfn f() {}\n", "#[inline]\nfn f() {}\n"),
    ],
)  # fmt: skip
def test_documentation_is_taken_out_of_files(language, source, plain):
    assert needles_pypi.undocumented(syntax.decode(source.encode(), language), language) == plain


def test_packages_of_another_language_are_read_the_same_way(tmp_path):
    own = tmp_path / "raw" / "some" / "src"
    own.mkdir(parents=True)
    for verb in VERBS:
        said = f"// The things that somebody wants to {verb} are looked at here, one after the other.\n"
        body = f"  const done = []\n  for (const thing of things) done.push({verb}(thing))\n  return done\n"
        text = f"import x from './lib'\n\n{said}export function {verb}Things(things) {{\n{body}}}\n"
        (own / f"{verb}.ts").write_text(text)
    (own / "lib.ts").write_text("export const x = 1\n")
    draft = next(needles_pypi.collect(tmp_path / "raw", languages=["javascript", "typescript"], needles=6))
    assert list(draft.shared["files"])[:2] == ["src/lib.ts", "src/collect.ts"]
    assert "The things" not in "".join(draft.shared["files"].values())
    for each in draft.problems["problem"].to_pylist():
        problem = json.loads(each) | {"shared": draft.shared}
        assert set(answers.grade(problem, answers.read(problem, answers.reference(problem), "chat")).values()) == {1.0}


def test_an_answer_of_any_function_is_right_as_often_as_chance_has_it(package):
    draft = next(needles_pypi.collect(package, needles=4))
    repository = needles.of_shared(draft.shared)
    for each in draft.problems["problem"].to_pylist():
        problem = json.loads(each) | {"shared": draft.shared}
        found = [answers.grade(problem, answers.read(problem, text, "chat"))["match@0.8"] for text in repository.texts]
        assert sum(found) / len(found) == 1 / len(repository.functions)


@pytest.mark.parametrize("setting", [{"needles": 0}, {"posed": -4}, {"depths": 0}])
def test_numbers_that_no_needles_can_have_are_refused(package, setting):
    [(name, value)] = setting.items()
    with pytest.raises(BadValue, match=f"{name} is {value}; wanted a number from"):
        next(needles_pypi.collect(package, **setting))
