import os
import subprocess
import sys
from pathlib import Path

import imagined
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path):
    imagined.write_results(tmp_path)
    imagined.write_benchmarks(tmp_path)
    imagined.write_params(tmp_path, ROOT)
    return tmp_path


@pytest.fixture
def run(root):
    """Runs a script of eval/ in root, with more environment; returns what came of it."""

    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}

    def script(name, *arguments, **environment):
        return subprocess.run(
            [sys.executable, str(ROOT / "eval" / f"{name}.py"), *arguments],
            cwd=root,
            env={**surroundings, "PYTHONPATH": str(ROOT / "src"), **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return script
