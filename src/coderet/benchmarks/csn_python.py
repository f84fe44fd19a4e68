"""CodeSearchNet's Python functions as CodeRAG-Bench asks them: docstring -> function (Wang et al., 2024).

A query is the documentation of a function of the test split, its document the function, its title the function's name.
As released a function holds its docstring, and so its query, word for word: `csn-python-docstring` leaves it there,
`csn-python` takes it out, a body that was nothing else becoming `pass`. Both search the 22,176 functions of the test
split, as the paper's Table 1 says. Its script searched those of train, validation and test, docstrings and all:
`csn-python-paper`.

Ids are made of repository, path and name, and a file may define a name again. The paper's loader lets the later
function take the place of the earlier, query and document; the other two number them, `#2` and on.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coderet.corpora import codesearchnet, hub, syntax
from coderet.records import (
    Benchmark,
    DataError,
    Draft,
    Published,
    documents_batch,
    qrels_table,
    queries_table,
)

FOLDER = "codesearchnet"
HUB = "code_search_net"
LANGUAGE = "python"
ROWS = {"train": 412_178, "valid": 23_107, "test": 22_176}
COLUMNS = ("repository", "path", "name", "docstring", "code")
_OF_HUB = (
    "repository_name",
    "func_path_in_repository",
    "func_name",
    "func_documentation_string",
    "func_code_string",
)


@dataclass(frozen=True)
class Choices:
    """splits: whose functions are searched, test among them; text: a function's document, of its code.

    numbered: whether functions of one id are numbered; if not, the last one stands for all.
    """

    splits: tuple[str, ...]
    text: Callable[[str], str]
    numbered: bool

    def collect(self, folder: Path) -> Iterator[Draft]:
        """One dataset; the files are read twice, for a function's id depends on those before and after it."""
        ids = [_ids(folder, split) for split in self.splits]
        bases = pa.chunked_array(ids)
        nth, last = occurrences(bases)
        kept = np.ones(len(nth), bool) if self.numbered else last
        names = _numbered(bases, nth) if self.numbered else bases
        asked = slice(len(bases) - len(ids[-1]), len(bases))  # the test split is the last
        tests = names.slice(asked.start).filter(pa.array(kept[asked]))
        texts = [row for batch in functions(folder, self.splits[-1]) for row in batch["docstring"].to_pylist()]
        queries = [f"{each}_doc" for each in tests.to_pylist()]
        yield Draft(
            "csn-python",
            self._documents(folder, names, kept),
            queries_table(queries, [text for text, keep in zip(texts, kept[asked], strict=True) if keep]),
            qrels_table(queries, [f"{each}_code" for each in tests.to_pylist()]),
            documents_expected=int(kept.sum()),
            queries_expected=int(kept[asked].sum()),
        )

    def _documents(self, folder: Path, names: pa.ChunkedArray, kept: np.ndarray) -> Iterator[pa.RecordBatch]:
        row = 0
        for split in self.splits:
            for batch in functions(folder, split):
                here = np.flatnonzero(kept[row : row + len(batch)])
                ids = [f"{names[row + int(place)]}_code" for place in here]
                chosen = batch.take(pa.array(here))
                yield documents_batch(ids, chosen["name"], [self.text(code) for code in chosen["code"].to_pylist()])
                row += len(batch)


def functions(folder: Path, split: str) -> Iterator[pa.RecordBatch]:
    """The functions of a split in columns COLUMNS, streamed: of the hub's data set if it is there, else of the shards.

    DataError unless there are as many as were released.
    """
    rows = 0
    for batch in _of_hub(folder, split) if (folder / HUB).is_dir() else _of_shards(folder, split):
        rows += len(batch)
        yield batch
    if rows != ROWS[split]:
        raise DataError(
            f"{folder} has {rows} functions of {split}, expected {ROWS[split]}; a file is missing or not whole"
        )


def occurrences(ids: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """(N,) int64: which occurrence of its id each is, from 1; and (N,) bool: whether it is the last."""
    codes = ids.combine_chunks().dictionary_encode().indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    grouped = codes[order]
    first = np.ones(len(codes), bool)
    first[1:] = grouped[1:] != grouped[:-1]
    starts = np.flatnonzero(first)
    nth, last = np.empty(len(codes), np.int64), np.empty(len(codes), bool)
    nth[order] = np.arange(len(codes)) - np.repeat(starts, np.diff([*starts, len(codes)])) + 1
    last[order] = np.append(first[1:], True)[: len(codes)]
    return nth, last


def without_docstring(code: str) -> str:
    """The function less its docstring; as it is if it cannot be read as a Python function, or has none."""
    try:
        found = syntax.functions(code.encode(), LANGUAGE)
    except syntax.Unreadable:
        return code
    return found[0].code if found and found[0].start == 0 and found[0].docs else code


def _ids(folder: Path, split: str) -> pa.Array:
    """<repository>_<path>_<name> of every function."""
    parts = [
        pc.binary_join_element_wise(batch["repository"], batch["path"], batch["name"], _text("_"))
        for batch in functions(folder, split)
    ]
    return pa.concat_arrays(parts)


def _numbered(ids: pa.ChunkedArray, nth: np.ndarray) -> pa.ChunkedArray:
    numbers = pa.array(nth).cast(pa.large_string())
    return pc.if_else(pa.array(nth > 1), pc.binary_join_element_wise(ids, numbers, _text("#")), ids)


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


def _of_hub(folder: Path, split: str) -> Iterator[pa.RecordBatch]:
    name = {"valid": "validation"}.get(split, split)
    for batch in hub.batches(folder / HUB, LANGUAGE, name, _OF_HUB):
        yield pa.RecordBatch.from_arrays(
            [hub.column(batch, each, pa.large_string()) for each in _OF_HUB], names=COLUMNS
        )


def _of_shards(folder: Path, split: str) -> Iterator[pa.RecordBatch]:
    return (batch.select(list(COLUMNS)) for batch in codesearchnet.functions(folder / FOLDER, LANGUAGE, split))


def _as_it_is(code: str) -> str:
    return code


def _benchmark(name: str, choices: Choices, documents: str, differs: str) -> Benchmark:
    return Benchmark(
        name=name,
        collect=choices.collect,
        metrics=("ndcg@10", "mrr", "recall@10", "recall@100", "hit@1"),
        licence="of each repository (code); CodeSearchNet kept those that allow redistribution",
        source="CodeSearchNet, Python",
        files=tuple(codesearchnet.shards_as_released(FOLDER, LANGUAGE, split) for split in choices.splits),
        choices={
            "documents": f"functions of {', '.join(choices.splits)}",
            "docstring in the document": "left in" if choices.text is _as_it_is else "taken out",
            "functions defined again": "numbered" if choices.numbered else "the last takes the place of the others",
        },
        queries="the docstrings of the 22,176 functions of the test split",
        documents=documents,
        defects=(
            "As released a document holds its query word for word: csn-python takes the docstring out, others do not.",
            "The paper's Table 1 says 22,177 documents, its script searches some 457,000.",
            "Ids are not unique where a file defines a name again: numbered, but in csn-python-paper.",
            "What cannot be read as a Python function keeps its docstring.",
        ),
        published=Published("coderag_bench", "codesearchnet_py", differs),
    )


_TEST, _ALL = ("test",), ("train", "valid", "test")
BENCHMARKS = {
    "csn-python": _benchmark(
        "csn-python",
        Choices(_TEST, without_docstring, numbered=True),
        "22,176 functions without their docstrings",
        "docstrings are taken out of the functions, and only the test split is searched",
    ),
    "csn-python-docstring": _benchmark(
        "csn-python-docstring",
        Choices(_TEST, _as_it_is, numbered=True),
        "22,176 functions with their docstrings",
        "only the test split is searched, as Table 1 says",
    ),
    "csn-python-paper": _benchmark(
        "csn-python-paper",
        Choices(_ALL, _as_it_is, numbered=False),
        "some 457,000 functions with their docstrings",
        "",
    ),
}
