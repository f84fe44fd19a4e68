"""Renamed functions parse and mean the same: held against Python's own parser, its scopes, and by running them."""

import ast
import heapq
import inspect
import json
import symtable
import textwrap
from types import ModuleType

import numpy as np
import pytest

from coderet.corpora import syntax
from coderet.corpora.renaming import SCOPES, local_names

MODULES = (heapq, json.decoder, textwrap, inspect)


def functions(module: ModuleType) -> list[str]:
    found = syntax.functions(inspect.getsource(module).encode(), "python")
    return [each.code for each in found if not each.has_error]


def random() -> np.random.Generator:
    return np.random.default_rng(3)


class Renamed(ast.NodeTransformer):
    """Every variable by another name."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for each in ("id", "arg", "name"):
            if hasattr(node, each) and not isinstance(node, ast.keyword | ast.alias | ast.FunctionDef | ast.ClassDef):
                setattr(node, each, self.names.get(getattr(node, each), getattr(node, each)))
        return super().generic_visit(node)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_renamed_function_is_the_same_tree_with_other_variables(module: ModuleType):
    renamed = 0
    for code in functions(module):
        found = local_names(code, "python")
        if found is None:
            continue
        new = found.drawn(random(), ["alpha", "beta", "item"])
        back = {name: old for old, name in new.items()}
        assert len(back) == len(new) and not set(back) & found.taken
        tree = Renamed(back).visit(ast.parse(found.renamed(new)))
        assert ast.dump(tree) == ast.dump(ast.parse(code)), code
        renamed += 1
    assert renamed > 0.8 * len(functions(module)) - 5


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_what_is_renamed_is_bound_in_the_function(module: ModuleType):
    for code in functions(module):
        found = local_names(code, "python")
        if found is None:
            continue
        tables = [symtable.symtable(code, "code", "exec")]
        bound: set[str] = set()
        while tables:
            table = tables.pop()
            tables += table.get_children()
            if isinstance(table, symtable.Function):
                bound |= set(table.get_locals()) | set(table.get_parameters())
        assert set(found.names) <= bound, code


def test_a_renamed_function_gives_the_same_answer():
    code = (
        "def f(words, limit=3, *rest, sep='-', **kept):\n"
        "    count = {word: len(word) for word in words if (size := len(word)) <= limit}\n"
        "    def inner(rest_of):\n        return [first for first, *others in rest_of]\n"
        "    try:\n        total = sum(count.values()) / len(rest)\n"
        "    except ZeroDivisionError as error:\n        total = str(error)\n"
        "    return f'{sep}{total}{size!r:>{limit}}', sorted(count), inner(words), sorted(kept)\n"
    )
    found = local_names(code, "python")
    assert found is not None
    for pool in ([], ["alpha", "beta", "gamma"]):
        renamed = found.renamed(found.drawn(random(), pool))
        assert "words" not in renamed and "total" not in renamed
        answers = []
        for text in (code, renamed):
            space: dict = {}
            exec(text, space)
            answers.append([space["f"](["ab", "abcd"]), space["f"](["ab"], 4, 1, 2)])
        assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("language", "code", "renamed"),
    [
        (
            "go",
            "func (r *T) F(a int) (n int, err error) {\n\tfor i, v := range r.a { n += P{Name: v}.x(i) }\n\treturn\n}",
            "func (var1 *T) F(var2 int) (var3 int, var4 error) {\n"
            "\tfor var5, var6 := range var1.a { var3 += P{Name: var6}.x(var5) }\n\treturn\n}",
        ),
        (
            "java",
            "int f(int a) { int x = a; this.x = x.x(b -> b.a); out: return x; }",
            "int f(int var1) { int var2 = var1; this.x = var2.x(var3 -> var3.a); out: return var2; }",
        ),
        (
            "java",  # a constructor parses inside a class only
            "A(int size) { super(size); this.size = size; }",
            "A(int var1) { super(var1); this.size = var1; }",
        ),
        (
            "javascript",
            "function f(a, {b, c: d}, ...e) { const g = () => a; let h = a.a; return {b, a: h, g, d, e}; }",
            "function f(var1, {b, c: d}, ...e) { const g = () => var1; let var2 = var1.a; "
            "return {b, a: var2, g, d, e}; }",
        ),
        (
            "javascript",
            "push(item) { this.item = item; }",
            "push(var1) { this.item = var1; }",
        ),
        (
            "php",
            'public function f(int $a, ...$c) { global $g; $x = "$a {$c[0]}"; $this->x = $x + $g; return $_GET[$x]; }',
            'public function f(int $var1, ...$var2) { global $g; $var3 = "$var1 {$var2[0]}"; $this->x = $var3 + $g; '
            "return $_GET[$var3]; }",
        ),
        (
            "ruby",
            'def f(a, b = 1, *c, d:, &g)\n  x = a\n  c.each { |i| g.call(i, "#{x}") }\n  self.x = x\n  h(d: d)\nend',
            "def f(var1, var2 = 1, *var3, d:, &var4)\n  var5 = var1\n"
            '  var3.each { |var6| var4.call(var6, "#{var5}") }\n  self.x = var5\n  h(d: d)\nend',
        ),
    ],
)
def test_members_keys_and_names_of_others_stay(language: str, code: str, renamed: str):
    found = local_names(code, language)
    assert found is not None
    assert found.renamed(found.drawn(random(), [])) == renamed


def test_every_scope_has_a_query_that_its_grammar_understands():
    assert set(SCOPES) <= set(syntax.LANGUAGES)
    for language in SCOPES:
        assert local_names("", language) is None


@pytest.mark.parametrize(
    "code",
    [
        "def f(a):\n    return locals()\n",  # finds its variables by text
        "def f(a:\n",  # does not parse
        "def f():\n    return 1\n",  # has none
        "def f(self):\n    return self\n",
        "def f():\n    global a\n    a = 1\n",
        "def f():\n    import os as a\n    a = a\n",
        "def f():\n    class B:\n        a = 1\n    return B.a\n",
    ],
)
def test_what_must_keep_its_names_keeps_them(code: str):
    assert local_names(code, "python") is None


def test_the_parameter_of_a_nested_function_stays_if_a_call_names_it():
    found = local_names("def f(a):\n    def g(b, c): return b\n    return g(b=a, c=1)\n", "python")
    assert found is not None and found.names == ("a",)
    alone = local_names("def f(b):\n    return g(b=b)\n", "python")
    assert alone is not None and alone.renamed({"b": "z"}) == "def f(z):\n    return g(b=z)\n"


def test_a_language_that_is_not_known_is_left_alone():
    assert local_names("fn f(a: i32) {}", "rust") is None
