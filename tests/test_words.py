import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_letters_of_no_other_script_change_no_word_of_ascii(text):
    assert [*code_words(text), "é"] == code_words(f"{text}_é")
