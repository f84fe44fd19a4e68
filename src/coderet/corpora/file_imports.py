"""Which files of a repository a file imports, read from its text: the edges of the dependency order.

Python's imports are those of its syntax, absolute and relative, inside functions too; those of JavaScript and
TypeScript the texts after `from`, `import` and `require` that begin with a dot; includes of C++ are looked for beside
the file and from every folder above it; a Rust file imports the modules it declares (`mod x;`). For other languages
none are read, so that their files are in order of their paths. Files that are not in the repository are left out.
"""

import ast
import posixpath
import re
import warnings
from collections.abc import Collection, Iterator, Mapping

_SCRIPT_ENDINGS = ("", ".ts", ".tsx", ".mts", ".js", ".mjs", ".cjs", ".jsx", "/index.ts", "/index.js")


def file_imports(files: Mapping[str, str], language: str) -> dict[str, list[str]]:
    """Of every path the paths it imports, each once, in the order of the text."""
    modules = {_module(path): path for path in files} if language == "python" else {}
    found = {}
    for path, text in files.items():
        if language == "python":
            own = [modules[name] for name in _python(path, text) if name in modules]
        else:
            own = list(_named(path, text, language, files))
        found[path] = [each for each in dict.fromkeys(own) if each != path]
    return found


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _python(path: str, text: str) -> Iterator[str]:
    """Names of modules that may be meant: of `from a import b` both a.b and a."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    package = path.split("/")[:-1]
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in sorted(nodes, key=lambda node: node.lineno):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            continue
        above = package[: len(package) - node.level + 1] if node.level else []
        base = ".".join([*above, *filter(None, [node.module])])
        yield from (f"{base}.{alias.name}" for alias in node.names)
        yield base


def _named(path: str, text: str, language: str, files: Collection[str]) -> Iterator[str]:
    folder = posixpath.dirname(path)
    if language in ("javascript", "typescript"):
        for found in _SCRIPT.finditer(text):
            base = posixpath.normpath(posixpath.join(folder, found[1]))
            without = base.rpartition(".")[0] if base.endswith((".js", ".mjs", ".cjs")) else base  # .js may mean .ts
            names = [each + ending for each in (base, without) for ending in _SCRIPT_ENDINGS]
            yield from [each for each in names if each in files][:1]
    elif language == "cpp":
        for found in _INCLUDE.finditer(text):
            place = folder
            while True:
                name = posixpath.normpath(posixpath.join(place, found[1]))
                if name in files:
                    yield name
                    break
                if not place:
                    break
                place = posixpath.dirname(place)
    elif language == "rust":
        own = posixpath.basename(path)
        base = folder if own in ("mod.rs", "lib.rs", "main.rs") else path.removesuffix(".rs")
        for found in _MOD.finditer(text):
            names = [posixpath.join(base, f"{found[1]}.rs"), posixpath.join(base, found[1], "mod.rs")]
            yield from [each for each in names if each in files]


_SCRIPT = re.compile(r"""(?:\bfrom|\bimport|\brequire\s*\()\s*\(?\s*['"](\.[^'"\n]*)['"]""")
_INCLUDE = re.compile(r"""^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]""", re.MULTILINE)
_MOD = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))?[ \t]+)?mod[ \t]+(\w+)[ \t]*;", re.MULTILINE)
