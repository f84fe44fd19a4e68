"""DocPrompting's CoNaLa, the retrieval part: a request to the documentation it takes (Zhou et al., 2023, 2207.05987).

A query is what is asked for (`nl`), its documents the entries of the library documentation that the solution uses
(`oracle_man`), which names them by title. Requests without an entry are kept as queries; the metrics leave them out and
count them.
"""

from collections.abc import Iterator
from pathlib import Path

from coderet.benchmarks import library_docs
from coderet.corpora import released
from coderet.records import Benchmark, Draft, Released, qrels_table, queries_table

FIELDS = {"nl": str, "question_id": str, "oracle_man": list}
DOCUMENTATION = library_docs.LINES
SPLITS = {
    "dev": (201, 199, "2a55cfc30dd685bd12702f6af847317afd2fdd32b42276601669b29be0bbdcc6"),
    "train": (2135, 1794, "7582405e6214d77854a317ca445ccbc2fcca92b96f99caeb38ad0fb0825995d6"),
}


def requests(folder: Path, split: str, expected: int) -> Iterator[Draft]:
    """The one dataset of a split; a query's id is the question's and the row's, for some questions have several."""
    rows = released.json_array(folder, f"docprompting_conala/cmd_{split}.oracle_man.full.json", FIELDS)
    ids = [f"{each['question_id']}:{number}" for number, each in enumerate(rows)]
    gold = [
        (query, title) for query, each in zip(ids, rows, strict=True) for title in dict.fromkeys(each["oracle_man"])
    ]
    found = DOCUMENTATION.ids_by_title(folder, {title for _, title in gold})
    yield Draft(
        split,
        DOCUMENTATION.batches(folder),
        queries_table(ids, [each["nl"] for each in rows]),
        qrels_table([query for query, _ in gold], [found[title] for _, title in gold]),
        documents_expected=DOCUMENTATION.count,
        queries_expected=expected,
    )


def _benchmark(name: str, split: str, count: int, with_gold: int, sha256: str) -> Benchmark:
    def collect(folder: Path) -> Iterator[Draft]:
        return requests(folder, split, count)

    return Benchmark(
        name=name,
        collect=collect,
        metrics=("ndcg@10", "mrr", "recall@1", "recall@5", "recall@10", "recall@20", "hit@1"),
        licence="Apache-2.0 (DocPrompting), CC-BY-SA (Stack Overflow's text), of each library (documentation)",
        source=f"the {split} split of DocPrompting's CoNaLa over the documentation of Python libraries",
        files=(
            Released(
                f"docprompting_conala/cmd_{split}.oracle_man.full.json",
                sha256,
                "url:https://raw.githubusercontent.com/shuyanzhou/docprompting/"
                f"0a89d2b624dd62c81143c84e1273a36ea6c3c8ea/data/conala/cmd_{split}.oracle_man.full.json",
            ),
            *DOCUMENTATION.files,
        ),
        choices={"gold": "the entries of oracle_man, each once", "document": "the entry's text, its title apart"},
        queries=f"{count:,}, {with_gold:,} with documents",
        documents=f"{DOCUMENTATION.count:,}",
        defects=(
            "The corpus is not DocPrompting's 34,003 documents, which are not to be had, but 35,728 entries that hold "
            "all of its gold ones.",
            "Gold was found by matching names in the solution: entries for built-ins such as list are often gold where "
            "nobody would look for them.",
        ),
    )


BENCHMARKS = {
    name: _benchmark(name, split, *SPLITS[split])
    for name, split in (("docprompting", "dev"), ("docprompting-train", "train"))
}
