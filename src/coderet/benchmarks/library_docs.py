"""The documentation of Python libraries that DS-1000, ODEX and DocPrompting's CoNaLa are searched in.

CodeRAG-Bench searches the 34,003 documents of DocPrompting (Zhou et al., 2023), `conala-docs.jsonl` of the hub's
`neulab/docprompting-conala`: a document's title is its `doc_id`, its id the number of its row, and gold names titles.
Two corpora stand in where the hub is out of reach, both made of the DevDocs pages in CodeRAG-Bench's repository, both
of 35,728 documents, a superset. In `LINES` a document is the first three lines of its entry (or the shortened text that
CodeRAG-Bench published of a gold document). In `PAGES` it is the whole page, or, where an entry is a place on a page,
all from there to the next entry; what has no page stays as it is in `LINES`.

What this does to BM25's figures is measured by bench/library_documentation.py, one cause at a time and query by query.
"""

import itertools
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from coderet.corpora.released import check_fields, json_lines
from coderet.records import DataError, Released, documents_batch

OFFICIAL_FILE = Released(
    "neulab/docprompting-conala/conala-docs.jsonl",
    "1df45601ef49be212be1316916ce6c64843efe22512b49c5893495a8a7a563d0",
    "hub:datasets/neulab/docprompting-conala@48df7abf0f64f9279b4ee04386272eb9dc89ef89?include=conala-docs.jsonl",
)
_REPOSITORY = "code-rag-bench/code-rag-bench@f9e100ca9ed94b8f1983b356ae81966e30210cf4"
LINES_FILE = Released(
    "coderag_bench/library_documentation/corpus.jsonl",
    "e3a970439547d003f4d2c6a75bec767c38dcbdfd9fa0648eede56c5b8c1b369e",
    how=f"made of preprocessor/devdocs/raw/*/{{index.json,*.html}} of {_REPOSITORY}: a document for each path in the "
    "indexes of Django 4.0, Django REST framework, Flask 2.0, Matplotlib 3.5, NumPy 1.22, pandas 1, pygame, Python "
    "3.9, PyTorch, scikit-image, scikit-learn, TensorFlow 2.4 and Werkzeug 2.0, with the published text where there is "
    "one and the first three lines where not",
)
_PAGES = {
    "django-4.0": ("django~4.0", "b78753373e0e8abec6c0e2961383d0b76bd3df63a885e54f286caf655eaf995c"),
    "django_rest_framework": (
        "django_rest_framework",
        "8d2b1fbfbd63caa221166c1d0d52dc3a970adffdbe6a582fc7c2520d024a4835",
    ),
    "flask-2.0": ("flask~2.0", "cef6912c36c5a6eeeb71c56863182f5be2d60cc27e03da464936d9429a91c3b1"),
    "matplotlib-3.5": ("matplotlib~3.5", "0e726345937ddf3c470b50eb60e548744a9221634566685eaab34ed24dd58f0e"),
    "numpy-1.22": ("numpy~1.22", "bb6063672b71beb73e4915f0cf36a3818c55a1c0506e4d0b9cc6c9de71cc32ea"),
    "pandas-1": ("pandas~1", "a11947be50a79f6b899e8c89085878e592c73bc6d7f3e8ad907da917709507a1"),
    "python-3.9": ("python~3.9", "c5c50a698ea30681791dd9e0dc6c10fc9a2b203f20d86968e6ce3100f400ce55"),
    "pytorch": ("pytorch", "212e8bc60f1719a402435f2ab6a2c18bdc8b9daf301fbce82056f844aeb1ecbc"),
    "scikit_image": ("scikit_image", "393656cc0df0f86a4e43eaafe3d5980f9eddd572e4ec231a1efe4d5df58ef875"),
    "scikit_learn": ("scikit_learn", "860cc300567dbd4276c7d3389fd1a5ce2173ad05ad24a62debcee9de639340f5"),
    "tensorflow-2.4": ("tensorflow~2.4", "d715f9c38f5d38f6020baba4ff415a9891770f5106da92daf07889fef9c06a79"),
    "werkzeug-2.0": ("werkzeug~2.0", "a3187379f310fb23ed2e498c2981191da9bf692a4f84d995fbe8b666a4fee1a9"),
}
PAGES_FILES = tuple(
    Released(
        f"coderag_bench/devdocs_plain/{name}.jsonl",
        sha256,
        how=f"path and text of every preprocessor/devdocs/plain/{name}/**.txt of {_REPOSITORY}, inline images cut out",
    )
    for name, (_, sha256) in _PAGES.items()
)

_BATCH = 4096
_RUN = re.compile(r"[^\W_]+")
_KEY = 200  # letters and digits at an entry's beginning that tell where on its page it is


class Document(NamedTuple):
    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Documentation:
    """One of the corpora: what it is called, its files, its documents, and how many.

    titled: the same ids and titles, texts being of no matter, where these are sooner had.
    """

    name: str
    files: tuple[Released, ...]
    documents: Callable[[Path], Iterator[Document]]
    titled: Callable[[Path], Iterator[Document]]
    count: int

    def batches(self, folder: Path) -> Iterator[pa.RecordBatch]:
        """The documents, streamed."""
        found = self.documents(folder)
        while part := list(itertools.islice(found, _BATCH)):
            yield documents_batch(*map(list, zip(*part, strict=True)))

    def ids_by_title(self, folder: Path, titles: Collection[str]) -> dict[str, str]:
        """The id of the first document of each of titles; DataError if one of them is in no document."""
        wanted = set(titles)
        found: dict[str, str] = {}
        for document in self.titled(folder):
            if document.title in wanted:
                found.setdefault(document.title, document.id)
        if missing := sorted(wanted - found.keys()):
            raise DataError(
                f"{len(missing)} of {len(wanted)} gold titles are in no document of {self.name}, {missing[0]!r} among "
                f"them; the files in {folder} are not whole or not those of this benchmark"
            )
        return found


def _official(folder: Path) -> Iterator[Document]:
    for row, record in enumerate(json_lines(folder, OFFICIAL_FILE.name)):
        if not record.keys() >= {"doc_id", "doc_content"}:
            raise DataError(f"{folder / OFFICIAL_FILE.name}: a record has {sorted(record)}, wanted doc_id, doc_content")
        yield Document(str(row), record["doc_id"], record["doc_content"])


def _lines(folder: Path) -> Iterator[Document]:
    return map(_document, _entries(folder))


def _pages(folder: Path) -> Iterator[Document]:
    """A library at a time: its pages are held, no more."""
    files = {library: name for name, (library, _) in _PAGES.items()}
    entries = _entries(folder)
    for library, group in itertools.groupby(entries, lambda entry: entry["metadata"]["library"]):
        pages: dict[str, str] = {}
        if library in files:
            name = f"coderag_bench/devdocs_plain/{files[library]}.jsonl"
            pages = {page["path"]: page["text"] for page in json_lines(folder, name)}
        for path, of_page in itertools.groupby(sorted(group, key=_page_of), _page_of):
            yield from _whole(list(of_page), pages.get(path))


def _entries(folder: Path) -> Iterator[dict[str, Any]]:
    for number, entry in enumerate(json_lines(folder, LINES_FILE.name), 1):
        place = f"{folder / LINES_FILE.name}, line {number}"
        check_fields(entry, {"_id": str, "title": str, "text": str, "metadata": dict}, place)
        check_fields(entry["metadata"], {"library": str, "path": str}, place)
        yield entry


def _whole(entries: list[dict[str, Any]], page: str | None) -> Iterator[Document]:
    """The entries of one page with all their text; page is None if there is none."""
    if page is None:
        yield from map(_document, entries)
        return
    places = [each for each in entries if _is_place(each)]
    letters = _Letters(page if places else "")
    starts = {each["_id"]: letters.start(each["text"]) for each in places}
    order = [*sorted({start for start in starts.values() if start is not None}), len(page)]
    for each in entries:
        start = starts.get(each["_id"], 0)
        if start is None:
            yield _document(each)
        else:
            end = order[bisect_right(order, start)] if _is_place(each) else len(page)
            yield Document(each["_id"], each["title"], page[start:end])


class _Letters:
    """The letters and digits of a page, in which texts are found whatever the white space and the marks between."""

    def __init__(self, page: str) -> None:
        self._page = page
        runs = list(_RUN.finditer(page))
        self._letters = "".join(run[0] for run in runs)
        self._on_page = [run.start() for run in runs]
        self._run_starts = list(itertools.accumulate((len(run[0]) for run in runs), initial=0))

    def start(self, text: str) -> int | None:
        """Where on the page text begins, at the beginning of a line; None if nowhere."""
        key = "".join(_RUN.findall(text))[:_KEY]
        found = self._letters.find(key) if key else -1
        while found >= 0:
            run = bisect_right(self._run_starts, found) - 1
            place = self._on_page[run] + found - self._run_starts[run]
            if not _RUN.search(self._page, self._page.rfind("\n", 0, place) + 1, place):
                return place
            found = self._letters.find(key, found + 1)
        return None


def _page_of(entry: Mapping[str, Any]) -> str:
    path: str = entry["metadata"]["path"]
    return path.partition("#")[0]


def _is_place(entry: Mapping[str, Any]) -> bool:
    return "#" in entry["metadata"]["path"]


def _document(record: Mapping[str, Any]) -> Document:
    return Document(record["_id"], record["title"], record["text"])


OFFICIAL = Documentation("DocPrompting's documentation", (OFFICIAL_FILE,), _official, _official, 34_003)
LINES = Documentation("DevDocs, three lines an entry", (LINES_FILE,), _lines, _lines, 35_728)
PAGES = Documentation("DevDocs, whole entries", (LINES_FILE, *PAGES_FILES), _pages, _lines, 35_728)
