import numpy as np
import pyarrow as pa
import pytest
from datasketch import MinHash, MinHashLSH

from coderet.corpora import fingerprints
from coderet.corpora.fingerprints import Threshold

NAMES = [f"name{i}" for i in range(40)]


def function(*words: str) -> str:
    return "def f():\n    return " + " + ".join(words)


def prints(*codes: str, language: str = "python"):
    return fingerprints.fingerprint(_column(codes), _column([language] * len(codes)))


def _column(texts):
    return pa.chunked_array([pa.array(list(texts), pa.large_string())])


def near(one: str, other: str, threshold: Threshold | None = None) -> bool:
    both = prints(one, other)
    return bool(fingerprints.first_copies(both, threshold or Threshold())[0][1] == 0)


def test_keywords_and_numbers_are_no_identifiers():
    both = prints("for x in range(10): return x", "def x(): pass")
    assert both.totals.tolist() == [3, 1]  # x, range, x; x
    assert prints("func f(x int) { return x }", language="go").totals.tolist() == [4]


def test_white_space_makes_no_difference_to_an_exact_copy():
    roots, counts = fingerprints.first_copies(prints("f( x )", "f(x)\n", "f(y)"), Threshold())
    assert roots.tolist() == [0, 0, 2]
    assert counts == {"exact_copies": 1, "near_copies": 0, "too_short_to_compare": 3}


# f is an identifier too: sets of 1 + n. Shared 17 of 17 + 4 = 21 is 0.81, 16 of 21 + ... is below.
def test_a_jaccard_index_of_the_sets_below_the_threshold_is_no_near_copy():
    assert near(function(*NAMES[:20]), function(*NAMES[2:20]))  # 19 shared of 21: 0.905
    assert not near(function(*NAMES[:20]), function(*NAMES[5:20]))  # 16 shared of 21: 0.762


def test_equal_sets_with_unequal_counts_are_no_near_copy():
    heavy = function(*NAMES[:12], *[NAMES[0]] * 20)
    assert not near(function(*NAMES[:12]), heavy)  # sets 1.0, multisets 13 / 33
    assert near(function(*NAMES[:12]), function(*NAMES[:12], NAMES[0], NAMES[1]))  # 13 / 15


def test_a_function_with_few_identifiers_is_kept():
    roots, counts = fingerprints.first_copies(prints("f(a, b)", "f(b, a)"), Threshold())
    assert roots.tolist() == [0, 1]
    assert counts["too_short_to_compare"] == 2


def test_copies_of_copies_are_one_group_and_its_first_stays():
    chain = [function(*NAMES[i : i + 20]) for i in (0, 2, 4)]  # neighbours 19 of 23: 0.826; ends 17 of 25: 0.68
    assert not near(chain[0], chain[2])
    assert fingerprints.first_copies(prints(*chain), Threshold())[0].tolist() == [0, 0, 0]


def test_every_near_copy_is_found_and_no_other():
    random = np.random.default_rng(0)
    codes = []
    for _ in range(60):
        words = [NAMES[i] for i in random.integers(0, 40, 25)]
        codes.append(function(*words))
        codes.append(function(*[w if random.random() > 0.05 else NAMES[random.integers(40)] for w in words]))
    both = prints(*codes)
    roots, _ = fingerprints.first_copies(both, Threshold())

    def jaccard(i: int, j: int) -> tuple[float, float]:
        (a, m), (b, n) = both.of(i), both.of(j)
        ours, theirs = dict(zip(a.tolist(), m.tolist(), strict=True)), dict(zip(b.tolist(), n.tolist(), strict=True))
        words = ours.keys() | theirs.keys()
        low = sum(min(ours.get(w, 0), theirs.get(w, 0)) for w in words)
        high = sum(max(ours.get(w, 0), theirs.get(w, 0)) for w in words)
        return len(ours.keys() & theirs.keys()) / len(words), low / high

    label = list(range(len(codes)))
    for i in range(len(codes)):
        for j in range(i):
            sets, multisets = jaccard(i, j)
            if both.exact[i] == both.exact[j] or (sets >= 0.8 and multisets >= 0.7):
                old, new = max(label[i], label[j]), min(label[i], label[j])
                label = [new if each == old else each for each in label]
    assert roots.tolist() == label
    assert len(set(label)) < 100


def test_the_pairs_that_are_compared_are_those_of_datasketchs_own_index():
    random = np.random.default_rng(1)
    codes = [function(*[NAMES[i] for i in random.choice(40, 12, replace=False)]) for _ in range(150)]
    both = prints(*codes)
    index = MinHashLSH(num_perm=fingerprints.PERMUTATIONS, params=(fingerprints.BANDS, fingerprints.ROWS_A_BAND))
    wanted = []
    for place in range(len(both)):
        minhash = MinHash(num_perm=fingerprints.PERMUTATIONS, seed=fingerprints.SEED, hashfunc=int)
        minhash.update_batch(both.of(place)[0].tolist())
        wanted.append(sorted(index.query(minhash)))
        index.insert(place, minhash)
    bands = both.bands
    found = [each[each < place].tolist() for place, each in enumerate(fingerprints._Alike(bands).of(bands))]
    assert found == wanted and sum(map(len, found)) > 100


def test_copies_of_benchmark_documents_are_found_exact_near_and_short():
    documents = prints(function(*NAMES[:20]), "f(a)")
    ours = prints("f(a) ", function(*NAMES[1:20]), function(*NAMES[20:40]))
    assert fingerprints.copies_of(ours, documents, Threshold()).tolist() == [1, 0, -1]


def test_nothing_is_a_copy_of_nothing():
    assert fingerprints.copies_of(prints("f(a)"), prints(), Threshold()).tolist() == [-1]
    assert fingerprints.copies_of(prints(), prints("f(a)"), Threshold()).tolist() == []
    assert fingerprints.first_copies(prints(), Threshold())[0].tolist() == []


@pytest.mark.parametrize(
    ("text", "match"),
    [("Sort the LIST of numbers.", 0), ("sort list", -1), ("sort the list of names", -1), ("", -1)],
)
def test_a_text_equals_a_query_by_its_words_if_it_has_enough_of_them(text, match):
    queries = _column(["sort the list of numbers", "sort list"])
    assert fingerprints.equal_texts(_column([text]), queries, 4).tolist() == [match]


def test_functions_taken_are_as_if_they_had_been_read_alone():
    codes = [function(*NAMES[i : i + 12]) for i in range(5)]
    both, places = prints(*codes, "f()"), np.array([4, 5, 1])
    alone = prints(codes[4], "f()", codes[1])
    for taken in (both.take(places), (both.bands, both.take(places))[1]):  # before and after their bands are known
        assert all(np.array_equal(getattr(taken, each), getattr(alone, each)) for each in ("exact", "offsets", "bands"))
        assert np.array_equal(taken.identifiers, alone.identifiers) and np.array_equal(taken.counts, alone.counts)
