import pytest

from coderet.words import code_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("getHTTPResponse_v2", "get http response v 2"),
        ("snake_case", "snake case"),
        ("HTTPServer", "http server"),
        ("parse2XML", "parse 2 xml"),
        ("__init__(self, x)", "init self x"),
        ("übung naïve été", "übung naïve été"),
        ("好的", "好的"),
        ("a += 1.5", "a 1 5"),
        ("", ""),
        ("(...)", ""),
    ],
)
def test_words_begin_where_case_digits_and_punctuation_say_so(text, words):
    assert code_words(text) == words.split()
