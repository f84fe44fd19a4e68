import pytest

from coderet.benchmarks import extraction

F = "def f(x):\n    return x"


@pytest.mark.parametrize(
    ("completion", "code", "form"),
    [
        (f"```python\n{F}\n```", F, "fence"),
        (f"```Python\n{F}\n```", F, "fence"),
        (f"```py\n{F}\n```", F, "fence"),
        (f"```python3 {{.line}}\n{F}\n```", F, "fence"),
        (f"~~~python\n{F}\n~~~", F, "fence"),
        (f"````python\n{F}\n````", F, "fence"),
        (f"```\n{F}\n```", F, "bare fence"),  # T3: ten characters were cut, whatever the label
        (f"``` \n{F}\n```", F, "bare fence"),
        ("```python\r\ndef f(x):\r\n    return x\r\n```", F, "fence"),
        (f"Sure! Here it is:\n\n```python\n{F}\n```\n\nIt returns x.", F, "fence"),
        (f"Sure! Here it is: ```python\n{F}\n```", F, "fence"),
        (f"```python\n{F}\n```<|im_end|>\n<|im_start|>user", F, "fence"),
        (f"```python\n{F}", F, "unclosed fence"),
        (f"```python\n{F}\n\n\nf(", F, "unclosed fence"),  # cut off by the limit of tokens
        (F, F, "no fence"),
        (f"{F}<|endoftext|>", F, "no fence"),
        (f"This function does it.\n\n{F}\n\nIt takes x, and gives it back.", F, "no fence"),
        ("I cannot do that.", "I cannot do that.", "no fence"),
        ("", "", "nothing"),
        ("  \n\n", "", "nothing"),
        ("<|im_end|>", "", "nothing"),
        ("```python\n```", "", "nothing"),
    ],
)
def test_code_is_found_wherever_it_stands(completion, code, form):
    found = extraction.code(completion, wanted="f")
    assert (found.code.strip("\n"), found.form) == (code, form)


def test_of_several_blocks_the_one_that_defines_what_is_wanted_is_taken():
    completion = (
        f"First a try:\n```python\nprint(1)\nprint(2)\nprint(3)\n```\nthen:\n```python\n{F}\n```\n```\nf(1)\n```"
    )
    found = extraction.code(completion, wanted="f")
    assert (found.code.strip(), found.form) == (F, "several fences")


def test_helpers_in_other_blocks_come_with_it():
    completion = "```python\ndef helper(x):\n    return x\n```\nand\n```python\ndef f(x):\n    return helper(x)\n```"
    found = extraction.code(completion, wanted="f").code
    assert extraction.defined(found) == {"helper", "f"}


def test_output_in_a_block_of_another_label_is_no_code():
    found = extraction.code(f"```text\n1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n```\n```python\n{F}\n```", wanted="f")
    assert (found.code.strip(), found.form) == (F, "fence")


@pytest.mark.parametrize("completion", [f"{F}\n```", f"{F}\n```\nIt returns x.", F, f"```python\n{F}\n```"])
def test_an_answer_that_was_begun_with_a_fence_may_go_on_from_it_or_open_its_own(completion):
    assert extraction.code(completion, wanted="f", start="```python\n").code.strip() == F


def test_an_answer_that_goes_on_may_show_more_blocks():
    completion = f"{F}\n```\n\nUse it like this:\n\n```python\nprint(f(2))\n```"
    assert extraction.code(completion, wanted="f", start="```python\n").code.strip() == F


def test_letters_at_the_end_of_an_answer_stay():
    """T2: a strip by a set of characters took the s of `ans` away."""
    assert extraction.code("def f(ans):\n    return ans</s>").code == "def f(ans):\n    return ans"


def test_an_indented_block_is_moved_to_the_left():
    completion = "1. Do this:\n   ```python\n   def f(x):\n       return x\n   ```"
    assert extraction.code(completion, wanted="f").code.strip() == F


def test_broken_code_is_given_back_as_it_stands():
    assert extraction.code("```python\ndef f(:\n```").code.strip() == "def f(:"


def test_a_hundred_thousand_tokens_are_read_in_time(monkeypatch):
    parsed = []
    monkeypatch.setattr(extraction, "_parsed", lambda source: parsed.append(len(source)))
    long = "def f(:\n    x = 1\n" * 6_000
    assert extraction.code(f"```python\n{long}").form == "unclosed fence"
    assert extraction.code(long).form == "no fence"
    assert sum(parsed) < 20 * extraction.CHARACTERS_TRIED


@pytest.mark.parametrize("completion", [F, f"```python\n{F}", f"Here:\n```python\n{F}"])
def test_a_fence_whose_end_was_the_stop_string_is_closed(completion):
    start = "```python\n"
    whole = extraction.closed(completion, "\n```", start)
    assert whole == f"{completion}\n```"
    found = extraction.code(whole, wanted="f", start=start)
    assert (found.code.strip(), found.form) == (F, "fence")


@pytest.mark.parametrize(
    ("completion", "stop", "start"),
    [
        (F, "", "```python\n"),  # the model, or the limit of tokens, ended it
        (F, "\ndef ", "```python\n"),
        (F, "\n```", ""),  # a model that continues plain text: no fence is open
        (f"{F}\n```\n", "\n```", "```python\n"),
        ("", "\n```", ""),
    ],
)
def test_a_stop_string_that_closes_no_fence_is_no_part_of_an_answer(completion, stop, start):
    assert extraction.closed(completion, stop, start) == completion
