"""Case D6: what is recomputed, what is not, and that nobody can tell from the vectors."""

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coderet import encoders
from coderet.encoders import encoding
from coderet.encoders.encoding import Cached, batches, encode
from coderet.records import DataError

TEXTS = pa.chunked_array(
    [["sort a list", "reverse a list", "sort a list"], ["", None, "a tree"]], type=pa.large_string()
)


class Table:
    """An encoder that looks vectors up by the text's characters, and notes what it was asked."""

    dim = 4

    def __init__(self, fingerprint: str = "table") -> None:
        self.fingerprint = fingerprint
        self.asked: list[tuple[str, str | None]] = []
        self.largest = 0

    def encode_queries(self, texts: pa.ChunkedArray) -> np.ndarray:
        return self._encode(texts, "query")

    def encode_documents(self, texts: pa.ChunkedArray) -> np.ndarray:
        return self._encode(texts, "document")

    def _encode(self, texts: pa.ChunkedArray, role: str) -> np.ndarray:
        self.asked += [(role, text) for text in texts.to_pylist()]
        self.largest = max(self.largest, len(texts))
        vectors = [[len(text or ""), sum(map(ord, text or "")) % 997, len(role), 0.1] for text in texts.to_pylist()]
        return np.array(vectors, dtype=np.float32).reshape(-1, self.dim)


def test_each_distinct_text_is_encoded_once_and_rows_keep_their_order():
    table = Table()
    vectors = encode(table, TEXTS, "document")
    assert table.asked == [("document", text) for text in ("sort a list", "reverse a list", "", "a tree")]
    assert np.array_equal(vectors, Table().encode_documents(TEXTS))


def test_no_texts_give_no_vectors(tmp_path: Path):
    assert encode(Table(), TEXTS.slice(0, 0), "query", cache=tmp_path).shape == (0, 4)


def test_the_same_request_again_computes_nothing(tmp_path: Path):
    first = encode(Table(), TEXTS, "document", cache=tmp_path)
    again = Table()
    assert np.array_equal(encode(again, TEXTS, "document", cache=tmp_path), first) and again.asked == []


def test_a_text_asked_as_query_and_as_document_is_encoded_as_both(tmp_path: Path):
    table = Table()
    text = pa.array(["sort a list"], pa.large_string())
    encode(table, text, "query", cache=tmp_path)
    encode(table, text, "document", cache=tmp_path)
    assert table.asked == [("query", "sort a list"), ("document", "sort a list")]


def test_a_change_of_one_character_or_of_the_fingerprint_computes_again(tmp_path: Path):
    encode(Table(), TEXTS, "document", cache=tmp_path)
    table, other = Table(), Table("other")
    encode(table, pa.array(["sort a lists", "sort a list"], pa.large_string()), "document", cache=tmp_path)
    encode(other, pa.array(["sort a list"], pa.large_string()), "document", cache=tmp_path)
    assert table.asked == [("document", "sort a lists")] and other.asked == [("document", "sort a list")]


VARIATIONS = {
    "revision": {},
    "query prefix": {"query_prefix": "passage: "},
    "document prefix": {"document_prefix": "query: "},
    "length": {"max_tokens": 6},
    "normalisation": {"normalise": False},
    "pooling": {"pooling": "cls"},
    "precision": {"precision": "bf16"},
    "dimension": {"truncate_dim": 16},
}


@pytest.mark.parametrize("what", sorted(VARIATIONS))
def test_every_variation_of_a_real_encoder_computes_again(tiny_models: Callable[..., Path], tmp_path: Path, what: str):
    from coderet.encoders.pretrained import Pretrained

    usual = {
        "query_prefix": "query: ",
        "document_prefix": "passage: ",
        "max_tokens": 16,
        "normalise": True,
        "pooling": "mean",
        "precision": "fp32",
    }
    asked: list[int] = []

    class Counting(Pretrained):
        def _encode(self, texts: pa.ChunkedArray, role: encoding.Role) -> np.ndarray:
            asked.append(len(texts))
            return super()._encode(texts, role)

    def ask(seed: int = 0, **settings: object) -> np.ndarray:
        encoder = Counting(tiny_models(seed), **usual | settings)  # type: ignore[arg-type]
        return encode(encoder, TEXTS, "document", cache=tmp_path)

    first = ask()
    assert np.array_equal(ask(), first) and asked == [4]
    varied = ask(seed=1) if what == "revision" else ask(**VARIATIONS[what])
    assert asked == [4, 4]
    if what != "query prefix":
        assert varied.shape != first.shape or not np.array_equal(varied, first)


@pytest.mark.parametrize("kind", ["nbow", "pretrained"])
@pytest.mark.parametrize("role", ["query", "document"])
def test_cached_and_uncached_vectors_are_equal_bit_for_bit(
    tiny_models: Callable[..., Path], tmp_path: Path, kind: str, role: encoding.Role
):
    encoder = encoder_of(kind, tiny_models)
    words = "sort a list of numbers in place def return the binary search tree".split()
    texts = pa.array([" ".join(words[n % 13 :] * (1 + n % 5)) for n in range(50)], pa.large_string())
    uncached = encode(encoder, texts, role)
    for part in (texts.slice(3, 7), texts.slice(20, 1), texts.slice(5, 30)):  # other batches fill the cache before
        encode(encoder, part, role, cache=tmp_path)
    assert np.array_equal(encode(encoder, texts, role, cache=tmp_path), uncached)
    assert np.array_equal(encode(encoder, texts, role, cache=tmp_path), uncached)


def encoder_of(kind: str, tiny_models: Callable[..., Path]) -> Any:
    if kind == "pretrained":
        from coderet.encoders.pretrained import Pretrained

        return Pretrained(tiny_models(), precision="fp32", max_tokens=32)
    from coderet.encoders.base import DualEncoder
    from coderet.encoders.tokenizer import WordTokenizer

    return DualEncoder.build(WordTokenizer(["sort", "list", "tree", "numbers"]), {"kind": "nbow", "dim": 8})


def shards(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.safetensors"))


@pytest.mark.parametrize("kept", [0, 3, 60, -1])
def test_a_shard_that_was_cut_short_is_computed_again(tmp_path: Path, kept: int):
    first = encode(Table(), TEXTS, "document", cache=tmp_path)
    (shard,) = shards(tmp_path)
    whole = shard.read_bytes()
    shard.write_bytes(whole[:kept])
    table = Table()
    assert np.array_equal(encode(table, TEXTS, "document", cache=tmp_path), first)
    assert len(table.asked) == 4 and shards(tmp_path) == [shard] and shard.read_bytes() == whole


def test_a_shard_of_another_dimension_is_computed_again(tmp_path: Path):
    from safetensors.numpy import save_file

    first = encode(Table(), TEXTS, "document", cache=tmp_path)
    (shard,) = shards(tmp_path)
    save_file({"hashes": np.zeros((4, 16), np.uint8), "vectors": np.zeros((4, 3), np.float32)}, shard)
    assert np.array_equal(encode(Table(), TEXTS, "document", cache=tmp_path), first)


def test_what_was_saved_before_a_crash_is_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(encoding, "SHARD", 2)

    class Dying(Table):
        def _encode(self, texts: pa.ChunkedArray, role: str) -> np.ndarray:
            if "a tree" in texts.to_pylist():
                raise KeyboardInterrupt
            return super()._encode(texts, role)

    with pytest.raises(KeyboardInterrupt):
        encode(Dying(), TEXTS, "document", cache=tmp_path)
    table = Table()
    assert np.array_equal(encode(table, TEXTS, "document", cache=tmp_path), Table().encode_documents(TEXTS))
    assert table.asked == [("document", ""), ("document", "a tree")]


def _killed_half_way(folder: Path) -> None:
    encoding.SHARD = 2

    class Deadly(Table):
        def _encode(self, texts: pa.ChunkedArray, role: str) -> np.ndarray:
            if "a tree" in texts.to_pylist():
                os.kill(os.getpid(), signal.SIGKILL)
            return super()._encode(texts, role)

    encode(Deadly(), TEXTS, "document", cache=folder)


def test_a_process_killed_half_way_loses_its_last_shard_alone(tmp_path: Path):
    process = multiprocessing.get_context("fork").Process(target=_killed_half_way, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL and len(shards(tmp_path)) == 1
    table = Table()
    assert np.array_equal(encode(table, TEXTS, "document", cache=tmp_path), Table().encode_documents(TEXTS))
    assert table.asked == [("document", ""), ("document", "a tree")]


def _write(folder: Path, first: int) -> None:
    encoding.SHARD = 5
    texts = pa.array([f"text {n}" for n in range(first, first + 200)], pa.large_string())
    encode(Table(), texts, "document", cache=folder)


def test_processes_writing_the_same_cache_do_not_harm_each_other(tmp_path: Path):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(tmp_path, first)) for first in (0, 0, 50, 100)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    texts = pa.array([f"text {n}" for n in range(300)], pa.large_string())
    table = Table()
    assert np.array_equal(encode(table, texts, "document", cache=tmp_path), Table().encode_documents(texts))
    assert table.asked == []
    assert not list(tmp_path.rglob("*.part"))


def test_vectors_that_are_not_finite_raise_with_their_rows_and_are_not_kept(tmp_path: Path):
    class Broken(Table):
        def _encode(self, texts: pa.ChunkedArray, role: str) -> np.ndarray:
            vectors = super()._encode(texts, role)
            vectors[[text == "sort a list" for text in texts.to_pylist()], 1] = np.nan
            return vectors

    with pytest.raises(DataError, match="2 texts have a vector that is not finite, at rows 0, 2;"):
        encode(Broken(), TEXTS, "document", cache=tmp_path)
    assert shards(tmp_path) == []


def test_vectors_of_a_wrong_shape_raise():
    class Narrow(Table):
        def _encode(self, texts: pa.ChunkedArray, role: str) -> np.ndarray:
            return super()._encode(texts, role)[:, :3]

    with pytest.raises(DataError, match=r"shape \(4, 3\), wanted \(4, 4\)"):
        encode(Narrow(), TEXTS, "query")


def test_vectors_can_be_written_into_a_mapped_file(tmp_path: Path):
    out = np.lib.format.open_memmap(tmp_path / "v.npy", mode="w+", dtype=np.float32, shape=(6, 4))
    encode(Table(), TEXTS, "document", out=out)
    out.flush()
    assert np.array_equal(np.load(tmp_path / "v.npy"), Table().encode_documents(TEXTS))
    with pytest.raises(DataError, match=r"out has shape \(6, 4\), wanted \(5, 4\)"):
        encode(Table(), TEXTS.slice(1), "document", out=out)


def test_the_encoder_never_gets_more_than_a_shard_of_texts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(encoding, "SHARD", 3)
    table = Table()
    texts = pa.array([f"text {n % 10}" for n in range(40)], pa.large_string())
    assert np.array_equal(encode(table, texts, "document"), Table().encode_documents(texts))
    assert table.largest == 3 and len(table.asked) == 10


def test_batches_hold_texts_of_one_padded_length_within_the_budget():
    lengths = np.array([3, 40, 0, 16, 17, 33, 1])
    found = [rows.tolist() for rows in batches(lengths, 64)]
    assert found == [[1], [5], [4], [0, 2, 3, 6]]
    assert [rows.tolist() for rows in batches(lengths, 32)] == [[1], [5], [4], [0, 2], [3, 6]]
    assert list(batches(np.array([], dtype=np.int64), 32)) == []


def test_a_cached_encoder_keeps_documents_and_always_encodes_queries(tmp_path: Path):
    table = Table()
    cached = Cached(table, tmp_path)
    for _ in range(2):
        assert np.array_equal(cached.encode_documents(TEXTS), Table().encode_documents(TEXTS))
        cached.encode_queries(TEXTS)
    assert [role for role, _ in table.asked].count("document") == 4
    assert [role for role, _ in table.asked].count("query") == 12
    assert (cached.dim, cached.fingerprint, cached.largest) == (4, "table", 6)
    assert cached.encoded == 4


def test_a_slow_encoder_is_loaded_with_a_cache_and_a_fast_one_without(tiny_models: Callable[..., Path], tmp_path: Path):
    for kind, made in (("nbow", False), ("pretrained", True)):
        encoder_of(kind, tiny_models).save(tmp_path / kind)
        loaded = encoders.load(tmp_path / kind, cache=tmp_path / "cache")
        assert isinstance(loaded, Cached) == made
        loaded.encode_documents(TEXTS)
        assert (tmp_path / "cache").exists() == made
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
