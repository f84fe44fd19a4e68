import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from coderet.encoders import tokenizer as tokenizers
from coderet.encoders.tokenizer import BEGIN, END, SPECIAL, UNKNOWN, Tokens, WordTokenizer, truncated
from coderet.records import DataError

CODE = pa.chunked_array([["def getHTTPResponse(url):", "get the url"], ["", None, "url url"]], type=pa.large_string())


def listed(tokens: Tokens) -> list[list[int]]:
    return [tokens.ids[start:end].tolist() for start, end in zip(tokens.offsets, tokens.offsets[1:], strict=False)]


def trained(kind: str, **settings: int) -> tokenizers.Tokenizer:
    return tokenizers.train([CODE], kind, **settings)


def test_the_most_frequent_words_come_first_and_equal_ones_by_alphabet():
    assert trained("words", size=100, min_count=1).words == ("url", "get", "def", "http", "response", "the")


def test_rare_words_and_words_beyond_the_size_are_left_out():
    assert trained("words", size=100, min_count=2).words == ("url", "get")
    assert trained("words", size=len(SPECIAL) + 1, min_count=1).words == ("url",)


def test_a_word_tokenizer_maps_what_it_does_not_know_to_the_unknown_id():
    tokens = WordTokenizer(["url", "get"]).content(CODE)
    url, get = len(SPECIAL), len(SPECIAL) + 1
    assert listed(tokens) == [[UNKNOWN, get, UNKNOWN, UNKNOWN, url], [get, UNKNOWN, url], [], [], [url, url]]


def test_a_bpe_tokenizer_cuts_unknown_words_into_known_letters():
    tokenizer = trained("bpe", size=200, min_count=1)
    pieces = tokenizer._fast.id_to_token
    words = [[pieces(number) for number in ids] for ids in listed(tokenizer.content(pa.array(["urlget", "get_URL"])))]
    assert words == [["url", "get"], ["get", "url"]]


@pytest.mark.parametrize("kind", ["words", "bpe"])
def test_a_text_has_the_same_ids_whatever_is_asked_beside_it_and_before(kind: str):
    tokenizer = trained(kind, size=100, min_count=1)
    together = listed(tokenizer.content(CODE))
    again = [listed(tokenizer.content(pa.array([text], pa.large_string())))[0] for text in CODE.to_pylist()]
    assert together == again == listed(tokenizer.content(CODE))


def test_forgetting_remembered_words_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    tokenizer = trained("bpe", size=100, min_count=1)
    before = listed(tokenizer.content(CODE))
    monkeypatch.setattr(tokenizers, "WORDS_REMEMBERED", 1)
    assert listed(tokenizer.content(CODE)) == before


def test_no_texts_have_no_tokens():
    for tokenizer in (WordTokenizer(["a"]), trained("bpe", size=100)):
        tokens = tokenizer.content(pa.array([], pa.large_string()))
        assert len(tokens) == 0 and len(tokens.ids) == 0


@pytest.mark.parametrize("kind", ["words", "bpe"])
def test_a_saved_tokenizer_loads_as_it_was(kind: str, tmp_path: Path):
    tokenizer = trained(kind, size=60, min_count=1)
    tokenizers.save(tokenizer, tmp_path / "new" / "tokenizer.json")
    loaded = tokenizers.load(tmp_path / "new" / "tokenizer.json")
    assert loaded.description() == tokenizer.description()
    assert listed(loaded.content(CODE)) == listed(tokenizer.content(CODE))


@pytest.mark.parametrize("kind", ["words", "bpe"])
def test_training_twice_gives_the_same_tokenizer(kind: str):
    assert trained(kind, size=60, min_count=1).description() == trained(kind, size=60, min_count=1).description()


def test_a_tokenizer_file_that_is_cut_short_or_missing_is_refused(tmp_path: Path):
    path = tmp_path / "tokenizer.json"
    tokenizers.save(WordTokenizer(["a", "b"]), path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(DataError, match="not a whole tokenizer file"):
        tokenizers.load(path)
    with pytest.raises(DataError, match="not a whole tokenizer file"):
        tokenizers.load(tmp_path / "none.json")
    path.write_text(json.dumps({"kind": "words"}))
    with pytest.raises(DataError, match="not a whole tokenizer file"):
        tokenizers.load(path)


def test_an_unknown_kind_is_refused_with_the_nearest():
    with pytest.raises(DataError, match="Did you mean words"):
        trained("word")


def test_truncation_cuts_the_end_of_the_text_and_keeps_both_marks():
    content = Tokens.of([range(10, 10 + length) for length in (3, 6, 7, 48)])  # with two marks: 5, 8, 9, 50 tokens
    tokens = truncated(content, 8, [BEGIN], [END])
    assert tokens.lengths.tolist() == [5, 8, 8, 8]
    assert listed(tokens)[2] == listed(tokens)[3] == [BEGIN, 10, 11, 12, 13, 14, 15, END]
    assert (tokens.cut, tokens.lost) == (2, 1 + 42)


def test_a_prefix_is_never_cut():
    content = Tokens.of([[7, 8, 9], []]).after(np.array([4, 5]))
    assert listed(truncated(content, 5, [BEGIN], [END], keep=2)) == [[BEGIN, 4, 5, 7, END], [BEGIN, 4, 5, END]]


def test_a_limit_that_leaves_no_room_for_text_is_refused():
    with pytest.raises(DataError, match="no room beside 2 marks and a prefix of 2"):
        truncated(Tokens.of([[4, 5, 6]]), 4, [BEGIN], [END], keep=2)


def test_padding_goes_to_a_multiple_and_the_mask_tells_tokens_from_padding():
    ids, mask = Tokens.of([[5], [6, 7, 8], []]).padded(np.array([1, 2, 0]), multiple=4, fill=9)
    assert ids.tolist() == [[6, 7, 8, 9], [9, 9, 9, 9], [5, 9, 9, 9]]
    assert mask.tolist() == [[True, True, True, False], [False] * 4, [True, False, False, False]]
