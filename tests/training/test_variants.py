"""Which texts stand for a pair in an epoch: real tokens of a few functions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coderet.corpora import syntax
from coderet.encoders.tokenizer import Tokens
from coderet.records import PAIRS
from coderet.registry import BadValue
from coderet.training.fitting import fit
from coderet.training.keys import text_key
from coderet.training.pairs import TokenPairs, tokenised

COUNT = 400


class Reader:
    """An encoder as far as `tokenised` knows it: what it read is remembered by its token ids."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def tokens(self, texts: Any, role: str) -> Any:
        start = len(self.texts)
        self.texts += texts.to_pylist()
        return Tokens.of([[number] for number in range(start, len(self.texts))])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    names = [f"compute_total_{'abcdefghij'[row % 10]}" if row % 2 else "short" for row in range(COUNT)]
    columns = {
        "pair_id": [str(row) for row in range(COUNT)],
        "repository": ["package"] * COUNT,
        "path": ["module.py"] * COUNT,
        "language": ["python"] * COUNT,
        "name": [f"Class.{name}" for name in names],
        "query": [f"Returns the total of {row} numbers." for row in range(COUNT)],
        "code": [
            f"def {name}(values):\n    total = sum(values)\n    return total + {row}\n"
            for row, name in enumerate(names)
        ],
        "start_line": [1] * COUNT,
        "end_line": [2] * COUNT,
    }
    pq.write_table(pa.table(columns, schema=PAIRS), tmp_path / "train.parquet")
    return tmp_path / "train.parquet"


@pytest.fixture
def read(path: Path, tmp_path: Path) -> Callable[..., tuple[TokenPairs, Callable[[int | None], Any]]]:
    """read(**settings): the pairs, and a function from an epoch to the texts that stand for them all."""

    def made(seed: int = 7, **settings: Any) -> Any:
        reader = Reader()
        pairs = tokenised(path, reader, tmp_path / f"work-{len(list(tmp_path.iterdir()))}", seed, **settings)

        def texts(epoch: int | None) -> tuple[list[str], ...]:
            batch = pairs.batch(np.arange(COUNT), epoch)
            sides = (batch.queries.ids[:, 0].tolist(), batch.documents.ids[:, 0].tolist())
            return tuple([reader.texts[number] for number in side] for side in sides)

        return pairs, texts

    return made


def test_without_settings_every_pair_stands_for_itself(read, path: Path):
    pairs, texts = read()
    table = pq.read_table(path)
    assert pairs.variants is None and pairs.negatives is None
    assert texts(3) == texts(None) == (table["query"].to_pylist(), table["code"].to_pylist())


def test_a_share_of_the_pairs_is_asked_for_by_name_with_the_name_masked(read):
    pairs, texts = read(names=0.3)
    assert pairs.facts["pairs_with_a_name"] == COUNT // 2
    queries, codes = texts(0)
    named = [row for row, query in enumerate(queries) if query.startswith("compute total ")]
    assert 0.2 < len(named) / (COUNT / 2) < 0.4 and all(row % 2 for row in named)
    for row in range(COUNT):
        assert ("compute_total" not in codes[row]) == (row in named or row % 2 == 0)
        assert codes[row].startswith("def _(values)") == (row in named)
    assert texts(1) != texts(0) == texts(0)  # another epoch, and the same one


def test_questions_and_renamed_code_stand_for_a_share_of_the_pairs(read, path: Path):
    pairs, texts = read(questions=0.5, renamed=0.4, variants=2)
    table = pq.read_table(path)
    asked, renamed = [], []
    for epoch in range(3):
        queries, codes = texts(epoch)
        asked.append(np.array([a != b for a, b in zip(queries, table["query"].to_pylist(), strict=True)]))
        renamed.append(np.array([a != b for a, b in zip(codes, table["code"].to_pylist(), strict=True)]))
        assert {query.split()[0] for query in np.array(queries)[asked[-1]]} == {"return", "how", "python"}
        assert all(syntax.tree(code.encode(), "python") is not None for code in codes)
        assert not any("total = sum(values)" in code for code in np.array(codes)[renamed[-1]])
    assert 0.4 < np.mean(asked) < 0.6 and 0.3 < np.mean(renamed) < 0.5
    assert not np.array_equal(asked[0], asked[1]) and not np.array_equal(renamed[0], renamed[1])
    assert pairs.facts["pairs_with_questions"] == pairs.facts["pairs_with_renamed_code"] == COUNT


def test_names_can_be_numbers(read):
    codes = read(renamed=1.0, names_from="numbers")[1](0)[1]
    assert codes[1] == "def compute_total_b(var1):\n    var2 = sum(var1)\n    return var2 + 1\n"


def test_keys_tell_what_is_the_same_however_it_is_said(read, path: Path):
    pairs, texts = read(names=0.5, questions=0.5, renamed=0.5)
    table, batch = pq.read_table(path), pairs.batch(np.arange(COUNT), 0)
    queries, _ = texts(0)
    assert batch.documents.keys.tolist() == [text_key(code) for code in table["code"].to_pylist()]
    for key, said, written in zip(batch.queries.keys.tolist(), queries, table["query"].to_pylist(), strict=True):
        assert key == text_key(said if said.startswith("compute") else written)


def test_a_batch_is_the_same_however_the_pairs_are_cut(read):
    pairs, _ = read(names=0.3, questions=0.5, renamed=0.4)
    whole, rows = pairs.batch(np.arange(COUNT), 2), np.array([17, 3, 200])
    part = pairs.batch(rows, 2)
    assert part.queries.ids[:, 0].tolist() == whole.queries.ids[rows, 0].tolist()
    assert part.documents.ids[:, 0].tolist() == whole.documents.ids[rows, 0].tolist()


def test_code_stands_behind_its_title_or_without_its_name(read, path: Path):
    pairs, texts = read(titles=0.5, unnamed=0.3)
    table, (queries, codes) = pq.read_table(path).to_pylist(), texts(0)
    titled = [code == f"{row['name']} {row['code']}" for row, code in zip(table, codes, strict=True)]
    unnamed = [code == row["code"].replace(row["name"][6:], "_") for row, code in zip(table, codes, strict=True)]
    plain = [code == row["code"] for row, code in zip(table, codes, strict=True)]
    assert 0.42 < np.mean(titled) < 0.58 and 0.22 < np.mean(unnamed) < 0.38
    assert sum(titled) + sum(unnamed) + sum(plain) == COUNT == pairs.facts["pairs_with_a_title"]
    assert queries == [row["query"] for row in table]


def test_code_that_is_no_mined_function_has_no_title(read, path: Path, tmp_path: Path):
    table = pq.read_table(path)
    examples = table.set_column(0, "pair_id", pa.array([f"e{row}" for row in range(COUNT)], pa.large_string()))
    pq.write_table(examples, tmp_path / "examples.parquet")
    pairs, _ = read(titles=1.0, unnamed=0.0, files={"examples": str(tmp_path / "examples.parquet")})
    assert len(pairs) == 2 * COUNT and pairs.facts["pairs_with_a_title"] == COUNT


def test_another_seed_draws_others(read):
    assert read(seed=7, names=0.5)[1](0) != read(seed=8, names=0.5)[1](0)


@pytest.mark.parametrize(
    "settings",
    [
        {"names": 1.5},
        {"renamed": -0.1},
        {"titles": 2},
        {"a_repository": -1},
        {"variants": 0},
        {"negatives_a_pair": 0},
    ],
)
def test_shares_that_cannot_be_are_refused(read, settings: dict[str, float]):
    (name,) = settings
    with pytest.raises(BadValue, match=rf"fit\.pairs\.{name} is .*; wanted a number from"):
        read(**settings)


def test_a_pair_has_one_form(read):
    with pytest.raises(BadValue, match=r"fit\.pairs\.titles and unnamed together is 1\.2; wanted a number from"):
        read(titles=0.6, unnamed=0.6)


@pytest.mark.parametrize(
    ("pairs", "batches"),
    [
        ({"names": 0.3, "name_letters": 3, "questions": 0.3, "renamed": 0.5}, {}),
        ({"titles": 0.4, "unnamed": 0.2, "a_repository": 30}, {}),
        ({"smoothing": 0.5}, {"kind": "distinct"}),
        ({}, {"kind": "clustered", "clusters": 4}),
        ({"renamed": 0.5}, {"kind": "budget", "tokens": 300}),
    ],
)
def test_every_choice_of_pairs_trains(
    write_pairs: Callable[..., Path], tokenizers_folder: Path, tmp_path: Path, pairs: dict, batches: dict
):
    settings = {
        "encoder": {"kind": "nbow", "dim": 16},
        "pairs": pairs,
        "batches": {"size": 8} | batches,
        "training": {"epochs": 3, "warmup": 2, "learning_rate": 0.02, "patience": 9, "valid_block": 20},
    }
    encoder, facts = fit(write_pairs(), tokenizers_folder, settings, tmp_path / "fit", 5)
    assert facts["curve"][-1]["loss"] < facts["curve"][0]["loss"]
    used = min(60, pairs.get("a_repository", 60))
    assert facts["pairs_by_source"] == {"python": used} and facts["pairs_without_a_side"] == 0
    again, _ = fit(write_pairs(), tokenizers_folder, settings, tmp_path / "again", 5)
    for one, other in zip(encoder.state_dict().values(), again.state_dict().values(), strict=True):
        assert one.equal(other)
