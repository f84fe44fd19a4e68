import pytest

from coderet.corpora import syntax
from coderet.corpora.uncommenting import uncommented


def test_lines_keep_their_numbers_and_those_of_comments_alone_are_none():
    text = '# é\nx = 1  # one\n\ndef f():\n    """Two\n    lines."""\n    return "# none"\n'
    assert uncommented(text, "python") == [None, "x = 1", "", "def f():", None, None, '    return "# none"', ""]


def test_a_body_that_is_a_docstring_alone_passes():
    assert uncommented('def f():\n    """Only."""\n', "python") == ["def f():", "    pass", ""]


@pytest.mark.parametrize(
    ("language", "text", "lines"),
    [
        ("java", "/* a\n b */ class A { } // c", [None, " class A { }"]),
        ("cpp", "int f() { // x\n  return 1; /* y */\n}", ["int f() {", "  return 1;", "}"]),
        ("rust", "/// a\nfn f() {} // b\n", [None, "fn f() {}", ""]),
        ("go", "package p // a\n// b", ["package p", None]),
        ("php", "<?php # a\n// b\n$x = 1;", ["<?php", None, "$x = 1;"]),
        ("ruby", "# a\nx = '# b'", [None, "x = '# b'"]),
        ("typescript", "/** a */\nlet x = 1", [None, "let x = 1"]),
        ("javascript", "let x /* a */ = 1", ["let x  = 1"]),
    ],
)
def test_comments_are_those_of_the_grammar(language, text, lines):
    assert uncommented(text, language) == lines


@pytest.mark.parametrize("language", sorted(syntax.LANGUAGES))
def test_every_language_gives_as_many_lines_as_there_are(language):
    text = "a b ( \r\n\n'c' \ufeff é\n}"
    assert len(uncommented(text, language)) == 4
