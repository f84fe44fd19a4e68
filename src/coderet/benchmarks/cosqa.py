"""CosQA as its authors search it: web queries to Python functions (Huang et al., 2021, arXiv 2105.13239).

The 500 test queries of CoCLR's retrieval split over its whole code base of 6,267 functions, `code_idx_map.txt`; one
function answers each query. Not CoIR's `cosqa`, whose corpus has 20,604 documents.

- `cosqa-csn`: the functions as they are, docstrings in them;
- `cosqa-csn-nodoc`: the docstrings taken out, so that a query must find code and not prose. A docstring is the first
  statement of the function; a string further down, which was perhaps meant as one, stays. Code that does not parse
  keeps its text.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from coderet.corpora import released, syntax
from coderet.records import Benchmark, DataError, Draft, Released, documents_batch, qrels_table, queries_table

QUERIES, FUNCTIONS = "cosqa/search/cosqa-retrieval-test-500.json", "cosqa/search/code_idx_map.txt"
FIELDS = {"idx": str, "doc": str, "code": str, "retrieval_idx": int}
PLACE = (
    "url:https://raw.githubusercontent.com/Jun-jie-Huang/CoCLR/14ebcacf9e9bc3e7109102632bc63047876f27d2/data/search/"
)
FILES = (
    Released(
        QUERIES,
        "27d3552b2e7dd86cf9f9a0b3c135e6777d4faafa9c29fb1b9b01ece945974ad6",
        f"{PLACE}cosqa-retrieval-test-500.json",
    ),
    Released(
        FUNCTIONS,
        "be8a910ca03cb9f1b38a0eba6dc8109eeb8040a40aaba1a467a7b8426d261f3f",
        f"{PLACE}code_idx_map.txt",
    ),
)


def collect(folder: Path) -> Iterator[Draft]:
    """One dataset of 500 queries and 6,267 documents. Ids are CosQA's own; titles are empty."""
    yield _draft("cosqa-csn", folder, lambda code: code)


def collect_without_docstrings(folder: Path) -> Iterator[Draft]:
    """The same without docstrings in the documents."""
    yield _draft("cosqa-csn-nodoc", folder, without_docstring)


def without_docstring(code: str) -> str:
    """A Python function less its docstring; code as it is where it is not just one function that parses."""
    functions = syntax.functions(code.encode(), "python")
    if len(functions) != 1 or functions[0].file_has_error or not functions[0].docs:
        return code
    return functions[0].code


def _draft(name: str, folder: Path, text_of: Callable[[str], str]) -> Draft:
    asked = released.json_array(folder, QUERIES, FIELDS)
    functions = released.json_whole(folder, FUNCTIONS)
    if not isinstance(functions, dict):
        raise DataError(f"{folder / FUNCTIONS} is one {type(functions).__name__}, wanted a mapping of codes to numbers")
    for each in asked:
        if functions.get(each["code"]) != each["retrieval_idx"]:
            raise DataError(
                f"{folder / QUERIES}: the code of {each['idx']} is not number {each['retrieval_idx']} of {FUNCTIONS}; "
                "the two files are of different releases"
            )
    queries = [each["idx"] for each in asked]
    return Draft(
        name,
        [documents_batch(map(str, functions.values()), [None] * len(functions), [text_of(code) for code in functions])],
        queries_table(queries, [each["doc"] for each in asked]),
        qrels_table(queries, [str(each["retrieval_idx"]) for each in asked]),
        documents_expected=6267,
        queries_expected=500,
    )


METRICS = ("ndcg@10", "mrr", "recall@10", "recall@100", "hit@1")
LICENCE = "C-UDA (CosQA), MIT (CoCLR's repository)"
SOURCE = "the retrieval test split of CoCLR, github.com/Jun-jie-Huang/CoCLR"
ONE_ANSWER = "Only the function that annotators were shown is judged; others that answer a query count as wrong."
BENCHMARKS = {
    "cosqa-csn": Benchmark(
        name="cosqa-csn",
        collect=collect,
        metrics=METRICS,
        licence=LICENCE,
        source=SOURCE,
        files=FILES,
        choices={"document": "the function, docstring in it"},
        queries="500",
        documents="6,267",
        defects=(
            "All but 21 documents hold their docstring, so prose is matched to prose: see cosqa-csn-nodoc.",
            ONE_ANSWER,
        ),
    ),
    "cosqa-csn-nodoc": Benchmark(
        name="cosqa-csn-nodoc",
        collect=collect_without_docstrings,
        metrics=METRICS,
        licence=LICENCE,
        source=SOURCE,
        files=FILES,
        choices={"document": "the function, docstring taken out"},
        queries="500",
        documents="6,267",
        defects=(
            "21 functions have no docstring in its place and stay as they are, strings further down included.",
            ONE_ANSWER,
        ),
    ),
}
