"""CoIR's average is of all ten tasks by one protocol, or the missing ones are named in its place."""

import pytest

from coderet.benchmarks import benchmark
from coderet.benchmarks.coir import TASKS
from coderet.reports import coir
from coderet.reports.results import Results


def results(names, systems=("plain",), lacking=()):
    """Results on the named benchmarks: their n-th has n hundredths; lacking are pairs of system and benchmark."""
    stages = {
        system: {
            name: {"score": {"choices": dict(benchmark(name).choices), "all": {"ndcg@10": {"value": place / 100}}}}
            for place, name in enumerate(names, 1)
            if (system, name) not in lacking
        }
        for system in systems
    }
    collected = {name: {"choices": dict(benchmark(name).choices)} for name in names}
    return Results(names, systems, collected, stages)


ALL = [f"coir-{task}" for task in TASKS]


def cells(section):
    return [[cell.text for cell in row] for table in section.parts for row in table.rows]


def test_all_ten_tasks_have_an_average():
    section = coir.section(results(ALL))
    assert cells(section) == [["plain", *(f"{place}.0" for place in range(1, 11)), "5.5"]]
    assert section.points == []


@pytest.mark.parametrize("left_out", [1, 4])
def test_a_task_that_is_not_in_the_grid_is_named_instead_of_an_average(left_out):
    section = coir.section(results(ALL[:-left_out]))
    assert cells(section)[0][-left_out - 1 :] == ["–"] * (left_out + 1)
    names = ", ".join(list(TASKS)[-left_out:])
    assert section.points == [f"coir-2024: no average, for {left_out} of ten tasks are not in the grid: {names}."]


def test_a_system_without_a_result_on_one_task_has_no_average_and_the_others_have():
    section = coir.section(results(ALL, ("plain", "learned"), [("learned", "coir-apps")]))
    plain, learned = cells(section)
    assert (plain[-1], learned[1], learned[-1]) == ("5.5", "missing", "–")
    assert section.points == ["coir-2024, learned: no average, for there is no result on apps."]


def test_tasks_of_two_protocols_make_no_ten():
    section = coir.section(results([*ALL[:5], *(f"mteb-{task}" for task in list(TASKS)[5:])]))
    assert [table.caption for table in section.parts] == ["by coir-2024", "by mteb"]
    assert [row[-1] for row in cells(section)] == ["–", "–"]
    assert len(section.points) == 2


def test_a_grid_without_tasks_of_coir_has_no_such_section():
    assert coir.section(results(["humaneval"])) is None
