"""What DVC would say less of is said before it starts."""

import runpy
import shutil
from pathlib import Path

import pytest
import yaml

from coderet.params import ParamsError

ROOT = Path(__file__).parents[2]


def check(folder, monkeypatch, **grid):
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    raw["grid"] = {name: value for name, value in (raw["grid"] | grid).items() if value is not None}
    (folder / "params.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")
    shutil.copy(ROOT / "dvc.yaml", folder)
    monkeypatch.chdir(folder)
    runpy.run_path(str(ROOT / "eval/check.py"))["main"]()


@pytest.mark.parametrize("preset", ["", "presets/full", "presets/field", "presets/codesearchnet"])
def test_the_project_s_own_grids_pass(preset, monkeypatch):
    monkeypatch.chdir(ROOT / preset)
    runpy.run_path(str(ROOT / "eval/check.py"))["main"]()


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"trained": "nbow"}, "trained"),
        ({"reading": None, "read": []}, r"grid lacks reading, which dvc.yaml names; wanted a list, \[\] for none"),
        ({"trained": ["nbowl"]}, "grid.trained names 'nbowl'.*nbow"),
    ],
)
def test_a_grid_that_dvc_cannot_read_is_told_in_our_words(tmp_path, monkeypatch, grid, message):
    with pytest.raises(ParamsError, match=message):
        check(tmp_path, monkeypatch, **grid)
