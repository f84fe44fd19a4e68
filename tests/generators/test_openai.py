"""A generator on a server: what is asked, what is made of every answer, and what a failing server costs."""

import threading
import time
from pathlib import Path

import pytest
from imagined_server import Server, answer, cut_off, refusing, saying, send, slowly, well

from coderet.generators import completions
from coderet.generators.base import Completion, Prompt
from coderet.generators.openai import OpenAI, ServerError, SpendingLimit
from coderet.records import DataError
from coderet.registry import BadValue
from coderet.sampling import Sampling
from coderet.serving import server as serving

KEY = "sk-imagined-0123456789"
SIX = [Prompt(f"prompt {place}") for place in range(6)]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(serving, "FIRST_WAIT", 0.001)


def made(server: Server, prompts: list[Prompt], sampling: Sampling | None = None, **settings) -> list[Completion]:
    generator = OpenAI("m", **{"address": server.address, "key_variable": ""} | settings)
    return sorted(generator.generate(prompts, sampling or Sampling()))


def one(server: Server, prompt: Prompt, sampling: Sampling | None = None, **settings) -> Completion:
    return made(server, [prompt], sampling, **settings)[0]


# What is asked


def test_a_chat_is_asked_for_with_the_settings_of_sampling(server):
    prompt = Prompt("sort", system="be brief", stop=("a",))
    made(server, [prompt], Sampling(temperature=0.2, top_p=0.95, seed=1, stop=("b",), max_new_tokens=9))
    asked = server.asked[0]
    assert server.paths == ["/v1/chat/completions"]
    assert (
        asked.pop("seed")
        == prompt.seed(Sampling(temperature=0.2, top_p=0.95, seed=1, stop=("b",), max_new_tokens=9)) % 2**31
    )
    assert asked == {
        "model": "m",
        "max_tokens": 9,
        "temperature": 0.2,
        "top_p": 0.95,
        "stop": ["a", "b"],
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "sort"}],
    }


def test_a_text_is_gone_on_with(server):
    assert one(server, Prompt("ab", start="c"), layout="base").text == "cba"
    assert (server.paths, server.asked[0]["prompt"]) == (["/v1/completions"], "abc")


def test_a_greedy_request_says_nothing_of_what_it_does_not_use(server):
    one(server, Prompt("a"))
    assert set(server.asked[0]) == {"model", "max_tokens", "temperature", "messages"}


def test_further_fields_and_names_are_the_servers(server):
    one(server, Prompt("a"), extra='{"reasoning_effort": "low"}', max_tokens_name="max_completion_tokens")
    assert server.asked[0]["reasoning_effort"] == "low" and "max_completion_tokens" in server.asked[0]
    with pytest.raises(BadValue, match="wanted a JSON object"):
        OpenAI("m", extra="low")


def test_the_beginning_of_an_answer_is_gone_on_from_where_the_server_can(server):
    one(server, Prompt("a", start="```python\n"), continues=True)
    assert server.asked[0]["messages"][-1] == {"role": "assistant", "content": "```python\n"}
    assert server.asked[0]["continue_final_message"] and not server.asked[0]["add_generation_prompt"]


def test_the_beginning_of_an_answer_is_asked_for_and_left_out_where_it_cannot(server):
    server.behaviours = [saying("```python\ndef f(): 1\n```"), saying("def f(): 1")]
    assert one(server, Prompt("a", start="```python\n")).text == "\ndef f(): 1\n```"
    assert one(server, Prompt("a", start="```python\n")).text == "def f(): 1"
    assert server.asked[0]["messages"][-1]["content"].endswith("```python\n")


def test_four_stop_strings_are_sent_and_all_are_honoured(server):
    server.behaviours = [saying("one two three", "length")]
    stops = ("v", "x", "y", "z", "three")
    assert one(server, Prompt("a", stop=stops)) == Completion(0, "one two ", "stop", 7, 3, stop="three")
    assert server.asked[0]["stop"] == ["v", "x", "y", "z"]


@pytest.mark.parametrize(
    ("told", "stops", "met"),
    [
        ({"stop_reason": "b"}, ("a", "b"), "b"),  # vLLM
        ({"matched_stop": "b"}, ("a", "b"), "b"),  # SGLang
        ({"stop_reason": None}, ("a",), ""),  # the model ended it
        ({"stop_reason": 2}, ("a",), ""),  # a token did
        ({}, ("a",), "a"),  # the server does not say: the only one it can have been
        ({}, ("a", "b"), ""),
    ],
)
def test_the_stop_string_that_ended_a_completion_is_told(server, told, stops, met):
    def behaviour(handler, payload):
        said = answer(payload, "x")
        said["choices"][0] |= told
        send(handler, 200, said)

    server.behaviours = [behaviour]
    assert one(server, Prompt("q", stop=stops)).stop == met


def test_an_answer_that_may_begin_otherwise_is_not_stopped_by_its_own_beginning(server):
    prompt, prose = Prompt("a", start="```python\n", stop=("\n```",)), "Sure:\n```python\nf()\n```\nIt calls f."
    server.behaviours = [saying(prose), saying("```python\nf()\n```\nIt calls f.")]
    assert one(server, prompt).text == prose and "stop" not in server.asked[0]
    found = one(server, prompt)
    assert (found.text, found.stop) == ("\nf()", "\n```")


def test_several_requests_are_under_way_at_once_and_no_more_than_allowed(server):
    server.always = slowly
    made(server, SIX, concurrency=3)
    assert server.most == 3


# The key


def test_the_key_is_read_when_asking_and_stands_in_one_header_only(server, monkeypatch, tmp_path):
    monkeypatch.setenv("A_KEY", KEY)
    one(server, Prompt("a"), key_variable="A_KEY")
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    monkeypatch.delenv("A_KEY")
    with pytest.raises(ServerError, match="A_KEY is not set"):
        one(server, Prompt("a"), key_variable="A_KEY")


# Answers


@pytest.mark.parametrize(
    ("said", "finish", "wanted"),
    [
        ("x", "stop", ("x", "stop")),
        ("x", "length", ("x", "length")),
        ("x", None, ("x", "stop")),
        ("x", "something new", ("x", "stop")),
        (None, "content_filter", ("", "refused")),
        ("", "stop", ("", "stop")),
        ("x" * 400_000, "length", ("x" * 400_000, "length")),
    ],
)
def test_what_a_server_says_is_the_completion(server, said, finish, wanted):
    server.behaviours = [saying(said, finish)]
    assert one(server, Prompt("a"))[1:3] == wanted


def test_halves_of_letters_are_mended_where_they_are_kept(server, tmp_path):
    server.behaviours = [saying("a\ud800")]
    generator = OpenAI("m", address=server.address, key_variable="")
    assert completions.complete(generator, [Prompt("a")], Sampling(), tmp_path)[0][0].text == "a\ufffd"


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": [{"message": {}}]}, [], {"error": "x"}, None])
def test_an_answer_without_a_completion_is_an_error(server, body):
    server.behaviours = [lambda handler, _: send(handler, 200, body)]
    with pytest.raises(ServerError, match="without a completion"):
        one(server, Prompt("a"))


# Failures


@pytest.mark.parametrize("failure", [refusing(500), refusing(429, Retry_After="0"), refusing(503), cut_off])
def test_a_passing_trouble_is_tried_again(server, failure):
    server.behaviours = [failure, failure]
    assert one(server, Prompt("ab")).text == "ba"
    assert len(server.asked) == 3


def test_the_wait_that_the_server_names_is_kept(server):
    server.behaviours = [refusing(429, Retry_After="0.3")]
    begun = time.monotonic()
    one(server, Prompt("a"))
    assert time.monotonic() - begun >= 0.3


def test_a_prompt_that_the_server_does_not_take_is_its_own_failure(server):
    server.behaviours = [refusing(400, "maximum context length is 4096 tokens")]
    found = made(server, SIX, concurrency=1)
    assert [each.finish for each in found] == ["failed", *["stop"] * 5]
    assert "maximum context length" in found[0].error


def test_a_server_that_takes_nothing_is_not_asked_for_ever(server):
    server.always = refusing(400, "unknown field")
    with pytest.raises(ServerError, match="unknown field"):
        made(server, SIX * 10, concurrency=1)
    assert len(server.asked) == 8


def test_a_server_that_dies_half_way_loses_nothing(server, tmp_path):
    generator = OpenAI("m", address=server.address, key_variable="", concurrency=2, tries=1)
    server.behaviours, server.always = [well, well, well], refusing(500, "out of memory")
    with pytest.raises(ServerError, match=r"500.*What was answered before is kept"):
        completions.complete(generator, SIX, Sampling(), tmp_path)
    before, server.always = len(server.asked), well
    found = completions.complete(generator, SIX, Sampling(), tmp_path)
    assert [each[0].text for each in found] == [each.user[::-1] for each in SIX]
    assert len(server.asked) - before == 3


def test_what_is_under_way_when_another_request_fails_is_still_awaited(server):
    server.behaviours = [refusing(401), slowly]
    generator, found = OpenAI("m", address=server.address, key_variable="", concurrency=2), []
    with pytest.raises(ServerError, match="401"):
        for each in generator.generate(SIX, Sampling()):
            found.append(each.text)
    assert found and len(server.asked) < 6


def test_a_server_that_is_not_there_is_told_with_what_to_do():
    generator = OpenAI("m", address="http://127.0.0.1:9/v1", key_variable="", tries=2)
    with pytest.raises(ServerError, match="no connection: check the address"):
        [*generator.generate(SIX, Sampling())]


def test_leaving_off_waits_for_nobody_in_the_queue(server):
    server.always = slowly
    generator = OpenAI("m", address=server.address, key_variable="", concurrency=2)
    next(stream := generator.generate(SIX * 5, Sampling()))
    stream.close()
    time.sleep(0.3)
    assert len(server.asked) <= 5


# Spending


def test_tokens_and_costs_are_the_servers_count(server):
    generator = OpenAI("m", address=server.address, key_variable="", price=1.0, price_written=10.0)
    [*generator.generate(SIX, Sampling())]
    assert generator.spending == {
        "api_requests": 6,
        "api_tokens": 42,
        "api_written_tokens": 18,
        "api_cost": pytest.approx((42 + 180) / 1e6),
    }


def test_a_limit_stops_before_it_is_exceeded_and_what_was_answered_is_kept(server, tmp_path):
    settings = {"address": server.address, "key_variable": "", "concurrency": 1}
    sampling = Sampling(max_new_tokens=50)  # 8 bytes of prompt and 32 for marks: 90 tokens at most, 10 in fact
    generator = OpenAI("m", token_limit=100, **settings)
    with pytest.raises(SpendingLimit, match=r"token_limit 100.*What was answered is kept"):
        completions.complete(generator, SIX, sampling, tmp_path)
    assert len(server.asked) == 2
    completions.complete(OpenAI("m", token_limit=1000, **settings), SIX, sampling, tmp_path)
    assert len(server.asked) == 6


def test_money_is_of_what_is_read_and_what_is_written(server):
    with pytest.raises(SpendingLimit, match="spend_limit"):
        one(server, Prompt("a"), Sampling(max_new_tokens=1000), spend_limit=0.5, price=0.0, price_written=1000.0)
    assert not server.asked
    for half in ({"price": 1.0}, {"price_written": 1.0}, {"spend_limit": 1.0}):
        with pytest.raises(BadValue, match="price"):
            OpenAI("m", **half)


def test_many_threads_share_a_ledger(server):
    generator = OpenAI("m", address=server.address, key_variable="", concurrency=16)
    [*generator.generate(SIX * 20, Sampling())]
    assert generator.ledger.total.requests == generator.ledger.mine.requests == 120
    assert generator.ledger.total.tokens == 7 * 120 and threading.active_count() < 20


# Tokens


def test_tokens_are_counted_by_the_published_tokenizer_or_as_bytes(tiny, tmp_path):
    by_words = OpenAI("m", tiny / "tokenizer.json")
    assert (by_words.count_tokens("sort a list"), by_words.cut("sort a list", 2)) == (3, "sort a")
    assert OpenAI("m").count_tokens("é") == 2 and OpenAI("m").cut("aé", 2) == "a"
    made = OpenAI.prepare(tmp_path / "work", tmp_path, model="m", tokenizer=_pinned(tiny, tmp_path))
    assert OpenAI.load(tmp_path, made).count_tokens("sort a list") == 3
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(DataError, match="prepare it again"):
        OpenAI.load(tmp_path, made)


def test_what_does_not_decide_a_completion_is_no_part_of_the_identity():
    same = [OpenAI("m"), OpenAI("m", concurrency=1, token_limit=5, timeout=1.0)]
    assert same[0].identity == same[1].identity
    assert same[0].identity not in (OpenAI("n").identity, OpenAI("m", layout="base").identity)


def _pinned(tiny: Path, tmp_path: Path) -> str:
    from coderet.corpora import sources

    (folder := tmp_path / "published").mkdir()
    (folder / "tokenizer.json").write_bytes((tiny / "tokenizer.json").read_bytes())
    return f"file:{folder}#sha256={sources.digest(folder)}"
