from dataclasses import dataclass, field

import pytest

from coderet.metrics.answers import counts, mcnemar, pass_at_k, values
from coderet.records import DataError


@dataclass
class Sample:
    passed: bool
    verdict: str = "failed"
    grades: dict = field(default_factory=dict)


def test_pass_at_k_is_the_unbiased_estimate():
    """Of five samples two pass: 1 - C(3, k) / C(5, k)."""
    assert [pytest.approx(pass_at_k(5, 2, k)) for k in (1, 3, 5)] == [0.4, 0.9, 1.0]
    assert (pass_at_k(1, 0, 1), pass_at_k(1, 1, 1)) == (0.0, 1.0)


def test_more_than_there_are_samples_is_refused():
    with pytest.raises(DataError, match="pass@6 wants at least 6 samples a problem and there are 5"):
        pass_at_k(5, 2, 6)


def test_mcnemar_asks_how_likely_so_one_sided_an_outcome_is():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(5, 0) == mcnemar(0, 5) == pytest.approx(2 / 32)
    assert mcnemar(3, 3) == 1.0
    assert mcnemar(9, 1) == pytest.approx(2 * 11 / 1024)


def test_a_problem_counts_by_its_samples_and_a_grade_by_their_mean():
    samples = {"p": [Sample(True), Sample(False)], "q": [Sample(False), Sample(False)]}
    assert {name: each.tolist() for name, each in values(samples, [1, 2], ["pass@1"]).items()} == {
        "pass@1": [0.5, 0.0],
        "pass@2": [1.0, 0.0],
    }
    graded = {"p": [Sample(False, grades={"exact_match": 1.0}), Sample(False, grades={"exact_match": 0.0})]}
    assert values(graded, [1], ["exact_match"])["exact_match"].tolist() == [0.5]
    assert counts({"p": [Sample(False, "no tests")], "q": samples["q"]}) == {"samples": 3, "problems_without_tests": 1}


def test_a_problem_without_a_completion_is_no_zero():
    with pytest.raises(DataError, match="1 problems have no completion, 'q' among them"):
        values({"p": [Sample(True)], "q": []}, [1], ["pass@1"])
