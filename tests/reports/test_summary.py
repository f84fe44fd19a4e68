from coderet import reports

KEYS = ["system", "benchmark", "dataset", "metric", "value", "low", "high", "queries", "mean", "source", "unit"]


def row_of(rows, **wanted):
    (row,) = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return row


def test_every_row_says_the_same_things(results):
    assert all(list(row) == KEYS for row in reports.summary_rows(results))


def test_the_benchmarks_mean_is_the_row_called_all(results):
    rows = reports.summary_rows(results)
    assert row_of(rows, system="learned", benchmark="functions", dataset="all", metric="ndcg@10") == {
        "system": "learned",
        "benchmark": "functions",
        "dataset": "all",
        "metric": "ndcg@10",
        "value": 0.9,  # 18 of 20
        "low": 0.8,
        "high": 1.0,
        "queries": 20,
        "mean": "queries",
        "source": "measured",
        "unit": "fraction",
    }
    assert row_of(rows, system="learned", benchmark="functions", dataset="pool", metric="ndcg@10")["value"] == 0.9


def test_a_cost_names_its_unit(results):
    cost = row_of(reports.summary_rows(results), system="plain", benchmark="functions", metric="queries_per_second")
    assert (cost["value"], cost["unit"], cost["mean"], cost["low"]) == (200.0, "queries/s", None, None)


def test_a_missing_result_gives_no_row(results):
    assert not [row for row in reports.summary_rows(results) if row["system"] == "both" and row["unit"] != "fraction"]


def test_published_rows_stand_last(results):
    row = dict.fromkeys(KEYS, "x")
    assert reports.summary_rows(results, [row])[-1] == row
