"""Functions and their doc comments, read from source bytes with tree-sitter.

One `Language` record a language: a tree-sitter query that says what counts as a function or a class, and where its
documentation stands. Which functions count follows CodeSearchNet (Husain et al., 2019) in spirit, for today's grammars:

- a function is taken unless it lies inside another function that is taken: module-level functions, also below `if`,
  `try` and the like, and methods of classes nested however deep. A function nested in a function is part of the outer
  one's text;
- decorators, `export` and the declaration around a function value belong to the function;
- declarations without a body (abstract methods, interfaces) are not functions;
- documentation is the first string of a Python body; for Java and PHP the `/** */` comment before the function; for
  C++, Go, JavaScript, Ruby, Rust and TypeScript the run of comments that ends on the line before it, no blank line
  between; attributes (`#[inline]`) may stand between.

What that is in each language:

| language | functions | are none |
|---|---|---|
| C++, C | definitions with a body: free, members wherever they stand, operators, templates | lambdas, `= default` |
| Go | functions and methods | literals |
| Java | methods and constructors with a body | lambdas |
| JavaScript, TypeScript | declarations, methods, and function values that a name is given to | callbacks, overloads |
| PHP | functions and methods with a body | closures |
| Python | `def`, `async def` | lambdas |
| Ruby | `def`, `def self.` | blocks, `define_method` |
| Rust | `fn` with a body: free, in `impl`, in `trait` | closures, signatures, what macros make |

With `nested`, those inside functions are given too, each with the declaration around it: what a reader of answers
wants, where any of them may be meant.

Everything is cut from the file by byte offsets, so no character before a function can shift it. Lines end at a line
feed, with or without a carriage return. Nothing here recurses: depth of nesting is bounded by memory only. But
tree-sitter's Python grammar never returns from 512 levels of indentation (Python's own limit is 100), so files indented
that deep are refused.

How bytes become text (`decode`): UTF-8, with or without a byte-order mark; else the encoding that a Python or Ruby file
declares in its first two lines (PEP 263); else Latin-1, which accepts anything. A file with a NUL byte is binary and
refused.

A broken file still gives its sound functions. In Python an unclosed bracket would swallow all that follows, so a broken
file is also read in pieces that begin where a line defines something in the first column. Every function says whether
it, or only its file, is broken.
"""

import ast
import codecs
import importlib
import inspect
import re
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import tree_sitter


@dataclass(frozen=True, slots=True)
class Language:
    """How functions of one language are found.

    The query captures @function (the whole slice), its @name, the @owner of a method declared outside its class (Go),
    the @doc string, each @class with its @name, each @comment, and each @container to look into next. With containers
    the query is run on direct children only, which skips function bodies; without, on the whole tree.
    """

    grammar: str  # "module:function" that gives the grammar
    extensions: tuple[str, ...]
    docs: Literal["string", "block", "run"]
    query: str
    containers: bool = False


# What JavaScript and TypeScript both call functions.
_SCRIPT_FUNCTIONS = """
(method_definition name: [(property_identifier) (private_property_identifier)] @name) @function
[(function_declaration name: (identifier) @name) (generator_function_declaration name: (identifier) @name)
 (export_statement declaration: [(function_declaration name: (identifier) @name)
                                 (generator_function_declaration name: (identifier) @name)])] @function
[(lexical_declaration . (variable_declarator name: (identifier) @name
   value: [(arrow_function) (function_expression) (generator_function)]) .)
 (variable_declaration . (variable_declarator name: (identifier) @name
   value: [(arrow_function) (function_expression) (generator_function)]) .)
 (export_statement declaration: (lexical_declaration . (variable_declarator name: (identifier) @name
   value: [(arrow_function) (function_expression) (generator_function)]) .))] @function
(expression_statement (assignment_expression
  left: [(identifier) @name (member_expression property: (property_identifier) @name)]
  right: [(arrow_function) (function_expression) (generator_function)])) @function
(pair key: (property_identifier) @name
  value: [(arrow_function) (function_expression) (generator_function)]) @function
"""

# A C++ function's name stands below as many declarators as its return type has stars.
_CPP_FUNCTIONS = "\n".join(
    f"""
(function_definition {declarator} body: [(compound_statement) (try_statement)]) @function
(template_declaration (function_definition {declarator} body: [(compound_statement) (try_statement)])) @function
"""
    for declarator in (
        "declarator: (function_declarator declarator: (_) @name)",
        "declarator: (pointer_declarator (function_declarator declarator: (_) @name))",
        "declarator: (pointer_declarator (pointer_declarator (function_declarator declarator: (_) @name)))",
        "declarator: (reference_declarator (function_declarator declarator: (_) @name))",
        "declarator: (operator_cast) @name",
    )
)

LANGUAGES: dict[str, Language] = {
    "python": Language(
        grammar="tree_sitter_python:language",
        extensions=(".py",),
        docs="string",
        containers=True,
        query="""
        (function_definition name: (identifier) @name
          body: (block . (expression_statement . [(string) (concatenated_string)] @doc .)?)) @function
        (decorated_definition definition: (function_definition name: (identifier) @name
          body: (block . (expression_statement . [(string) (concatenated_string)] @doc .)?))) @function
        (class_definition name: (identifier) @name body: (block) @container) @class
        (decorated_definition definition: (class_definition name: (identifier) @name body: (block) @container)) @class
        (if_statement (block) @container)
        (if_statement (elif_clause (block) @container))
        (if_statement (else_clause (block) @container))
        (try_statement (block) @container)
        (try_statement (_ (block) @container))
        (with_statement (block) @container)
        (for_statement (block) @container)
        (for_statement (else_clause (block) @container))
        (while_statement (block) @container)
        (while_statement (else_clause (block) @container))
        (match_statement (block (case_clause (block) @container)))
        (ERROR) @container
        """,
    ),
    "go": Language(
        grammar="tree_sitter_go:language",
        extensions=(".go",),
        docs="run",
        query="""
        (function_declaration name: (identifier) @name body: (block)) @function
        (method_declaration
          receiver: (parameter_list (parameter_declaration type: [
            (type_identifier) @owner
            (pointer_type (type_identifier) @owner)
            (generic_type type: (type_identifier) @owner)
            (pointer_type (generic_type type: (type_identifier) @owner))]))
          name: (field_identifier) @name body: (block)) @function
        (comment) @comment
        """,
    ),
    "java": Language(
        grammar="tree_sitter_java:language",
        extensions=(".java",),
        docs="block",
        query="""
        [(class_declaration name: (identifier) @name) (interface_declaration name: (identifier) @name)
         (enum_declaration name: (identifier) @name) (record_declaration name: (identifier) @name)] @class
        (method_declaration name: (identifier) @name body: (block)) @function
        (constructor_declaration name: (identifier) @name) @function
        (compact_constructor_declaration name: (identifier) @name) @function
        (block_comment) @comment
        """,
    ),
    "javascript": Language(
        grammar="tree_sitter_javascript:language",
        extensions=(".js", ".mjs", ".cjs", ".jsx"),
        docs="run",
        query=f"""
        [(class_declaration name: (identifier) @name) (class name: (identifier) @name)] @class
        {_SCRIPT_FUNCTIONS}
        (field_definition property: (property_identifier) @name
          value: [(arrow_function) (function_expression)]) @function
        (comment) @comment
        """,
    ),
    "cpp": Language(
        grammar="tree_sitter_cpp:language",
        extensions=(".cpp", ".cc", ".cxx", ".c", ".hpp", ".hh", ".hxx", ".h"),
        docs="run",
        query=f"""
        [(class_specifier name: (_) @name body: (field_declaration_list))
         (struct_specifier name: (_) @name body: (field_declaration_list))
         (namespace_definition name: (_) @name)] @class
        {_CPP_FUNCTIONS}
        (comment) @comment
        """,
    ),
    "php": Language(
        grammar="tree_sitter_php:language_php",
        extensions=(".php",),
        docs="block",
        query="""
        [(class_declaration name: (name) @name) (interface_declaration name: (name) @name)
         (trait_declaration name: (name) @name) (enum_declaration name: (name) @name)] @class
        (method_declaration name: (name) @name body: (compound_statement)) @function
        (function_definition name: (name) @name body: (compound_statement)) @function
        (comment) @comment
        """,
    ),
    "ruby": Language(
        grammar="tree_sitter_ruby:language",
        extensions=(".rb",),
        docs="run",
        query="""
        [(class name: (_) @name) (module name: (_) @name)] @class
        [(method name: (_) @name) (singleton_method name: (_) @name)] @function
        (comment) @comment
        """,
    ),
    "rust": Language(
        grammar="tree_sitter_rust:language",
        extensions=(".rs",),
        docs="run",
        query="""
        [(impl_item type: [(type_identifier) @name (generic_type type: (_) @name) (scoped_type_identifier) @name])
         (trait_item name: (_) @name) (mod_item name: (_) @name body: (declaration_list))] @class
        (function_item name: (_) @name body: (block)) @function
        [(line_comment) (block_comment)] @comment
        """,
    ),
    "typescript": Language(
        grammar="tree_sitter_typescript:language_typescript",
        extensions=(".ts", ".mts", ".cts"),
        docs="run",
        query=f"""
        [(class_declaration name: (type_identifier) @name) (abstract_class_declaration name: (type_identifier) @name)
         (class name: (type_identifier) @name)] @class
        (internal_module name: (_) @name) @class
        {_SCRIPT_FUNCTIONS}
        (public_field_definition name: (property_identifier) @name
          value: [(arrow_function) (function_expression)]) @function
        (comment) @comment
        """,
    ),
}


class Unreadable(ValueError):
    """A file that is not read as source text; `cause` is one word for a report's count."""

    cause = "unreadable"


class BinaryFile(Unreadable):
    """A file that holds a NUL byte."""

    cause = "binary"


class TooDeep(Unreadable):
    """A Python file indented deeper than any Python accepts."""

    cause = "too_deep"


@dataclass(frozen=True, slots=True)
class Source:
    """A file's text as UTF-8 and the encoding of the file: utf-8, utf-8-sig, a declared one, or latin-1."""

    utf8: bytes  # a byte-order mark, if any, is still in front
    encoding: str

    def file_offset(self, offset: int) -> int:
        """The place in the file's own bytes of an offset into utf8."""
        if self.encoding.startswith("utf-8"):
            return offset
        return len(self.utf8[:offset].decode().encode(self.encoding))


def decode(data: bytes, language: str) -> Source:
    """The text of a source file by the module's rule. Raises BinaryFile for a NUL byte; any other file has a text."""
    if b"\0" in data:
        raise BinaryFile(f"found a NUL byte at offset {data.index(0)}; source text was wanted")
    try:
        data.decode()
        return Source(data, "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8")
    except UnicodeDecodeError:
        pass
    declared = _declared_encoding(data) if language in ("python", "ruby") else None
    if declared is not None:
        try:
            text = data.decode(declared)
            # An encoding with hidden state, or one that is no text encoding, would spoil the byte offsets.
            if text.encode(declared) == data:
                return Source(text.encode(), declared)
        except (LookupError, ValueError):
            pass
    return Source(data.decode("latin-1").encode(), "latin-1")


@dataclass(frozen=True, slots=True)
class Function:
    """One function of a source file. Its texts are cut when asked for, not before."""

    source: Source
    language: str
    name: str
    qualified_name: str  # classes around it and the name, joined by dots
    start: int  # offsets into source.utf8, end exclusive
    end: int
    start_line: int  # counted from 1, end inclusive
    end_line: int
    docs: tuple[tuple[int, int], ...]  # where its documentation stands in source.utf8
    has_error: bool  # a syntax error inside the function
    file_has_error: bool  # a syntax error somewhere in its file
    bare: tuple[int, int] | None = None  # where it stands without decorators, `export` and the like; None if not asked

    @property
    def start_byte(self) -> int:
        """Offset into the file's own bytes, whatever its encoding."""
        return self.source.file_offset(self.start)

    @property
    def end_byte(self) -> int:
        """Offset into the file's own bytes, exclusive."""
        return self.source.file_offset(self.end)

    @property
    def text(self) -> str:
        """The function as it stands in the file, decorators first."""
        return self.source.utf8[self.start : self.end].decode()

    @property
    def bare_text(self) -> str:
        """The function without the declaration around it, where nested functions were asked for; else its text."""
        start, end = self.bare or (self.start, self.end)
        return self.source.utf8[start:end].decode()

    @property
    def raw_docstring(self) -> str | None:
        """Its documentation as written, with quotes or comment marks; None without."""
        if not self.docs:
            return None
        return "\n".join(self.source.utf8[start:end].decode() for start, end in self.docs)

    @property
    def docstring(self) -> str | None:
        """Its documentation without quotes, comment marks and indentation; None without."""
        raw = self.raw_docstring
        if raw is None:
            return None
        return clean_docstring(raw) if LANGUAGES[self.language].docs == "string" else clean_comment(raw)

    @property
    def plain(self) -> bytes:
        """The function in its place, without a documentation that stands within it."""
        if self.docs and LANGUAGES[self.language].docs == "string":
            return _without_string(self.source.utf8, self.start, self.end, *self.docs[0])
        return self.source.utf8[self.start : self.end]

    @property
    def code(self) -> str:
        """The text without its docstring, moved to the left margin; parses again where the text does.

        A body that was only a docstring becomes `pass`. Moving left takes the first line's indentation off every line
        that has it, those of a string over several lines included.
        """
        utf8, code = self.source.utf8, self.plain
        indentation = utf8[utf8.rfind(b"\n", 0, self.start) + 1 : self.start]
        if indentation and indentation.isspace():
            code = code.replace(b"\n" + indentation, b"\n")
        return code.decode()


def functions(source: Source | bytes, language: str, nested: bool = False) -> list[Function]:
    """The functions of one file in order of appearance; raises Unreadable and, for an unknown language, ValueError.

    nested: those that lie inside others too, after the one around them.
    """
    reader = _reader(language)
    if isinstance(source, bytes):
        source = decode(source, language)
    if language == "python" and _is_bottomless(source.utf8):
        raise TooDeep(f"found a line indented by {_DEEPEST_INDENTATION} or more; Python itself allows 100 levels")
    tree = reader.parser.parse(source.utf8)
    root = tree.root_node
    broken = root.has_error
    if nested:
        return list(_read(reader, root, source, 0, 0, broken, nested))
    found = list(_read(reader, root, source, 0, 0, broken))
    if broken and language == "python":
        found = _recovered(reader, source, found)
    return found


@dataclass(frozen=True, slots=True)
class Block:
    """A node of a file's syntax tree. Lines are counted from 0, the last one included."""

    node: tree_sitter.Node
    defines: bool  # it is, or holds, a function or a class

    @property
    def first_line(self) -> int:
        return self.node.start_point[0]

    @property
    def last_line(self) -> int:
        """The line of its last character: a node that ends with a line feed does not reach into the next line."""
        row, column = self.node.end_point
        return max(self.first_line, row - 1 if column == 0 else row)

    @property
    def comment(self) -> bool:
        return "comment" in self.node.type

    @property
    def children(self) -> "list[Block]":
        """Those with a name: brackets and keywords are none."""
        return [Block(node, False) for node in self.node.named_children]


def outline(utf8: bytes, language: str) -> list[Block] | None:
    """What stands at the top of a file, in order; None where the text does not parse or is none that is read."""
    root = tree(utf8, language)
    if root is None:
        return None
    captured = [
        node.start_byte
        for _, captures in _reader(language).cursor.matches(root)
        for kind in ("function", "class")
        for node in captures.get(kind, ())
    ]
    captured.sort()
    return [
        Block(node, bisect_left(captured, node.end_byte) > bisect_left(captured, node.start_byte))
        for node in root.children
    ]


def tree(utf8: bytes, language: str) -> tree_sitter.Node | None:
    """The root of a text's syntax tree; None where the text does not parse or is none that is read."""
    if b"\0" in utf8 or (language == "python" and _is_bottomless(utf8)):
        return None
    root = parsed(utf8, language)
    return None if root.has_error else root


def parsed(utf8: bytes, language: str) -> tree_sitter.Node:
    """The root of a text's syntax tree, errors and all."""
    return _reader(language).parser.parse(utf8).root_node


def query(language: str, patterns: str) -> tree_sitter.QueryCursor:
    """A query of a language's grammar, ready to be run on a `tree`."""
    grammar = _reader(language).parser.language
    assert grammar is not None  # `_reader` gave it one
    return tree_sitter.QueryCursor(tree_sitter.Query(grammar, patterns))


def language_of(path: str) -> str | None:
    """The language that a file's extension names; None if none."""
    return _LANGUAGE_BY_EXTENSION.get(path[path.rfind(".") :].lower()) if "." in path else None


def clean_docstring(literal: str) -> str:
    """The text of a Python string literal, as `inspect.cleandoc` leaves it."""
    opening = _STRING_OPENING.match(literal)
    if opening is None:
        return inspect.cleandoc(literal)
    quotes = opening[2]
    single = literal.endswith(quotes) and len(literal) >= opening.end() + len(quotes)
    inner = literal[opening.end() : -len(quotes)] if single else literal[opening.end() :]
    if ("\\" in inner and "r" not in opening[1].lower()) or quotes in inner:
        # Escapes and joined literals are for Python's own reader; what it refuses is left as written.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value = ast.literal_eval(f"({literal}\n)")
                inner = value if isinstance(value, str) else inner
            except (SyntaxError, ValueError, MemoryError):
                pass
    return inspect.cleandoc(inner.replace("\r\n", "\n"))


def clean_comment(comment: str) -> str:
    """Comment text without its marks: one opening, leading or closing mark a line goes, then blanks at both ends."""
    lines = (_COMMENT_MARK.sub("", line.strip(), count=1).removesuffix("*/").strip() for line in comment.splitlines())
    return "\n".join(lines).strip()


@dataclass(frozen=True, slots=True)
class _Reader:
    language: str
    parser: tree_sitter.Parser
    cursor: tree_sitter.QueryCursor
    deep: tree_sitter.QueryCursor  # the same query on the whole tree


@cache
def _reader(language: str) -> _Reader:
    """One parser and query a language and process; tree-sitter's objects are not for several threads at once."""
    if language not in LANGUAGES:
        raise ValueError(f"language is {language!r}; known languages: {', '.join(sorted(LANGUAGES))}")
    record = LANGUAGES[language]
    module, _, attribute = record.grammar.partition(":")
    grammar = tree_sitter.Language(getattr(importlib.import_module(module), attribute)())
    query = tree_sitter.Query(grammar, record.query)
    cursor = tree_sitter.QueryCursor(query)
    if record.containers:
        cursor.set_max_start_depth(1)
    return _Reader(language, tree_sitter.Parser(grammar), cursor, tree_sitter.QueryCursor(query))


def _read(
    reader: _Reader,
    root: tree_sitter.Node,
    source: Source,
    offset: int,
    line: int,
    broken: bool,
    nested: bool = False,
) -> Iterator[Function]:
    """Functions below root, whose text starts at the given byte and line (from 0) of the source."""
    utf8 = source.utf8
    found: list[tuple[int, int, dict[str, list[tree_sitter.Node]]]] = []
    comments: list[tuple[int, int]] = []
    waiting = [root]
    while waiting:
        around = waiting.pop()
        for _, captures in (reader.deep if nested else reader.cursor).matches(around):
            # An ERROR node matches itself too.
            waiting += [node for node in captures.get("container", ()) if node != around and not nested]
            if "comment" in captures:
                node = captures["comment"][0]
                end = node.end_byte + offset
                if reader.language == "rust" and utf8[end - 1 : end] == b"\n":  # as `///` has it, `//` not
                    end -= 1
                comments.append((node.start_byte + offset, end))
            elif "name" in captures:
                node = captures["function" if "function" in captures else "class"][0]
                found.append((node.start_byte + offset, -node.end_byte - offset, captures))
    found.sort(key=_place)
    comments.sort()
    kind = LANGUAGES[reader.language].docs
    classes: list[tuple[int, str]] = []  # those open here: their end, and the names down to them with a dot
    taken = 0  # where the last function ends
    named: set[int] = set()  # where names stand, for a function and the declaration around it are one
    bare = {each[2]["name"][0].start_byte: (each[0], -each[1]) for each in found} if nested else {}
    for start, negative_end, captures in found:
        end = -negative_end
        node = captures["name"][0]
        if node.start_byte in named or (start < taken and not nested):
            continue
        named.add(node.start_byte)
        while classes and classes[-1][0] <= start:
            classes.pop()
        prefix = classes[-1][1] if classes else ""
        name = utf8[node.start_byte + offset : node.end_byte + offset].decode()
        if "class" in captures:
            classes.append((end, f"{prefix}{name}."))
            continue
        taken = end
        if reader.language == "cpp":
            owners, name = _cpp_name(name)
            prefix += owners
        if "owner" in captures:
            owner = captures["owner"][0]
            prefix = utf8[owner.start_byte + offset : owner.end_byte + offset].decode() + "."
        docs: tuple[tuple[int, int], ...] = ()
        if kind == "string":
            if "doc" in captures:
                doc = captures["doc"][0]
                docs = ((doc.start_byte + offset, doc.end_byte + offset),)
                if _NOT_A_DOCSTRING.match(utf8, docs[0][0]):
                    docs = ()
        else:
            docs = _comments_before(utf8, start, comments, kind)
        node = captures["function"][0]
        yield Function(
            source,
            reader.language,
            name,
            prefix + name,
            start,
            end,
            node.start_point[0] + line + 1,
            node.end_point[0] + line + 1,
            docs,
            node.has_error,
            broken,
            bare.get(captures["name"][0].start_byte),
        )


def _cpp_name(declared: str) -> tuple[str, str]:
    """What stands before the last `::` of a declared name, with dots, and the name: `A::B::f` gives `A.B.` and `f`."""
    cut = declared.find("operator")
    scope, name = (declared[:cut], declared[cut:]) if cut >= 0 else ("", declared)
    if not scope:
        scope, between, name = name.rpartition("::")
        scope += between
    return scope.replace("::", "."), name.partition("(")[0].strip() or name


def _place(found: tuple[int, int, dict[str, list[tree_sitter.Node]]]) -> tuple[int, int]:
    return found[:2]


def _recovered(reader: _Reader, source: Source, found: list[Function]) -> list[Function]:
    """The functions of a broken Python file, those that an error further up had swallowed included.

    Cuts the file before each definition in the first column and reads the pieces alone. Sound functions of the first
    reading come first, so a definition written inside a string of sound code is not taken for one; then those of the
    pieces, then what else was found.
    """
    utf8 = source.utf8
    cuts = [_with_decorators(utf8, match.start()) for match in _DEFINITION.finditer(utf8)]
    pieces: list[Function] = []
    for start, end in zip(cuts, [*cuts, len(utf8)][1:], strict=True):  # none where nothing is defined
        root = reader.parser.parse(utf8[start:end]).root_node
        pieces += _read(reader, root, source, start, utf8.count(b"\n", 0, start), True)
    sound = [function for function in found if not function.has_error]
    return _joined(_joined(sound, pieces), found)


def _with_decorators(utf8: bytes, start: int) -> int:
    """Where the definition at start begins with its one-line decorators."""
    while start > 0 and utf8.startswith(b"@", before := utf8.rfind(b"\n", 0, start - 1) + 1):
        start = before
    return start


def _joined(kept: list[Function], others: list[Function]) -> list[Function]:
    """All of kept and those of others that overlap none of them, in order; neither overlaps in itself."""
    starts = [function.start for function in kept]
    free = []
    for function in others:
        before = bisect_right(starts, function.end - 1) - 1
        if before < 0 or kept[before].end <= function.start:
            free.append(function)
    return sorted(kept + free, key=lambda function: function.start)


def _comments_before(
    utf8: bytes, start: int, comments: list[tuple[int, int]], kind: Literal["string", "block", "run"]
) -> tuple[tuple[int, int], ...]:
    """The comments that document what begins at start: one `/**` block, or a run of own-line comments without a gap."""
    last = bisect_right(comments, (start, start)) - 1
    if kind == "block":
        if last < 0 or utf8[comments[last][1] : start].strip() or not utf8.startswith(b"/**", comments[last][0]):
            return ()
        return (comments[last],)
    first = last + 1
    below = start
    while first > 0:
        comment_start, comment_end = comments[first - 1]
        gap = _ATTRIBUTE.sub(b"", utf8[comment_end:below])
        # Ruby's comments from =begin to =end contain their last line end.
        ends = gap.count(b"\n") + (utf8[comment_end - 1 : comment_end] == b"\n")
        line_start = utf8.rfind(b"\n", 0, comment_start) + 1
        if gap.strip() or ends > 1 or utf8[line_start:comment_start].strip(b"\xef\xbb\xbf \t\r\f"):
            break
        first -= 1
        below = comment_start
    return tuple(comments[first : last + 1])


def _without_string(utf8: bytes, start: int, end: int, doc_start: int, doc_end: int) -> bytes:
    """The function from start to end without its docstring; `pass` instead where nothing but comments would be left."""
    blank = _BLANK.match(utf8, doc_end, end)
    assert blank is not None  # it matches the empty string
    if blank.end() == end:
        return utf8[start:doc_start] + b"pass" + utf8[doc_end:end]
    gap = _GAP.match(utf8, doc_end, end)
    assert gap is not None
    return utf8[start:doc_start] + utf8[gap.end() : end]


def _is_bottomless(utf8: bytes) -> bool:
    """Whether a line is indented by _DEEPEST_INDENTATION, for every level takes at least one blank."""
    # Looking for the run of blanks first keeps the slow expression away from ordinary files.
    return b" " * _DEEPEST_INDENTATION in utf8.replace(b"\t", b" ") and _BOTTOMLESS.search(utf8) is not None


def _declared_encoding(data: bytes) -> str | None:
    for line in data.split(b"\n", 2)[:2]:
        match = _COOKIE.match(line)
        if match:
            return match[1].decode("ascii", "replace")
        if line.strip() and not line.lstrip().startswith(b"#"):
            return None
    return None


_LANGUAGE_BY_EXTENSION = {extension: name for name, language in LANGUAGES.items() for extension in language.extensions}
_DEEPEST_INDENTATION = 400  # below the 512 levels at which the grammar hangs; alignment seldom goes so far
_BOTTOMLESS = re.compile(rb"^[ \t]{%d}" % _DEEPEST_INDENTATION, re.MULTILINE)
_COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_DEFINITION = re.compile(rb"^(?:async[ \t]+def|def|class)\b", re.MULTILINE)
_STRING_OPENING = re.compile(r"([A-Za-z]*)(\"\"\"|'''|\"|')")
_ATTRIBUTE = re.compile(rb"^[ \t]*#\[[^\n]*\][ \t\r]*\n", re.MULTILINE)
_NOT_A_DOCSTRING = re.compile(rb"[rRuU]*[bBfFtT]")
_COMMENT_MARK = re.compile(r"^(?:/\*+|//+|\*(?!/)|#+|=begin|=end)")
_BLANK = re.compile(rb"(?:[\s;]|#[^\n]*)*")
_GAP = re.compile(rb"[\s;]*")
