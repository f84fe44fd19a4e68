"""Source text without its comments, line by line, so that every line keeps its number.

Comments are those of the grammar; in Python also strings that stand alone in a block, docstrings among them, as in
RepoQA. A block that would be left empty gets a `pass`. Text that does not parse as a whole is read as far as it does.
"""

from functools import cache

import tree_sitter

from coderet.corpora import syntax

_COMMENTS = {
    "java": "[(line_comment) (block_comment)] @comment",
    "rust": "[(line_comment) (block_comment)] @comment",
    "python": "(comment) @comment (block (expression_statement . (string) @comment .))",
}


def uncommented(text: str, language: str) -> list[str | None]:
    """The lines of text, parted by line feeds; None for one that held nothing but a comment, or a part of one."""
    utf8 = text.encode(errors="replace")
    before = text.split("\n")
    if b"\0" in utf8:
        return list(before)
    captures = _query(language).captures(syntax.parsed(utf8, language))
    nodes = sorted((node for each in captures.values() for node in each), key=lambda node: node.start_byte)
    pieces, last = [], 0
    for node in nodes:
        start, end = node.start_byte, node.end_byte
        if start < last:
            continue
        if utf8[end - 1 : end] == b"\n":  # as a doc comment of Rust has it
            end -= 1
        alone = node.type == "string" and node.parent is not None and _only(node.parent)
        pieces += [utf8[last:start], b"pass" if alone else b"", b"\n" * utf8.count(b"\n", start, end)]
        last = end
    after = b"".join([*pieces, utf8[last:]]).decode().split("\n")
    return [
        None if old.strip() and not new.strip() else new.rstrip() if new != old else old
        for old, new in zip(before, after, strict=True)
    ]


def _only(statement: tree_sitter.Node) -> bool:
    """Whether nothing else stands in the statement's block."""
    return statement.parent is not None and statement.parent.named_child_count == 1


@cache
def _query(language: str) -> tree_sitter.QueryCursor:
    return syntax.query(language, _COMMENTS.get(language, "(comment) @comment"))
