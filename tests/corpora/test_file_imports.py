from coderet.corpora.file_imports import file_imports


def test_python_files_import_modules_and_names_of_packages():
    files = {
        "p/__init__.py": "from .a import x\n",
        "p/a.py": "import os\n\n\ndef f():\n    from p.q import b\n",
        "p/q/__init__.py": "",
        "p/q/b.py": "from .. import a\nimport p.q\n",
        "p/broken.py": "def (",
    }
    assert file_imports(files, "python") == {
        "p/__init__.py": ["p/a.py"],
        "p/a.py": ["p/q/b.py", "p/q/__init__.py"],
        "p/q/__init__.py": [],
        "p/q/b.py": ["p/a.py", "p/__init__.py", "p/q/__init__.py"],
        "p/broken.py": [],
    }


def test_scripts_import_by_relative_paths_with_or_without_an_ending():
    files = {
        "src/a.ts": "import { b } from './b.js'\nexport * from \"./c\"\nimport fs from 'fs'\nconst d = require('../d')",
        "src/b.ts": "",
        "src/c/index.ts": "",
        "d.js": "import './src/a'",
    }
    assert file_imports(files, "typescript") == {
        "src/a.ts": ["src/b.ts", "src/c/index.ts", "d.js"], "src/b.ts": [], "src/c/index.ts": [], "d.js": ["src/a.ts"],
    }  # fmt: skip


def test_includes_and_modules_are_found_from_where_they_stand():
    files = {"src/n/a.cpp": '#include "b.h"\n#include <n/c.h>\n#include <vector>\n', "src/n/b.h": "", "src/n/c.h": ""}
    assert file_imports(files, "cpp")["src/n/a.cpp"] == ["src/n/b.h", "src/n/c.h"]
    files = {"src/lib.rs": "mod a;\npub mod b;\n", "src/a.rs": "mod c;", "src/b/mod.rs": "", "src/a/c.rs": ""}
    assert file_imports(files, "rust") == {
        "src/lib.rs": ["src/a.rs", "src/b/mod.rs"], "src/a.rs": ["src/a/c.rs"], "src/b/mod.rs": [], "src/a/c.rs": [],
    }  # fmt: skip


def test_other_languages_are_not_read():
    assert file_imports({"a.go": 'import "b"', "b.go": ""}, "go") == {"a.go": [], "b.go": []}
