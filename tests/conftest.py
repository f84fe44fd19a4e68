"""Where the real benchmark files lie, if they do."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as stage.run has it: threads that spin wait for each other

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real benchmark files; the test is skipped where it is absent."""
    folder = Path(os.environ.get("CODERET_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no benchmark files at {folder}; set CODERET_DATA to their folder")
    return folder
