"""A table learns what a teacher says: the teacher here is a table too, so that it can be learned wholly."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from coderet import encoders, training
from coderet.encoders.static import Static, over_code_words
from coderet.encoders.tokenizer import Tokens, train_bpe
from coderet.records import DataError
from coderet.registry import BadValue, UnknownName
from coderet.training import augmentation
from coderet.training.distillation import _directions, _Lesson, distil
from coderet.training.vocabulary import read_texts

SETTINGS: dict[str, Any] = {"vocabulary": 300, "min_count": 1, "batch": 16, "warmup": 4, "epochs": 0}


@pytest.fixture
def pairs(write_pairs: Callable[..., Path]) -> Path:
    return write_pairs()


@pytest.fixture
def teacher(pairs: Path) -> Static:
    table = read_texts(pairs / "train.parquet")
    pieces = train_bpe([table["query"], table["code"]], 300, 1)
    random = torch.Generator().manual_seed(1)
    return Static(over_code_words(pieces), torch.randn(len(pieces), 12, generator=random), code_words=True)


def column(texts: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def test_untrained_a_token_is_what_the_teacher_says_of_it_by_its_rarity(pairs: Path, teacher: Static):
    student, facts = distil(teacher, pairs, None, 3, **SETTINGS, rarity=0.01)
    texts = read_texts(pairs / "train.parquet")
    names = train_bpe([texts["query"], texts["code"]], 300, 1).names()
    said = teacher.encode_documents(column(names))
    ids = np.concatenate([student.tokens(texts[each], "query").ids for each in ("query", "code")])
    for name in ("the", "sort"):
        place = names.index(name)
        share = (ids == place).mean()
        assert share > 0
        expected = (said[place] - said.mean(0)) * 0.01 / (0.01 + share)
        [found] = Static(over_code_words(train_bpe([texts["query"], texts["code"]], 300, 1)), student._table,
                         normalise=False, code_words=True).encode_queries(column([name]))  # fmt: skip
        assert np.allclose(found, expected, atol=1e-6)
    assert (facts["epochs"], facts["steps"], facts["curve"]) == (0, 0, [])


def test_a_faithful_student_comes_to_say_what_its_teacher_says(pairs: Path, teacher: Static):
    texts = read_texts(pairs / "train.parquet")["code"]

    def agreement(epochs: int) -> float:
        student, _ = distil(
            teacher, pairs, None, 3, **SETTINGS | {"epochs": epochs}, faithfulness=1.0, learning_rate=0.001
        )
        return float((student.encode_documents(texts) * teacher.encode_documents(texts)).sum(1).mean())

    assert agreement(0) < 0.9 < 0.99 < agreement(40)


def test_a_student_learns_from_pairs_that_its_teacher_has_not_read(pairs: Path, teacher: Static):
    settings = SETTINGS | {"epochs": 12, "learning_rate": 0.05}
    _, facts = distil(teacher, pairs, None, 3, **settings, faithfulness=0.1, taught=10)
    assert (facts["pairs"], facts["pairs_taught"], facts["steps"]) == (60, 10, 36)
    assert facts["curve"][-1]["loss"] < facts["curve"][0]["loss"] / 2
    assert facts["best_validation_mrr"] > facts["untrained_validation_mrr"] + 0.2


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(pairs: Path, teacher: Static):
    def weights(seed: int) -> bytes:
        return distil(teacher, pairs, None, seed, **SETTINGS | {"epochs": 2})[0]._table.numpy().tobytes()

    assert weights(3) == weights(3) != weights(4)


def test_further_pairs_and_questions_are_read_by_teacher_and_table(
    pairs: Path, teacher: Static, pairs_table: Callable[..., Any], tmp_path: Path
):
    more = tmp_path / "more.parquet"
    pq.write_table(pairs_table(["Returns the zebra of the queue."] * 2, ["zebra = 1", "queue[0] = zebra"]), more)
    read: list[str] = []

    class Listening(Static):
        def encode_queries(self, texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
            read.extend(texts.to_pylist())
            return super().encode_queries(texts)

    listening = Listening(teacher._tokenizer.model, teacher._table, code_words=True)
    _, facts = distil(listening, pairs, None, 3, **SETTINGS, files={"more": more}, questions=1.0)
    assert (facts["pairs"], facts["pairs_by_source"]["more"]) == (62, 2)
    forms = augmentation.questions("Returns the zebra of the queue.", "python")
    asked = [each for each in read if "zebra" in each]
    assert len(asked) == 2 and set(asked) <= set(forms)


def test_the_loss_is_the_share_of_the_distance_and_the_share_of_info_nce():
    table = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    tokens: Any = {"query": Tokens.of([[0], [1]]), "document": Tokens.of([[2], [1]])}
    keys: Any = {"query": np.array([1, 2]), "document": np.array([3, 4])}
    said: Any = {"query": torch.tensor([[0.0, 1.0]]), "document": torch.tensor([[1.0, 0.0]])}
    lesson = _Lesson(tokens, keys, said, np.array([0, -1]))
    scores = np.array([[0.6, 0.0], [0.8, 1.0]])
    own = np.diag(scores)
    apart = (np.log(np.exp(scores).sum(1)) - own).mean() / 2 + (np.log(np.exp(scores).sum(0)) - own).mean() / 2
    far = ((1 - 0.0) + (1 - 0.6)) / 2  # the second pair was not read
    assert lesson.loss(table, np.array([0, 1]), 0.25, 1.0).item() == pytest.approx(0.75 * apart + 0.25 * far, abs=1e-6)
    assert lesson.loss(table, np.array([0, 1]), 0.0, 1.0).item() == pytest.approx(apart, abs=1e-6)


def test_fewer_dimensions_keep_the_dot_products_as_well_as_so_many_can():
    random = np.random.default_rng(0)
    vectors = (random.normal(size=(200, 10)) * 2.0 ** -np.arange(10)).astype(np.float32) + 0.1
    directions = _directions(vectors, 3).numpy()
    left, lengths, right = np.linalg.svd(vectors.astype(np.float64), full_matrices=False)
    best = (left[:, :3] * lengths[:3]) @ right[:3]
    assert np.allclose(directions.T @ directions, np.eye(3), atol=1e-6)
    assert np.allclose(vectors @ directions @ directions.T, best, atol=1e-5)


def test_a_smaller_student_is_saved_and_loaded_like_any_encoder(pairs: Path, teacher: Static, tmp_path: Path):
    student, _ = training.distil(teacher, pairs, tmp_path / "vectors", 3, **SETTINGS, dim=5)
    student.save(tmp_path / "saved")
    loaded = encoders.load(tmp_path / "saved")
    assert loaded.dim == 5 and loaded.fingerprint == student.fingerprint
    kept = sorted(path.name for path in (tmp_path / "vectors" / teacher.fingerprint).iterdir())
    assert kept == ["document", "query"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dim": 13}, "fit.dim is 13; wanted a number from 1 to 12"),
        ({"faithfulness": 1.5}, "fit.faithfulness is 1.5"),
        ({"temperature": 0.0}, "fit.temperature is 0.0"),
        ({"questions": 1.1}, "fit.questions is 1.1"),
    ],
)
def test_settings_that_cannot_be_are_refused(pairs: Path, teacher: Static, settings: dict[str, Any], message: str):
    with pytest.raises(BadValue, match=message):
        distil(teacher, pairs, None, 3, **settings)


def test_a_setting_that_is_not_known_is_refused(pairs: Path, teacher: Static):
    with pytest.raises(UnknownName, match=r"fit\.epoch is not a setting.*Did you mean epochs"):
        training.distil(teacher, pairs, None, 3, epoch=1)


def test_pairs_without_a_side_are_left_out_and_counted(pairs: Path, teacher: Static, pairs_table: Callable[..., Any]):
    whole, _ = distil(teacher, pairs, None, 3, **SETTINGS)
    table = read_texts(pairs / "train.parquet")
    queries, codes = (table[name].to_pylist() for name in ("query", "code"))
    pq.write_table(pairs_table([*queries, " ", "alone"], [*codes, "def f(): pass", ""]), pairs / "train.parquet")
    other, facts = distil(teacher, pairs, None, 3, **SETTINGS)
    assert (facts["pairs"], facts["pairs_without_a_side"]) == (60, 2)
    assert other.fingerprint == whole.fingerprint


@pytest.mark.parametrize(
    ("queries", "codes", "message"),
    [
        (["", " "], ["x = 1", "y = 2"], "has no pair with both a query and code"),
        (["sort it"], ["def sort(x):"], "has 1 pair; wanted two"),
        (["---", "..."], ["(((", "sort(x)"], "hold no word, only signs"),
    ],
)
def test_pairs_that_teach_nothing_are_refused(
    pairs: Path, teacher: Static, pairs_table: Callable[..., Any], queries: list[str], codes: list[str], message: str
):
    pq.write_table(pairs_table(queries, codes), pairs / "train.parquet")
    with pytest.raises(DataError, match=message):
        distil(teacher, pairs, None, 3, **SETTINGS)
