"""docs/protocols.md names the settings of every kind of index, where each belongs."""

import re
from pathlib import Path

import pytest

from coderet import registry
from coderet.indexes import INDEXES

PAGE = Path(__file__).parents[2] / "docs" / "protocols.md"
ROWS = {
    kind: [set(re.findall(r"`(\w+)`", cell)) for cell in cells.split("|")[:2]]
    for kind, cells in re.findall(r"^\| `([\w-]+)` \|(.+)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
}


def test_every_kind_has_a_row():
    assert set(ROWS) - {"kind"} == set(INDEXES)


@pytest.mark.parametrize("kind", INDEXES)
def test_its_settings_stand_under_index_or_beside_it(kind):
    made = registry.load(INDEXES, kind, "indexes")
    under, beside = ROWS[kind]
    assert under == set(registry.named_arguments(made.build)) - {"similarity"}
    assert beside == set(registry.named_arguments(made.load))
