from coderet.reports import figures


def test_quality_is_told_in_hundredths():
    assert figures.quality(0.5771) == "57.7"
    assert figures.interval(0.5, 0.625) == "50.0–62.5"
    assert figures.interval(None, None) == ""


def test_a_number_keeps_the_digits_that_matter():
    told = [figures.number(value) for value in (0, 12, 1234567, 1234.5, 12.345, 0.01234, 0.0000123)]
    assert told == ["0", "12", "1,234,567", "1,234", "12.3", "0.0123", "1.2e-05"]


def test_a_recall_is_told_as_quality_is():
    assert figures.cost("recall_against_flat@10", 0.9876) == "98.8"
    assert figures.words("recall_against_flat@10") == "recall against flat, first 10"


def test_only_a_searchs_speed_has_a_caveat_and_only_where_there_is_a_recall():
    costs = {"queries_per_second": 5.0, "recall_against_flat@10": 0.5, "recall_against_flat@100": 0.25}
    assert figures.caveat("queries_per_second", costs) == "recall @10 50.0, @100 25.0"
    assert figures.caveat("index_bytes", costs) == figures.caveat("documents_per_second", costs) == ""
    assert figures.caveat("queries_per_second", {"queries_per_second": 5.0}) == ""


def test_bytes_are_told_in_powers_of_a_thousand():
    assert [figures.size(count) for count in (0, 999, 1500, 3_400_000, 2e13)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "3.4 MB",
        "20 TB",
    ]
