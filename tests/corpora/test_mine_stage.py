"""train/mine.py over a source of Python and one of JavaScript, cut against an imagined benchmark."""

import io
import json
import tarfile
import zipfile

import pyarrow.parquet as pq
import yaml
from scripts import ROOT, main_of

from coderet import paths
from coderet.corpora import mining, store
from coderet.records import Draft, documents_batch, qrels_table, queries_table

PYTHON = '''
def {0}(path):
    """Read the {0} of a file.

    >>> {0}("a.txt") == 1
    True
    """
    with open(path) as file:
        return file.{0}()
'''
LEAK = '''
def leak(rows):
    """Turn rows into columns of numbers."""
    columns = zip(*rows)
    return list(columns)
'''
SCRIPT = "/** Adds {0} to a set. */\nexport function add{0}(set) {{\n  set.add({0});\n  return set;\n}}\n"
README = "# net\n\nAdd one thing to a set:\n\n```\nconst set = addThing(new Set());\n```\n"


def wheel(path, files):
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def tarball(path, files):
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content.encode()))


def test_two_sources_give_pairs_of_two_languages_and_examples_of_the_side_that_trains(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fractions = {"train": 0.7, "valid": 0.3}
    names = [f"pkg{number}" for number in range(40)]
    sides = {side: [each for each in names if mining.split_of(each, 13, fractions) == side] for side in fractions}
    (one, *_), (other, *_) = sides["train"], sides["valid"]
    wheel(paths.source("packages") / one / f"{one}-1-py3-none-any.whl", {"a.py": PYTHON.format("size") + LEAK})
    wheel(paths.source("packages") / other / f"{other}-1-py3-none-any.whl", {"a.py": PYTHON.format("lines")})
    net = next(f"net{number}" for number in range(40) if mining.split_of(f"net{number}", 13, fractions) == "train")
    files = {"lib/a.js": SCRIPT.format("Thing"), "dist/a.js": SCRIPT.format("Bundle"), "README.md": README}
    tarball(paths.source("javascript") / net / f"{net}-1.0.0.tgz", files)
    draft = Draft(
        "test",
        [documents_batch(["d"], [None], ["def f(a): return a"])],
        queries_table(["q"], ["turn rows into columns of numbers"]),
        qrels_table(["q"], ["d"]),
        documents_expected=1,
        queries_expected=1,
    )
    store.write_benchmark(paths.benchmark("mine"), [draft])
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    raw["benchmarks"] = {"mine": {"kind": "beir", "depth": 10, "source": ["file:beir"]}}
    raw["sources"] = {"packages": [], "javascript": []}
    raw["grid"] |= {"sources": ["packages", "javascript"], "benchmarks": ["mine"], "answered": [], "read": []}
    raw["mining"] |= {"languages": ["python", "javascript"], "examples": True, "valid_fraction": 0.3, "processes": 1}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")

    main_of("train/mine")()

    def read(name):
        return pq.read_table(paths.PAIRS / f"{name}.parquet", columns=["repository", "query"]).to_pylist()

    assert read("train") == [
        {"repository": one, "query": "Read the size of a file."},
        {"repository": net, "query": "Adds Thing to a set."},
    ]
    assert read("valid") == [{"repository": other, "query": "Read the lines of a file."}]
    assert read("examples") == [
        {"repository": one, "query": "Read the size of a file."},
        {"repository": net, "query": "Add one thing to a set"},
    ]
    report = json.loads(paths.MINING_REPORT.read_text(encoding="utf-8"))
    assert report["pairs"] == {"train": 2, "valid": 1, "examples": 2}
    assert report["cut"]["mine"]["equal_to_queries"] == 1
    assert report["files"]["skipped"]["bundled"] == 1
    assert report["examples"]["blocks"] == {"kept": 3}
