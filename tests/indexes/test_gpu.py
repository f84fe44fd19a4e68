import faiss
import numpy as np
import pytest
from imagined_vectors import build, clustered, kind_of

from coderet.indexes import gpu
from coderet.records import DataError

ON_GPU = ("flat", "ivf", "ivf-pq")
built_for_gpu = hasattr(faiss, "StandardGpuResources")


@pytest.mark.skipif(built_for_gpu, reason="this FAISS was built for graphics processors")
@pytest.mark.parametrize("kind", ON_GPU)
def test_a_faiss_built_without_graphics_processors_says_so_and_what_to_do(kind, tmp_path):
    build(tmp_path, kind, clustered(50))
    with pytest.raises(DataError, match=r"built without graphics processors; install faiss-gpu .* or set device: cpu"):
        kind_of(kind).load(tmp_path, device="gpu")


@pytest.mark.skipif(not built_for_gpu or not faiss.get_num_gpus(), reason="no graphics processor, or no FAISS for it")
@pytest.mark.parametrize("kind", ON_GPU)
def test_a_graphics_processor_finds_the_same_hits_with_the_same_scores(kind, tmp_path):
    settings = {"pieces": 8} if kind == "ivf-pq" else {}
    build(tmp_path, kind, clustered(12_000, 32), **settings)
    queries = clustered(40, 32, seed=1)
    on_cpu, on_gpu = (kind_of(kind).load(tmp_path, device=device).search(queries, 10, 16) for device in ("cpu", "gpu"))
    assert np.array_equal(on_gpu[0], on_cpu[0]) and np.array_equal(on_gpu[1], on_cpu[1])


@pytest.fixture
def imagined_gpu(monkeypatch):
    """FAISS's interface to a graphics processor, answered by the processor: what is ours around it is tested."""
    monkeypatch.setattr(faiss, "StandardGpuResources", lambda: "resources", raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    monkeypatch.setattr(faiss, "GpuIndexFlatIP", lambda _, dim: faiss.IndexFlatIP(dim), raising=False)
    monkeypatch.setattr(faiss, "index_cpu_to_gpu", lambda _, place, index: index, raising=False)


@pytest.mark.parametrize("kind", ON_GPU)
def test_hits_that_a_graphics_processor_chooses_are_scored_here(imagined_gpu, kind, tmp_path):
    build(tmp_path, kind, clustered(300))
    queries = clustered(20, seed=1)
    on_cpu, on_gpu = (kind_of(kind).load(tmp_path, device=device).search(queries, 10, 16) for device in ("cpu", "gpu"))
    assert np.array_equal(on_gpu[0], on_cpu[0]) and np.array_equal(on_gpu[1], on_cpu[1])


@pytest.mark.parametrize("kind", ON_GPU)
def test_no_more_is_asked_of_a_graphics_processor_than_it_can_find(imagined_gpu, monkeypatch, kind, tmp_path):
    monkeypatch.setattr(gpu, "MOST", 40)
    build(tmp_path, kind, clustered(300))
    index = kind_of(kind).load(tmp_path, device="gpu")
    assert index.search(clustered(2, seed=1), 40, 8)[0].min() >= 0
    with pytest.raises(DataError, match="at most 40 hits a query on a graphics processor, 41 are asked for; use cpu"):
        index.search(clustered(2, seed=1), 41, 8)


def test_a_machine_without_one_and_an_index_that_it_cannot_take_are_errors(imagined_gpu, monkeypatch, tmp_path):
    build(tmp_path, "ivf", clustered(50))

    def refuse(*_):
        raise RuntimeError("not implemented for this code")

    monkeypatch.setattr(faiss, "index_cpu_to_gpu", refuse)
    with pytest.raises(DataError, match=r"cannot put this index .*not implemented for this code.*; set device: cpu"):
        kind_of("ivf").load(tmp_path, device="gpu")
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
    with pytest.raises(DataError, match="sees no graphics processor here"):
        kind_of("ivf").load(tmp_path, device="gpu")
