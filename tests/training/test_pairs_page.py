"""docs/pairs.md names every setting, and none that there is not."""

import re
from pathlib import Path

import pytest
import yaml

from coderet.registry import named_arguments
from coderet.training.batches import batches_of
from coderet.training.negative_mining import mine, rescored
from coderet.training.pairs import tokenised

PAGE = (Path(__file__).parents[2] / "docs" / "pairs.md").read_text(encoding="utf-8")
EXAMPLES = [yaml.safe_load(each) for each in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


def settings_of(*way: str) -> set[str]:
    found: set[str] = set()
    for example in EXAMPLES:
        for step in way:
            example = example.get(step, {})
        found |= set(example)
    return found


@pytest.mark.parametrize(
    ("function", "ways"),
    [
        (tokenised, [("pairs",), ("retrievers", "my-model", "fit", "pairs")]),
        (batches_of, [("batches",)]),
        (mine, [("negatives", "minilm")]),
        (rescored, [("rescorers", "minilm-code")]),
    ],
)
def test_the_page_names_every_setting(function, ways):
    assert set().union(*(settings_of(*way) for way in ways)) == set(named_arguments(function))


def test_the_page_gives_the_defaults_of_batches():
    (given,) = (each["batches"] for each in EXAMPLES if "batches" in each)
    assert given == {name: each.default for name, each in named_arguments(batches_of).items()}
