import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coderet.corpora import chunking
from coderet.corpora.chunking import Lines, Place, Syntax, Tokens, chunk_id, line_bounds, place_of, token_spans
from coderet.records import Corpus, DataError, documents_batch
from coderet.registry import BadValue, UnknownName

PIECES = [
    "def f(x):\n",
    "    return x\r\n",
    "class A:\n",
    "  好 é 🙂",
    "\n",
    "\r",
    "\f",
    "word ",
    '"""',
    "{",
    "\x1c",
    "\u2028",
]
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join))


def chunks(chunker, text, path=""):
    return [text[start:end] for start, end in chunker.spans(text, path)]


def corpus_of(texts):
    ids = sorted(texts, key=str.encode, reverse=True)
    return Corpus("pool", pa.Table.from_batches([documents_batch(ids, [""] * len(ids), [texts[each] for each in ids])]))


# --- nothing is lost


@given(TEXTS, st.integers(1, 5), st.sampled_from(["lines", "tokens", "syntax"]))
@settings(max_examples=300, deadline=None)
def test_chunks_that_do_not_overlap_give_the_text_back_and_none_is_empty(text, size, kind):
    more = {"language": "python"} if kind == "syntax" else {}
    found = chunks(chunking.chunker({"kind": kind, "size": size, **more}), text)
    assert "".join(found) == text
    assert all(found) if text else found == [""]


@given(TEXTS, st.integers(1, 6), st.integers(1, 6))
@settings(deadline=None)
def test_windows_that_overlap_cover_every_line(text, size, step):
    bounds = line_bounds(text)
    spans = Lines(size=max(size, step), step=step).spans(text)
    assert spans[0][0] == 0 and spans[-1][1] == len(text)
    assert all(later[0] <= earlier[1] and earlier[0] < later[0] for earlier, later in pairwise(spans))
    assert {place for span in spans for place in span} <= set(bounds)


@given(TEXTS, st.integers(1, 4), st.sampled_from(["a", "a#L1-L2", "d/好.py", "x\ny#L3C4-L5\n", ""]))
@settings(deadline=None)
def test_ids_are_distinct_and_lead_back_to_document_and_lines(text, size, document):
    bounds = line_bounds(text)
    for chunker in (Tokens(size=size), Lines(size=size, step=1)):
        spans = chunker.spans(text)
        ids = [chunk_id(document, span, bounds) for span in spans]
        assert len(set(ids)) == len(ids)
        for (start, end), each in zip(spans, ids, strict=True):
            place = place_of(each)
            assert place.document_id == document
            assert text[start:end] in "".join(text[bounds[place.first_line - 1] : bounds[place.last_line]])
            assert start == bounds[place.first_line - 1] + (place.first_column or 1) - 1
            ends = bounds[place.last_line - 1] + place.last_column if place.last_column else bounds[place.last_line]
            assert end == ends


# --- ids


def test_a_chunk_of_whole_lines_is_named_by_its_lines_and_one_within_a_line_by_columns_too():
    text = "one\ntwo three\nfour"
    bounds = line_bounds(text)
    assert chunk_id("d", (0, 14), bounds) == "d#L1-L2"
    assert chunk_id("d", (14, 18), bounds) == "d#L3-L3"
    assert chunk_id("d", (4, 8), bounds) == "d#L2-L2C4"
    assert chunk_id("d", (8, 18), bounds) == "d#L2C5-L3"
    assert chunk_id("d", (0, 0), line_bounds("")) == "d#L1-L1"
    assert place_of("a#L1-L2#L3C4-L5") == Place("a#L1-L2", 3, 4, 5, None)


@pytest.mark.parametrize("wrong", ["d", "d#L1", "d#L1-Lx", "d#L1-L2 ", "d#L1-L2\n", "d#L١-L٢"])
def test_what_is_no_chunk_is_refused(wrong):
    with pytest.raises(DataError, match="is no id of a chunk; wanted <document id>#L<first>-L<last>"):
        place_of(wrong)


# --- windows of lines


def test_windows_end_with_the_one_that_reaches_the_last_line():
    text = "a\nb\nc\nd\ne\n"
    assert chunks(Lines(size=3, step=2), text) == ["a\nb\nc\n", "c\nd\ne\n"]
    assert chunks(Lines(size=2), text) == ["a\nb\n", "c\nd\n", "e\n"]
    assert chunks(Lines(size=9), text) == [text]


def test_only_a_line_feed_ends_a_line():
    assert chunks(Lines(size=1), "a\r\nb\x0cc\u2028d\re") == ["a\r\n", "b\x0cc\u2028d\re"]


# --- tokens (protocol T27)


def test_whole_lines_are_kept_together_up_to_so_many_tokens():
    assert chunks(Tokens(size=4), "a b\nc d\n\ne\n") == ["a b\nc d\n\n", "e\n"]


def test_a_line_that_overflows_begins_the_next_chunk_instead_of_being_lost():
    assert chunks(Tokens(size=3), "a b\nc d\n") == ["a b\n", "c d\n"]


def test_a_first_line_that_alone_is_too_long_is_cut_within_and_no_chunk_is_empty():
    assert chunks(Tokens(size=2), "a b c d e\nf\n") == ["a b ", "c d ", "e\nf\n"]
    assert chunks(Tokens(size=2), "\na b c\n") == ["\na b ", "c\n"]


def test_an_empty_text_is_one_empty_chunk():
    assert [chunks(each, "") for each in (Tokens(size=2), Lines(size=2), Syntax(size=2))] == [[""]] * 3


def test_only_the_first_chunk_is_kept_if_asked():
    assert chunks(Tokens(size=2, first_only=True), "a b\nc\n") == ["a b\n"]


def test_a_character_of_several_tokens_is_not_cut():
    def bytes_of(texts):
        return [[(at, at + 1) for at, letter in enumerate(text) for _ in letter.encode()] for text in texts]

    text = "a🙂好b"  # 1, 4, 3 and 1 tokens
    assert [text[a:b] for a, b in token_spans(text, 3, bytes_of)] == ["a", "🙂", "好", "b"]
    assert [text[a:b] for a, b in token_spans(text, 8, bytes_of)] == ["a🙂好", "b"]


def test_tokens_of_the_tokenizers_library_are_counted_by_its_own_file(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Punctuation()
    tokenizer.enable_truncation(2)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    chunker = Tokens(size=3, tokenizer=str(tmp_path / "tokenizer.json"))
    assert chunks(chunker, "a.b\nc\nd.e.f.g\n") == ["a.b\n", "c\n", "d.e", ".f.", "g\n"]
    before = chunker.settings["tokenizer_sha256"]
    (tmp_path / "tokenizer.json").write_text(json.dumps({}))
    broken = Tokens(size=3, tokenizer=str(tmp_path / "tokenizer.json"))
    assert broken.settings["tokenizer_sha256"] != before
    with pytest.raises(DataError, match=r"is no tokenizer\.json that the tokenizers library reads"):
        broken.spans("a")


# --- syntax nodes

FILE = """import os
X = 1

# says f
def f():
    return 1


class A:
    def g(self):
        a = 1
        return a

    def h(self):
        return 2

if X:
    print(X)
"""


def test_every_definition_is_a_chunk_with_what_stands_before_it_and_the_tail_goes_with_the_last():
    found = chunks(Syntax(size=20), FILE, "m.py")
    assert [each.strip().splitlines()[0] for each in found] == ["import os", "class A:"]
    assert found[1].endswith("    print(X)\n")


def test_what_is_too_long_is_split_at_its_children_and_comments_stay_with_their_function():
    found = chunks(Syntax(size=5), FILE, "m.py")
    assert [each.strip("\n").splitlines()[0] for each in found] == [
        "import os", "# says f", "class A:", "    def g(self):", "    def h(self):"
    ]  # fmt: skip
    assert "".join(found) == FILE


def test_a_node_without_children_is_cut_by_lines():
    text = 'x = """' + "\n".join("abcdefg") + '"""\n'
    assert [each.count("\n") for each in chunks(Syntax(size=3, language="python"), text)] == [3, 3, 1]


@given(st.lists(st.sampled_from(["x = 1\n", "# c\n", "\n", "def f():\n    a = 1\n    b = 2\n", "class A:\n  a = 1\n"])))
@settings(deadline=None)
def test_no_chunk_is_longer_than_asked_blank_lines_at_its_end_aside(parts):
    found = chunks(Syntax(size=4, language="python"), "".join(parts))
    assert all(each.rstrip().count("\n") < 4 for each in found)


SAMPLES = {
    "m.go": "package m\n\nfunc F() {\n}\n\n// says G\nfunc G() {\n}\n",
    "M.java": "class A {\n  void f() {}\n}\n\nclass B {\n}\n",
    "m.js": "const f = () => {\n}\nexport function g() {\n}\n",
    "m.php": "<?php\nfunction f() {\n}\nclass A {\n}\n",
    "m.rb": "def f\nend\n\nclass A\nend\n",
}


@pytest.mark.parametrize("path", SAMPLES)
def test_every_language_has_a_chunk_a_definition(path):
    assert len(chunks(Syntax(size=50), SAMPLES[path], path)) == 2


def test_what_is_of_no_known_language_or_does_not_parse_is_cut_by_lines():
    text = "def f():\n    return 1\ndef g():\n    return 2\n"
    assert len(chunks(Syntax(size=3), text, "m.py")) == 2
    broken, binary, bottomless = "def f(:\n" * 4, "x\0\n" * 4, " " * 401 + "x\n" * 4
    for each, path in ((text, "readme"), (broken, "m.py"), (binary, "m.py"), (bottomless, "m.py")):
        assert chunks(Syntax(size=3), each, path) == chunks(Lines(size=3), each)


# --- columns


def test_documents_stream_to_chunks_with_their_titles():
    documents = documents_batch(["b", "a"], ["t", None], ["1\n2\n3", ""])
    (batch,) = chunking.chunks(iter([documents]), Lines(size=2))
    assert batch.to_pylist() == [
        {"id": "b#L1-L2", "title": "t", "text": "1\n2\n"},
        {"id": "b#L3-L3", "title": "t", "text": "3"},
        {"id": "a#L1-L1", "title": "", "text": ""},
    ]


def test_a_title_or_an_id_with_a_known_ending_says_the_language():
    text = "def f():\n    1\ndef g():\n    2\n"
    documents = documents_batch(["m.py", "2", "3"], ["", "n.py", "name"], [text] * 3)
    ids = [each for batch in chunking.chunks([documents], Syntax(size=4)) for each in batch["id"].to_pylist()]
    assert ids == ["m.py#L1-L2", "m.py#L3-L4", "2#L1-L2", "2#L3-L4", "3#L1-L4"]


def test_little_is_held_at_a_time(monkeypatch):
    monkeypatch.setattr(chunking, "CHARACTERS_A_BATCH", 100)
    asked = []

    def documents():
        for number in range(50):
            asked.append(number)
            yield documents_batch([str(number)], [""], ["x" * 40 + "\n"] * 1)

    batches = chunking.chunks(documents(), Lines(size=1))
    next(batches)
    assert len(asked) < 5
    assert max(batch.num_rows for batch in batches) < 5


def test_the_chunks_of_a_corpus_lie_in_the_one_order_and_know_their_documents(tmp_path):
    texts = {"a": "1\n2", "a#L1-L2": "3\n4", "a!": "", "é": "5\n6\n7"}
    corpus = corpus_of(texts)
    cut, owners = chunking.chunk_corpus(corpus, Lines(size=1), tmp_path / "chunks.arrow")
    ids = cut.ids.to_pylist()
    assert ids == sorted(ids, key=str.encode, reverse=True) and len(ids) == 8
    names = corpus.ids.to_pylist()
    assert [names[row] for row in owners] == [place_of(each).document_id for each in ids]
    again, _ = chunking.chunk_corpus(corpus, Lines(size=1), tmp_path / "again.arrow")
    assert again.digest == cut.digest
    with pytest.raises(DataError, match="is no chunk of a document of corpus pool"):
        chunking.owners(cut, corpus_of({"b": ""}))


def test_an_empty_corpus_has_no_chunks(tmp_path):
    cut, owners = chunking.chunk_corpus(corpus_of({}), Lines(size=1), tmp_path / "chunks.arrow")
    assert len(cut) == 0 and owners.dtype == np.int64 and len(owners) == 0


# --- settings


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"kind": "line", "size": 5}, UnknownName, r"x.kind is 'line'; known chunkings: .* Did you mean lines\?"),
        ({"kind": "lines", "sise": 5}, UnknownName, r"x.sise is not a setting; .* Did you mean size\?"),
        ({"kind": "lines"}, UnknownName, "x lacks size"),
        ({"kind": "lines", "size": 5, "step": 6}, BadValue, "chunking.step is 6; wanted a number from 1 to 5"),
        ({"kind": "tokens", "size": 0}, BadValue, "chunking.size is 0; wanted a number from 1 on"),
        ({"kind": "tokens", "size": 5, "tokenizer": "no.json"}, DataError, "wanted whitespace or the path"),
        ({"kind": "syntax", "size": 5, "language": "pyton"}, UnknownName, r"Did you mean python\?"),
        (5, BadValue, "x is 5; wanted a mapping"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(given, error, said):
    with pytest.raises(error, match=said):
        chunking.chunker(given, "x")
