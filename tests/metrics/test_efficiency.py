import subprocess
import sys
import time

import numpy as np
import pytest

from coderet.metrics import efficiency
from coderet.metrics.efficiency import Cost, Hardware, folder_bytes, latencies, of_documents, of_queries, peak_memory


def test_document_speed_is_told_both_ways_round():
    assert of_documents(200, 4.0).measured() == {
        "documents": 200,
        "documents_per_second": 50,
        "milliseconds_per_document": 20,
    }


def test_single_queries_and_batches_are_told_apart():
    cost = of_queries(np.array([0.001, 0.003, 0.002]), np.array([0.5, 1.5]), queries=100, batch_size=64)
    assert cost.queries_per_second == 50
    assert cost.query_milliseconds_p50 == pytest.approx(2)
    assert cost.query_milliseconds_p95 == pytest.approx(2.9)  # 9/10 of the way from the second to the third
    assert cost.batch_milliseconds_p50 == pytest.approx(1000)
    assert cost.batch_milliseconds_p95 == pytest.approx(1450)


def test_nothing_has_no_speed():
    assert of_documents(0, 1.0).measured() == {"documents": 0}
    assert of_queries(np.empty(0), np.empty(0), queries=0, batch_size=64).measured() == {"queries": 0}
    with pytest.raises(ValueError, match="have no speed"):
        of_documents(1, 0.0)


def test_no_timed_query_has_no_latency():
    with pytest.raises(ValueError, match="0 single queries and 1 batches"):
        of_queries(np.empty(0), np.ones(1), queries=1, batch_size=1)


def test_what_was_not_measured_is_absent():
    machine = Hardware("a processor", cores=2, memory_bytes=1024)
    assert Cost(index_bytes=0, hardware=machine).measured() == {
        "index_bytes": 0,
        "processor": "a processor",
        "cores": 2,
        "memory_bytes": 1024,
    }


def test_parts_make_a_whole_and_must_not_contradict():
    assert Cost(threads=2, index_bytes=5) | Cost(threads=2, model_bytes=7) == Cost(
        threads=2, index_bytes=5, model_bytes=7
    )
    with pytest.raises(ValueError, match="threads was measured twice, as 2 and as 3"):
        Cost(threads=2) | Cost(threads=3)


def test_every_number_of_a_cost_has_a_unit():
    numbers = {name: 1 for name in Cost.__dataclass_fields__ if name != "hardware"}
    measured = Cost(**numbers, hardware=Hardware("processor", 1, 1, "accelerator")).measured()
    assert set(measured) == set(efficiency.UNITS) | {"processor", "accelerator"}


def test_warm_up_calls_are_made_but_not_timed():
    called: list[str] = []
    now = 0.0

    def call(item: str) -> None:
        nonlocal now
        called.append(item)
        now += {"a": 100, "b": 1, "c": 2}[item]

    assert latencies(call, ["a", "b", "c"], warm_up=1, clock=lambda: now).tolist() == [1, 2]
    assert called == ["a", "b", "c"]


def test_warming_up_must_leave_something_to_time():
    with pytest.raises(ValueError, match="2 items leave none to time after 2"):
        latencies(print, ["a", "b"], warm_up=2)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps a peak that can be reset")
def test_the_peak_holds_what_was_freed_before_anyone_looked(monkeypatch):
    monkeypatch.setattr(efficiency, "_SECONDS_BETWEEN_SAMPLES", 3600)
    with peak_memory() as small:
        pass
    with peak_memory() as large:
        block = np.ones(25_000_000)  # 200 MB
        del block
    with peak_memory() as after:
        pass
    assert large.bytes > small.bytes + 150_000_000
    assert after.bytes < large.bytes - 150_000_000


def test_the_memory_of_children_counts():
    script = "b = bytearray(150_000_000); print('ready', flush=True); input()"
    with peak_memory() as without:
        pass
    with (
        peak_memory() as peak,
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child,
    ):
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(3 * efficiency._SECONDS_BETWEEN_SAMPLES)
        child.communicate(b"\n")
    assert peak.bytes > without.bytes + 140_000_000


def test_a_folder_is_as_large_as_all_its_files(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "one").write_bytes(b"12345")
    (tmp_path / "inner" / "two").write_bytes(b"123")
    assert folder_bytes(tmp_path) == 8
    assert folder_bytes(tmp_path / "one") == 5


def test_a_folder_that_is_not_there_has_no_size(tmp_path):
    with pytest.raises(FileNotFoundError):
        folder_bytes(tmp_path / "missing")


def test_this_machine_has_a_processor_cores_and_memory():
    machine = efficiency.hardware()
    assert machine.processor
    assert machine.cores >= 1
    assert machine.memory_bytes > 2**20


def test_threads_are_those_that_openmp_was_given(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert efficiency.threads() == 3


def test_torch_is_asked_only_where_it_is_loaded_already():
    script = "import sys; from coderet.metrics import efficiency as e; e.hardware(); e.threads(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert "coderet.metrics.efficiency" in loaded
    assert "torch" not in loaded
