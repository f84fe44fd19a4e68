"""Why BM25 on the DevDocs stand-ins scores otherwise than CodeRAG-Bench prints for ODEX (6.7) and DS-1000 (5.2).

The printed figures are of 34,003 documents that were not at hand; the stand-ins have 35,728. Everything that can be
turned without them is turned, one thing at a time, and nDCG@10 told: the texts of documents cut to three lines or
whole, of the gold ones alone and of the others alone, 1,725 documents that are no gold taken out by chance, other ids
for ties. Then, a line a query: the best rank of its gold (- : not among the first 100) and how many of the query's
distinct words the gold texts hold, with three lines and whole.

    python bench/library_documentation.py <folder of released files> [odex|ds1000]
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from coderet.benchmarks import ds1000, library_docs, odex
from coderet.metrics import scorecards
from coderet.records import Corpus, Dataset, Draft, Qrels, Queries, Run, documents_batch, qrels_table
from coderet.retrievers.answering import answer
from coderet.retrievers.lucene import Lucene

DEPTH = 100
DRAWS = 5
SURPLUS = library_docs.LINES.count - library_docs.OFFICIAL.count
PUBLISHED = {"odex": 6.7, "ds1000": 5.2}
DRAFTS: dict[str, Callable[[library_docs.Documentation, Path], Draft]] = {
    "odex": lambda corpus, folder: next(odex.Choices(corpus).collect(folder)),
    "ds1000": lambda corpus, folder: next(ds1000.Choices(ds1000.every_origin, 453, corpus).collect(folder)),
}


def texts_of(documentation: library_docs.Documentation, folder: Path) -> dict[str, str]:
    return {each.id: each.text for each in documentation.documents(folder)}


def record_bytes(documentation: library_docs.Documentation, folder: Path) -> float:
    """The mean size of a line of JSON, as in the file that the hub has."""
    records = ({"doc_id": each.title, "doc_content": each.text} for each in documentation.documents(folder))
    return float(np.mean([len(json.dumps(each)) + 1 for each in records]))


def searched(draft: Draft, texts: dict[str, str]) -> tuple[np.ndarray, Run]:
    """nDCG@10 of every query that has gold, and the run, the documents being texts by id."""
    ids = sorted(texts, key=str.encode, reverse=True)
    batch = documents_batch(ids, [""] * len(ids), [texts[each] for each in ids])
    corpus = Corpus("documentation", pa.Table.from_batches([batch]))
    dataset = Dataset(draft.name, corpus, Queries(draft.queries), Qrels(draft.qrels))
    with tempfile.TemporaryDirectory() as place:
        retriever = Lucene()
        retriever.index(corpus, Path(place))
        run, _ = answer(retriever.open(corpus, Path(place)), dataset, DEPTH, len(draft.queries))
    return scorecards.score(dataset, run, ("ndcg@10",)).values["ndcg@10"], run


def renamed(draft: Draft, texts: dict[str, str]) -> tuple[Draft, dict[str, str]]:
    """The same under ids in the opposite order, so that every tie is broken the other way."""
    names = {each: f"{len(texts) - place:06}" for place, each in enumerate(sorted(texts, key=str.encode))}
    table = draft.qrels
    qrels = qrels_table(table["query_id"].to_pylist(), [names[each] for each in table["document_id"].to_pylist()])
    return draft._replace(qrels=qrels), {names[each]: text for each, text in texts.items()}


def best_ranks(run: Run, gold: dict[str, list[str]]) -> dict[str, int | None]:
    ids = run.corpus.ids.to_pylist()
    found = {}
    for query, rows in zip(run.query_ids.to_pylist(), run.rows.tolist(), strict=True):
        ranks = [rank for rank, row in enumerate(rows, 1) if row >= 0 and ids[row] in gold.get(query, ())]
        found[query] = min(ranks, default=None)
    return found


def told(name: str, values: np.ndarray) -> None:
    print(f"{100 * np.mean(values):6.2f}  {name}", flush=True)


def main(folder: Path, name: str) -> None:
    draft = DRAFTS[name](library_docs.LINES, folder)
    gold: dict[str, list[str]] = {}
    for row in draft.qrels.to_pylist():
        gold.setdefault(row["query_id"], []).append(row["document_id"])
    is_gold = {each for found in gold.values() for each in found}
    lines, pages = texts_of(library_docs.LINES, folder), texts_of(library_docs.PAGES, folder)
    longer = sum(len(pages[each]) > len(lines[each]) for each in lines)
    print(f"{name}: {len(gold)} of {len(draft.queries)} queries have gold, {len(is_gold)} documents are gold")
    print(f"characters a document: {np.mean([*map(len, lines.values())]):.0f} with three lines, ", end="")
    print(f"{np.mean([*map(len, pages.values())]):.0f} whole; {longer} of {len(lines)} documents are longer whole")
    sizes = [record_bytes(each, folder) for each in (library_docs.LINES, library_docs.PAGES)]
    print(f"bytes a record, in the form of the hub's file: {sizes[0]:.0f} with three lines, {sizes[1]:.0f} whole\n")
    print("nDCG@10")
    print(f"{PUBLISHED[name]:6.2f}  as the paper prints it, 34,003 documents")
    few, few_run = searched(draft, lines)
    told("three lines a document", few)
    all_, all_run = searched(draft, pages)
    told("whole texts", all_)
    for what, of_gold, of_others in (
        ("gold whole, the others three lines", pages, lines),
        ("gold three lines, the others whole", lines, pages),
    ):
        told(what, searched(draft, {each: (of_gold if each in is_gold else of_others)[each] for each in lines})[0])
    for what, texts in (("three lines", lines), ("whole texts", pages)):
        told(f"{what}, ties broken the other way", searched(*renamed(draft, texts))[0])
        means = []
        for seed in range(DRAWS):
            others = sorted(texts.keys() - is_gold)
            gone = set(np.random.default_rng(seed).choice(others, SURPLUS, replace=False).tolist())
            means.append(100 * searched(draft, {e: t for e, t in texts.items() if e not in gone})[0].mean())
        print(
            f"{np.mean(means):6.2f}  {what}, {SURPLUS} others taken out by chance: {min(means):.2f} to {max(means):.2f}"
        )
    ranks = best_ranks(few_run, gold), best_ranks(all_run, gold)
    words = {row["id"]: set(row["text"].split()) for row in draft.queries.to_pylist() if row["id"] in gold}
    held = [
        {query: len(words[query] & {word for each in gold[query] for word in texts[each].split()}) for query in gold}
        for texts in (lines, pages)
    ]
    top = [{query for query in gold if (found[query] or DEPTH + 1) <= 10} for found in ranks]
    print(f"\ngold in the first 10: {len(top[0])} queries with three lines, {len(top[1])} whole, ", end="")
    print(f"{len(top[0] & top[1])} both")
    print(f"gold holds none of the query's words: {sum(not n for n in held[0].values())} with three lines, ", end="")
    print(f"{sum(not n for n in held[1].values())} whole")
    print(f"\n{'query':40} {'words':>5} {'held, 3 lines':>13} {'whole':>5} {'rank, 3 lines':>13} {'whole':>5}")
    for query in gold:
        cells = [ranks[0][query] or "-", ranks[1][query] or "-"]
        print(
            f"{query:40} {len(words[query]):5} {held[0][query]:13} {held[1][query]:5} {cells[0]!s:>13} {cells[1]!s:>5}"
        )


if __name__ == "__main__":
    for each in sys.argv[2:] or DRAFTS:
        main(Path(sys.argv[1]), each)
