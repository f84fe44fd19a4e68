import zipfile

import pytest

from coderet.benchmarks import pypi
from coderet.corpora import store
from coderet.metrics.scorecards import BLOCK_METRICS
from coderet.records import DataError

FUNCTION = '''def {name}(first, second):
    """Join the {name} to what came before it."""
    {name}_one = first + second
    {name}_two = {name}_one * {name}_one - first
    {name}_three = [{name}_two, {name}_one, first.{name}]
    return {name}_three, second.{name}_four, {name}_five
'''


@pytest.fixture
def raw(tmp_path):
    for package, letters in (("ants", "abcdefg"), ("bees", "hij")):
        (tmp_path / "raw" / package).mkdir(parents=True)
        with zipfile.ZipFile(tmp_path / "raw" / package / f"{package}-1.0-py3-none-any.whl", "w") as wheel:
            source = "\n\n".join(FUNCTION.format(name=letter * 3) for letter in letters)
            wheel.writestr(f"{package}/code.py", source + "\n\n" + FUNCTION.format(name=letters[0] * 3))
    return tmp_path / "raw"


def collected(raw, tmp_path, **settings):
    names = store.write_benchmark(tmp_path / "b", pypi.collect(raw, processes=1, **settings))
    return {name: store.read_dataset(tmp_path / "b", name) for name in names}


def test_every_function_is_the_answer_to_its_own_docstring(raw, tmp_path):
    pool = collected(raw, tmp_path, functions=10)["pool"]
    assert len(pool.corpus) == len(pool.queries) == len(pool.qrels) == 10  # the copy at the end of each file is out
    assert "Join the ccc to what came before it." in pool.queries.texts.to_pylist()
    assert not any("Join" in text.as_py() for text in pool.corpus.table["text"])
    assert pool.qrels.table["query_id"].to_pylist() == pool.qrels.table["document_id"].to_pylist()


def test_no_package_has_more_than_its_share(raw, tmp_path):
    pool = collected(raw, tmp_path, functions=7, functions_a_package=4)["pool"]
    packages = [each.as_py().split("/")[0] for each in pool.corpus.ids]
    assert (packages.count("ants"), packages.count("bees")) == (4, 3)


def test_blocks_share_no_query_and_are_searched_whole(raw, tmp_path):
    datasets = collected(raw, tmp_path, functions=10, block=4)
    assert list(datasets) == ["pool", "block-00", "block-01"]
    first, second = datasets["block-00"], datasets["block-01"]
    assert len(first.corpus) == len(second.corpus) == 4
    assert not set(first.queries.ids.to_pylist()) & set(second.queries.ids.to_pylist())
    assert first.depth == 4 and first.metrics == BLOCK_METRICS


def test_another_number_of_functions_than_expected_is_refused(raw, tmp_path):
    with pytest.raises(DataError, match="gives 10 functions, expected 11"):
        collected(raw, tmp_path, functions=11)
