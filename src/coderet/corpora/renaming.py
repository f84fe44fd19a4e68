"""Parameters and local variables of a function by other names: the same code in another author's words.

>>> found = local_names("def area(width, height):\\n    return width * height\\n", "python")
>>> found.renamed({"width": "a", "height": "b"})
'def area(a, b):\\n    return a * b\\n'

What is declared inside the function is told from what only is used there by one tree-sitter query a language. A name is
renamed wherever it stands for a variable, in nested functions and inside strings' expressions too, or not at all: where
it also is what others call it by (a member of a class, a key, an import, a keyword that somebody may pass), it stays. A
function that asks for its variables by text (`locals`, `eval`) is left alone, and so is text that does not parse, alone
or as a member of a class. Names in comments and in plain strings stay.

What is not told apart: a name that is a nested function's variable and, outside of it, a global one is renamed in both
places.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import tree_sitter

from coderet.corpora import syntax
from coderet.corpora.fingerprints import KEYWORDS


@dataclass(frozen=True, slots=True)
class Scope:
    """How the local names of one language are found.

    The query captures every @use of a name, each @local where it is declared, @other where a use is of something else
    (a member, a key), and @kept where a name must stay wherever it stands. around: what text may be put between so that
    it parses. dynamic: words of functions that find variables by their names. mark: what a variable's name begins with.
    """

    query: str
    around: tuple[tuple[str, str], ...] = (("", ""),)
    dynamic: frozenset[str] = frozenset(["eval"])
    kept: frozenset[str] = frozenset()
    mark: str = ""
    called_by_keyword: bool = False  # a nested function's parameter may be named where it is called


SCOPES: dict[str, Scope] = {
    "python": Scope(
        query="""
        (identifier) @use
        (parameters (identifier) @local)
        (parameters [(list_splat_pattern (identifier) @local) (dictionary_splat_pattern (identifier) @local)])
        (lambda_parameters (identifier) @local)
        (lambda_parameters [(list_splat_pattern (identifier) @local) (dictionary_splat_pattern (identifier) @local)])
        (default_parameter name: (identifier) @local)
        (typed_parameter . (identifier) @local)
        (typed_parameter [(list_splat_pattern (identifier) @local) (dictionary_splat_pattern (identifier) @local)])
        (typed_default_parameter name: (identifier) @local)
        (assignment left: (identifier) @local)
        (pattern_list [(identifier) @local (list_splat_pattern (identifier) @local)])
        (tuple_pattern [(identifier) @local (list_splat_pattern (identifier) @local)])
        (list_pattern [(identifier) @local (list_splat_pattern (identifier) @local)])
        (for_statement left: (identifier) @local)
        (for_in_clause left: (identifier) @local)
        (as_pattern_target (identifier) @local)
        (named_expression name: (identifier) @local)
        (attribute attribute: (identifier) @other)
        (keyword_argument name: (identifier) @other @keyword)
        (function_definition name: (identifier) @kept body: (_) @body)
        (lambda body: (_) @body)
        (class_definition name: (identifier) @kept)
        (class_definition body: (block (expression_statement (assignment left: (identifier) @kept))))
        (global_statement (identifier) @kept)
        (nonlocal_statement (identifier) @kept)
        (dotted_name (identifier) @kept)
        (aliased_import alias: (identifier) @kept)
        (keyword_pattern . (identifier) @kept)
        """,
        dynamic=frozenset(["eval", "exec", "locals", "globals", "vars", "dir"]),
        kept=frozenset(["self", "cls", "_", "__class__"]),
        called_by_keyword=True,
    ),
    "go": Scope(
        query="""
        (identifier) @use
        (parameter_declaration name: (identifier) @local)
        (variadic_parameter_declaration name: (identifier) @local)
        (short_var_declaration left: (expression_list (identifier) @local))
        (var_spec name: (identifier) @local)
        (const_spec name: (identifier) @local)
        (range_clause left: (expression_list (identifier) @local))
        (receive_statement left: (expression_list (identifier) @local))
        (type_switch_statement alias: (expression_list (identifier) @local))
        (keyed_element key: (literal_element (identifier) @kept))
        (function_declaration name: (identifier) @kept)
        """,
        kept=frozenset(["_"]),
    ),
    "java": Scope(
        query="""
        (identifier) @use
        (formal_parameter name: (identifier) @local)
        (spread_parameter (variable_declarator name: (identifier) @local))
        (local_variable_declaration declarator: (variable_declarator name: (identifier) @local))
        (enhanced_for_statement name: (identifier) @local)
        (catch_formal_parameter name: (identifier) @local)
        (resource name: (identifier) @local)
        (inferred_parameters (identifier) @local)
        (lambda_expression parameters: (identifier) @local)
        (field_access field: (identifier) @other)
        (method_invocation name: (identifier) @other)
        (method_reference "::" (identifier) @other)
        (method_declaration name: (identifier) @other)
        (element_value_pair key: (identifier) @other)
        (annotation name: (identifier) @other)
        (marker_annotation name: (identifier) @other)
        (labeled_statement . (identifier) @other)
        (break_statement (identifier) @other)
        (continue_statement (identifier) @other)
        (scoped_identifier (identifier) @kept)
        (switch_label (identifier) @kept)
        (field_declaration declarator: (variable_declarator name: (identifier) @kept))
        """,
        around=(("", ""), ("class A {", "}")),
        dynamic=frozenset(),
    ),
    "javascript": Scope(
        query="""
        (identifier) @use
        (formal_parameters (identifier) @local)
        (arrow_function parameter: (identifier) @local)
        (assignment_pattern left: (identifier) @local)
        (rest_pattern (identifier) @local)
        (array_pattern (identifier) @local)
        (pair_pattern value: (identifier) @local)
        (variable_declarator name: (identifier) @local)
        (for_in_statement kind: _ left: (identifier) @local)
        (catch_clause parameter: (identifier) @local)
        (shorthand_property_identifier) @kept
        (shorthand_property_identifier_pattern) @kept
        (variable_declarator name: (identifier) @kept
          value: [(arrow_function) (function_expression) (generator_function)])
        (function_declaration name: (identifier) @kept)
        (generator_function_declaration name: (identifier) @kept)
        (function_expression name: (identifier) @kept)
        (class_declaration name: (identifier) @kept)
        (export_specifier (identifier) @kept)
        """,
        around=(("", ""), ("class A {", "}"), ("({", "})")),
        dynamic=frozenset(["eval", "with"]),
        kept=frozenset(["arguments", "undefined"]),
    ),
    "php": Scope(
        query="""
        (variable_name) @use @local
        (global_declaration (variable_name) @kept)
        (scoped_property_access_expression name: (variable_name) @kept)
        (property_element (variable_name) @kept)
        (property_promotion_parameter name: (variable_name) @kept)
        """,
        around=(("<?php ", ""), ("<?php class A {", "}")),
        dynamic=frozenset(["eval", "compact", "extract", "get_defined_vars", "parse_str"]),
        kept=frozenset(["$this", "$GLOBALS", "$php_errormsg", "$http_response_header", "$argc", "$argv"])
        | frozenset(f"$_{name}" for name in "SERVER GET POST FILES COOKIE SESSION REQUEST ENV".split()),
        mark="$",
    ),
    "ruby": Scope(
        query="""
        (identifier) @use
        (method_parameters (identifier) @local)
        (lambda_parameters (identifier) @local)
        (block_parameters (identifier) @local)
        (destructured_parameter (identifier) @local)
        (optional_parameter name: (identifier) @local)
        (splat_parameter name: (identifier) @local)
        (hash_splat_parameter name: (identifier) @local)
        (block_parameter name: (identifier) @local)
        (assignment left: (identifier) @local)
        (left_assignment_list (identifier) @local)
        (rest_assignment (identifier) @local)
        (exception_variable (identifier) @local)
        (for pattern: (identifier) @local)
        (keyword_parameter name: (identifier) @kept)
        (call method: (identifier) @other)
        (method name: (identifier) @other)
        (singleton_method name: (identifier) @other)
        (alias (identifier) @kept)
        (undef (identifier) @kept)
        """,
        dynamic=frozenset(["eval", "binding", "local_variables", "instance_eval", "class_eval", "module_eval"]),
        kept=frozenset(["_"]),
    ),
}

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class LocalNames:
    """A function's own names, in the order they first appear, and where each stands. mark is no part of a name."""

    utf8: bytes
    names: tuple[str, ...]
    places: tuple[tuple[int, int, str], ...]  # offsets into utf8, ascending, and the name there
    taken: frozenset[str]  # words of the text and of the language, which no new name may be

    def renamed(self, names: Mapping[str, str]) -> str:
        """The text with new names; names that are not mentioned stay. New ones must differ, from `taken` too."""
        pieces, done = list[bytes](), 0
        for start, end, name in self.places:
            pieces += [self.utf8[done:start], names.get(name, name).encode()]
            done = end
        return b"".join([*pieces, self.utf8[done:]]).decode()

    def drawn(self, random: np.random.Generator, pool: Sequence[str]) -> dict[str, str]:
        """A new name for each, drawn from pool, or `var1`, `var2`... where it has none to give."""
        taken, new, number = set(self.taken), dict[str, str](), 0
        for name in self.names:
            tries = random.integers(0, len(pool), TRIES).tolist() if pool else []
            free = next((pool[place] for place in tries if pool[place] not in taken), "")
            while not free or free in taken:
                number += 1
                free = f"var{number}"
            new[name] = free
            taken.add(free)
        return new


TRIES = 8


def local_names(code: str, language: str) -> LocalNames | None:
    """The names that a function may bear otherwise; None where it has none, is not read, or finds them by text."""
    scope = SCOPES.get(language)
    if scope is None:
        return None
    words = frozenset(_WORD.findall(code))
    if not scope.dynamic.isdisjoint(words):
        return None
    utf8 = code.encode()
    for before, after in scope.around:
        root = syntax.tree(before.encode() + utf8 + after.encode(), language)
        if root is not None:
            return _found(root, len(before), utf8, scope, words | KEYWORDS[language], _cursor(language))
    return None


def _found(
    root: tree_sitter.Node,
    shift: int,
    utf8: bytes,
    scope: Scope,
    taken: frozenset[str],
    cursor: tree_sitter.QueryCursor,
) -> LocalNames | None:
    captures = cursor.captures(root)

    def names(kind: str) -> set[str]:
        return {_text(node) for node in captures.get(kind, ())}

    kept = names("kept") | scope.kept
    if scope.called_by_keyword and len(captures.get("body", ())) > 1:
        kept |= names("keyword")
    wanted = names("local") - kept
    others = {node.start_byte for node in captures.get("other", ())}
    places = sorted(
        (node.start_byte - shift + len(scope.mark), node.end_byte - shift, _text(node)[len(scope.mark) :])
        for node in captures.get("use", ())
        if node.start_byte not in others and _text(node) in wanted
    )
    if not places:
        return None
    return LocalNames(utf8, tuple(dict.fromkeys(name for _, _, name in places)), tuple(places), taken)


def _text(node: tree_sitter.Node) -> str:
    return (node.text or b"").decode()


@cache
def _cursor(language: str) -> tree_sitter.QueryCursor:
    return syntax.query(language, SCOPES[language].query)
