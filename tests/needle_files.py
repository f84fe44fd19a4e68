"""A small dataset file of RepoQA's form: a repository a language, two files each, non-ASCII before the needles."""

import gzip
import json
from pathlib import Path

from coderet.corpora import syntax

SOURCES = {
    "python": (
        "# ééééééééééééééééééééééééééééééééééééé\nimport os\n\n\n"
        "class Box:\n    def __init__(self):\n        self.things = []\n\n"
        "    @property\n    def size(self):\n        def one(thing):\n            return 1\n"
        "        return sum(map(one, self.things))\n\n\n"
        "def walk(folder, depth=1):\n    for name in os.listdir(folder):\n        yield os.path.join(folder, name)\n",
        "from a import walk\n\n\ndef count(folder):\n    total = 0\n"
        "    for each in walk(folder):\n        total += 1\n    return total\n",
    ),
    "cpp": (
        "// é\nnamespace n {\nint add(int a, int b) {\n  return a + b;\n}\n"
        "int* at(int* x, int i) { return x + i; }\n}\n",
        "// ü\ntemplate <class T>\nT twice(T a) {\n  return a + a;\n}\n",
    ),
    "java": (
        "/* é */\nclass A {\n  A() { }\n  int add(int a, int b) {\n    return a + b;\n  }\n  void none() { }\n}\n",
        'class B {\n  String greet(String who) {\n    return "ü " + who;\n  }\n}\n',
    ),
    "typescript": (
        "// é\nexport function add(a: number, b: number): number {\n  return a + b\n}\nfunction none() {}\n",
        "class K {\n  greet(who: string): string {\n    return 'ü ' + who\n  }\n}\n",
    ),
    "rust": (
        "// é\nfn add(a: i32, b: i32) -> i32 {\n    a + b\n}\nimpl K { fn none(&self) {} }\n",
        'pub fn greet(who: &str) -> String {\n    format!("ü {}", who)\n}\n',
    ),
    "go": (
        "// é\npackage p\n\nfunc add(a int, b int) int {\n\treturn a + b\n}\n\nfunc none() {}\n",
        'package p\n\nfunc greet(who string) string {\n\treturn "ü " + who\n}\n',
    ),
}
ENDINGS = {"python": "py", "cpp": "cc", "java": "java", "typescript": "ts", "rust": "rs", "go": "go"}


def functions(text: str, language: str) -> list[dict]:
    """As RepoQA has them: without decorators and `export`, nested ones too."""
    utf8, found = text.encode(), []
    for each in syntax.functions(utf8, language, nested=True):
        start, end = each.bare
        found.append(
            {
                "name": each.name,
                "start_line": utf8.count(b"\n", 0, start),
                "end_line": utf8.count(b"\n", 0, end) + 1,
                "start_byte": start,
                "end_byte": end,
            }
        )
    return found


def repository(language: str, sources=None, dependency=None, needles=None) -> dict:
    """needles: names, all functions if None."""
    first, second = (f"src/{each}.{ENDINGS[language]}" for each in "ab")
    content = dict(zip((first, second), sources or SOURCES[language], strict=True))
    found = {path: functions(text, language) for path, text in content.items()}
    return {
        "repo": f"owner/{language}",
        "commit_sha": "0" * 40,
        "entrypoint_path": "src",
        "topic": "test",
        "content": content,
        "dependency": {second: [first], first: []} if dependency is None else dependency,
        "functions": found,
        "needles": [
            {**each, "path": path, "description": f"**Purpose**: it does thing {number} of {path}"}
            for number, (path, each) in enumerate((path, each) for path, some in found.items() for each in some)
            if needles is None or each["name"] in needles
        ],
    }


def write(folder: Path, content=None, name="repoqa-test.json.gz") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    content = {language: [repository(language)] for language in SOURCES} if content is None else content
    data = json.dumps(content).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder / name
