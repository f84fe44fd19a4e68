import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coderet.corpora import supplied
from coderet.records import PAIRS, DataError


def lines(path: Path, rows: list[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def many(count: int, **more: object) -> list[dict[str, object]]:
    return [{"query": f"query {i}", "code": f"def f{i}(): pass"} | more for i in range(count)]


def test_a_row_is_a_query_and_a_code_and_what_else_is_known(tmp_path: Path):
    row = {"query": "add", "document": "a + b", "id": 7, "group": "sums", "language": "python", "stars": 3}
    table, counts = supplied.read(lines(tmp_path / "p.jsonl", [row]))
    assert table.schema == PAIRS and counts == {"pairs": 1, "groups": 1, "long": 0}
    (read,) = table.to_pylist()
    wanted = {"pair_id": "7", "repository": "sums", "language": "python", "query": "add", "code": "a + b", "path": ""}
    assert {key: read[key] for key in wanted} == wanted


def test_jsonl_gzipped_jsonl_and_parquet_are_read_alike(tmp_path: Path):
    rows = many(3, repository="a")
    plain, _ = supplied.read(lines(tmp_path / "p.jsonl", rows))
    (tmp_path / "p.jsonl.gz").write_bytes(gzip.compress((tmp_path / "p.jsonl").read_bytes()))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    for name in ("p.jsonl.gz", "p.parquet"):
        assert supplied.read(tmp_path / name)[0] == plain


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"query": "a", "code": "b"}, {"query": " ", "code": "b"}], "p.jsonl:2: an empty query; mend or remove"),
        ([{"query": "a"}], "p.jsonl:1: no code"),
        ([{"code": "a"}] * 5, "p.jsonl:1, .*:2, .*:3 and 2 more: no query"),
        ([{"query": "a", "code": "b", "id": 1}] * 2, "p.jsonl:1, .*p.jsonl:2: an id that another row has"),
        ([{"query": 3, "code": "b"}], "p.jsonl:1: query is 3; wanted text"),
        ([{"query": "a", "code": "b", "repository": [1]}], r"repository is \[1\]; wanted text or a whole number"),
        ([["a", "b"]], "wanted a JSON object"),
    ],
)
def test_a_row_that_cannot_be_meant_is_named(tmp_path: Path, rows: list[object], message: str):
    with pytest.raises(DataError, match=message):
        supplied.read(lines(tmp_path / "p.jsonl", rows))


def test_what_is_not_utf_8_is_refused(tmp_path: Path):
    (tmp_path / "p.jsonl").write_bytes('{"query": "é", "code": "b"}'.encode("latin-1"))
    with pytest.raises(DataError, match="is it whole and UTF-8"):
        supplied.read(tmp_path / "p.jsonl")


def test_another_form_or_a_broken_file_is_refused(tmp_path: Path):
    (tmp_path / "p.csv").write_text("query,code\n")
    with pytest.raises(DataError, match=r"neither JSON Lines .* nor Parquet"):
        supplied.read(tmp_path / "p.csv")
    (tmp_path / "p.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"p\.parquet cannot be read"):
        supplied.read(tmp_path / "p.parquet")
    with pytest.raises(DataError, match="cannot be read"):
        supplied.read(tmp_path / "none.jsonl")


def test_a_text_of_a_hundred_thousand_characters_is_counted_and_kept(tmp_path: Path):
    table, counts = supplied.read(lines(tmp_path / "p.jsonl", [{"query": "a", "code": "x" * 100_001}, *many(1)]))
    assert counts["long"] == 1 and len(table["code"][0].as_py()) == 100_001


@pytest.mark.parametrize(("count", "message"), [(0, "0 pairs found"), (1, "1 pair found; wanted at least 20")])
def test_too_few_pairs_are_refused(tmp_path: Path, count: int, message: str):
    with pytest.raises(DataError, match=message):
        supplied.divide(supplied.read(lines(tmp_path / "p.jsonl", many(count)))[0], 0.2, seed=1)


def table_of(tmp_path: Path, rows: list[dict[str, object]]) -> pa.Table:
    return supplied.read(lines(tmp_path / "p.jsonl", rows))[0]


def test_a_group_falls_on_one_side(tmp_path: Path):
    rows = [row | {"repository": f"r{i % 40}"} for i, row in enumerate(many(400))]
    sides = supplied.divide(table_of(tmp_path, rows), 0.3, seed=1)
    groups = [set(each["repository"].to_pylist()) for each in (sides.train, sides.valid, sides.test)]
    assert sides.grouped and sum(map(len, groups)) == len(set.union(*groups)) == 40
    assert (len(sides.valid), len(sides.test)) == (60, 60)


def test_pairs_of_one_group_are_divided_one_by_one_and_the_same_way_every_time(tmp_path: Path):
    table = table_of(tmp_path, many(400, repository="only"))
    sides, again = (supplied.divide(table, 0.2, seed=1) for _ in range(2))
    assert not sides.grouped and sides == again
    assert (
        50 < len(sides.valid) + len(sides.test) < 110 and len(sides.train) + len(sides.valid) + len(sides.test) == 400
    )


def test_what_is_held_out_is_not_trained_on_under_another_id(tmp_path: Path):
    rows = many(200)
    copies = [{"query": f"other words for {i}", "code": row["code"]} for i, row in enumerate(rows)]
    sides = supplied.divide(table_of(tmp_path, rows + copies), 0.2, seed=1)
    held = set(sides.valid["code"].to_pylist()) | set(sides.test["code"].to_pylist())
    assert sides.leaked > 0 and not held & set(sides.train["code"].to_pylist())


def test_the_benchmark_judges_every_code_that_a_query_is_paired_with(tmp_path: Path):
    pairs = [("add", "a + b"), ("add", "sum(x)"), ("last", "x[-1]"), ("total", "sum(x)")]
    made = supplied.benchmark(table_of(tmp_path, [{"query": q, "code": c} for q, c in pairs]))
    assert made.corpus.table["text"].to_pylist() == ["x[-1]", "sum(x)", "a + b"]  # ids fall
    texts = dict(zip(made.queries.ids.to_pylist(), made.queries.texts.to_pylist(), strict=True))
    codes = dict(zip(made.corpus.ids.to_pylist(), made.corpus.table["text"].to_pylist(), strict=True))
    judged = {(texts[row["query_id"]], codes[row["document_id"]]) for row in made.qrels.table.to_pylist()}
    assert judged == set(pairs) and len(texts) == 3
