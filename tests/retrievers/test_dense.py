import hashlib

import numpy as np
import pyarrow as pa
import pytest

from coderet import retrievers
from coderet.records import DataError
from coderet.registry import BadValue, UnknownName
from coderet.retrievers.dense import Dense


class Hashed:
    """An encoder without weights: a token adds 1 to the dimension that its hash names."""

    def __init__(self, dim: int = 64, fingerprint: str = "hashed") -> None:
        self.dim, self.fingerprint, self.asked = dim, fingerprint, []

    def encode_documents(self, texts: pa.ChunkedArray) -> np.ndarray:
        self.asked.append(texts.to_pylist())
        vectors = np.zeros((len(texts), self.dim), np.float32)
        for row, text in enumerate(texts.to_pylist()):
            for token in text.split():
                vectors[row, int(hashlib.sha256(token.encode()).hexdigest(), 16) % self.dim] += 1
        return vectors

    encode_queries = encode_documents

    def save(self, folder) -> None:
        raise NotImplementedError


class Broken(Hashed):
    def encode_documents(self, texts: pa.ChunkedArray) -> np.ndarray:
        vectors = super().encode_documents(texts)
        vectors[1] = np.nan
        return vectors


def test_the_document_that_shares_the_most_words_is_first(corpus_of, answer):
    corpus = corpus_of({"x": "binary search of a list", "y": "merge sort of a list", "z": "open a file"})
    [hits] = answer(Dense(Hashed(256)), corpus, ["binary search"], k=3)
    assert hits[0][0] == "x"
    assert hits[0][1] == pytest.approx(2 / np.sqrt(2 * 5), abs=1e-6)


def test_documents_of_equal_text_rank_in_descending_id(corpus_of, answer):  # D1, D3
    corpus = corpus_of({"t1": "SELECT a FROM x", "t9": "SELECT a FROM x", "t2": "SELECT b FROM y"})
    [hits] = answer(Dense(Hashed()), corpus, ["a x"], k=2)
    assert [document for document, _ in hits] == ["t9", "t1"] and hits[0][1] == hits[1][1]


def test_title_and_text_are_read_as_the_settings_say(corpus_of, answer):  # D4
    corpus = corpus_of({"x": "def f(a, x): ...", "y": ""}, {"x": "binary search"})
    encoder = Hashed()
    [[(_, with_title), _]] = answer(Dense(encoder, text_fields=["title", "text"]), corpus, ["binary search in python"])
    assert encoder.asked[0] == ["", "binary search def f(a, x): ..."]
    [[(_, without), _]] = answer(Dense(encoder), corpus, ["binary search in python"])
    assert encoder.asked[2] == ["", "def f(a, x): ..."]
    assert with_title > 0 == without


def test_fewer_documents_than_asked_for_no_documents_and_no_queries(corpus_of, answer):  # D7
    assert len(answer(Dense(Hashed()), corpus_of({"x": "a", "y": "b", "z": "c"}), ["a"], k=5)[0]) == 3
    assert answer(Dense(Hashed()), corpus_of({}), ["a"]) == [[]]
    assert answer(Dense(Hashed()), corpus_of({"x": "a"}), []) == []


def test_a_broken_vector_stops_the_build_and_names_the_document(corpus_of, tmp_path):  # D7
    with pytest.raises(DataError, match="hold NaN or infinity: y"):
        Dense(Broken()).index(corpus_of({"x": "a", "y": "b", "z": "c"}), tmp_path)


def test_a_document_without_a_direction_is_counted(corpus_of, tmp_path):  # D7
    facts = Dense(Hashed(8)).index(corpus_of({"x": "a", "y": ""}), tmp_path)
    assert facts == {"dim": 8, "zero_vectors": 1, "encoded": 2}


def test_what_an_encoder_that_costs_money_has_spent_is_told_of_each_index_and_in_all(corpus_of, tmp_path):
    class Costly(Hashed):
        spent = 5  # on another index of this process

        @property
        def spending(self):
            return {"api_tokens": self.spent}

        @property
        def spending_in_all(self):
            return {"api_total_tokens": 100 + self.spent}

        def encode_documents(self, texts):
            self.spent += 7
            return super().encode_documents(texts)

        encode_queries = encode_documents

    facts = Dense(Costly()).index(corpus_of({"x": "a"}), tmp_path)
    assert (facts["api_tokens"], facts["api_total_tokens"]) == (7, 112)
    assert Dense(Costly()).spending == {"api_tokens": 5} and Dense(Hashed()).spending == {}


def test_an_index_of_another_encoder_corpus_assembly_or_similarity_is_refused(corpus_of, tmp_path):
    corpus = corpus_of({"x": "a", "y": "b"})
    Dense(Hashed()).index(corpus, tmp_path)
    Dense(Hashed(), batch=1).open(corpus, tmp_path)
    for other, wanted in (
        (Dense(Hashed(fingerprint="newer")), "was made with encoder 'hashed', wanted 'newer'"),
        (Dense(Hashed(), text_fields=["title", "text"]), "was made with text_fields"),
        (Dense(Hashed(), similarity="inner-product"), "was made with similarity 'cosine'"),
    ):
        with pytest.raises(DataError, match=wanted):
            other.open(corpus, tmp_path)
    with pytest.raises(DataError, match="has 2 vectors but its corpus 1 documents"):
        Dense(Hashed()).open(corpus_of({"x": "a"}), tmp_path)


def test_an_unknown_kind_of_index_and_a_wrong_batch_are_refused():
    with pytest.raises(UnknownName, match=r"index.kind is 'flatt'; known indexes: .*flat, .* Did you mean flat\?"):
        Dense(Hashed(), kind="flatt")
    with pytest.raises(DataError, match="batch is 0"):
        Dense(Hashed(), batch=0)


KINDS = {
    "flat": {},
    "sq8": {},
    "pq": {"pieces": 8},
    "ivf": {"lists": 4},
    "ivf-pq": {"lists": 4, "pieces": 8},
    "hnsw": {"links": 8},
    "binary": {},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def words_of(count: int) -> dict[str, str]:
    """Documents of three words each, some of them equal."""
    return {f"d{n:04}": f"w{n % 7} w{n % 11 + 20} w{n % 13 + 40}" for n in range(count)}


@every_kind
def test_every_kind_of_index_finds_what_a_flat_one_finds_among_few_documents(kind, corpus_of, answer):
    corpus, queries = corpus_of(words_of(30)), ["w1 w25", "w3 w20 w41"]
    assert answer(Dense(Hashed(), kind=kind, **KINDS[kind]), corpus, queries, 20) == answer(
        Dense(Hashed()), corpus, queries, 20
    )


@every_kind
def test_every_kind_of_index_takes_few_documents_none_and_no_queries(kind, corpus_of, answer):  # D7
    dense = Dense(Hashed(), kind=kind, **KINDS[kind])
    assert len(answer(dense, corpus_of({"x": "a", "y": "b", "z": "c"}), ["a"], k=5)[0]) == 3
    assert answer(dense, corpus_of({}), ["a"]) == [[]]
    assert answer(dense, corpus_of({"x": "a"}), []) == []


def test_the_settings_of_a_flat_index_are_what_they_were():
    settings = {"kind": "flat", "similarity": "cosine", "text_fields": ["text"], "encoder": "hashed", "dim": 64}
    assert Dense(Hashed()).settings == settings


def test_an_index_built_with_other_settings_is_refused_one_searched_with_others_is_not(corpus_of, tmp_path):
    corpus = corpus_of(words_of(100))
    facts = Dense(Hashed(), kind="ivf", lists=2).index(corpus, tmp_path)
    assert facts == {"dim": 64, "zero_vectors": 0, "lists": 2, "codes": "sq8", "learned_from": 100, "encoded": 100}
    Dense(Hashed(), kind="ivf", lists=2, probes=1, candidates=9, batch=1).open(corpus, tmp_path)
    with pytest.raises(DataError, match="was made with lists 2, wanted 3"):
        Dense(Hashed(), kind="ivf", lists=3).open(corpus, tmp_path)
    with pytest.raises(DataError, match="was made with kind 'ivf', wanted 'flat'"):
        Dense(Hashed()).open(corpus, tmp_path)


def test_an_approximate_index_describes_all_its_settings_those_left_out_too():
    encoder = Hashed()
    encoder.settings = {"kind": "hashed"}
    assert Dense(encoder).description == {"encoder": {"kind": "hashed"}}
    assert Dense(encoder, kind="hnsw", links=8).description == {
        "index": {
            "kind": "hnsw",
            "similarity": "cosine",
            "links": 8,
            "build_breadth": 80,
            "exact_vectors": True,
            "text_fields": ["text"],
        },
        "breadth": 128,
        "candidates": None,
        "encoder": {"kind": "hashed"},
    }


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            {"index": {"kind": "ivf", "list": 4}},
            r"x.index.list is not a setting; known settings: .*lists, .* Did you mean lists\?",
        ),
        (
            {"index": {"kind": "ivf", "probes": 4}},
            r"x.index.probes moves only the search: it belongs to retrievers.x.probes",
        ),
        (
            {"index": {"kind": "ivf"}, "lists": 4},
            r"x.lists changes the index: it belongs to retrievers.x.index.lists",
        ),
        (
            {"index": {"kind": "flat", "lists": 4}},
            r"x.index.lists is not a setting; known settings: batch, chunking, device, kind",
        ),
        ({"index": {"kind": "hnsw"}, "probes": 4}, r"x.probes is not a setting"),
        ({"index": {"kind": "ivf", "lists": "many"}}, r"x.index.lists is 'many'; wanted a whole number"),
        ({"index": {"kind": "hnws"}}, r"x.index.kind is 'hnws'; known indexes: .* Did you mean hnsw\?"),
        ({"index": {"kind": "ivf"}, "device": "tpu"}, r"x.device is 'tpu'; wanted cpu, gpu"),
    ],
)
def test_a_setting_of_another_kind_or_place_is_refused_with_the_right_one(spec, said, tmp_path):
    with pytest.raises((UnknownName, BadValue), match=said):
        retrievers.load(tmp_path, {"kind": "dense", **spec}, "retrievers.x")


def test_documents_longer_than_the_encoder_reads_are_counted_with_what_they_lose(corpus_of, tmp_path):  # D14
    from coderet.encoders.base import DualEncoder
    from coderet.encoders.tokenizer import WordTokenizer

    encoder = DualEncoder(WordTokenizer(["w"]), kind="nbow", architecture={}, marked=True, max_document_tokens=8)
    corpus = corpus_of({str(n): " ".join(["w"] * (n - 2)) for n in (5, 8, 9, 50)})
    assert Dense(encoder).truncation(corpus) == {"documents_cut": 2, "tokens_lost": 1 + 42}
    indexing = Dense(encoder)
    indexing.index(corpus, tmp_path)
    encoder.tokens = None  # it was counted while indexing: a corpus is not cut up twice
    assert indexing.truncation(corpus) == {"documents_cut": 2, "tokens_lost": 1 + 42}
    del encoder.tokens
    assert Dense(encoder).truncation(corpus_of({})) == {"documents_cut": 0, "tokens_lost": 0}


def test_a_saved_neural_encoder_loads_from_its_folder_alone_and_gives_the_same_run(corpus_of, answer, tmp_path):
    base = pytest.importorskip("coderet.encoders.base")
    from coderet.encoders import tokenizer

    texts = {"x": "binary search of a list", "y": "merge sort of a list", "z": "open a file"}
    words = tokenizer.train_words([pa.array(texts.values(), pa.large_string())], size=100, min_count=1)
    encoder = base.DualEncoder(words, kind="nbow", architecture={})
    fresh = retrievers.create("dense", encoder=encoder)
    retrievers.save(fresh, "dense", tmp_path / "nbow")
    loaded = retrievers.load(tmp_path / "nbow", {"kind": "dense", "index": {"text_fields": ["text"]}, "batch": 8})
    assert loaded.settings == fresh.settings
    runs = [answer(each, corpus_of(texts), ["search a list", "file"]) for each in (fresh, loaded)]
    assert runs[0] == runs[1] and len(runs[0][0]) == 3
