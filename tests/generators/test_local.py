"""A generator in this process: what it writes is what transformers' own loop writes, whoever else is in the batch."""

import json
import shutil
from pathlib import Path

import pytest
import tiny_checkpoints
import torch

from coderet.generators import slots
from coderet.generators.base import Prompt
from coderet.generators.completions import complete
from coderet.generators.guessing import Echo
from coderet.generators.local import Local
from coderet.records import DataError
from coderet.registry import BadValue
from coderet.sampling import Sampling

WORDS = tiny_checkpoints.WORDS[5:]
PROMPTS = [Prompt(" ".join(WORDS[place:])) for place in range(0, len(WORDS), 2)]
TEN = Sampling(max_new_tokens=10)
WARM = Sampling(temperature=1, max_new_tokens=10)


@pytest.fixture(scope="module")
def local(tiny) -> Local:
    return Local(tiny, precision="fp32", batch=3)


def alone(generator: Local, prompts: list[Prompt], sampling: Sampling):
    return [next(generator.generate([each], sampling))._replace(place=place) for place, each in enumerate(prompts)]


def by_transformers(folder: Path, prompt: Prompt, tokens: int) -> str:
    """transformers' own greedy completion of a prompt."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    chat = tokenizer.apply_chat_template([{"role": "user", "content": prompt.user}], add_generation_prompt=True)
    ids = torch.tensor([chat["input_ids"]])
    written = model.generate(ids, max_new_tokens=tokens, do_sample=False)[0, ids.shape[1] :]
    return tokenizer.decode(written, skip_special_tokens=True)


@pytest.mark.parametrize("architecture", ["Llama", "Qwen2", "GPTNeoX"])
def test_greedy_completions_are_those_of_transformers(architecture, tmp_path):
    folder = tiny_checkpoints.causal(tmp_path / "m", architecture, max_position_embeddings=64, num_key_value_heads=4)
    made = sorted(Local(folder, precision="fp32", batch=3).generate(PROMPTS[:5], TEN))
    assert [each.text.strip() for each in made] == [by_transformers(folder, each, 10).strip() for each in PROMPTS[:5]]


def test_a_completion_does_not_depend_on_its_companions(local):
    assert sorted(local.generate(PROMPTS, TEN)) == alone(local, PROMPTS, TEN)


def test_a_sampled_completion_does_not_either_so_that_a_run_that_goes_on_gives_the_same(local, tmp_path):
    whole = complete(local, PROMPTS, WARM, tmp_path / "whole")
    complete(local, PROMPTS[3:5], WARM, tmp_path / "parts")
    assert complete(local, PROMPTS, WARM, tmp_path / "parts") == whole


def test_another_seed_and_another_sample_are_other_completions(local):
    first, other = (next(local.generate(PROMPTS[:1], Sampling(temperature=1, seed=seed))).text for seed in (0, 1))
    sample = next(local.generate([PROMPTS[0]._replace(sample=1)], Sampling(temperature=1))).text
    assert len({first, other, sample}) == 3


def test_a_stop_string_over_several_tokens_ends_a_completion_before_it(local):
    free = max(local.generate(PROMPTS, TEN), key=lambda each: each.completion_tokens)
    words = free.text.split(" ")
    stop = " ".join(words[4:6])
    made = next(local.generate([PROMPTS[free.place]], Sampling(max_new_tokens=10, stop=(stop,))))
    assert made.text == free.text[: free.text.find(stop)] and (made.finish, made.stop) == ("stop", stop)
    assert made.completion_tokens < free.completion_tokens


def test_the_limit_and_the_end_mark_are_told_apart(local):
    made = [*local.generate(PROMPTS, Sampling(max_new_tokens=100, temperature=2))]
    assert {each.finish for each in made} == {"stop", "length"} or all(each.completion_tokens <= 100 for each in made)
    assert all("</s>" not in each.text for each in made)
    assert next(local.generate(PROMPTS[:1], Sampling(max_new_tokens=1))).completion_tokens == 1


def test_a_completion_ends_where_the_window_does(tiny):
    local = Local(tiny, precision="fp32", window=30)
    made = next(local.generate(PROMPTS[:1], Sampling(max_new_tokens=100)))
    assert made.prompt_tokens + made.completion_tokens <= 30


def test_a_prompt_longer_than_the_window_is_an_error_before_anything_is_written(local):
    with pytest.raises(DataError, match=r"prompt 1 has \d+ tokens, wanted from 1 to 127.*smaller budget"):
        next(local.generate([PROMPTS[0], Prompt("sort " * 200)], TEN))


def test_the_beginning_of_the_answer_is_part_of_the_prompt(local):
    assert local._wording.text(Prompt("sort", start="tree")) == "user : sort </s> return : tree"
    assert local._wording.text(Prompt("sort", system="find")) == "system : find </s>user : sort </s> return : "


def test_plain_continuation_reads_the_text_after_the_tokenizers_mark(tiny):
    local = Local(tiny, layout="base", precision="fp32")
    assert local._wording.ids(Prompt("sort a", start="list")) == [
        0,
        *local._wording.tokenizer("sort alist")["input_ids"][1:],
    ]
    assert local.identity != Local(tiny, precision="fp32").identity


def test_slots_are_as_many_as_there_is_room_for(tiny):
    # A token has 2 layers of keys and values, each of 2 heads of 8 numbers of 4 bytes: 256 bytes. 2**22 have room.
    local = Local(tiny, precision="fp32", batch=8, cache_gigabytes=1.0)
    assert local._slots([slots.Wanted([1] * 2**20, 2**18)]) == 3
    assert local._slots([slots.Wanted([1] * 10, 10)]) == 8
    assert local._slots([slots.Wanted([1] * 2**22, 1)]) == 1


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("x"), RuntimeError("can't allocate memory: 5 bytes")])
def test_where_memory_is_used_up_the_message_names_what_to_lower(local, monkeypatch, error):
    def full(*_):
        raise error

    monkeypatch.setattr(slots, "write", full)
    with pytest.raises(DataError, match=r"Lower batch or cache_gigabytes.*max_new_tokens.*budget"):
        [*local.generate(PROMPTS, TEN)]


class Counted:
    """A model that remembers how many tokens it read at once."""

    def __init__(self, model):
        self.model, self.tokens = model, []

    def __call__(self, **given):
        self.tokens.append(given["input_ids"].numel())
        return self.model(**given)

    def parameters(self):
        return self.model.parameters()


def test_slots_move_together_when_nobody_waits(local, monkeypatch):
    monkeypatch.setattr(Echo, "guess", lambda *_: [])
    model = Counted(local._model)
    wanted = [slots.Wanted([5, 6], limit) for limit in (1, 3, 3, 6)]
    likeliest = lambda logits, _: logits.argmax(-1)  # noqa: E731
    made = {each.place: each for each in slots.write(model, wanted, 2, likeliest, lambda *_: False)}
    assert [len(made[place].ids) for place in range(4)] == [1, 3, 3, 6]
    assert made[3].ids[:3] == made[1].ids == made[2].ids and made[1].ids[0] == made[0].ids[0]
    assert sum(model.tokens) == 4 * 2 + 2 + 2 + 5  # each prompt, then a token for each after the first


def test_what_repeats_is_written_several_tokens_at_a_time_and_is_the_same(local, monkeypatch):
    model = Counted(local._model)
    wanted = [slots.Wanted([7, 8, 9, 7, 8, 9], 60), slots.Wanted([5], 40)]
    likeliest = lambda logits, _: logits.argmax(-1)  # noqa: E731
    never = lambda *_: False  # noqa: E731
    guessed = {each.place: each.ids for each in slots.write(model, wanted, 2, likeliest, never)}
    steps = len(model.tokens)
    monkeypatch.setattr(Echo, "guess", lambda *_: [])
    assert {each.place: each.ids for each in slots.write(model, wanted, 2, likeliest, never)} == guessed
    assert steps < 2 + 59 == len(model.tokens) - steps  # this tiny model soon writes the same again and again


def test_guesses_do_not_change_what_is_drawn(local, monkeypatch):
    guessed = sorted(local.generate(PROMPTS, WARM))
    monkeypatch.setattr(Echo, "guess", lambda *_: [])
    assert sorted(local.generate(PROMPTS, WARM)) == guessed


# Folders


def test_a_model_without_a_template_continues_text(tmp_path):
    folder = tiny_checkpoints.causal(tmp_path / "m")
    (folder / "chat_template.jinja").unlink()
    assert Local(folder).layout == "base"
    with pytest.raises(DataError, match="no chat template; set layout to base"):
        Local(folder, layout="chat")


def test_a_folder_that_is_not_whole_is_told(tiny, tmp_path):
    with pytest.raises(DataError, match=r"no model folder|does not hold a whole"):
        Local(tmp_path / "nowhere")
    folder = Path(shutil.copytree(tiny, tmp_path / "m"))
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:1000])
    with pytest.raises(DataError, match="does not hold a whole causal model"):
        Local(folder)


def test_a_window_beyond_the_models_places_is_refused(tiny):
    with pytest.raises(BadValue, match="window is 129"):
        Local(tiny, window=129)


def test_of_a_sliding_window_only_so_much_is_used(tmp_path):
    folder = tiny_checkpoints.causal(
        tmp_path / "m", "Mistral", sliding_window=16, max_position_embeddings=64, num_key_value_heads=4
    )
    assert Local(folder).window == 16


def test_a_model_that_is_prepared_is_loaded_from_its_copy(tiny, tmp_path):
    from coderet import generators
    from coderet.corpora import sources

    pin = f"file:{tiny}#sha256={sources.digest(tiny)}"
    (folder := tmp_path / "g").mkdir()
    generators.prepare("local", {"source": pin}, tmp_path / "work", folder)
    loaded = generators.load(folder, "local", {"precision": "fp32", "window": 100})
    assert loaded.window == 100 and loaded.identity == Local(tiny, precision="fp32").identity
    assert json.loads((folder / "generator.json").read_text())["fit"]["source"] == pin


def test_what_the_template_puts_around_a_prompt_is_counted(local):
    # user : </s> return :
    assert local.template_tokens == 5
    prompt = Prompt("sort a list")
    assert len(local._wording.ids(prompt)) == local.template_tokens + local.count_tokens(prompt.user)
