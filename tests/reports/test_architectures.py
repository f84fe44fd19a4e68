"""The encoders of 2019 beside the paper's figures: order and distance, never a bare difference of figures."""

from pathlib import Path

import pytest

from coderet import reports
from coderet.reports import architectures
from coderet.reports.results import Results

PUBLISHED = reports.published_rows(Path(__file__).parents[2] / "data" / "published", {"python": reports.ARCHITECTURES})
MIXED = {"kind": "mixed", "architecture": {"query": {"kind": "attention"}, "document": {"kind": "nbow", "dim": 8}}}


def results_of(values, benchmark="pypi"):
    """values[system]: its encoder's settings and its metric."""
    stages = {
        system: {
            benchmark: {"score": {"settings": {"encoder": encoder}, "all": {architectures.METRIC: {"value": value}}}}
        }
        for system, (encoder, value) in values.items()
    }
    return Results([benchmark], list(values), stages=stages)


FOUR = {
    "bag": ({"kind": "nbow"}, 0.5),
    "cnn": ({"kind": "convolution"}, 0.45),
    "rnn": ({"kind": "recurrent"}, 0.3),
    "attention": ({"kind": "attention"}, 0.6),
}


def cells(section):
    return [[cell.text for cell in row] for table in section.parts for row in table.rows]


def test_each_architecture_stands_beside_the_papers_python_column_best_first():
    section = architectures.section(results_of(FOUR), PUBLISHED)
    assert cells(section) == [
        ["selfatt", "attention", "60.0", "–", "69.2", "–"],
        ["nbow", "bag", "50.0", "-10.0", "58.1", "-11.1"],
        ["1d-cnn", "cnn", "45.0", "-15.0", "57.1", "-12.1"],
        ["birnn", "rnn", "30.0", "-30.0", "32.1", "-37.1"],
    ]
    assert section.points == ["pypi: the same order as in the paper: selfatt, nbow, 1d-cnn, birnn."]
    assert "data differ" in section.lead


def test_another_order_than_the_papers_is_said():
    section = architectures.section(results_of(FOUR | {"rnn": ({"kind": "recurrent"}, 0.55)}), PUBLISHED)
    assert section.points == [
        "pypi: the order here is selfatt, birnn, nbow, 1d-cnn; in the paper selfatt, nbow, 1d-cnn, birnn."
    ]


def test_towers_of_two_kinds_are_the_papers_mixed_row():
    section = architectures.section(results_of({"mix": (MIXED, 0.5), "bag": ({"kind": "nbow"}, 0.4)}), PUBLISHED)
    assert cells(section)[0] == ["selfatt+nbow", "mix", "50.0", "–", "61.1", "–"]
    assert cells(section)[1][-1] == "-3.0"


def test_of_several_encoders_of_one_architecture_the_best_counts_for_the_order():
    values = {"small": ({"kind": "nbow"}, 0.1), "large": ({"kind": "nbow"}, 0.5), "rnn": ({"kind": "recurrent"}, 0.3)}
    section = architectures.section(results_of(values), PUBLISHED)
    assert [row[1] for row in cells(section)] == ["large", "rnn", "small"]
    assert section.points == ["pypi: the same order as in the paper: nbow, birnn."]


@pytest.mark.parametrize(
    "values",
    [
        {"bag": ({"kind": "nbow"}, 0.5), "other": ({"kind": "nbow"}, 0.4)},
        {"bag": ({"kind": "nbow"}, 0.5), "minilm": ({"kind": "pretrained"}, 0.7)},
        {
            "bag": ({"kind": "nbow"}, 0.5),
            "mix": ({"kind": "mixed", "architecture": MIXED["architecture"] | {"query": {"kind": "recurrent"}}}, 0.4),
        },
    ],
)
def test_fewer_than_two_of_the_papers_architectures_are_no_comparison(values):
    assert architectures.section(results_of(values), PUBLISHED) is None


def test_a_benchmark_without_the_metric_is_left_out(results):
    assert architectures.section(results, PUBLISHED) is None
