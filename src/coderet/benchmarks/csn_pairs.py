"""Docstring to code in six languages: the functions of CodeXGLUE's ClozeTest-maxmin, which are CodeSearchNet's.

A query is a docstring's tokens, its document the function's, each joined by a space; a token may hold white space of
its own, which stays. Ids are those of the file.

In each function one token, a `max` or a `min` as the file does not say which, is `<mask>`. Nothing is put in its place:
either word would be wrong in some functions, and the mark itself is a token that some encoders read as one of their
own. All documents lose just one token so. Other occurrences of max and min stay, they are the functions' own.
"""

from collections.abc import Iterator
from pathlib import Path

from coderet.corpora import released
from coderet.records import Benchmark, DataError, Draft, Released, documents_batch, qrels_table, queries_table

MASK = "<mask>"
FIELDS = {"idx": str, "nl_tokens": list, "pl_tokens": list}
FUNCTIONS = {
    "go": (152, "9b0ba35b614b7b93c537ed52c88d89ca02e186022086c9bb41323eb4342eecf9"),
    "java": (482, "ee2e7b0ad7d75ecb5e53b668f04fb39bdcebbacda820220b9bbb093136dd4082"),
    "javascript": (272, "8517b7b0ecfcc59ccb19c3253a907e6b4f65549e4b68a8ac249807e50a001204"),
    "php": (407, "37a7dd759eca7fa8076d2b9a2ab3991774728555dd7568a3e54b0a152d2c10b8"),
    "python": (1264, "98cbdaf5900a343d2017aa1b7144a8ee75eac3d0c3ad40812abd7b72fd892e72"),
    "ruby": (38, "d3c71ae0127b653ee551da3e6a5eea17434c38cc4b2d6349d529e8e37ae4f9d2"),
}
PLACE = (
    "url:https://raw.githubusercontent.com/microsoft/CodeXGLUE/ac74a62802a0dd159b3258c78a2df8ad36cdf2b9/Code-Code/"
    "ClozeTesting-maxmin/data/cloze-maxmin/"
)


def pairs(folder: Path, language: str, expected: int) -> Iterator[Draft]:
    """The one dataset of a language: every docstring against all functions."""
    name = f"codexglue_clozetest_maxmin/{language}/clozeTest.json"
    records = released.json_array(folder, name, FIELDS)
    for each in records:
        if each["pl_tokens"].count(MASK) != 1:
            raise DataError(f"{folder / name}: {each['idx']} has not just one {MASK}; it is another task's file")
    ids = [each["idx"] for each in records]
    codes = [" ".join(token for token in each["pl_tokens"] if token != MASK) for each in records]
    yield Draft(
        language,
        [documents_batch(ids, [None] * len(ids), codes)],
        queries_table(ids, [" ".join(each["nl_tokens"]) for each in records]),
        qrels_table(ids, ids),
        documents_expected=expected,
        queries_expected=expected,
    )


def _benchmark(language: str, count: int, sha256: str) -> Benchmark:
    def collect(folder: Path) -> Iterator[Draft]:
        return pairs(folder, language, count)

    return Benchmark(
        name=f"csn-pairs-{language}",
        collect=collect,
        metrics=("ndcg@10", "mrr", "recall@10", "hit@1"),
        licence="C-UDA (CodeXGLUE), of each repository (code)",
        source=f"the {language} functions of CodeXGLUE's ClozeTest-maxmin",
        files=(
            Released(
                f"codexglue_clozetest_maxmin/{language}/clozeTest.json", sha256, f"{PLACE}{language}/clozeTest.json"
            ),
        ),
        choices={
            "query": "docstring tokens joined by a space",
            "document": "code tokens joined by a space, the masked one left out",
        },
        queries=f"{count:,}",
        documents=f"{count:,}",
        defects=(
            "All functions are about a max or a min, so the pool is narrow and no sample of CodeSearchNet.",
            "Some functions share one docstring, of which each is right for its own function only: see the ceiling.",
        ),
    )


BENCHMARKS = {f"csn-pairs-{language}": _benchmark(language, *facts) for language, facts in FUNCTIONS.items()}
