import ast
import sys

import pytest

from coderet.corpora import syntax
from coderet.corpora.syntax import BinaryFile, TooDeep, clean_comment, clean_docstring, decode, functions


def names(source: bytes, language: str = "python") -> list[str]:
    return [function.qualified_name for function in functions(source, language)]


def only(source: bytes, language: str = "python") -> syntax.Function:
    (function,) = functions(source, language)
    return function


# --- which functions count


def test_module_functions_and_methods_of_nested_classes_are_found_with_their_qualified_names():
    source = b"""
def f(): pass
class A:
    def g(self): pass
    class B:
        def h(self): pass
    def i(self): pass
def j(): pass
"""
    assert names(source) == ["f", "A.g", "A.B.h", "A.i", "j"]


def test_a_function_nested_in_a_function_is_part_of_the_outer_one():
    function = only(b"def outer():\n    def inner():\n        return 1\n    return inner\n")
    assert function.qualified_name == "outer"
    assert "def inner" in function.text


def test_a_class_inside_a_function_gives_no_methods_of_its_own():
    assert names(b"def f():\n    class A:\n        def g(self): pass\n    return A\n") == ["f"]


@pytest.mark.parametrize(
    "head",
    ["if a:", "if a:\n    b\nelse:", "if a:\n    b\nelif c:", "try:\n    a\nexcept E:", "try:\n    a\nfinally:",
     "with a:", "for a in b:", "for a in b:\n    c\nelse:", "while a:", "try:\n    a\nexcept E:\n    b\nelse:"],
)  # fmt: skip
def test_functions_below_module_level_statements_are_found(head):
    assert names(head.encode() + b"\n    def f(): pass\n") == ["f"]


def test_a_function_in_the_body_of_try_and_one_in_its_handler_are_two():
    assert names(b"try:\n    def f(): pass\nexcept E:\n    def f(): return 1\n") == ["f", "f"]


def test_a_function_below_match_is_found():
    assert names(b"match a:\n    case 1:\n        def f(): pass\n") == ["f"]


def test_decorators_and_async_belong_to_the_function():
    source = b"import a\n\n@one\n@two(3)\nasync def f(x):\n    return x\n"
    function = only(source)
    assert function.text == "@one\n@two(3)\nasync def f(x):\n    return x"
    assert (function.start_line, function.end_line) == (3, 6)


def test_methods_of_a_decorated_class_are_found():
    assert names(b"@d\nclass A:\n    @property\n    def f(self): pass\n") == ["A.f"]


# --- byte-exact slices (case D13)

D13 = '# ééé → 好\ndef f(x):\n    """Text é."""\n    return "→"\n'


def test_non_ascii_text_before_a_function_shifts_nothing():
    data = D13.encode()
    function = only(data)
    assert data[function.start_byte : function.end_byte].decode() == function.text
    assert function.text.startswith("def f(x):")
    assert function.text.endswith('return "→"')
    assert function.docstring == "Text é."


def test_a_byte_order_mark_shifts_nothing():
    data = b"\xef\xbb\xbf" + D13.encode()
    function = only(data)
    assert function.source.encoding == "utf-8-sig"
    assert data[function.start_byte : function.end_byte].decode() == function.text
    assert function.start_line == 2


def test_a_byte_order_mark_right_before_the_function_is_not_part_of_it():
    assert only(b"\xef\xbb\xbfdef f():\n    return 1\n").text == "def f():\n    return 1"


def test_lines_are_right_for_crlf():
    data = b"# one\r\n\r\ndef f(x):\r\n    return x\r\n\r\nclass A:\r\n    def g(self):\r\n        pass\r\n"
    first, second = functions(data, "python")
    assert (first.start_line, first.end_line) == (3, 4)
    assert (second.start_line, second.end_line) == (7, 8)
    assert first.text == "def f(x):\r\n    return x"
    assert second.code == "def g(self):\r\n    pass"


def test_a_form_feed_is_white_space():
    assert names(b"def f():\n    return 1\n\x0c\ndef g():\n    return 2\n\x0cdef h(): pass\n") == ["f", "g", "h"]


def test_latin_1_without_a_declaration_is_the_fallback_and_offsets_are_those_of_the_file():
    data = '# ééé\ndef f(x):\n    """Cédille."""\n    return "ç"\n'.encode("latin-1")
    function = only(data)
    assert function.source.encoding == "latin-1"
    assert function.text == data[function.start_byte : function.end_byte].decode("latin-1")
    assert function.docstring == "Cédille."


def test_a_declared_encoding_is_used_where_utf_8_fails():
    text = '# -*- coding: cp1252 -*-\n# €\ndef f(x):\n    return "€"\n'
    data = text.encode("cp1252")
    function = only(data)
    assert function.source.encoding == "cp1252"
    assert function.text.endswith('"€"')
    assert data[function.start_byte : function.end_byte].decode("cp1252") == function.text


@pytest.mark.parametrize("declared", ["no-such-codec", "rot13", "hex", "ascii", "utf-8"])
def test_a_declared_encoding_that_does_not_decode_the_file_falls_back_to_latin_1(declared):
    assert decode(f"# coding: {declared}\nx = 'é'\n".encode("latin-1"), "python").encoding == "latin-1"


def test_only_the_first_two_lines_declare_an_encoding():
    third = b"#\n#\n# coding: cp1252\nx = '\x80'\n"
    after_code = b"import a\n# coding: cp1252\nx = '\x80'\n"
    assert decode(third, "python").encoding == "latin-1"
    assert decode(after_code, "python").encoding == "latin-1"


def test_a_nul_byte_is_refused():
    with pytest.raises(BinaryFile, match="NUL byte at offset 8"):
        functions(b"def f():\0 pass\n", "python")


def test_an_empty_file_has_no_functions():
    assert functions(b"", "python") == []


def test_three_thousand_nested_parentheses_are_no_problem():
    depth = 3000
    source = b"def f():\n    return " + b"(" * depth + b"1" + b")" * depth + b"\ndef g(): pass\n"
    assert depth > sys.getrecursionlimit()
    assert names(source) == ["f", "g"]


def nested_classes(depth: int) -> bytes:
    lines = [" " * level + f"class C{level}:\n" for level in range(depth)]
    return ("".join(lines) + " " * depth + "def f(): pass\n").encode()


def test_classes_nested_deeper_than_python_allows_are_no_problem():
    function = only(nested_classes(depth=300))
    assert function.name == "f"
    assert function.qualified_name.startswith("C0.C1.")


def test_indentation_that_the_grammar_never_returns_from_is_refused():
    with pytest.raises(TooDeep, match="indented by 400 or more"):
        functions(nested_classes(depth=1500), "python")


def test_a_wide_gap_inside_a_line_is_not_indentation():
    assert names(b"def f(): return 1" + b" " * 1000 + b"# far\n") == ["f"]


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("go", "func f() {0} {1}"),
        ("java", "class A {{ void f() {0} {1} }}"),
        ("javascript", "function f() {0} {1}"),
        ("php", "<?php function f() {0} {1}"),
    ],
)
def test_deep_blocks_of_other_languages_are_no_problem(language, source):
    assert only(source.format("{" * 3000, "}" * 3000).encode(), language).name == "f"


@pytest.mark.parametrize(
    "bad",
    [
        "def bad(x):\n    return x +\n",
        "def bad(x):\n    return (x\n",
        "def bad(x:\n    return x\n",
        "def bad(x)\n    return x\n",
        "def bad(x):\n    y = 'abc\n    return x\n",
        "def bad(x):\n    y = [1,\n    return x\n",
    ],
)
def test_a_good_function_after_a_broken_one_is_kept_and_marked(bad):
    data = f"{bad}\n\n@d\ndef good(y):\n    return y\n".encode()
    found = {function.name: function for function in functions(data, "python")}
    good = found["good"]
    assert good.text == "@d\ndef good(y):\n    return y"
    assert (good.start_line, good.end_line) == (bad.count("\n") + 3, bad.count("\n") + 5)
    assert not good.has_error
    assert good.file_has_error
    assert all(function.has_error for name, function in found.items() if name != "good")


def test_a_definition_inside_a_string_of_a_sound_function_is_not_taken_in_a_broken_file():
    data = b'def good():\n    return """\ndef inside():\n    pass\n"""\n\ndef bad(:\n    return (\n'
    assert "inside" not in names(data)
    assert "good" in names(data)


def test_functions_of_a_sound_file_are_not_marked():
    function = only(b"def f():\n    return 1\n")
    assert (function.has_error, function.file_has_error) == (False, False)


@pytest.mark.parametrize(
    "source",
    [
        D13,
        "class A:\n    @property\n    def f(self):\n        return 1\n",
        "@a\n@b\nasync def f(x):\n    async with x:\n        pass\n",
        "class A:\n\tdef f(self):\n\t\tif self:\n\t\t\treturn 1\n\t\treturn 2\n",
        "if x:\r\n    def f():\r\n        '''Doc.'''\r\n        return 1\r\n",
    ],
)
def test_parsing_the_extracted_text_again_gives_the_same_function(source):
    first = only(source.encode())
    again = only(first.text.encode())
    assert (again.name, again.text, again.docstring) == (first.name, first.text, first.docstring)
    assert not again.has_error


# --- docstrings and code without them


@pytest.mark.parametrize(
    ("body", "docstring"),
    [
        ('"""One."""\n    return 1', "One."),
        ("'One.'\n    return 1", "One."),
        ('r"""A \\d."""\n    return 1', "A \\d."),
        ('"""A \\"b\\"\\n    c."""\n    return 1', 'A "b"\nc.'),
        ('u"""One."""\n    return 1', "One."),
        ('"""One\n\n    Two.\n      Three.\n    """\n    return 1', "One\n\nTwo.\n  Three."),
        ('"a" "b"\n    return 1', "ab"),
        ('# comment\n    """One."""\n    return 1', "One."),
        ('""\n    return 1', ""),
        ('b"bytes"\n    return 1', None),
        ('f"{x}"\n    return 1', None),
        ('x = "string"\n    return 1', None),
        ("return 'a'", None),
    ],
)
def test_the_docstring_is_what_python_itself_says(body, docstring):
    source = f"def f():\n    {body}\n"
    assert only(source.encode()).docstring == docstring
    assert ast.get_docstring(ast.parse(source).body[0]) == docstring


def test_the_raw_docstring_is_the_literal_as_written():
    assert only(b'def f():\n    r"""A \\d."""\n    return 1\n').raw_docstring == 'r"""A \\d."""'


def test_crlf_inside_a_docstring_is_one_line_end():
    assert only(b'def f():\r\n    """One\r\n    two."""\r\n    return 1\r\n').docstring == "One\ntwo."


def test_an_escape_that_python_warns_about_is_read_without_a_warning(recwarn):
    assert clean_docstring('"""A \\d."""') == "A \\d."
    assert not recwarn


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ('def f():\n    """D."""\n    return 1\n', "def f():\n    return 1"),
        ('def f():\n    """D."""\n\n    # why\n    return 1\n', "def f():\n    # why\n    return 1"),
        ('def f():\n    """D."""  # noqa\n    return 1\n', "def f():\n    # noqa\n    return 1"),
        ('def f(): "D."; return 1\n', "def f(): return 1"),
        ('def f():\n    """D."""\n', "def f():\n    pass"),
        ('def f(): "D."\n', "def f(): pass"),
        ('def f():\n    """D."""\n    # only a comment\n', "def f():\n    pass\n    # only a comment"),
        ('def f():\n    # first\n    """D."""\n    return 1\n', "def f():\n    # first\n    return 1"),
        (
            'class A:\n    @p\n    def f(self):\n        """D."""\n        if self:\n            return 1\n',
            "@p\ndef f(self):\n    if self:\n        return 1",
        ),
        ('class A:\n\tdef f(self):\n\t\t"""D."""\n\t\treturn 1\n', "def f(self):\n\treturn 1"),
        ("def f():\n    x = 1\n    return x\n", "def f():\n    x = 1\n    return x"),
    ],
)
def test_code_is_the_function_without_its_docstring_at_the_left_margin_and_parses(source, code):
    function = only(source.encode())
    assert function.code == code
    tree = ast.parse(function.code)
    assert ast.get_docstring(tree.body[0]) is None
    assert only(function.code.encode()).name == "f"


def test_every_function_of_the_standard_library_module_agrees_with_python_itself():
    with open(ast.__file__, "rb") as file:
        data = file.read()
    ours = {(function.name, function.end_line): function.docstring for function in functions(data, "python")}
    tree = ast.parse(data)
    theirs = {}
    waiting = [*tree.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            theirs[(node.name, node.end_lineno)] = ast.get_docstring(node)
        else:
            waiting += ast.iter_child_nodes(node)
    assert len(theirs) > 100
    assert ours == theirs


# --- the other five languages


def test_go_functions_and_methods_with_the_comments_right_above():
    source = """package a

// Far away.

// Add adds é.
// It returns the sum.
func Add(a, b int) int {
	return a + b
}

func (s *Stack[T]) Push(x T) {
	s.items = append(s.items, x)
}

func (p Point) X() int { return p.x } // trailing
func Last() {}
""".encode()
    add, push, x, last = functions(source, "go")
    assert add.qualified_name == "Add"
    assert add.docstring == "Add adds é.\nIt returns the sum."
    assert add.text == "func Add(a, b int) int {\n\treturn a + b\n}"
    assert (add.start_line, add.end_line) == (7, 9)
    assert (push.name, push.qualified_name, push.docstring) == ("Push", "Stack.Push", None)
    assert x.qualified_name == "Point.X"
    assert last.docstring is None


def test_java_methods_and_constructors_with_their_doc_comment():
    source = b"""package a;
class A {
    /** Makes an A. */
    A(int x) { this.x = x; }

    /**
     * Adds two numbers.
     *
     * @param a the first
     */

    @Override
    public int add(int a, int b) {
        return a + b;
    }

    // no documentation
    void plain() { }

    /* no documentation either */
    void block() { }

    abstract void nothing();

    static class B { /** Deep. */ void deep() { } }
}
"""
    found = functions(source, "java")
    assert [f.qualified_name for f in found] == ["A.A", "A.add", "A.plain", "A.block", "A.B.deep"]
    assert [f.docstring for f in found] == [
        "Makes an A.", "Adds two numbers.\n\n@param a the first", None, None, "Deep.",
    ]  # fmt: skip
    assert found[1].text.startswith("@Override\n    public int add")
    assert found[1].code == "@Override\npublic int add(int a, int b) {\n    return a + b;\n}"
    assert (found[1].start_line, found[1].end_line) == (12, 15)


def test_javascript_declarations_function_values_and_methods():
    source = b"""/** One. */
export function one() { function inner() {} return inner; }

// Two
// lines.
const two = async (x) => { return x; };

class A {
  /** Three. */
  three() { return 3; }
  four = () => 4;
}

/** Five. */
module.exports.five = function () { return 5; };

var o = {
  // Six.
  six: function () {},
};

(function () {
  /* Seven. */
  function seven() {}
})();
"""
    found = functions(source, "javascript")
    assert [f.qualified_name for f in found] == ["one", "two", "A.three", "A.four", "five", "six", "seven"]
    assert [f.docstring for f in found] == ["One.", "Two\nlines.", "Three.", None, "Five.", "Six.", "Seven."]
    assert found[0].text.startswith("export function one()")
    assert found[1].text == "const two = async (x) => { return x; };"


def test_php_functions_and_methods():
    source = b"""<html><?php
/** Adds. */
function add($a, $b) {
    return $a + $b;
}
interface I { /** None. */ public function declared(); }
final class A {
    /**
     * Gets it.
     * @return int
     */
    #[Attribute]
    public static function get(): int {
        return 1;
    }
}
"""
    add, get = functions(source, "php")
    assert (add.qualified_name, add.docstring) == ("add", "Adds.")
    assert (get.qualified_name, get.docstring) == ("A.get", "Gets it.\n@return int")
    assert get.text.startswith("#[Attribute]\n")


def test_ruby_methods_in_modules_and_classes():
    source = b"""# Top.
def top; end

module M
  class A < B
    # Adds
    # both.
    def add(a, b)
      a + b
    end

=begin
Made.
=end
    def self.make
      new
    end

    # far

    def ==(other) = true
  end
end
"""
    found = functions(source, "ruby")
    assert [f.qualified_name for f in found] == ["top", "M.A.add", "M.A.make", "M.A.=="]
    assert [f.docstring for f in found] == ["Top.", "Adds\nboth.", "Made.", None]
    assert found[1].code == "def add(a, b)\n  a + b\nend"


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("go", "// é\npackage a\nfunc F() int { return 1 }\n"),
        ("javascript", "// é\r\nfunction F() { return 1 }\r\n"),
        ("ruby", "# é\ndef F(x)\n  x\nend\n"),
        ("typescript", "// é\nexport function F(x: number): number { return x }\n"),
    ],
)
def test_extracted_text_of_other_languages_parses_again_to_itself(language, source):
    first = only(source.encode(), language)
    again = only(first.text.encode(), language)
    assert again.text == first.text
    assert not again.has_error
    assert source.encode()[first.start_byte : first.end_byte].decode() == first.text


def test_typescript_functions_methods_and_fields_with_their_classes_and_namespaces():
    source = b"""/** Keeps things. */
export abstract class Box<T> {
  /** Puts a thing in. */
  public async put<K>(thing: T, key: K): Promise<void> {
    await this.store(thing);
  }
  /** Declared twice, written once. */
  get(key: string): T;
  get(key: any): T { return this.all[key]; }
  /** An arrow in a field. */
  private size = (): number => this.all.length;
  /** Has no body. */
  abstract close(): void;
}
namespace Boxes {
  /** Makes one. */
  export function make(): Box<string> { return null!; }
}
/** A constant arrow. */
export const half = (x: number): number => x / 2;
declare function outside(x: number): void;
"""
    found = functions(source, "typescript")
    assert [f.qualified_name for f in found] == ["Box.put", "Box.get", "Box.size", "Boxes.make", "half"]
    assert [f.docstring for f in found] == [
        "Puts a thing in.", None, "An arrow in a field.", "Makes one.", "A constant arrow.",
    ]  # fmt: skip
    assert found[4].text == "export const half = (x: number): number => x / 2;"
    assert not any(f.file_has_error for f in found)


@pytest.mark.parametrize("language", sorted(syntax.LANGUAGES))
def test_every_language_reads_an_empty_file_and_refuses_a_binary_one(language):
    assert functions(b"", language) == []
    with pytest.raises(BinaryFile):
        functions(b"\0", language)


def test_an_unknown_language_is_named_with_the_known_ones():
    with pytest.raises(
        ValueError, match=r"'pyton'.*known languages: cpp, go, java, javascript, php, python, ruby, rust"
    ):
        functions(b"", "pyton")


def test_the_language_follows_from_the_extension():
    assert syntax.language_of("a/b.py") == "python"
    assert syntax.language_of("a/B.RB") == "ruby"
    assert syntax.language_of("a/b.mts") == "typescript"
    assert syntax.language_of("a/b.txt") is None
    assert syntax.language_of("Makefile") is None


def test_comment_marks_are_taken_off():
    assert clean_comment("/**\n * One.\n *\n * - two\n */") == "One.\n\n- two"
    assert clean_comment("/// One\n//\n// two") == "One\n\ntwo"
    assert clean_comment("# one\n#   two") == "one\ntwo"


@pytest.mark.parametrize("content", [b"\xed\xa0\x80", b"x = (", b"if :\n    pass\n"])
def test_a_broken_python_file_that_defines_nothing_has_no_functions(content):
    assert functions(content, "python") == []


def test_functions_of_cpp_are_definitions_with_a_body_wherever_they_stand():
    source = b"""namespace n {
class C {
 public:
  C() : a(1) {}
  C& operator=(const C&) = default;
  int declared();
  // Reads it.
  int& r() { return a; }
  operator bool() const { return a; }
  int a;
};
}
// Adds.
template <class T> T* f(T a) { auto l = [](int x) { return x; }; return 0; }
int n::C::g() const { return 1; }
bool operator==(int a, C b) { return 1; }
static char **pp(void) { return 0; }
"""
    found = functions(source, "cpp")
    assert [f.qualified_name for f in found] == [
        "n.C.C", "n.C.r", "n.C.operator bool", "f", "n.C.g", "operator==", "pp",
    ]  # fmt: skip
    assert found[1].docstring == "Reads it." and found[3].docstring == "Adds."
    assert found[3].text.startswith("template <class T>")


def test_functions_of_rust_are_those_with_a_body_and_attributes_stand_between_them_and_their_comment():
    source = b"""/// Gives it back.
#[inline]
#[must_use]
pub fn same<T>(x: T) -> T { let f = |y| y; f(x) }
impl<T> Foo<T> {
    /// Two
    /// lines.
    fn g(&self) {}
}
mod m { trait Q { fn h(&self); fn i(&self) {} } }
impl fmt::Debug for C { fn fmt(&self) {} }
"""
    found = functions(source, "rust")
    assert [f.qualified_name for f in found] == ["same", "Foo.g", "m.Q.i", "C.fmt"]
    assert [f.docstring for f in found] == ["Gives it back.", "Two\nlines.", None, None]


@pytest.mark.parametrize(
    ("language", "source", "wanted"),
    [
        ("python", b"@d\ndef f():\n    def g(): pass\n    class A:\n        def h(self): pass\n", ["f", "g", "A.h"]),
        ("javascript", b"export function f() { const g = () => 1; return g }", ["f", "g"]),
        ("rust", b"fn f() { fn g() {} }", ["f", "g"]),
        ("go", b"package p\nfunc f() { g := func() {} }", ["f"]),
    ],
)
def test_functions_inside_functions_are_given_where_they_are_asked_for_each_once(language, source, wanted):
    assert [f.qualified_name for f in functions(source, language, nested=True)] == wanted
    assert functions(source, language)[0].qualified_name == "f"


def test_a_function_without_the_declaration_around_it_is_its_bare_text():
    (function,) = functions(b"@d(\n  1)\ndef f(): pass\n", "python", nested=True)
    assert (function.text, function.bare_text) == ("@d(\n  1)\ndef f(): pass", "def f(): pass")
    (function,) = functions(b"export function f() {}", "typescript", nested=True)
    assert function.bare_text == "function f() {}"
