"""Small imagined data sets of CoIR in the exact layout of the hub, both families, for tests that read or score them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coderet.benchmarks import coir

ROW = pa.schema(
    [
        ("_id", pa.string()),
        ("title", pa.string()),
        ("partition", pa.string()),
        ("text", pa.string()),
        ("language", pa.string()),
        ("meta_information", pa.struct([("resource", pa.string())])),
    ]
)
LANGUAGES = ("python", "ruby")
WORDS = (
    "sort list numbers place return binary search tree walk graph node edge open file read line parse text split join "
    "count word map filter sum product prime factor matrix row column queue stack push pop hash table merge heap"
).split()


def tasks() -> dict[str, coir.Task]:
    """The ten tasks with the sizes of the folders that `write` makes; two languages where there are six."""
    size = coir.Size(8, 21)
    return {
        name: replace(task, sizes=dict.fromkeys(LANGUAGES if task.languages else (name,), size))
        for name, task in coir.TASKS.items()
    }


def rows(salt: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, list[tuple[str, str]]]]:
    """Queries, documents and judgements by split: 20 pairs of all partitions and a document with a query's id.

    Every third document has a title; c3, of train, is a copy of c15, the answer of q15; texts have white space outside.
    """
    queries, documents = [], []
    judged: dict[str, list[tuple[str, str]]] = {"train": [], "valid": [], "test": []}
    for number in range(20):
        partition = "train" if number < 8 else "valid" if number < 12 else "test"
        words = [WORDS[(salt + 7 * number + step * (number + 3)) % len(WORDS)] for step in range(9)]
        # Some queries have few words of their answers and one of another's, so that not all are answered rightly.
        asked = words[2:7] if number % 3 else [*words[3:5], WORDS[(salt + 7 * (number + 1)) % len(WORDS)], "of", "a"]
        title = words[5] if number % 3 == 0 else ""
        text = f"    {' '.join(words[2:])}\n" if number % 2 else " ".join(words[2:])
        queries.append(_row(f"q{number}", "", partition, " ".join(asked)))
        documents.append(_row(f"c{number}", title, partition, text))
        judged[partition].append((f"q{number}", f"c{number}"))
    documents[3] = _row("c3", documents[15]["title"], "train", documents[15]["text"])
    documents.append(_row("q14", "", "test", queries[14]["text"]))
    return queries, documents, judged


def _row(row_id: str, title: str, partition: str, text: str) -> dict[str, Any]:
    meta = {"resource": ""}
    return {
        "_id": row_id,
        "title": title,
        "partition": partition,
        "text": text,
        "language": "x",
        "meta_information": meta,
    }


def write(root: Path, task: coir.Task, choices: coir.Choices = coir.COIR_2024) -> Path:
    """The data set with configs that a protocol reads, below root."""
    folder = root / (task.mteb_place if choices is coir.MTEB else task.repository)
    configs: dict[str, dict[str, list[str]]] = {}
    for place, language in enumerate(task.languages or ("",)):
        queries, documents, judged = rows(len(task.name) + 5 * place)
        before = f"{language}-" if language else ""
        for name, some in (("queries", queries), ("corpus", documents)):
            configs[f"{before}{name}"] = {name: _write(folder / f"{before}{name}", name, some, ROW)}
        own = folder / (f"{before}qrels" if before else "data")
        configs[f"{before}qrels" if before else "default"] = {
            split: _write(own, split, _judgements(pairs, "-")) for split, pairs in judged.items()
        }
    _readme(folder, configs)
    return folder


def write_pairs(root: Path, task: coir.Task) -> None:
    """The same rows as the pair of data sets that the tool reads, below root; one pair a language."""
    for place, language in enumerate(task.languages or ("",)):
        queries, documents, judged = rows(len(task.name) + 5 * place)
        stem = f"{task.repository}-{language}" if language else task.repository
        texts, qrels = root / f"{stem}-queries-corpus", root / f"{stem}-qrels"
        named = {
            name: _write(texts / "data", name, some, ROW)
            for name, some in (("queries", queries), ("corpus", documents))
        }
        _readme(texts, {"default": named})
        named = {split: _write(qrels / "data", split, _judgements(pairs, "_")) for split, pairs in judged.items()}
        _readme(qrels, {"default": named})


def _judgements(pairs: Iterable[tuple[str, str]], dash: str) -> list[dict[str, Any]]:
    return [{f"query{dash}id": query, f"corpus{dash}id": document, "score": 1} for query, document in pairs]


def _write(folder: Path, split: str, some: list[dict[str, Any]], schema: pa.Schema | None = None) -> list[str]:
    """Two shards of a split; their patterns as README.md has them."""
    folder.mkdir(parents=True, exist_ok=True)
    middle = len(some) // 2
    for number, part in enumerate((some[:middle], some[middle:])):
        pq.write_table(pa.Table.from_pylist(part, schema), folder / f"{split}-0000{number}-of-00002.parquet")
    return [f"{folder.name}/{split}-*"]


def _readme(folder: Path, configs: Mapping[str, Mapping[str, list[str]]]) -> None:
    lines = ["---", "configs:"]
    for config, splits in configs.items():
        lines += [f"- config_name: {config}", "  data_files:"]
        for split, (pattern,) in splits.items():
            lines += [f"  - split: {split}", f"    path: {pattern}"]
    (folder / "README.md").write_text("\n".join([*lines, "---", ""]))
