"""An encoder on a server: what is asked, what is made of every kind of answer, and what is left on disk."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from imagined_server import Server, refusing, send, send_half

from coderet import encoders
from coderet.corpora import sources
from coderet.encoders import dialects, encoding
from coderet.encoders.api import Api
from coderet.records import DataError
from coderet.registry import BadValue, UnknownName
from coderet.serving import counting, server
from coderet.serving.server import ServerError
from coderet.serving.spending import Ledger, SpendingLimit

KEY = "sk-imagined-0123456789"
DIM = 3
TEXTS = pa.array(["sort a list", "reverse", "", "a tree", "sort a list", "  \n", "merge two"], pa.large_string())


def vector(text: str | list[int]) -> list[float]:
    """What the imagined model makes of a text, or of its bytes' ids."""
    text = text if isinstance(text, str) else bytes(text).decode()
    return [float(len(text)), float(sum(map(ord, text)) % 97), 1.0]


class Model(Server):
    """Answers with vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.always = well

    @property
    def texts(self) -> list[Any]:
        return [text for payload in self.asked for text in payload.get("input", payload.get("texts"))]


def answer(payload: dict[str, Any]) -> dict[str, Any]:
    texts = payload.get("input", payload.get("texts"))
    vectors = [vector(text) for text in texts]
    if "texts" in payload:
        return {"embeddings": {"float": vectors}, "meta": {"billed_units": {"input_tokens": 10 * len(texts)}}}
    data = [{"index": place, "embedding": each} for place, each in enumerate(vectors)]
    return {"data": data, "usage": {"total_tokens": 10 * len(texts)}}


def well(handler: Any, payload: dict[str, Any]) -> None:
    send(handler, 200, answer(payload))


def with_data(change: Callable[[list[Any]], list[Any]]) -> Callable[[Any, dict[str, Any]], None]:
    """An answer whose data went through change."""

    def behaviour(handler: Any, payload: dict[str, Any]) -> None:
        said = answer(payload)
        send(handler, 200, said | {"data": change(said["data"])})

    return behaviour


def cut_off(handler: Any, payload: dict[str, Any]) -> None:
    send_half(handler, answer(payload))


def hang_up(handler: Any, payload: dict[str, Any]) -> None:
    handler.close_connection = True


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    """A server that answers well, in an empty folder, with a key in the environment and hardly any waits."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MODEL_KEY", KEY)
    monkeypatch.setattr(server, "FIRST_WAIT", 0.001)
    made = Model()
    yield made
    made.close()


def api(server: Model, tokenizer: Path | None = None, /, **settings: Any) -> Api:
    usual: dict[str, Any] = {
        "model": "m-1",
        "dim": DIM,
        "address": server.address,
        "key_variable": "MODEL_KEY",
        "timeout": 5.0,
        "tries": 3,
    }
    return Api(tokenizer, **usual | settings)


def expected(texts: pa.Array) -> np.ndarray:
    return np.array([vector(text) if text and text.strip() else [0] * DIM for text in texts.to_pylist()], np.float32)


def cached(encoder: Api) -> np.ndarray:
    return encoding.encode(encoder, TEXTS, "document", cache=Path("vectors"))


@pytest.fixture(scope="session")
def byte_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A .tiktoken file whose tokens are single bytes."""
    import base64

    path = tmp_path_factory.mktemp("tokenizer") / "cl100k_base.tiktoken"
    path.write_text("".join(f"{base64.b64encode(bytes([n])).decode()} {n}\n" for n in range(256)))
    return path


@pytest.fixture(scope="session")
def word_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer.json that learned pieces of bytes from a few texts."""
    from tokenizers import ByteLevelBPETokenizer

    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    fast = ByteLevelBPETokenizer()
    fast.train_from_iterator(["sort a list of numbers in place"] * 3, vocab_size=300, show_progress=False)
    fast.save(str(path))
    return path


# What is asked


def test_vectors_come_in_the_order_of_the_texts_and_an_empty_text_is_zero_and_not_sent(model):
    encoder = api(model)
    assert np.array_equal(encoder.encode_documents(TEXTS), expected(TEXTS))
    assert model.texts == ["sort a list", "reverse", "a tree", "sort a list", "merge two"]
    assert encoder.encode_documents(TEXTS.slice(0, 0)).shape == (0, DIM)
    assert np.array_equal(encoder.encode_queries(pa.array(["", None], pa.large_string())), np.zeros((2, DIM)))
    assert len(model.asked) == 1


def test_nothing_is_asked_before_texts_are_to_be_encoded(model, monkeypatch):
    monkeypatch.delenv("MODEL_KEY")
    encoder = encoders.prepare({"kind": "api", "model": "m", "dim": 3, "address": model.address}, Path("work"))
    encoder.save(Path("saved"))
    loaded = encoders.load(Path("saved"), cache=Path("vectors"))
    assert (loaded.dim, loaded.fingerprint, loaded.parameters_count) == (3, encoder.fingerprint, None)
    assert loaded.spending == {"api_requests": 0, "api_tokens": 0} and model.asked == []


@pytest.mark.parametrize(
    ("dialect", "role", "settings", "wanted"),
    [
        ("openai", "document", {}, {"model": "m-1", "encoding_format": "float", "input": ["a"]}),
        ("openai", "query", {"request_dim": True}, {"dimensions": 3}),
        ("voyage", "document", {}, {"input_type": "document", "truncation": False}),
        ("voyage", "query", {"server_truncates": True}, {"input_type": "query", "truncation": True}),
        ("voyage", "query", {"request_dim": True}, {"output_dimension": 3}),
        ("cohere", "document", {}, {"input_type": "search_document", "truncate": "NONE", "texts": ["a"]}),
        ("cohere", "query", {"server_truncates": True}, {"input_type": "search_query", "truncate": "END"}),
        ("cohere", "query", {"request_dim": True}, {"output_dimension": 3, "embedding_types": ["float"]}),
    ],
)
def test_each_provider_is_asked_in_its_own_words(model, dialect, role, settings, wanted):
    encoder = api(model, dialect=dialect, **settings)
    text = pa.array(["a"], pa.large_string())
    vectors = encoder.encode_queries(text) if role == "query" else encoder.encode_documents(text)
    assert vectors.tolist() == [vector("a")]
    assert {key: model.asked[0].get(key) for key in wanted} == wanted
    assert model.paths == ["/v1/embed" if dialect == "cohere" else "/v1/embeddings"]
    assert model.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert encoder.spending["api_tokens"] == 10


def test_the_usual_addresses_and_variables_are_the_providers_own():
    told = {name: Api(model="m", dim=1, dialect=name).settings for name in dialects.DIALECTS}
    assert {name: (each["address"], each["key_variable"]) for name, each in told.items()} == {
        "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        "voyage": ("https://api.voyageai.com/v1", "VOYAGE_API_KEY"),
        "cohere": ("https://api.cohere.com/v2", "COHERE_API_KEY"),
    }


def test_a_request_is_bounded_by_texts_and_by_tokens(model, byte_tokenizer):
    texts = pa.array(["12345", "123", "", "12", "1234567890123", "1", "2", "3", "4"], pa.large_string())
    encoder = api(model, byte_tokenizer, batch_texts=3, batch_tokens=8)
    assert [rows.tolist() for rows in encoder.requests(texts, "document")] == [[0, 1, 2], [3], [4], [5, 6, 7], [8]]
    assert np.array_equal(encoder.encode_documents(texts), expected(texts))
    assert [payload["input"] for payload in model.asked] == [
        ["12345", "123"],
        ["12"],
        ["1234567890123"],  # over the bound alone
        ["1", "2", "3"],
        ["4"],
    ]


def test_without_a_tokenizer_a_text_counts_as_its_bytes_and_the_marks_around_it(model):
    room = 2 * counting.MARKS + len("é1é2".encode())
    texts = pa.array(["é1", "é2", "é3"], pa.large_string())
    assert [len(rows) for rows in api(model, batch_tokens=room).requests(texts, "query")] == [2, 1]
    assert [len(rows) for rows in api(model, batch_tokens=room - 1).requests(texts, "query")] == [1, 1, 1]


def test_texts_are_cut_to_their_first_tokens_and_what_is_lost_is_counted(model, byte_tokenizer):
    encoder = api(model, byte_tokenizer, max_tokens=4, document_prefix="p:")
    texts = pa.array(["12345", "1", "éé", "", "ab"], pa.large_string())
    encoder.encode_documents(texts)
    assert model.texts == ["p:12", "p:1", "p:é", "p:ab"]
    assert encoder.tokens(texts, "document") == (2, 3 + 2)
    assert encoder.tokens(texts, "query") == (1, 1)
    with pytest.raises(DataError, match="leaves no room beside document_prefix"):
        api(model, byte_tokenizer, max_tokens=2, document_prefix="p:").encode_documents(texts)


def test_a_letter_that_the_cut_would_part_is_left_out(model, byte_tokenizer, word_tokenizer):
    for path in (byte_tokenizer, word_tokenizer):
        (cut,) = counting.read(path).cut(["ab好"], 4)
        assert cut.text == "ab" and cut.lost == 1


def test_a_tokenizer_json_cuts_the_same_text_as_its_own_tokens_say(word_tokenizer):
    from tokenizers import Tokenizer

    fast, text = Tokenizer.from_file(str(word_tokenizer)), "sort a list of numbers in place, twice"
    ids = fast.encode(text).ids
    for limit in range(1, len(ids)):
        (cut,) = counting.read(word_tokenizer).cut([text], limit)
        assert cut.text == fast.decode(ids[:limit]) and cut.lost == len(ids) - limit


def test_the_split_patterns_are_those_of_tiktoken(monkeypatch):
    from tiktoken_ext import openai_public

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: {})
    for name, pattern in counting.PATTERNS.items():
        assert getattr(openai_public, name)()["pat_str"] == pattern


def test_a_mark_of_the_model_inside_a_text_is_only_text(byte_tokenizer):
    (cut,) = counting.read(byte_tokenizer).cut(["<|endoftext|>"], None)
    assert cut.tokens == 13 and cut.ids == list(b"<|endoftext|>")


def test_token_ids_may_be_sent_in_the_place_of_texts(model, byte_tokenizer):
    encoder = api(model, byte_tokenizer, send_ids=True, max_tokens=4)
    assert encoder.encode_queries(pa.array(["12345"])).tolist() == [vector("1234")]
    assert model.texts == [[49, 50, 51, 52]]


# What comes back


def test_an_answer_in_another_order_is_put_right_by_its_places(model):
    model.behaviours = [with_data(lambda data: data[::-1])]
    assert np.array_equal(api(model).encode_documents(TEXTS), expected(TEXTS))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], "gave 4 vectors for 5 texts"),  # T7: 64 texts came back as 63
        (lambda data: [*data, data[0]], "gave 6 vectors for 5 texts"),
        (lambda data: [data[0], *data[:-1]], r"places \[0, 0, 1, 2, 3\], wanted each from 0 to 4 once"),
        (lambda data: [*data[:-1], {"embedding": [1, 2, 3]}], "places"),
        (lambda data: [each | {"embedding": [1, 2]} for each in data], "a vector of 2 dimensions; dim says 3"),
        (lambda data: [each | {"embedding": None} for each in data], "a vector that is no list of numbers"),
        (lambda data: [each | {"embedding": [1, None, 3]} for each in data], "a vector that is no list of numbers"),
        (lambda data: [each | {"embedding": "123"} for each in data], "a vector that is no list of numbers"),
        (lambda data: [each | {"embedding": [1, float("nan"), 3]} for each in data], "a vector that is not finite"),
        (lambda data: [each | {"embedding": [1, 1e300, 3]} for each in data], "a vector that is not finite"),
        (lambda data: {"no": "list"}, "an answer without vectors"),
    ],
)
def test_an_answer_that_cannot_be_trusted_is_an_error_and_what_was_before_is_kept(model, change, message):
    model.behaviours = [well, with_data(change)]
    encoder = api(model, batch_texts=5)
    before = pa.array(["before"], pa.large_string())
    encoding.encode(encoder, before, "document", cache=Path("vectors"))
    more = pa.array(["a", "b", "c", "d", "e"], pa.large_string())
    with pytest.raises(DataError, match=message):
        encoding.encode(encoder, more, "document", cache=Path("vectors"))
    assert len(model.asked) == 2  # it is not asked again: it would be charged for again
    encoding.encode(encoder, before, "document", cache=Path("vectors"))
    assert len(model.asked) == 2


@pytest.mark.parametrize("body", [[], 1, None, {"data": [1]}, {"embeddings": {}}])
def test_an_answer_of_another_form_is_an_error(model, body):
    for dialect in ("openai", "cohere"):
        model.behaviours = [lambda handler, _: send(handler, 200, body)]
        with pytest.raises(DataError, match="an answer without vectors"):
            api(model, dialect=dialect).encode_queries(pa.array(["a"]))


# A server in trouble


def nest(handler: Any, payload: dict[str, Any]) -> None:
    send(handler, 200, b"[" * 100_000)


@pytest.mark.parametrize("behaviour", [refusing(500), refusing(503), refusing(429), cut_off, hang_up, nest], ids=repr)
def test_a_server_in_trouble_is_asked_again(model, behaviour):
    model.behaviours = [behaviour, behaviour]
    assert np.array_equal(api(model).encode_documents(TEXTS), expected(TEXTS))
    assert len(model.asked) == 3 and model.asked[0] == model.asked[2]


def test_the_wait_that_the_server_names_is_kept(model):
    model.behaviours = [refusing(429, Retry_After="0.3"), refusing(503, retry_after_ms="200")]
    api(model).encode_documents(TEXTS)
    first, second = np.diff(model.times)
    assert 0.3 <= first < 1 and 0.2 <= second < 1


def test_a_wait_may_be_named_as_a_date():
    import email.utils

    at = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert 28 < server._asked_wait({"retry-after": at}) <= 30
    assert server._asked_wait({"retry-after": "soon"}) is None and server._asked_wait({}) is None


def test_a_server_that_asks_for_too_long_a_wait_is_not_waited_for(model):
    model.behaviours = [refusing(429, "slow down", Retry_After="3600")]
    with pytest.raises(ServerError, match=r"1 try: it answered 429: .*slow down.* asks to wait 3600 s.*is kept"):
        api(model).encode_documents(TEXTS)


def test_a_server_that_stays_in_trouble_ends_with_what_it_said_and_nothing_is_lost(model):
    model.behaviours = [well, *[refusing(500, "overloaded")] * 3]
    encoder = api(model, batch_texts=2)
    with pytest.raises(ServerError, match=r"no answer in 3 tries: it answered 500: .*overloaded.*run the same stage"):
        cached(encoder)
    assert len(model.asked) == 4
    assert np.array_equal(cached(api(model, batch_texts=2)), expected(TEXTS))
    assert model.texts[-2:] == ["a tree", "merge two"]


def test_a_server_that_hangs_is_given_up(model):
    model.behaviours = [lambda *_: model.released.wait(10)] * 3
    begun = time.monotonic()
    with pytest.raises(ServerError, match=r"no answer in 3 tries: no answer within 0\.1 s"):
        api(model, timeout=0.1).encode_documents(TEXTS)
    assert time.monotonic() - begun < 5


def test_a_server_that_answers_in_drops_is_given_up(model):
    def drip(handler: Any, payload: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while not model.released.wait(0.02):
            handler.wfile.write(b"1\r\n \r\n")
            handler.wfile.flush()

    model.behaviours = [drip] * 2
    with pytest.raises(ServerError, match=r"no whole answer within 0\.2 s"):
        api(model, timeout=0.2, tries=2).encode_documents(TEXTS)


def test_a_server_that_is_not_there_is_named(model):
    with pytest.raises(ServerError, match=r"127\.0\.0\.1:9 gave no answer in 2 tries: no connection: check"):
        api(model, address="http://127.0.0.1:9/v1", tries=2).encode_documents(TEXTS)


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_refuses_the_key_is_not_asked_again(model, status):
    model.behaviours = [refusing(status, f"Incorrect API key provided: {KEY[:5]}***{KEY[-4:]}")]
    with pytest.raises(ServerError, match=f"answered {status}: it refuses the key in MODEL_KEY") as error:
        api(model).encode_documents(TEXTS)
    assert len(model.asked) == 1 and KEY[-4:] not in str(error.value)


def test_an_account_that_has_nothing_left_is_not_waited_for(model):
    model.behaviours = [refusing(429, "insufficient_quota")]
    with pytest.raises(ServerError, match="The account has nothing left; what was encoded is kept"):
        api(model).encode_documents(TEXTS)
    assert len(model.asked) == 1


def test_a_server_that_knows_no_such_model_is_quoted(model):
    model.behaviours = [refusing(404, "The model `m-1` does not exist")]
    with pytest.raises(ServerError, match=r"answered 404: .*`m-1` does not exist.*mend fit\.encoder"):
        api(model).encode_documents(TEXTS)


def test_a_server_that_sends_elsewhere_is_not_followed_with_the_key(model):
    model.behaviours = [refusing(307, Location="http://127.0.0.1:9/v1/embeddings")]
    with pytest.raises(ServerError, match="answered 307"):
        api(model).encode_documents(TEXTS)


def test_a_request_that_is_too_big_is_halved_and_no_text_is_lost(model):  # T7: 64 texts became 63
    def at_most_two(handler: Any, payload: dict[str, Any]) -> None:
        if len(payload["input"]) > 2:
            refusing(400, "max allowed tokens per submitted batch is 120000")(handler, payload)
        else:
            well(handler, payload)

    model.behaviours = [at_most_two] * 99
    texts = pa.array([f"text {n}" for n in range(7)], pa.large_string())
    assert np.array_equal(api(model).encode_documents(texts), expected(texts))
    assert [len(payload["input"]) for payload in model.asked] == [7, 3, 1, 2, 4, 2, 2]


def test_one_text_that_is_too_big_is_an_error_that_says_what_to_do(model):
    model.behaviours = [refusing(400, "maximum context length is 8192 tokens")] * 9
    with pytest.raises(
        ServerError, match=r"8192 tokens.*refuses even one text, which begins 'sort a list'.*max_tokens"
    ):
        api(model).encode_documents(TEXTS)


# What it costs


def test_what_was_spent_is_told_by_the_servers_own_count(model):
    encoder = api(model, price=0.02, batch_texts=2)
    encoder.encode_documents(TEXTS)
    assert encoder.spending == {"api_requests": 3, "api_tokens": 50, "api_cost": pytest.approx(50 * 0.02 / 1e6)}
    again = api(model, price=0.02)
    again.encode_queries(pa.array(["a"]))
    assert again.spending["api_tokens"] == 10
    assert again.spending_in_all == {
        "api_total_requests": 4,
        "api_total_tokens": 60,
        "api_total_cost": pytest.approx(60 * 0.02 / 1e6),
    }


def test_a_limit_stops_before_it_is_exceeded_and_what_was_encoded_is_kept(model, byte_tokenizer):
    texts = pa.array(["12345", "67890", "abcde"], pa.large_string())

    def ask(limit: int) -> np.ndarray:
        encoder = api(model, byte_tokenizer, batch_texts=1, token_limit=limit)
        return encoding.encode(encoder, texts, "document", cache=Path("vectors"))

    with pytest.raises(SpendingLimit, match=r"20 tokens are spent and the next request takes up to 5.*token_limit 24"):
        ask(24)
    assert len(model.asked) == 2
    with pytest.raises(SpendingLimit):
        ask(24)
    assert len(model.asked) == 2
    assert np.array_equal(ask(25), expected(texts)) and len(model.asked) == 3


def test_a_limit_in_money_needs_a_price(model, byte_tokenizer):
    with pytest.raises(BadValue, match="spend_limit needs price"):
        api(model, spend_limit=1.0)
    with pytest.raises(SpendingLimit, match=r"more than fit\.encoder's spend_limit 1e-06"):
        api(model, byte_tokenizer, spend_limit=1e-6, price=0.1).encode_documents(TEXTS)
    assert model.asked == []


def test_a_request_that_was_refused_costs_nothing_and_one_without_an_answer_counts(model, byte_tokenizer):
    model.behaviours = [refusing(500), cut_off, well]
    encoder = api(model, byte_tokenizer)
    encoder.encode_documents(pa.array(["12345"]))
    assert encoder.spending["api_tokens"] == 10 and encoder.spending_in_all["api_total_tokens"] == 10 + 5


def test_a_count_of_tokens_that_is_no_number_is_taken_as_not_said(model, byte_tokenizer):
    def endless(handler, payload):
        send(handler, 200, answer(payload) | {"usage": {"total_tokens": float("inf")}})

    model.behaviours = [endless]
    encoder = api(model, byte_tokenizer)
    encoder.encode_documents(pa.array(["12345"]))
    assert encoder.spending["api_tokens"] == 5


def test_ledgers_of_several_processes_share_one_limit(tmp_path):
    ledgers = [Ledger(tmp_path / "l.jsonl", "m", 10, None, None) for _ in range(2)]
    ledgers[0].reserve(6)
    with pytest.raises(SpendingLimit):
        ledgers[1].reserve(5)
    ledgers[0].settle(6, 2, 1)
    ledgers[1].reserve(5)
    assert ledgers[0].total.tokens == 7


def test_a_ledger_that_is_broken_off_is_not_guessed_at(tmp_path):
    (tmp_path / "l.jsonl").write_text('{"requests": 1, "tex')
    with pytest.raises(DataError, match="is not a whole ledger"):
        Ledger(tmp_path / "l.jsonl", "m", 10, None, None).reserve(1)


# What is kept


def test_the_texts_of_a_request_are_a_shard_and_the_same_request_again_asks_nothing(model):
    first = cached(api(model, batch_texts=2))
    assert len(list(Path("vectors").rglob("*.safetensors"))) == 2 == len(model.asked)
    assert np.array_equal(cached(api(model, batch_texts=3)), first) and len(model.asked) == 2
    assert np.array_equal(first, expected(TEXTS))


def test_queries_are_asked_for_anew_unless_they_are_to_be_kept(model):
    for keep, wanted in ((False, 2), (True, 1)):
        api(model, keep_queries=keep).save(Path(f"saved-{keep}"))
        encoder = encoders.load(Path(f"saved-{keep}"), cache=Path("vectors"))
        model.asked.clear()
        for _ in range(2):
            assert np.array_equal(encoder.encode_queries(TEXTS), expected(TEXTS))
        assert len(model.asked) == wanted


def test_the_fingerprint_follows_what_vectors_depend_on_and_nothing_else(model, byte_tokenizer, word_tokenizer):
    usual = api(model, byte_tokenizer, max_tokens=5)
    for same in (
        {"token_limit": 9, "spend_limit": 1.0, "price": 0.1},
        {"batch_texts": 2, "batch_tokens": 100, "tries": 9, "timeout": 1.0, "longest_wait": 1.0},
        {"key_variable": "OTHER_KEY", "keep_queries": True},
    ):
        assert api(model, byte_tokenizer, **{"max_tokens": 5} | same).fingerprint == usual.fingerprint
    others = [
        api(model, word_tokenizer, max_tokens=5),
        api(model, byte_tokenizer),
        *(
            api(model, byte_tokenizer, **{"max_tokens": 5} | other)
            for other in (
                {"max_tokens": 6},
                {"model": "m-2"},
                {"dim": 4},
                {"request_dim": True},
                {"dialect": "voyage"},
                {"address": model.address + "/other"},
                {"server_truncates": True},
                {"send_ids": True},
                {"query_prefix": "q: "},
                {"document_prefix": "d: "},
            )
        ),
    ]
    assert len({each.fingerprint for each in [usual, *others]}) == len(others) + 1


def test_a_saved_encoder_loads_from_its_folder_alone(model, byte_tokenizer):
    source = f"file:{byte_tokenizer}#sha256={sources.digest(byte_tokenizer)}"
    settings = {"kind": "api", "model": "m-1", "dim": DIM, "address": model.address, "key_variable": "MODEL_KEY"}
    made = encoders.prepare(settings | {"tokenizer": source, "max_tokens": 4}, Path("work"))
    made.save(Path("saved"))
    Path("saved").rename("moved")
    loaded = encoders.load(Path("moved"))
    assert loaded.settings == made.settings and loaded.fingerprint == made.fingerprint
    assert np.array_equal(loaded.encode_queries(TEXTS), made.encode_queries(TEXTS))
    (Path("moved") / byte_tokenizer.name).unlink()
    with pytest.raises(DataError, match=r"lacks cl100k_base\.tiktoken; prepare it again"):
        encoders.load(Path("moved"))


def test_the_key_is_written_nowhere_and_said_nowhere(model, byte_tokenizer, capfd, monkeypatch):
    """Not by an answer, an error that holds it, a limit, a ledger, a shard, a manifest or the settings."""
    monkeypatch.setattr(server, "WORDS_SHOWN", 10_000)
    behaviours = [
        refusing(400, f"bad header Bearer {KEY}"),
        refusing(429, f"{KEY} is too fast", Retry_After="999"),
        refusing(401, f"no such key: {KEY}"),
        lambda handler, _: send(handler, 200, {"data": [{"index": 0, "embedding": KEY}]}),
        lambda handler, _: send(handler, 200, KEY),
        hang_up,
    ]
    said = []
    for behaviour in behaviours:
        model.behaviours = [behaviour]
        with pytest.raises((ServerError, DataError)) as error:
            api(model, tries=1).encode_queries(pa.array(["a"]))
        said.append(repr(error.value))
    encoder = api(model, byte_tokenizer, max_tokens=4)
    cached(encoder)
    encoder.save(Path("saved"))
    said += [repr(encoder.settings), repr(encoder.spending), encoder.fingerprint, *capfd.readouterr()]
    written = [path for path in Path().rglob("*") if path.is_file()]
    assert len(written) >= 4
    for path in written:
        assert KEY.encode() not in path.read_bytes() and KEY not in str(path)
    assert not any(KEY in each for each in said)


# Settings


def test_settings_that_cannot_be_are_refused(model, byte_tokenizer):
    for settings, message in [
        ({"max_tokens": 5}, "max_tokens needs tokenizer"),
        ({"send_ids": True}, "send_ids needs tokenizer"),
        ({"batch_texts": 97, "dialect": "cohere"}, "batch_texts is 97; the dialect cohere takes at most 96"),
        ({"dim": 0}, r"fit\.encoder\.dim is 0"),
        ({"tries": 0}, r"fit\.encoder\.tries is 0"),
        ({"timeout": 0.0}, r"fit\.encoder\.timeout"),
        ({"address": "api.example.org"}, "address is no http or https address"),
        ({"address": f"https://user:{KEY}@example.org"}, "address holds a user, a password or a query"),
        ({"address": f"https://example.org/?key={KEY}"}, "address holds a user, a password or a query"),
        ({"key_variable": KEY}, "never the key itself"),
    ]:
        with pytest.raises(BadValue, match=message) as error:
            api(model, **settings)
        assert KEY not in str(error.value)
    with pytest.raises(BadValue, match="the dialect voyage takes texts only"):
        api(model, byte_tokenizer, send_ids=True, dialect="voyage")
    with pytest.raises(UnknownName, match="Did you mean max_tokens"):
        encoders.prepare({"kind": "api", "model": "m", "dim": 1, "max_token": 1}, Path("work"))
    with pytest.raises(BadValue, match="wanted openai, voyage, cohere"):
        encoders.prepare({"kind": "api", "model": "m", "dim": 1, "dialect": "opnai"}, Path("work"))


def test_a_key_that_is_not_there_is_named_and_none_is_sent_where_none_is_wanted(model, monkeypatch):
    monkeypatch.delenv("MODEL_KEY")
    with pytest.raises(ServerError, match="environment variable MODEL_KEY is not set"):
        api(model).encode_documents(TEXTS)
    assert model.asked == [] and api(model).spending_in_all["api_total_tokens"] == 0
    api(model, key_variable="").encode_documents(TEXTS)
    assert "Authorization" not in model.headers[0]


def test_a_tokenizer_file_that_is_broken_or_not_known_is_refused(tmp_path):
    for name, content, message in [
        ("cl100k_base.tiktoken", "AA", "is not a whole tokenizer file"),
        ("p9k_base.tiktoken", "AA 1", "is no known tokenizer; known: cl100k_base"),
        ("tokenizer.json", "{", "is not a whole tokenizer file"),
    ]:
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError, match=message):
            counting.read(tmp_path / name)
    with pytest.raises(DataError, match="holds 3 tokenizer files, wanted one"):
        counting.find(tmp_path)
