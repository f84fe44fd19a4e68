import numpy as np
import pytest
import scipy.stats

from coderet.metrics import significance
from coderet.metrics.significance import holm, interval, paired_p_value
from coderet.records import DataError


def test_the_interval_of_equal_values_is_a_point():
    assert interval([np.full(9, 0.25)]) == (0.25, 0.25)


@pytest.mark.parametrize("decimals", [1, 12], ids=["few distinct values", "many distinct values"])
def test_the_interval_is_the_percentile_bootstraps(decimals):
    values = np.random.default_rng(1).beta(1, 2, 200).round(decimals)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2)
    )
    ours = interval([values], resamples=20_000)
    width = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=0.03 * width)


def test_the_interval_of_a_hit_rate_is_the_binomials():
    # 30 of 100 queries hit: a resampled rate is Binomial(100, 0.3) / 100
    low, high = interval([np.repeat([0.0, 1.0], [70, 30])], resamples=50_000)
    assert (low, high) == pytest.approx(scipy.stats.binom(100, 0.3).ppf([0.025, 0.975]) / 100, abs=0.0101)


def test_each_dataset_weighs_the_same_whatever_its_size():
    # Means 0 and 1 without spread: the mean of datasets is 1/2, that of all queries would be 3/4.
    assert interval([np.zeros(1), np.ones(3)]) == (0.5, 0.5)


def test_queries_are_resampled_within_their_dataset():
    # The variance of the mean of two means is the sum of theirs over 4.
    values = [np.repeat([0.0, 1.0], [50, 50]), np.repeat([0.0, 1.0], [200, 200])]
    low, high = interval(values, resamples=50_000)
    deviation = np.sqrt(0.25 / 100 + 0.25 / 400) / 2
    assert (high - low) / 2 == pytest.approx(1.96 * deviation, rel=0.05)


def test_one_seed_gives_one_interval_and_another_another():
    values = [np.random.default_rng(0).random(50)]
    assert interval(values, seed=3) == interval(values, seed=3) != interval(values, seed=4)


def test_resampling_in_steps_is_as_good_as_at_once(monkeypatch):
    values = np.random.default_rng(0).random(50)
    whole = interval([values], resamples=999)
    monkeypatch.setattr(significance, "_NUMBERS_AT_ONCE", 500)
    assert interval([values], resamples=999) == pytest.approx(whole, abs=0.02)


def test_p_is_counted_out_for_few_queries():
    # Differences 1, 2, 3: of the 8 signings only +++ and --- reach a sum of 6.
    assert paired_p_value([np.array([1.0, 2, 3])], [np.zeros(3)]) == 2 / 8
    # Differences 1, 1, -1: sums are +-3 (2 of 8) and +-1 (6 of 8), all at least 1.
    assert paired_p_value([np.array([1.0, 1, 0])], [np.array([0.0, 0, 1])]) == 1


def test_equal_systems_have_p_one():
    assert paired_p_value([np.array([0.3, 0.5])], [np.array([0.3, 0.5])]) == 1


def test_queries_without_a_difference_do_not_change_p():
    ours, theirs = np.array([1.0, 2, 3, 7, 7]), np.array([0.0, 0, 0, 7, 7])
    assert paired_p_value([ours], [theirs]) == 2 / 8


def test_sums_that_differ_in_the_last_bits_only_are_equally_extreme():
    # 0.1 + 0.2 - 0.3 is not 0 in floating point, nor is its neighbour the same in every order.
    ours = np.array([0.1, 0.2, 0.3])
    assert paired_p_value([ours], [np.zeros(3)]) == paired_p_value([ours[::-1]], [np.zeros(3)]) == 2 / 8


@pytest.mark.parametrize("size", [9, 60], ids=["exact", "sampled"])
def test_p_agrees_with_scipys_permutation_test(size):
    random = np.random.default_rng(5)
    ours, theirs = random.random(size) + 0.08, random.random(size)
    reference = scipy.stats.permutation_test(
        (ours - theirs,),
        lambda differences, axis: np.abs(differences.mean(axis=axis)),
        permutation_type="samples",
        n_resamples=20_000,
        alternative="greater",
        vectorized=True,
        rng=np.random.default_rng(6),
    )
    assert paired_p_value([ours], [theirs], resamples=20_000) == pytest.approx(reference.pvalue, abs=0.012)
    assert 0.01 < reference.pvalue < 0.9


def test_a_sampled_p_is_never_zero_and_counts_the_observed_outcome():
    assert paired_p_value([np.ones(40)], [np.zeros(40)], resamples=99) == 1 / 100


def test_a_difference_weighs_less_in_a_larger_dataset():
    # Weighted differences are 1/2 and three times 1/6: of 16 signings |sum| >= 1 in +++ + and - ---.
    assert paired_p_value([np.ones(1), np.ones(3)], [np.zeros(1), np.zeros(3)]) == 2 / 16
    # 1/2 against three times -1/6 sums to 0: every outcome is as extreme.
    assert paired_p_value([np.ones(1), np.zeros(3)], [np.zeros(1), np.ones(3)]) == 1


def test_holm_multiplies_the_smallest_most_and_never_turns_round():
    # 0.01 * 3; 0.02 * 2 = 0.04; 0.03 * 1 = 0.03 is lifted to 0.04
    assert holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.9, 0.8]).tolist() == [1, 1]
    assert holm([]).tolist() == []


@pytest.mark.parametrize(
    ("values", "message"),
    [([], "no values"), ([np.empty(0)], r"shape \(0,\)"), ([np.array([np.nan])], "1 values that are not finite")],
)
def test_values_that_have_no_mean_are_refused(values, message):
    with pytest.raises(DataError, match=message):
        interval(values)


def test_values_that_do_not_pair_up_are_refused():
    with pytest.raises(DataError, match=r"\[2\] and \[3\] values"):
        paired_p_value([np.zeros(2)], [np.zeros(3)])
