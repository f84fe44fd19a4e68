"""What every kind of index promises, asked of every entry of the table; what approximate kinds promise besides."""

import json
from pathlib import Path

import faiss
import numpy as np
import pytest
from imagined_vectors import SMALL, build, clustered, ids_of, kind_of

from coderet import registry
from coderet.indexes import INDEXES
from coderet.records import NO_HIT, DataError

ROWS_ONLY = {"probes": 8, "candidates": 10**6}
APPROXIMATE = [kind for kind in INDEXES if kind != "flat"]
WITHOUT_VECTORS = [kind for kind in APPROXIMATE if kind != "binary"]
VARIANTS = [(kind, {}) for kind in INDEXES] + [(kind, {"exact_vectors": False}) for kind in WITHOUT_VECTORS]


def probing_everything(folder, kind):
    """The index with search settings that leave no document out."""
    known = registry.named_arguments(kind_of(kind).load)
    return kind_of(kind).load(folder, **{name: value for name, value in ROWS_ONLY.items() if name in known})


@pytest.fixture(scope="module")
def documents():
    return np.concatenate([clustered(1400), clustered(1400)[:100]])  # the last hundred are copies of the first


@pytest.fixture(scope="module")
def queries():
    return clustered(30, seed=1)


@pytest.fixture(scope="module")
def built(documents, tmp_path_factory):
    place = tmp_path_factory.mktemp("indexes")
    for similarity in ("cosine", "inner-product"):
        for kind in INDEXES:
            build(place / similarity / kind, kind, documents, similarity)
    return place


def ids_of_variant(variant):
    return variant[0] + "".join(f"-{name}" for name in variant[1])


every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=ids_of_variant)
every_approximate = pytest.mark.parametrize("kind", APPROXIMATE)


@pytest.mark.parametrize("similarity", ["cosine", "inner-product"])
@every_approximate
def test_probing_everything_gives_exactly_what_flat_gives(built, queries, kind, similarity):
    for k in (1, 10, 200):
        wanted = kind_of("flat").load(built / similarity / "flat").search(queries, k, 16)
        found = probing_everything(built / similarity / kind, kind).search(queries, k, 16)
        assert np.array_equal(found[0], wanted[0]) and np.array_equal(found[1], wanted[1])


@every_approximate
def test_what_is_found_has_the_score_that_flat_gives_it_and_stands_in_the_one_order(built, queries, kind):
    flat = kind_of("flat").load(built / "cosine" / "flat")
    everything = flat.search(queries, len(flat), 16)
    rows, scores = kind_of(kind).load(built / "cosine" / kind).search(queries, 20, 16)
    for ours, our_scores, theirs, their_scores in zip(rows, scores, *everything, strict=True):
        by_row = dict(zip(theirs.tolist(), their_scores.tolist(), strict=True))
        assert our_scores.tolist() == [by_row[row] for row in ours.tolist()]
        assert np.lexsort((ours, -our_scores)).tolist() == list(range(20))


@every_approximate
def test_most_of_what_flat_finds_is_found_and_more_with_more_candidates(built, queries, kind):
    wanted, _ = kind_of("flat").load(built / "cosine" / "flat").search(queries, 10, 16)
    shares = []
    for candidates in (1, None, 60):
        found, _ = kind_of(kind).load(built / "cosine" / kind, candidates=candidates).search(queries, 10, 16)
        shares.append(np.mean([len({*a} & {*b}) / 10 for a, b in zip(found.tolist(), wanted.tolist(), strict=True)]))
    assert shares == sorted(shares) and shares[2] > 0.9


@every_variant
def test_neither_batch_nor_company_nor_threads_move_a_hit(documents, queries, variant, tmp_path):
    kind, settings = variant
    index = build(tmp_path / "a", kind, documents, **settings)
    wanted = index.search(queries, 15, 30)
    threads = faiss.omp_get_max_threads()
    try:
        for batch, number in ((1, threads), (7, threads), (30, 1)):
            faiss.omp_set_num_threads(number)
            found = index.search(queries, 15, batch)
            assert np.array_equal(found[0], wanted[0]) and np.array_equal(found[1], wanted[1])
    finally:
        faiss.omp_set_num_threads(threads)


@pytest.mark.parametrize("kind", WITHOUT_VECTORS)
def test_scores_of_codes_do_not_depend_on_how_many_queries_are_asked_together(kind, tmp_path):
    random = np.random.default_rng(5)
    index = build(tmp_path, kind, random.standard_normal((800, 100)), exact_vectors=False)
    queries = random.standard_normal((64, 100))
    together, alone = index.search(queries, 10, 64), index.search(queries, 10, 1)
    assert np.array_equal(together[0], alone[0]) and np.array_equal(together[1], alone[1])


def test_lists_are_chosen_without_matrix_products_whose_sums_move_with_the_batch(monkeypatch, built, queries):
    index, seen = kind_of("ivf").load(built / "cosine" / "ivf"), []
    find, before = index._find, faiss.cvar.distance_compute_blas_threshold
    watched = lambda *given: seen.append(faiss.cvar.distance_compute_blas_threshold) or find(*given)  # noqa: E731
    monkeypatch.setattr(index, "_find", watched)
    index.search(queries, 3, 30)
    assert min(seen) > len(queries) and faiss.cvar.distance_compute_blas_threshold == before


# D1


@pytest.mark.parametrize("kind", [kind for kind in INDEXES if kind != "hnsw"])
def test_of_many_equal_vectors_the_lowest_rows_are_kept_at_the_cutoff(kind, tmp_path):
    random = np.random.default_rng(3)
    vectors = random.standard_normal((900, 8))
    same = np.sort(random.permutation(900)[:400])  # more than there are candidates
    vectors[same] = 10 * vectors[same[7]]
    better = np.delete(np.arange(900), same)[-3:]  # that come late and take the place of candidates
    vectors[better] = 3 * vectors[same[7]]
    rows, scores = build(tmp_path, kind, vectors, "inner-product").search(vectors[same[:1]], 6, 8)
    assert rows.tolist() == [better.tolist() + same[:3].tolist()]
    assert len(set(scores[0].tolist())) == 2


@pytest.mark.parametrize("kind", WITHOUT_VECTORS)
def test_without_vectors_equal_codes_have_equal_scores_and_rank_by_row(kind, tmp_path):
    vectors = np.repeat(np.random.default_rng(4).standard_normal((50, 8)), 30, axis=0)
    rows, scores = build(tmp_path, kind, vectors, exact_vectors=False).search(vectors[::300], 12, 8)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert (np.diff(rows, axis=1)[np.diff(scores, axis=1) == 0] > 0).all()


# D7


@every_variant
def test_three_documents_give_three_hits_of_five(variant, tmp_path):
    kind, settings = variant
    vectors = np.zeros((3, 8))
    vectors[[0, 1, 2], [0, 1, 2]] = 1
    rows, scores = build(tmp_path, kind, vectors, **settings).search(vectors[:1] + vectors[2:] / 2, 5, 8)
    assert rows.tolist() == [[0, 2, 1, NO_HIT, NO_HIT]]
    assert scores[0, 3:].tolist() == [-np.inf, -np.inf] and np.isfinite(scores[0, :3]).all()


@every_variant
def test_there_are_as_many_hits_as_documents_though_few_are_probed(variant, tmp_path):
    kind, settings = variant
    build(tmp_path, kind, clustered(400, 8), **settings)
    known = registry.named_arguments(kind_of(kind).load)
    narrow = {name: 1 for name in ("probes", "breadth") if name in known}
    rows, _ = kind_of(kind).load(tmp_path, **narrow).search(clustered(5, 8, seed=2), 450, 8)
    assert (rows[:, 400:] == NO_HIT).all()
    assert all(sorted(row) == list(range(400)) for row in rows[:, :400].tolist())


@every_variant
def test_a_graph_whose_parts_are_not_linked_still_gives_every_document(variant, tmp_path):
    kind, settings = variant
    vectors = np.repeat(np.eye(8), 60, axis=0)  # eight heaps of equal vectors
    rows, _ = build(tmp_path, kind, vectors, **settings).search(np.eye(8), 100, 8)
    assert (rows != NO_HIT).all() and all(len(set(row)) == 100 for row in rows.tolist())


@every_variant
def test_a_vector_that_holds_no_numbers_stops_the_build_and_is_named(variant, tmp_path):
    kind, settings = variant
    vectors = np.ones((5, 8))
    vectors[3, 1] = np.nan
    with pytest.raises(DataError, match="hold NaN or infinity: d3; nothing is indexed"):
        build(tmp_path, kind, vectors, chunk=2, **settings)


@every_variant
def test_a_query_that_holds_no_numbers_or_has_another_width_is_an_error(variant, tmp_path):
    kind, settings = variant
    index = build(tmp_path, kind, np.eye(8), **settings)
    with pytest.raises(DataError, match="1 query vectors hold NaN"):
        index.search(np.full((1, 8), np.nan), 1, 8)
    with pytest.raises(DataError, match="have 5 dimensions, the index has 8"):
        index.search(np.ones((1, 5)), 1, 8)


@every_variant
def test_a_zero_row_is_counted_and_scores_zero_under_cosine(variant, tmp_path):
    kind, settings = variant
    vectors = np.array([[1.0, 0.3] * 4, [0.0] * 8, [-1.0, 0.2] * 4])
    index = build(tmp_path, kind, vectors, **settings)
    assert index.zero_vectors == 1
    rows, scores = index.search(np.array([[1.0, 0.0] * 4, [0.0] * 8]), 3, 8)
    assert rows.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert scores[0, 1] == 0 and scores[1].tolist() == [0, 0, 0]


@every_variant
def test_an_empty_corpus_gives_no_hits_and_no_queries_give_an_empty_run(variant, tmp_path):
    kind, settings = variant
    made, given = kind_of(kind), SMALL.get(kind, {}) | settings
    (tmp_path / "empty").mkdir()
    made.build(iter(()), 0, 8, tmp_path / "empty", **given)
    rows, scores = made.load(tmp_path / "empty").search(np.ones((2, 8)), 3, 8)
    assert rows.tolist() == [[NO_HIT] * 3] * 2 and np.isneginf(scores).all()
    rows, scores = build(tmp_path / "two", kind, np.ones((2, 8)), **settings).search(np.empty((0, 8)), 3, 8)
    assert rows.shape == scores.shape == (0, 3)


# On disk


@every_variant
def test_repeated_an_index_is_the_same_bytes_whatever_the_chunks(documents, variant, tmp_path):
    kind, settings = variant
    for name, chunk in (("a", 1000), ("b", 1000), ("c", 77)):
        build(tmp_path / name, kind, documents, chunk=chunk, **settings)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    for other in ("b", "c"):
        assert sorted(path.name for path in (tmp_path / other).iterdir()) == names
        for name in names:
            assert (tmp_path / other / name).read_bytes() == (tmp_path / "a" / name).read_bytes()


def test_a_graph_grows_by_one_thread_whose_number_is_put_back(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(kind_of("hnsw"), "_coded", lambda part: seen.append(faiss.omp_get_max_threads()) or part)
    before = faiss.omp_get_max_threads()
    build(tmp_path, "hnsw", clustered(10))
    assert seen == [1] and faiss.omp_get_max_threads() == before


@every_approximate
def test_a_loaded_index_is_mapped_not_read_and_answers_as_the_fresh_one(documents, queries, kind, tmp_path):
    fresh = build(tmp_path, kind, documents)
    loaded = kind_of(kind).load(tmp_path)
    mapped = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()]
    assert str(tmp_path / "candidates.faiss") in mapped and str(tmp_path / "vectors.npy") in mapped
    assert len(loaded) == len(documents)
    if kind not in ("ivf", "ivf-pq", "hnsw"):  # those were opened with other settings than the defaults
        pairs = zip(loaded.search(queries, 5, 8), fresh.search(queries, 5, 8), strict=True)
        assert all(np.array_equal(*pair) for pair in pairs)


@every_approximate
@pytest.mark.parametrize("name", ["candidates.faiss", "vectors.npy", "approximate.json", "flat.json"])
def test_an_index_with_a_file_that_is_cut_short_or_missing_is_refused(built, kind, name, tmp_path):
    content = (built / "cosine" / kind / name).read_bytes()
    for path in (built / "cosine" / kind).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for part in (content[:-3], content[: len(content) // 2], b""):
        (tmp_path / name).write_bytes(part)
        with pytest.raises(DataError, match=r"does not hold a whole .* index .*index again"):
            kind_of(kind).load(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=r"does not hold a whole .* index .*index again"):
        kind_of(kind).load(tmp_path)


def test_an_index_of_another_kind_or_with_other_codes_is_refused(built, tmp_path):
    with pytest.raises(DataError, match="it is of kind Sq8"):
        kind_of("pq").load(built / "cosine" / "sq8")
    build(tmp_path, "sq8", clustered(10))
    other = faiss.IndexFlatIP(16)
    other.add(clustered(7))
    faiss.write_index(other, str(tmp_path / "candidates.faiss"))
    facts = json.loads((tmp_path / "approximate.json").read_text())
    facts["bytes"] = (tmp_path / "candidates.faiss").stat().st_size
    (tmp_path / "approximate.json").write_text(json.dumps(facts))
    with pytest.raises(DataError, match="holds 7 codes of 16 dimensions"):
        kind_of("sq8").load(tmp_path)


@pytest.mark.parametrize("kind", WITHOUT_VECTORS)
def test_without_exact_vectors_none_are_on_disk_and_candidates_have_no_meaning(documents, queries, kind, tmp_path):
    build(tmp_path, kind, documents, exact_vectors=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["approximate.json", "candidates.faiss", "zero_rows.npy"]
    index = kind_of(kind).load(tmp_path)
    assert index.flat is None
    with pytest.raises(DataError, match=r"candidates is 4, but .* exact_vectors: false"):
        kind_of(kind).load(tmp_path, candidates=4)
    rows, scores = index.search(queries, 10, 8)
    truth = kind_of("flat").build([(ids_of(1500), documents)], 1500, 16, tmp_path).search(queries, 1500, 8)
    exact = np.empty_like(truth[1])
    np.put_along_axis(exact, truth[0], truth[1], axis=1)
    assert np.abs(scores - np.take_along_axis(exact, rows, 1)).max() < (0.02 if "pq" not in kind else 0.5)


@pytest.mark.parametrize(
    ("kind", "setting", "wrong"),
    [
        ("ivf", "lists", 0),
        ("ivf-pq", "training", 0),
        ("pq", "pieces", 0),
        ("pq", "bits", 9),
        ("ivf-pq", "bits", 3),
        ("hnsw", "links", 1),
        ("hnsw", "build_breadth", 0),
    ],
)
def test_a_setting_out_of_range_is_refused_before_a_vector_is_made(kind, setting, wrong, tmp_path):
    def never():
        raise AssertionError("a vector was asked for")
        yield

    given = SMALL.get(kind, {}) | {setting: wrong}
    with pytest.raises(registry.BadValue, match=f"index.{setting} is {wrong}; wanted a number from"):
        kind_of(kind).build(never(), 3, 8, tmp_path, **given)


def test_a_search_setting_out_of_range_is_refused(built):
    for kind, setting in (("ivf", "probes"), ("hnsw", "breadth"), ("sq8", "candidates")):
        with pytest.raises(registry.BadValue, match=f"{setting} is 0; wanted a number from 1 on"):
            kind_of(kind).load(built / "cosine" / kind, **{setting: 0})


def test_pieces_that_do_not_divide_the_dimensions_are_refused_with_those_that_do(tmp_path):
    with pytest.raises(DataError, match=r"pieces is 5, but the vectors have 12 dimensions; .*: 1, 2, 3, 4, 6, 12"):
        kind_of("pq").build(iter(()), 0, 12, tmp_path, pieces=5)


@every_approximate
def test_vectors_too_long_for_codes_are_refused(kind, tmp_path):
    with pytest.raises(DataError, match="too long for codes"):
        build(tmp_path, kind, np.full((3, 8), 1e20), "inner-product")
