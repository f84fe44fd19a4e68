"""What every generator of the table keeps to."""

import re
from pathlib import Path

import pytest

from coderet import generators
from coderet.generators.base import Generator, Prompt
from coderet.generators.extractive import Extractive
from coderet.records import DataError
from coderet.registry import UnknownName
from coderet.sampling import Sampling

CODE = "def sort(a):\n    # é, 好\n    return a\n"
PROMPTS = [Prompt("sort a list", documents=(CODE,)), Prompt("find"), Prompt("sort a list", documents=(CODE, "def f"))]


@pytest.fixture(params=["extractive", "local", "openai"])
def generator(request, tiny, server) -> Generator:
    if request.param == "extractive":
        return Extractive()
    if request.param == "local":
        from coderet.generators.local import Local

        return Local(tiny, precision="fp32", batch=2)
    from coderet.generators.openai import OpenAI

    return OpenAI("m", address=server.address, key_variable="")


def test_every_prompt_has_one_completion_and_says_its_place(generator):
    made = [*generator.generate(PROMPTS, Sampling(max_new_tokens=8))]
    assert sorted(each.place for each in made) == [0, 1, 2]
    assert all(each.finish in ("stop", "length") and each.prompt_tokens > 0 and not each.error for each in made)


def test_equal_prompts_have_equal_greedy_completions(generator):
    sampling = Sampling(max_new_tokens=8)
    first, second = (sorted(generator.generate(PROMPTS, sampling)) for _ in range(2))
    assert first == second


def test_no_prompts_have_no_completions(generator):
    assert [*generator.generate([], Sampling())] == []


def test_a_text_is_cut_to_its_first_tokens_and_never_within_a_letter(generator):
    count = generator.count_tokens(CODE)
    for tokens in range(count + 2):
        cut = generator.cut(CODE, tokens)
        assert CODE.startswith(cut) and generator.count_tokens(cut) <= tokens
    assert generator.cut(CODE, 0) == "" and generator.cut(CODE, count) == CODE and generator.count_tokens("") == 0


def test_no_completion_holds_a_stop_string(generator):
    free = {each.place: each.text for each in generator.generate(PROMPTS, Sampling(max_new_tokens=8))}
    word = re.findall(r"\w+", free[1] or free[0])[-1]
    for each in generator.generate(PROMPTS, Sampling(max_new_tokens=8, stop=(word,))):
        assert each.text == free[each.place].partition(word)[0]


def test_identities_differ_by_kind_and_not_by_when_they_are_asked_for(generator):
    assert re.fullmatch(r"[0-9a-f]{64}", generator.identity) and generator.identity == generator.identity


@pytest.mark.parametrize(("kind", "fit"), [("extractive", {}), ("openai", {"model": "m"})])
def test_what_was_prepared_can_be_loaded(kind, fit, tmp_path):
    (folder := tmp_path / "g").mkdir()
    generators.prepare(kind, fit, tmp_path / "work", folder)
    assert generators.load(folder, kind, {}).window > 1


def test_a_generator_of_another_kind_is_refused_with_what_to_do(tmp_path):
    generators.prepare("extractive", {}, tmp_path / "work", tmp_path)
    with pytest.raises(DataError, match=r"wanted kind 'openai'.*dvc repro prepare-generator@"):
        generators.load(tmp_path, "openai", {})
    with pytest.raises(DataError, match="holds no generator"):
        generators.load(Path("nowhere"), "extractive", {})


def test_a_kind_or_a_setting_that_is_not_known_is_told_with_the_nearest(tmp_path):
    with pytest.raises(UnknownName, match="Did you mean local"):
        generators.prepare("lokal", {}, tmp_path, tmp_path)
    with pytest.raises(UnknownName, match=r"generators\.fit\.modle .*Did you mean model"):
        generators.prepare("openai", {"modle": "m"}, tmp_path, tmp_path)


# Without a model


def extracted(start: str, *documents: str) -> str:
    return next(Extractive().generate([Prompt("q", start=start, documents=documents)], Sampling())).text


def test_the_best_document_is_the_answer_in_a_fence_that_is_closed():
    assert extracted("", "def f(): 1", "def g(): 2") == "```\ndef f(): 1\n```"
    assert extracted("```python\n", "def f(): 1") == "def f(): 1\n```"


def test_a_document_goes_on_from_what_the_answer_begins_with():
    assert extracted("```python\ndef f(x):\n", "import a\ndef f(x):\n    return x") == "\n    return x\n```"
    assert extracted("def f(x):", "def f(x):\n    return x") == "\n    return x"


def test_without_documents_there_is_nothing_to_answer_with():
    assert extracted("") == ""
