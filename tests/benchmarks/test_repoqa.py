import json

import needle_files
import pytest

from coderet.benchmarks import needles, repoqa, windows
from coderet.benchmarks.answering import Document
from coderet.benchmarks.answers import needles as sound
from coderet.benchmarks.answers import repoqa_2024
from coderet.corpora import released, store
from coderet.metrics.needles import THRESHOLDS
from coderet.records import DataError

SOUND, RELEASED = repoqa.Reading(released=False), repoqa.Reading(released=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    raw = tmp_path_factory.mktemp("raw")
    needle_files.write(raw)
    store.write_benchmark(raw / "b", SOUND.collect(raw, depths=2))
    return raw / "b"


def problems_of(draft) -> list[dict]:
    return [json.loads(each) | {"shared": draft.shared} for each in draft.problems["problem"].to_pylist()]


def drafts(tmp_path, content=None, reading=SOUND, **settings):
    needle_files.write(tmp_path, content)
    return list(reading.collect(tmp_path, **settings))


def tokenizer(path, numbers) -> str:
    """A tokenizer of words with these tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({"?": 0, **numbers}, unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.save(str(path))
    return str(path)


@pytest.fixture
def wording(monkeypatch, tmp_path):
    """An instruction that is let pass for the published one, and a tokenizer with CodeLlama's own tokens."""
    monkeypatch.setattr(repoqa, "INSTRUCTION", repoqa.hashlib.sha256(b"Find it.").hexdigest())
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    return {"instruction": "Find it.", "tokenizer": tokenizer(folder / "words.txt", windows.CODELLAMA)}


def test_a_repository_is_a_dataset_of_all_its_functions(folder):
    assert store.datasets(folder)[0] == "python-owner-python"
    dataset = store.read_dataset(folder, "python-owner-python")
    names = [each.rpartition(":")[2] for each in dataset.corpus.ids.to_pylist()]
    assert sorted(names) == ["__init__", "count", "one", "size", "walk"]
    walk = next(each for each in dataset.corpus.table.to_pylist() if each["id"].endswith("walk"))
    assert walk["title"] == "src/a.py" and walk["text"].startswith("def walk(folder") and "ééé" not in walk["text"]
    assert len(dataset.qrels) == len(dataset.queries) == 5


def test_a_perfect_answer_is_found_at_every_threshold_in_every_language_and_at_every_depth(folder):
    for name in store.problem_sets(folder):
        for problem in store.read_problems(folder, name).contents:
            for completion in (sound.reference(problem), sound.reference(problem).partition("\n")[2]):
                grades = sound.grade(problem, sound.read(problem, completion, "chat"))
                assert set(grades.values()) == {1.0}, (name, completion, grades)


def test_another_function_is_not_found(folder):
    for name in store.problem_sets(folder):
        for problem in store.read_problems(folder, name).contents:
            grades = sound.grade(problem, sound.read(problem, sound.negative(problem), "chat"))
            assert {grades[f"match@{each}"] for each in THRESHOLDS} == {0.0}


def problem_called(folder, name, language="python"):
    found = store.read_problems(folder, f"{language}-owner-{language}").contents
    return next(each for each in found if each["shared"]["functions"][each["needle"]][-1] == name)


WALK = needle_files.SOURCES["python"][0].partition("\n\n\ndef walk")[2]
WALK = f"def walk{WALK}"
CLASS = "class A:\n    def __init__(self):\n        self.a = 1\n\n    " + WALK.replace("\n", "\n    ")


@pytest.mark.parametrize(
    ("completion", "form", "found"),
    [
        (WALK, "unclosed fence", 1.0),
        (f"{WALK}```\nThat is it.", "fence", 1.0),
        (f"Here it is:\n\n```python\n{WALK}```\n", "fence", 1.0),
        (f"Here it is:\n\n{WALK}", "unclosed fence", 1.0),
        (f"1. That one:\n   ```python\n{WALK}   ```\n", "fence", 1.0),
        (f"```python\n{CLASS}```", "fence", 1.0),
        (f"def helper():\n    return 2\n\n\n{WALK}", "unclosed fence", 1.0),
        (f"```python\nimport os\n```\n\n```python\n{WALK}```", "several fences", 1.0),
        (WALK.replace(" = ", "=").replace(", ", " , "), "unclosed fence", 1.0),
        ("", "nothing", 0.0),
        ("I could not find such a function.", "nothing", 0.0),
        ("```\nsome words\n```", "no function", 0.0),
        ("".join(f"def f{each}():\n    return {each}\n" for each in range(9)) + WALK, "many functions", 0.0),
    ],
)  # fmt: skip
def test_answers_are_judged_on_the_function_that_is_meant_however_they_stand(folder, completion, form, found):
    problem = problem_called(folder, "walk")
    answer = sound.read(problem, completion, "chat")
    assert (answer.form, sound.grade(problem, answer)["match@0.8"]) == (form, found)


def test_what_an_answer_is_a_copy_of_is_told(folder):
    problem = problem_called(folder, "walk")

    def told(completion: str) -> str:
        return sound.why(problem, sound.read(problem, completion, "chat"))

    assert told(WALK) == "the needle, 1.00: src/a.py#L16-L18:walk"
    assert told(WALK.replace("yield", "return")).startswith("the needle with edits, 0.9")
    assert told(sound.negative(problem)) == "another function, 1.00: src/a.py#L6-L7:__init__"
    assert told("def f(): zero") != "" and told("lambda: 1") == "no function of the repository"


def test_a_function_is_shown_as_it_is_laid_out_in_its_file_without_its_path(folder):
    problem = problem_called(folder, "size")
    repository = needles.of_shared(problem["shared"])
    own, text = repository.ids[problem["needle"]], repository.texts[problem["needle"]]
    assert text.startswith("def size(self):\n        def one(thing):\n            return 1\n        return")
    parts = sound.prompt(problem, [Document(own, "src/a.py", text), Document("other", "x", "  1\n")], "chat")
    size = "def size(self):\n    def one(thing):\n        return 1\n    return sum(map(one, self.things))"
    assert parts.documents == (size, "  1")
    assert "Path" not in parts.before + parts.after + parts.start
    exported = needles.of_shared(problem_called(folder, "add", "typescript")["shared"])
    assert exported.laid_out(0) == exported.texts[0]  # `export` stands before it


def test_a_model_may_choose_a_line_of_path_and_name(folder):
    problem, choosing = problem_called(folder, "walk"), sound.ANSWERING.showing("names")
    repository = needles.of_shared(problem["shared"])
    shown = [Document(own, "", "") for own in repository.ids]
    parts = choosing.prompt(problem, shown, "chat")
    assert "- src/a.py: walk" in parts.documents and len(parts.documents) == 5
    assert parts.start == "- " and problem["description"].strip() in parts.after
    assert "yield" not in parts.before + "".join(parts.documents) + parts.after

    def chosen(completion: str) -> tuple[str, float]:
        answer = choosing.read(problem, completion, "chat")
        return answer.form, choosing.grade(problem, answer)["match@0.8"]

    assert chosen("src/a.py: walk") == ("line", 1.0)
    assert chosen("`src/a.py: walk`\nIt lists a folder.") == ("line", 1.0)
    assert chosen("walk") == ("name", 1.0)
    assert chosen("src/b.py: count") == ("line", 0.0)
    assert chosen("src/b.py: walk") == ("no function", 0.0)  # no such place
    assert chosen("  \n") == ("nothing", 0.0)
    with pytest.raises(DataError, match="shows names, and these problems do not ask for one"):
        repoqa_2024.ANSWERING.showing("names")


def test_an_answer_of_a_megabyte_is_read(folder):
    problem = problem_called(folder, "walk")
    for text in ("def f():\n    return 1\n" * 50_000, "x" * 1_000_000, "(" * 1_000_000):
        assert sound.grade(problem, sound.read(problem, text, "chat"))["match@0.8"] == 0.0


def test_a_needle_that_occurs_twice_has_two_documents_that_are_right(tmp_path):
    twice = needle_files.repository("python", ("def f(a):\n    return a\n", "def f(a):\n        return a\n"))
    draft = drafts(tmp_path, {"python": [twice]})[0]
    assert draft.qrels.num_rows == 4
    assert sound.grade(problems_of(draft)[0], sound.read(problems_of(draft)[0], "def f(a): return a", "chat"))[
        "match@1.0"
    ]


def test_lenient_gold_holds_what_lies_in_the_needle_or_around_it_by_half(tmp_path):
    text = "def outer():\n    def inner():\n        return 1000000000000000000000000000000\n    return inner\n"
    one = needle_files.repository("python", (text, "x = 1\n"), needles=["outer"])
    assert drafts(tmp_path / "s", {"python": [one]})[0].qrels.num_rows == 1
    assert drafts(tmp_path / "l", {"python": [one]}, gold="lenient")[0].qrels.num_rows == 2


def test_needle_and_depth_are_apart_and_every_depth_is_taken_alike():
    design = needles.depth_design(10, 3, 13, "some")
    taken = sorted(each for some in design for each in some)
    assert taken == [(place + 0.5) / 10 for place in range(10) for _ in range(3)]
    assert design != [[(place + 0.5) / 10] for place in range(10)]
    with pytest.raises(DataError, match="depths is 11 and some has 10 needles"):
        needles.depth_design(10, 11, 13, "some")


# --- the released code


def test_a_perfect_answer_fails_in_the_released_reading_where_its_file_is_not_ascii(tmp_path, wording):
    draft = drafts(tmp_path, {"python": [needle_files.repository("python")]}, RELEASED, **wording)[0]
    problem = next(each for each in problems_of(draft) if "walk" in str(each["shared"]["functions"][each["needle"]]))
    repository = needles.of_shared(problem["shared"])
    shown = windows.as_released(repository, problem["needle"], 0.5, 4000, len)
    assert "def walk" not in shown.needle
    grades = repoqa_2024.grade(problem, repoqa_2024.read(problem, f"```python\n{shown.needle}\n```", "chat"))
    assert grades["match@0.8"] == 0.0
    right = windows.window(repository, problem["needle"], 0.5, 4000, len)
    answer = sound.read(problem, f"```python\n{right.needle}\n```", "chat")
    assert sound.grade(problem, answer)["match@1.0"] == 1.0


def test_the_released_reading_judges_the_first_function_against_the_needles_alone(tmp_path, wording):
    one = needle_files.repository("python", needles=["walk", "count"])
    draft = drafts(tmp_path, {"python": [one]}, RELEASED, **wording)[0]
    problem = problems_of(draft)[0]
    assert [each["depth"] for each in problems_of(draft)] == [0.25, 0.75]

    def match(completion: str) -> float:
        return repoqa_2024.grade(problem, repoqa_2024.read(problem, completion, "chat"))["match@0.8"]

    assert match(f"```python\n{WALK}```") == 1.0
    assert match(f"```python\ndef helper():\n    return 2\n\n\n{WALK}```") == 0.0
    assert match(f"Here it is, as it stands there:\n```python\n{WALK}") == 0.0  # an open fence is none
    assert match(WALK) == 1.0


def test_the_released_reading_loses_export_of_a_perfect_answer(tmp_path, wording):
    one = needle_files.repository("typescript", needles=["add"])
    problem = problems_of(drafts(tmp_path, {"typescript": [one]}, RELEASED, **wording)[0])[0]
    grades = repoqa_2024.grade(problem, repoqa_2024.read(problem, sound.reference(problem), "chat"))
    assert grades["match@0.8"] == 1.0 and grades["match@1.0"] == 0.0


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (f"def f{word}", value)
        for word, value in (("():pass", 0.22139), ("(a): pass", 0.57572), ("(a, b): return a", 1.0))
    ],
)
def test_needles_of_two_and_three_words_cannot_be_found_in_the_released_reading(tmp_path, wording, text, first):
    one = needle_files.repository("python", (f"{text}\n", "x = 1\n"))
    problem = problems_of(drafts(tmp_path, {"python": [one]}, RELEASED, **wording)[0])[0]
    answer = repoqa_2024.read(problem, f"```python\n{text}\n```", "chat")
    assert repoqa_2024.grade(problem, answer)["similarity"] == pytest.approx(first, abs=5e-6)
    assert sound.grade(problem, sound.read(problem, f"{text}\n", "chat"))["match@1.0"] == 1.0


def test_only_the_published_wording_may_call_itself_the_released_reading(tmp_path):
    with pytest.raises(DataError, match=r"wanted bfa789e9.*or take kind: repoqa"):
        drafts(tmp_path, None, RELEASED, instruction="Find it.")


def test_only_codellamas_tokenizer_counts_in_the_released_reading(tmp_path, wording):
    with pytest.raises(DataError, match="counts a window in tokens of CodeLlama-7b-Instruct: put the path"):
        drafts(tmp_path, None, RELEASED, instruction=wording["instruction"])
    with pytest.raises(DataError, match=r"there is no tokenizer nowhere\.json; wanted the path"):
        drafts(tmp_path, None, RELEASED, **wording | {"tokenizer": "nowhere.json"})
    other = tokenizer(tmp_path / "tokenizer" / "other.txt", {"▁<PRE>": 7})
    with pytest.raises(DataError, match=r"other.txt has 2 tokens, and ▁<PRE> is number 7 of them, wanted 32007: it is"):
        drafts(tmp_path, None, RELEASED, **wording | {"tokenizer": other})
    assert drafts(tmp_path, None, SOUND, tokenizer=other)
    (tmp_path / "tokenizer" / "other.txt").write_text("{")
    with pytest.raises(DataError, match=r"is no whole tokenizer\.json"):
        windows.counter.__wrapped__(other)


def test_a_window_has_so_many_tokens_of_the_tokenizer_that_is_named(tmp_path, wording):
    one = needle_files.repository("python", needles=["walk"])
    for reading, answering in ((RELEASED, repoqa_2024), (SOUND, sound)):
        problem = problems_of(drafts(tmp_path, {"python": [one]}, reading, **wording)[0])[0]
        whole = len(sound.reference(problem).split())
        for size in (whole + 4, 60):
            found = answering.window(problem, size, lambda _: 10**6)
            assert "def walk" in found.text or reading is RELEASED
            assert len(found.text.split()) <= size + 1  # the line of a cut is not counted there


def test_the_released_prompt_is_four_parts_without_anything_between(tmp_path, wording):
    one = needle_files.repository("python", needles=["walk"])
    problem = problems_of(drafts(tmp_path, {"python": [one]}, RELEASED, **wording)[0])[0]
    document = repoqa_2024.window(problem, 10_000, len)
    parts = repoqa_2024.prompt(problem, [document], "chat")
    described = f"\nFunction Description:{problem['description']}\n"
    assert parts.before + parts.documents[0] + parts.after == f"Find it.{document.text}{described}Find it."


# --- bad input


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"needles": None}, "python-owner-python lacks needles"),
        ({"content": {}}, r"is in src/a.py, which is no file of it"),
        ({"needles": []}, "has no needles"),
        ({"functions": {}}, "the needle __init__ of src/a.py is none of the functions"),
        ({"content": {"src/a.py": "x", "src/b.py": "y"}}, "the file is cut short or of another version"),
    ],
)
def test_a_repository_that_is_not_whole_is_refused(tmp_path, change, said):
    raw = {key: value for key, value in (needle_files.repository("python") | change).items() if value is not None}
    with pytest.raises(DataError, match=said):
        drafts(tmp_path, {"python": [raw]})


def test_a_file_cut_short_or_of_another_version_is_refused(tmp_path):
    path = needle_files.write(tmp_path)
    whole = path.read_bytes()
    with pytest.raises(DataError, match="another version"):
        repoqa.read(tmp_path, "0" * 64)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cannot be unpacked"):
        repoqa.read(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match=r"has 0 files that end in .json"):
        repoqa.read(tmp_path)
    (tmp_path / "x.json").write_text('{"python": [')
    with pytest.raises(DataError, match=r"is no JSON"):
        repoqa.read(tmp_path)
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(DataError, match="is not RepoQA's"):
        repoqa.read(tmp_path)


def test_a_language_that_repoqa_lacks_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"languages has 'cobol'; RepoQA has python"):
        drafts(tmp_path, languages=["cobol"])
    with pytest.raises(DataError, match=r"has python; wanted one of go"):
        drafts(tmp_path, {"python": [needle_files.repository("python")]}, languages=["go"])


def test_paths_that_lack_and_cycles_are_counted_and_do_no_harm(tmp_path):
    dependency = {"src/b.py": ["src/a.py", "src/gone.py"], "src/a.py": ["src/b.py"]}
    draft = drafts(tmp_path, {"python": [needle_files.repository("python", dependency=dependency)]})[0]
    assert draft.shared["facts"] == {"missing_paths": 1, "unnamed_paths": 0}
    assert list(draft.shared["files"]) == ["src/a.py", "src/b.py"]
    draft = drafts(tmp_path, {"python": [needle_files.repository("python", dependency={})]})[0]
    assert draft.shared["facts"] == {"missing_paths": 0, "unnamed_paths": 2}


def test_offsets_that_cut_a_character_are_refused(tmp_path):
    raw = needle_files.repository("python")
    raw["functions"]["src/a.py"][0]["start_byte"] = raw["needles"][0]["start_byte"] = 3
    with pytest.raises(DataError, match="begins or ends within a character"):
        drafts(tmp_path, {"python": [raw]})


@pytest.mark.parametrize(("ignored", "found"), [(True, 1.0), (False, 0.0)])
def test_comments_count_unless_they_are_to_be_ignored(tmp_path, ignored, found):
    one = needle_files.repository("python", ("def f(a):\n    # some words of a comment\n    return a\n", "x = 1\n"))
    problem = problems_of(drafts(tmp_path, {"python": [one]}, ignore_comments=ignored)[0])[0]
    answer = sound.read(problem, "def f(a):\n    return a  # others\n", "chat")
    assert sound.grade(problem, answer)["match@1.0"] == found


def test_the_released_file_is_read_whole_and_its_needles_are_perfect_answers():
    there = sorted(released.mirror().rglob("repoqa-*.json*")) if released.mirror() else []
    if not there:
        pytest.skip("no released file of RepoQA in the folder that CODERET_DATA names")
    for draft in SOUND.collect(there[0].parent):
        problem = problems_of(draft)[0]
        grades = sound.grade(problem, sound.read(problem, sound.reference(problem), "chat"))
        assert set(grades.values()) == {1.0}, draft.name
