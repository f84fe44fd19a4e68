import time

import needle_files
import pytest

from coderet.benchmarks import asking, contexts, needles, prompts, repoqa, windows
from coderet.benchmarks.answers import needles as sound
from coderet.benchmarks.needles import Needle, Repository
from coderet.corpora import store
from coderet.records import DataError


def words(text: str) -> int:
    return len(text.split())


def repository(files: dict[str, str]) -> Repository:
    functions = [span for path, text in files.items() for span in needles.spans(path, text, "python")]
    found = [Needle(place, f"does {each.name}") for place, each in enumerate(functions)]
    return Repository("some", "python", files, functions, found)


TEN = repository({f"{letter}.py": f"def {letter}(x):\n    return {letter}1 + {letter}2\n" for letter in "abcdefghij"})


def test_a_window_is_a_part_of_the_repository_in_order_with_a_header_above_each_file():
    found = windows.window(TEN, 4, 0.5, 10_000, words)
    assert found.text.startswith("# Path: a.py\ndef a(x):\n    return a1 + a2\n# Path: b.py\n")
    assert found.needle == "def e(x):\n    return e1 + e2\n"
    assert sum(found.tokens) == words(found.text) == 90


@pytest.mark.parametrize(
    ("depth", "tokens"),
    [(0.0, (0, 6, 45)), (0.15, (3, 6, 39)), (0.5, (21, 6, 23)), (0.85, (39, 6, 5)), (1.0, (39, 6, 5))],
)
def test_the_needle_is_at_its_depth_of_so_many_tokens(depth, tokens):
    """A file is lines of 3, 2 and 4 tokens, the needle has the last two; there are four files before it."""
    found = windows.window(TEN, 4, depth, 51, words)
    assert found.tokens == tokens and words(found.text) == sum(tokens)


def test_what_one_side_does_not_need_goes_to_the_other():
    assert windows.window(TEN, 0, 0.5, 45, words).tokens == (3, 6, 36)
    assert windows.window(TEN, 9, 0.5, 45, words).tokens == (36 + 3, 6, 0)


def test_a_file_that_the_window_begins_within_has_its_path_above_it():
    lines = "".join(f"x{number} = {number}\n" for number in range(50))
    found = windows.window(repository({"long.py": f"{lines}def f():\n    return 1\n"}), 0, 1.0, 30, words)
    assert found.prefix.startswith("# Path: long.py\n...\nx") and found.prefix.endswith("x49 = 49\n")
    assert words(found.text) == sum(found.tokens) <= 30


def test_a_window_that_does_not_hold_the_needle_is_refused_and_one_beyond_the_repository_is_all_of_it():
    with pytest.raises(DataError, match="e has 6 tokens and the window 5; wanted a window that holds it"):
        windows.window(TEN, 4, 0.5, 5, words)
    assert sum(windows.window(TEN, 4, 0.1, 10**9, words).tokens) == 90


@pytest.mark.parametrize(
    "before", ["# é\n" * 40, "\ufeff# bom\n", "x = 1\r\ny = 2\r\n", "if x:\n\tpass\n", "\n\n\x0c\n"]
)
def test_the_needle_is_the_file_s_own_text_whatever_stands_before_it(before):
    end = "\r\n" if "\r" in before else "\n"
    function = f"def f(a):{end}\treturn 'ü' + a{end}"
    held = repository({"a.py": before + function + "z = 2\n"})
    found = windows.window(held, 0, 0.5, 1000, words)
    assert held.text(0) in found.needle and found.needle == function
    if "é" in before:
        assert windows.as_released(held, 0, 0.5, 1000, words).needle != held.text(0)


def test_the_released_window_keeps_the_head_of_a_cut_file_and_loses_what_is_left_over():
    found = windows.as_released(TEN, 4, 0.5, 20, words)
    assert found.prefix == "# Path: d.py\n...\n# Path: e.py\n\n"
    assert windows.as_released(TEN, 0, 0.95, 45, words).tokens[0] == 3


def test_problems_are_asked_in_windows_of_a_context_and_those_that_do_not_fit_are_refused(tmp_path):
    needle_files.write(tmp_path, {"python": [needle_files.repository("python")]})
    store.write_benchmark(tmp_path / "b", repoqa.BENCHMARKS["repoqa"].collect(tmp_path))
    dataset = store.read_dataset(tmp_path / "b", "python-owner-python")
    problems = store.read_problems(tmp_path / "b", dataset.name)

    class Tokenizer:
        template_tokens = 0
        count_tokens = staticmethod(words)

        def cut(self, text: str, tokens: int) -> str:
            return text[: tokens * 4]

    def ask(window: int, room: int):
        counter, taken = prompts.Counter(Tokenizer()), contexts.taken(5, "kept", {}, "first", window=window)
        run = contexts.of_judgements(dataset)
        return asking.questions(sound.ANSWERING, dataset, run, problems, taken, "chat", counter, window=room, budget=10)

    for question, problem in zip(ask(60, 1000), problems.contents, strict=True):
        needle = needles.of_shared(problem["shared"]).text(problem["needle"])
        assert needle in question.packed.user and problem["description"] in question.packed.user
        assert question.packed.user.count(sound.ASK) == 2
    with pytest.raises(DataError, match="5 of 5 windows of 60 tokens do not fit the generator"):
        ask(60, 110)
    assert "# Path: " not in ask(0, 1000)[0].packed.user  # of a function alone


def test_five_hundred_windows_of_sixteen_thousand_tokens_take_seconds():
    text = "".join(f"def f{number}(x):\n" + "    x = x + 1\n" * 20 for number in range(5000))
    held = repository({f"{part}.py": text for part in range(4)})
    start = time.process_time()
    for number in range(500):
        windows.window(held, number * 7, (number % 10 + 0.5) / 10, 16_384, words)
    assert time.process_time() - start < 30


COMMENTED = repository(
    {
        "a.py": "# one two three four five six\nx = 1\n",
        "b.py": "# seven\ndef f():\n    # eight\n    return 1  # nine\n\n\n# ten eleven twelve\ny = 2\n",
    }
)


def test_comments_are_kept_removed_or_padded():
    kept = windows.window(COMMENTED, 0, 0.5, 1000, words)
    removed = windows.window(COMMENTED, 0, 0.5, 1000, words, "removed")
    assert "eight" in kept.needle and "seven" in kept.prefix
    assert removed.text == "# Path: a.py\nx = 1\n# Path: b.py\ndef f():\n    return 1\n\n\ny = 2\n"
    assert sum(removed.tokens) == words(removed.text)
    padded = windows.window(COMMENTED, 0, 0.5, 1000, words, "padded")
    assert padded.prefix.startswith("# 1\n# 2\n# 3\n# 4\n# Path: a.py\nx = 1\n") and padded.suffix.endswith(
        "# 1\n# 2\n"
    )
    assert padded.needle == removed.needle
    assert sum(padded.tokens) == words(padded.text)
    assert abs(padded.tokens[0] - kept.tokens[0]) < 2 and abs(padded.tokens[2] - kept.tokens[2]) < 2
