import pytest

from coderet.corpora import answered
from coderet.records import DataError


def test_a_table_reads_back_with_the_settings_that_made_it(tmp_path):
    row = {"problem_id": "p", "sample": 0, "text": "x\n", "finish": "stop", "stop": ""}
    row |= {"prompt_tokens": 3, "completion_tokens": 1}
    path = answered.completions_path(tmp_path, "some")
    answered.write(path, [row], answered.COMPLETIONS, {"layout": "chat"})
    assert answered.read(path, answered.COMPLETIONS).to_pylist() == [row]
    assert answered.settings(path) == {"layout": "chat"}
    with pytest.raises(DataError, match=r"has columns .*, wanted"):
        answered.read(path, answered.PROMPTS)
