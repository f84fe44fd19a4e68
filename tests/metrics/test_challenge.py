import csv
import io
import math
import random
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coderet.corpora import challenge as files
from coderet.metrics import challenge, scorecards
from coderet.metrics.challenge import score
from coderet.records import DataError

Row = tuple[str, str, str]


def annotated(rows: list[tuple[str, str, str, float]]) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=files.ANNOTATIONS)


def predicted(rows: list[Row]) -> pa.Table:
    return pa.table([[row[place] for row in rows] for place in range(3)], schema=files.PREDICTIONS)


def mean(card: scorecards.Scorecard, name: str) -> float:
    return float(card.values[name].mean())


# The rules of 2019, told again from the protocol, row by row: an implementation that shares nothing with ours.


def slow(annotations: str, predictions: str, within: bool) -> dict[str, float]:
    """Language -> NDCG, for the languages that the predictions name; both files as CSV text."""
    marks: dict = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for row in csv.DictReader(io.StringIO(annotations)):
        marks[row["Language"].lower()][row["Query"].lower()][row["GitHubUrl"]].append(float(row["Relevance"]))
    lists: dict = defaultdict(lambda: defaultdict(list))
    for row in csv.DictReader(io.StringIO(predictions)):
        hits = lists[row["language"].lower()][row["query"].lower()]
        if len(hits) < 300:
            hits.append(row["url"])
    scores = {}
    for language in lists:
        total, queries = 0.0, 0
        for query, by_url in marks.get(language, {}).items():
            relevance = {url: sum(each) / len(each) for url, each in by_url.items()}
            best = sum(
                (2**each - 1) / math.log2(place + 2)
                for place, each in enumerate(sorted(relevance.values(), reverse=True))
            )
            if best == 0:
                continue
            queries += 1
            gained, rank = 0.0, 1
            for url in lists[language].get(query, []):
                if url in relevance:
                    gained += (2 ** relevance[url] - 1) / math.log2(rank + 1)
                    rank += 1
                elif not within:
                    rank += 1
            total += gained / best
        if queries:
            scores[language] = total / queries
    return scores


def as_csv(header: list[str], rows) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([header, *rows])
    return text.getvalue()


def check(tmp_path, annotations: list, predictions: list) -> dict[str, scorecards.Scorecard]:
    """Hold our scores to the slow ones', through the files; returns ours."""
    marks = as_csv(["Language", "Query", "GitHubUrl", "Relevance", "Notes"], [[*row, "a note"] for row in annotations])
    hits = as_csv(["language", "query", "identifier", "url"], [[row[0], row[1], "f", row[2]] for row in predictions])
    (tmp_path / "annotations.csv").write_text(marks, newline="")
    (tmp_path / "predictions.csv").write_text(hits, newline="")
    tables = (
        files.read_annotations(tmp_path / "annotations.csv"),
        files.read_predictions(tmp_path / "predictions.csv"),
    )
    cards = score(*tables, submitted_only=True)
    for within, name in ((True, "ndcg-within-2019"), (False, "ndcg-all-2019")):
        wanted = slow(marks, hits, within)
        assert {language for language, card in cards.items() if len(card.query_ids)} == set(wanted)
        for language, value in wanted.items():
            assert mean(cards[language], name) == pytest.approx(value, abs=1e-9), (language, name)
    return cards


ADVERSARIAL = [
    ("Go", "Sort List", "a", 3),
    ("go", "sort list", "a", 0),  # the same again, in another case: their mean is 1.5
    ("go", "sort list", "b", 1),
    ("Go", "sort list", "A", 2),  # URLs are told apart by case
    ("Go", "nothing good", "a", 0),  # left out
    ("Go", "nobody answered", "z", 3),  # 0
    ("PHP", "sort list", "p", 1),
    ("PHP", "long list", "deep", 2),
    ("Ruby", "sort list", "r", 2),  # a language that nobody submits
    ("Java", "all bad", "x", 0),  # a language without any positive query
]


def test_adversarial_files_score_as_the_rules_say(tmp_path):
    predictions = [
        *[("gO", "SORT list", url) for url in ("b", "unknown", "a", "b", "A", "a", "a ")],
        *[("go", "nothing good", "a"), ("go", "not annotated", "a")],
        *[("php", "long list", f"u{place}") for place in range(299)],
        *[("php", "long list", "deep"), ("php", "long list", "deep")],  # the 300th counts, the 301st not
        *[("Perl", "sort list", "a"), ("java", "all bad", "x")],
    ]
    cards = check(tmp_path, ADVERSARIAL, predictions)
    assert mean(cards["php"], "ndcg-all-2019") == pytest.approx((0 + 1 / math.log2(301)) / 2)
    assert mean(cards["php"], "ndcg-within-2019") == pytest.approx((0 + 1) / 2)
    assert cards["php"].counts["late_hits"] == 1
    assert cards["go"].query_ids.to_pylist() == ["sort list", "nobody answered"]
    assert {name: cards["go"].counts[name] for name in ("answered", "repeated_hits", "unknown", "missing")} == {
        "answered": 2,
        "repeated_hits": 2,
        "unknown": 1,
        "missing": 1,
    }


LANGUAGES, QUERIES, URLS = ["go", "Go", "php"], ["q", "Q", "other q", "é"], list("abcdefAB")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(LANGUAGES), st.sampled_from(QUERIES), st.sampled_from(URLS), st.integers(0, 3)),
        min_size=1,
        max_size=25,
    ),
    st.lists(
        st.tuples(st.sampled_from(LANGUAGES), st.sampled_from(QUERIES), st.sampled_from([*URLS, "x", "y"])), max_size=30
    ),
)
def test_random_files_score_as_the_rules_say(tmp_path_factory, annotations, predictions):
    both = {(language.lower(), query.lower()) for language, query, *_ in annotations}
    if any((language.lower(), query.lower()) in both for language, query, _ in predictions):
        check(tmp_path_factory.mktemp("random"), annotations, predictions)


def test_a_repeated_hit_is_paid_again_in_2019_and_once_in_the_sound_readings():
    annotations = annotated([("go", "q", "a", 3), ("go", "q", "b", 1)])
    card = score(annotations, predicted([("go", "q", url) for url in "aaaaab"]))["go"]
    ideal = 7 + 1 / math.log2(3)
    assert mean(card, "ndcg-all-2019") == pytest.approx(
        (sum(7 / math.log2(rank + 1) for rank in range(1, 6)) + 1 / math.log2(7)) / ideal
    )
    assert mean(card, "ndcg-all-2019") > 2
    assert mean(card, "ndcg-all") == mean(card, "ndcg-within") == mean(card, "ndcg-reranked") == pytest.approx(1)


def test_without_repeated_hits_the_script_and_the_sound_readings_agree():
    chosen = random.Random(0)
    urls = [f"u{place}" for place in range(40)]
    annotations = annotated(
        [("go", f"q{q}", u, chosen.randint(0, 3)) for q in range(9) for u in chosen.sample(urls, 6)]
    )
    predictions = predicted([("go", f"q{q}", u) for q in range(8) for u in chosen.sample(urls, 30)])
    card = score(annotations, predictions)["go"]
    for name in ("ndcg-within", "ndcg-all"):
        assert card.values[name] == pytest.approx(card.values[f"{name}-2019"], abs=1e-12)


def test_re_ranking_the_judged_pool_does_not_depend_on_the_length_of_the_list():
    annotations = annotated([("go", "q", "a", 3), ("go", "q", "b", 1), ("go", "q", "c", 0)])
    card = score(annotations, predicted([("go", "q", "x"), ("go", "q", "b")]))["go"]
    second = 1 / math.log2(3)
    ideal = 7 + second
    assert mean(card, "ndcg-within") == pytest.approx(1 / ideal)
    assert mean(card, "ndcg-reranked") == pytest.approx((1 + 7 * (second + 1 / 2) / 2) / ideal)  # a is second or third
    assert mean(card, "judged@10") == 1 / 2


def test_coverage_and_few_judgements_are_counted():
    annotations = annotated([("go", "q", "a", 3), ("go", "q", "b", 0), ("go", "r", "a", 1), ("go", "s", "a", 0)])
    card = score(annotations, predicted([("go", "q", "b"), ("go", "s", "a")]), few_judgements=2)["go"]
    wanted = {"annotated": 4, "covered": 2, "annotated_relevant": 2, "covered_relevant": 0, "few_judgements": 1}
    assert {name: card.counts[name] for name in wanted} == wanted


def test_languages_without_predictions_count_as_zero_unless_left_out():
    annotations = annotated([("go", "q", "a", 3), ("php", "q", "a", 3)])
    predictions = predicted([("go", "q", "a")])
    cards = score(annotations, predictions)
    assert scorecards.summary(cards, "datasets", 50, 0.95, 0)["all"]["ndcg-all-2019"]["value"] == 1 / 2
    assert list(score(annotations, predictions, submitted_only=True)) == ["go"]


def test_means_have_intervals_and_stand_beside_a_random_order():
    annotations = annotated([("go", f"q{place}", "a", 1 + place % 3) for place in range(20)])
    predictions = predicted([("go", f"q{place}", url) for place in range(20) for url in ("ab" if place % 2 else "ba")])
    cards = score(annotations, predictions, ["ndcg-all", "bpref"], searched={"go": 1000})
    figures = scorecards.summary(cards, "datasets", 500, 0.95, 0)["all"]
    assert figures["ndcg-all"]["low"] < figures["ndcg-all"]["value"] < figures["ndcg-all"]["high"]
    second = 1 / math.log2(3)
    assert figures["ndcg-all"]["random"] == figures["ndcg-all-2019"]["random"] == pytest.approx((1 + second) / 1000)
    assert "random" not in figures["bpref"]


@pytest.mark.parametrize("rows", [[], [("perl", "q", "a")], [("go", "other", "a")]])
def test_predictions_that_answer_nothing_are_refused(rows):
    with pytest.raises(DataError, match=r"answer no query that is annotated for (go|any)"):
        score(annotated([("go", "q", "a", 3)]), predicted(rows))


def test_relevances_are_means_of_annotations():
    table = challenge.relevances(annotated([("Go", "Q", "a", 3), ("go", "q", "a", 2), ("go", "q", "A", 1)]))
    assert table.to_pylist() == [
        {"language": "go", "query": "q", "url": "a", "relevance": 2.5},
        {"language": "go", "query": "q", "url": "A", "relevance": 1},
    ]


# The real annotations


@pytest.fixture(scope="module")
def real(real_data) -> pa.Table:
    return files.read_annotations(real_data / "codesearchnet_challenge" / "annotationStore.csv.gz")


def perfect(real: pa.Table, again: int = 0) -> pa.Table:
    """The best list there is, its first URL so many times more."""
    rows = sorted(challenge.relevances(real).to_pylist(), key=lambda row: -row["relevance"])
    lists = defaultdict(list)
    for row in rows:
        lists[row["language"], row["query"]].append(row["url"])
    return predicted([(*key, url) for key, urls in lists.items() for url in urls[:1] * again + urls])


def test_the_real_annotations_have_the_counts_of_the_protocol(real):
    table = challenge.relevances(real)
    assert (len(real), len(table)) == (4006, 2914)
    fractional = table["relevance"].to_numpy() % 1 != 0
    assert fractional.sum() == 445
    cards = score(real, perfect(real))
    assert {
        language: (len(card.query_ids), len(card.query_ids) + card.counts["without_relevant"])
        for language, card in cards.items()
    } == {
        "python": (99, 99),
        "java": (93, 99),
        "php": (91, 99),
        "ruby": (84, 97),
        "javascript": (78, 96),
        "go": (68, 83),
    }
    pairs = {"python": 989, "java": 813, "javascript": 319, "php": 314, "ruby": 313, "go": 166}
    assert {language: card.counts["annotated"] for language, card in cards.items()} == pairs
    for card in cards.values():
        for name in ("ndcg-within-2019", "ndcg-all-2019", "ndcg-reranked"):
            assert mean(card, name) == pytest.approx(1, abs=1e-12)


def test_a_perfect_list_that_names_its_first_url_five_times_more_scores_more_than_one(real, tmp_path):
    rows = [tuple(row.values()) for row in real.to_pylist()]
    cards = check(tmp_path, rows, [tuple(row.values()) for row in perfect(real, 5).to_pylist()])
    for name in ("ndcg-within-2019", "ndcg-all-2019"):
        assert mean(cards["python"], name) == pytest.approx(1.76, abs=5e-3)
        assert mean(cards["go"], name) == pytest.approx(2.935, abs=5e-4)  # told as 2.94


def test_random_rankings_of_the_real_urls_score_as_the_rules_say(real, tmp_path):
    chosen = random.Random(3)
    rows = [tuple(row.values()) for row in real.to_pylist()]
    urls = defaultdict(set)
    for language, _, url, _ in rows:
        urls[language].add(url)
    predictions = [
        (language, query.upper(), url)
        for language, query in sorted({row[:2] for row in rows})
        if chosen.random() < 0.9
        for url in chosen.choices(sorted(urls[language]), k=320 if chosen.random() < 0.1 else 40)
    ]
    cards = check(tmp_path, rows, predictions)
    assert len(cards) == 6


def test_a_random_order_of_the_judged_pool_has_two_thirds_of_within_and_a_seventh_of_all(real):
    pools: dict[str, set] = defaultdict(set)
    asked = set()
    for row in challenge.relevances(real).to_pylist():
        pools[row["language"]].add(row["url"])
        asked.add((row["language"], row["query"]))
    chosen = np.random.default_rng(0)
    predictions = predicted(
        [(lang, query, url) for lang, query in sorted(asked) for url in chosen.permutation(sorted(pools[lang]))[:300]]
    )
    cards = score(real, predictions, searched={language: len(urls) for language, urls in pools.items()})
    drawn = scorecards.summary(cards, "datasets", 50, 0.95, 0)["all"]
    assert drawn["ndcg-within-2019"]["random"] == pytest.approx(0.657, abs=5e-4)
    assert drawn["ndcg-all-2019"]["random"] == pytest.approx(0.1475, abs=5e-5)
    for name in ("ndcg-within", "ndcg-all", "ndcg-exp@10", "mrr", "judged@100"):
        variances = [card.values[name].var() / len(card.query_ids) for card in cards.values()]
        error = math.sqrt(sum(variances)) / len(cards)
        assert drawn[name]["value"] == pytest.approx(drawn[name]["random"], abs=4 * error), name
