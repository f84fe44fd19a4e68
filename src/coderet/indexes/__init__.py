"""Vectors to neighbours: an index finds, for a query vector, the documents whose vectors are nearest.

A kind of index is a class with `build(vectors, count, dim, folder, *, similarity)`, `load(folder)` and
`search(queries, k, batch)`, as `coderet.indexes.faiss.Flat` has them. Row i of an index is document i of its corpus.
"""

INDEXES = {"flat": "coderet.indexes.faiss:Flat"}
