"""Pickles of plain data: what pickle writes is read back, what would run code is refused."""

import io
import pickle
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from coderet.corpora.plain_pickle import OPAQUE, records
from coderet.records import DataError

SHARED = ["shared", "list"]
RECORDS = [
    {"url": "https://a/b#L1-L2", "tokens": ["def", "(", ")", "def"], "score": 0.5, "n": None, "ok": True},
    {"url": "é → 好", "tokens": [], "nested": {"deep": [(1, (2,), (3, 4, 5, 6), ())]}, "shared": SHARED},
    {"number": -(2**70), "bytes": b"\0\xff", "small": 300, "big": 70_000, "shared": SHARED, "long": "x" * 300},
]


def read(content: bytes):
    return list(records(lambda: closing(io.BytesIO(content)), "a.pkl"))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_what_pickle_writes_is_read_back(protocol):
    assert read(pickle.dumps(RECORDS, protocol)) == (RECORDS if protocol > 2 else [*RECORDS[:2], opaque_bytes()])


def opaque_bytes():
    return RECORDS[2] | {"bytes": OPAQUE}  # protocol 2 writes bytes as a call


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 5000])
def test_lists_of_any_length_are_given_whole(count):
    assert read(pickle.dumps([{"number": each} for each in range(count)])) == [{"number": e} for e in range(count)]


def test_members_come_one_batch_at_a_time():
    content = io.BytesIO(pickle.dumps([{"number": each} for each in range(100_000)]))
    given = records(lambda: _again(content), "a.pkl")
    assert next(given) == {"number": 0}
    assert content.tell() < len(content.getvalue()) / 2


def _again(content):
    content.seek(0)
    return closing(_Kept(content))


class _Kept:
    """A stream that stays open when closed."""

    def __init__(self, content):
        self.read, self.readline = content.read, content.readline

    def close(self):
        pass


def test_a_number_of_numpy_s_is_read_over():
    assert read(pickle.dumps([{"score": np.float64(0.5), "url": "a"}])) == [{"score": OPAQUE, "url": "a"}]


class Hostile:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_would_run_code_is_refused_and_not_run(protocol, tmp_path):
    content = pickle.dumps([{"url": "a"}, Hostile(tmp_path / "ran")], protocol)
    with pytest.raises(DataError, match=r"a.pkl names code, .*it was not run"):
        read(content)
    assert not (tmp_path / "ran").exists()
    pickle.loads(content)
    assert (tmp_path / "ran").exists()  # it would have


@pytest.mark.parametrize("content", [b"cos\nsystem\n(S'true'\ntR.", b"(S'true'\nios\nsystem\n."])
def test_so_is_one_of_an_old_protocol(content):
    with pytest.raises(DataError, match=r"names code, os.system|asks for STRING"):
        read(content)


def test_one_that_calls_what_is_inert_on_something_else_is_refused():
    with pytest.raises(DataError, match="asks for REDUCE"):
        read(b"\x80\x02](X\x01\x00\x00\x00a)R.")


def test_a_pickle_cut_short_is_refused():
    content = pickle.dumps(RECORDS)
    for end in (0, 1, 20, len(content) // 2, len(content) - 1):
        with pytest.raises(DataError, match="is no whole pickle of plain data"):
            read(content[:end])


def test_what_is_no_list_is_refused():
    with pytest.raises(DataError, match="holds one dict; wanted a list"):
        read(pickle.dumps({"url": "a"}))
    endless: list = []
    endless.append(endless)
    with pytest.raises(DataError, match="holds itself"):
        read(pickle.dumps(endless))


def test_a_length_beyond_all_memory_is_refused():
    with pytest.raises(DataError, match="is no whole pickle"):
        read(b"\x80\x04]\x8d" + (2**62).to_bytes(8, "little") + b"x.")
