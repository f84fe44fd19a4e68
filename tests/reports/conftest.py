import imagined
import pytest


@pytest.fixture
def root(tmp_path):
    imagined.write_results(tmp_path)
    return tmp_path


@pytest.fixture
def results(root):
    return imagined.read(root)
