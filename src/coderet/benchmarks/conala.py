"""CoNaLa's curated pairs: what a Stack Overflow question asks for to a line of Python (Yin et al., 2018, 1805.08949).

A query is a question's title as it was asked, `intent`; with `rewritten: true` what annotators made of it, which names
variables and values of the snippet, one query a rewriting, and the title where there is none. Every row's snippet is a
document. A query's gold are the snippets of its rows; queries are told apart by question and text.
"""

from collections.abc import Iterator
from pathlib import Path

from coderet.corpora import released
from coderet.records import Benchmark, Draft, Released, documents_batch, qrels_table, queries_table

NAME = "conala/conala-train.json"
SNIPPETS, INTENTS, REWRITTEN = 1912, 1456, 1858
FIELDS: dict[str, type | tuple[type, ...]] = {
    "intent": str,
    "rewritten_intent": (str, type(None)),
    "snippet": str,
    "question_id": int,
}


def collect(folder: Path, *, rewritten: bool = False) -> Iterator[Draft]:
    """One dataset; an id is the question's and the row's in the file, a query's that of its first row."""
    rows = released.json_array(folder, NAME, FIELDS)
    documents = [f"{each['question_id']}-{number}" for number, each in enumerate(rows)]
    texts = [(rewritten and each["rewritten_intent"]) or each["intent"] for each in rows]
    queries: dict[tuple[int, str], str] = {}
    for each, text, place in zip(rows, texts, documents, strict=True):
        queries.setdefault((each["question_id"], text), place)
    yield Draft(
        "conala",
        [documents_batch(documents, [None] * len(rows), [each["snippet"] for each in rows])],
        queries_table(queries.values(), [text for _, text in queries]),
        qrels_table([queries[each["question_id"], text] for each, text in zip(rows, texts, strict=True)], documents),
        documents_expected=SNIPPETS,
        queries_expected=REWRITTEN if rewritten else INTENTS,
    )


BENCHMARK = Benchmark(
    name="conala",
    collect=collect,
    metrics=("ndcg@10", "mrr", "recall@10", "recall@100", "hit@1"),
    licence="MIT (CoNaLa), CC-BY-SA (Stack Overflow's text)",
    source="the training rows of CoNaLa's curated corpus, 1,912 of 2,379",
    files=(
        Released(
            NAME,
            "5fd937f734378fc7b40f1ffdf8574303ef836a0fb2f65ace2d1d71cce58eac61",
            how="a part of data/conala-train.json of github.com/ypapanik/t5-for-code-generation at "
            "5c9a15b1f5ab0fd7d8b6cd87735505c0d4028b38: 1,912 of its 2,379 rows, a JSON array with intent, "
            "rewritten_intent, snippet, question_id",
        ),
    ),
    choices={
        "query": "the question's title; with `rewritten: true` the annotators' rewriting",
        "corpus": "one document a row",
    },
    queries="1,456, or 1,858 rewritten",
    documents="1,912",
    defects=(
        "Equal snippets of different questions are different documents: see the scores that end in -folded.",
        "64 rows have no rewriting and keep their title.",
    ),
)
