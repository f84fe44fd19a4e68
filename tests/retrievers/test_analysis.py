import pyarrow as pa
import pytest

from coderet.records import DataError
from coderet.retrievers import analysis, java


def test_whitespace_keeps_case_and_punctuation():
    assert analysis.tokens("def f(a,  b):\n\treturn A", "whitespace") == ["def", "f(a,", "b):", "return", "A"]


def test_code_words_are_lower_case_words_of_identifiers():
    assert analysis.tokens("getHTTPResponse_v2()", "code-words") == ["get", "http", "response", "v", "2"]


def test_a_token_is_cut_after_255_units_as_in_lucene():
    assert [len(token) for token in analysis.tokens("x" * 600 + " y", "whitespace")] == [255, 255, 90, 1]
    assert [len(token) for token in analysis.tokens("x" * 255, "whitespace")] == [255]
    assert [len(token) for token in analysis.tokens("x" * 254 + "\U0001f600" * 200, "whitespace")] == [255, 128, 71]


def test_tokens_are_those_of_lucene_whatever_the_characters():
    find = java.classes()
    lucene = find("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
    analyze = find("io.anserini.analysis.AnalyzerUtils").analyze
    characters = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10000), 0x1F600, 0x10FFFF]))
    texts = [
        "a".join(characters),
        "x" * 700,
        "x" * 254 + "\U0001f600" * 300 + " y",
        "\U0001f600" * 127 + "z" * 300,
        "nul\x00inside \x85 \xa0 nbsp",
        "",
        " \n",
    ]
    for text in texts:
        assert analysis.tokens(text, "whitespace") == list(analyze(lucene, text))


def test_an_unknown_analyzer_and_wrong_fields_say_what_there_is():
    with pytest.raises(DataError, match=r"analyzer is 'code_words'; known: .* Did you mean code-words\?"):
        analysis.check_analyzer("code_words")
    for fields in ("text", [], ["body"], ["text", "text"]):
        with pytest.raises(DataError, match="wanted a list of one or both of title, text"):
            analysis.check_fields(fields)


def test_only_code_words_are_cut_before_lucene():
    texts = pa.chunked_array([pa.array(["fooBar  b", ""], pa.large_string())])
    assert analysis.prepared(texts, "code-words") == ["foo bar b", ""]
    assert analysis.prepared(texts, "english") == ["fooBar  b", ""]
