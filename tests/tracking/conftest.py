import pytest

from coderet.tracking import server


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """The address of a new SQLite store, in a folder with a space in its name."""
    return f"sqlite:///{tmp_path_factory.mktemp('a log')}/mlflow.db"


@pytest.fixture(scope="session")
def client(store):
    return server.connect(store)[0]


@pytest.fixture
def runs(client):
    """Finds all the runs of a system, the newest first."""

    def find(system):
        experiment = client.get_experiment_by_name(server.EXPERIMENT)
        return list(client.search_runs([experiment.experiment_id], f"tags.system = '{system}'"))

    return find
