"""Vectors to neighbours: an index finds, for a query vector, the documents whose vectors are nearest.

A kind of index is a class with `build(vectors, count, dim, folder, *, similarity, ...)`, `load(folder, *, ...)` and
`search(queries, k, batch)`, as `coderet.indexes.faiss.Flat` has them. Row i of an index is document i of its corpus.
The keyword-only arguments of `build` are settings of the index, those of `load` only move the search.
"""

INDEXES = {
    "flat": "coderet.indexes.faiss:Flat",
    "sq8": "coderet.indexes.codes:Sq8",
    "pq": "coderet.indexes.codes:Pq",
    "ivf": "coderet.indexes.ivf:Ivf",
    "ivf-pq": "coderet.indexes.ivf:IvfPq",
    "hnsw": "coderet.indexes.hnsw:Hnsw",
    "binary": "coderet.indexes.binary:Binary",
}
