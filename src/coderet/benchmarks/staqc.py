"""StaQC's Python questions to code, as CodeXGLUE labelled them (Yao et al., 2018, arXiv 1803.09371).

A query is a question's title, its documents the snippets labelled 1 for it. Training and validation files are one pool,
for nothing here is trained on them. Snippets labelled 0 are documents too, judged 0: they come from answers to the same
questions, which makes them the hardest distractors there are. The files name neither question nor snippet, so equal
titles are one query and equal codes one document; where one pair has both labels, it answers.
"""

from collections.abc import Iterator
from pathlib import Path

from coderet.corpora import released
from coderet.records import Benchmark, DataError, Draft, Released, documents_batch, qrels_table, queries_table

FILES = {
    "dev": "67f4decf619d89b9a4171b77ec42d50fae4116bf904964936f2d79cbe53a577e",
    "train": "146b2c05c7cd821756070c788833debec8bc3ce7a3a1067a1345aae116542f69",
}
QUESTIONS, SNIPPETS = 1247, 3902
FIELDS = {"idx": int, "doc": str, "code": str, "label": int}
PLACE = (
    "url:https://raw.githubusercontent.com/microsoft/CodeXGLUE/90f11dc34f14fb3995631f4cab53d9b8ed9d2ecd/Text-Code/"
    "NL-code-search-WebQuery/data/"
)


def collect(folder: Path) -> Iterator[Draft]:
    """One dataset; ids are file and number of where a text stands first, as in "dev-7"."""
    titles: dict[str, str] = {}
    codes: dict[str, str] = {}
    labels: dict[tuple[str, str], int] = {}
    for split in FILES:
        name = f"staqc_codexglue/{split}_staqc.json"
        for each in released.json_array(folder, name, FIELDS):
            if each["label"] not in (0, 1):
                raise DataError(f"{folder / name}: {each['idx']} has label {each['label']}, wanted 0 or 1")
            place = f"{split}-{each['idx']}"
            document = codes.setdefault(each["code"], place)
            query = titles.setdefault(each["doc"], place)
            labels[query, document] = max(each["label"], labels.get((query, document), 0))
    answered = {query for (query, _), label in labels.items() if label}
    judged = [pair for pair in labels if pair[0] in answered]
    asked = {title: query for title, query in titles.items() if query in answered}
    yield Draft(
        "staqc",
        [documents_batch(codes.values(), [None] * len(codes), codes)],
        queries_table(asked.values(), asked),
        qrels_table([query for query, _ in judged], [code for _, code in judged], [labels[pair] for pair in judged]),
        documents_expected=SNIPPETS,
        queries_expected=QUESTIONS,
    )


BENCHMARK = Benchmark(
    name="staqc",
    collect=collect,
    metrics=("ndcg@10", "mrr", "recall@10", "recall@100", "hit@1"),
    licence="CC-BY-4.0 (StaQC), CC-BY-SA (Stack Overflow's text)",
    source="StaQC's Python pairs in CodeXGLUE's NL-code-search-WebQuery",
    files=tuple(
        Released(
            f"staqc_codexglue/{split}_staqc.json",
            sha256,
            f"{PLACE}{split}_staqc.json",
        )
        for split, sha256 in FILES.items()
    ),
    choices={
        "query": "the question's title; equal titles are one",
        "corpus": "the codes of both files and labels; equal codes are one document",
    },
    queries="1,247",
    documents="3,902",
    defects=(
        "A snippet is judged for its own question only; others that answer it count as wrong.",
        "Many snippets are outputs or fragments that no title describes.",
    ),
)
