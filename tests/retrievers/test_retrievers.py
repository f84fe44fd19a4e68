"""The folder of a retriever, and the settings that params.yaml gives it."""

import json

import numpy as np
import pyarrow as pa
import pytest

from coderet import retrievers
from coderet.records import DataError, Run
from coderet.registry import UnknownName
from coderet.retrievers.bm25s import Bm25s
from coderet.retrievers.lucene import Lucene


@pytest.fixture
def folder(tmp_path):
    retrievers.save(retrievers.create("lucene"), "lucene", tmp_path / "bm25")
    return tmp_path / "bm25"


def test_a_saved_retriever_loads_from_its_folder_with_the_settings_of_both_stages(folder):
    spec = {"kind": "lucene", "index": {"analyzer": "code-words", "text_fields": ["title", "text"]}, "k1": 0.9}
    loaded = retrievers.load(folder, spec)
    assert loaded == Lucene(analyzer="code-words", text_fields=("title", "text"), k1=0.9, b=0.75)


def test_the_folder_says_its_kind_and_format(folder):
    assert json.loads((folder / "retriever.json").read_text()) == {"kind": "lucene", "format": 1}


def test_settings_are_those_an_index_depends_on():
    assert Lucene().settings == {"analyzer": "whitespace", "text_fields": ["text"]}
    assert Bm25s().settings == {"analyzer": "whitespace", "text_fields": ["text"], "k1": 1.2, "b": 0.75}


def test_a_misspelt_setting_is_refused_with_its_place_and_the_nearest(folder):
    with pytest.raises(UnknownName, match=r"^retrievers.bm25.index.analyser is not a setting.*Did you mean analyzer\?"):
        retrievers.load(folder, {"kind": "lucene", "index": {"analyser": "english"}}, "retrievers.bm25")
    place = f"params.yaml: retrievers.{folder.name}.index.analyser is not a setting"
    with pytest.raises(UnknownName, match=place):
        retrievers.load(folder, {"kind": "lucene", "index": {"analyser": "english"}})
    with pytest.raises(UnknownName, match=r"^retrievers.bm25.kk1 is not a setting.*Did you mean k1\?"):
        retrievers.load(folder, {"kind": "lucene", "index": {}, "kk1": 1}, "retrievers.bm25")


def test_a_setting_in_the_wrong_place_is_refused_with_the_right_one(folder, tmp_path):
    with pytest.raises(
        UnknownName, match=r"retrievers.x.index.k1 moves only the search: it belongs to retrievers.x.k1"
    ):
        retrievers.load(folder, {"kind": "lucene", "index": {"k1": 1}}, "retrievers.x")
    with pytest.raises(UnknownName, match=r"retrievers.x.k1 changes the index: it belongs to retrievers.x.index.k1"):
        retrievers.load(folder, {"kind": "bm25s", "index": {}, "k1": 1}, "retrievers.x")


def test_an_unknown_kind_is_refused_with_the_known_ones(folder):
    with pytest.raises(UnknownName, match=r"retrievers.x.kind is 'lucen'; known retrievers: .* Did you mean lucene\?"):
        retrievers.load(folder, {"kind": "lucen", "index": {}}, "retrievers.x")


def test_a_folder_of_another_kind_or_of_none_is_refused(folder, tmp_path):
    with pytest.raises(DataError, match="holds a retriever of kind 'lucene', format 1; wanted 'bm25s', format 1"):
        retrievers.load(folder, {"kind": "bm25s", "index": {}})
    with pytest.raises(DataError, match="holds no retriever"):
        retrievers.load(tmp_path / "nothing", {"kind": "lucene", "index": {}})


def test_every_kind_of_the_table_says_which_settings_move_only_the_search():
    for kind in ("lucene", "lucene-fields", "bm25s"):
        assert isinstance(retrievers.create(kind).SEARCH, tuple)


def test_a_fusion_is_made_with_its_settings_as_often_as_asked_for(corpus_of):
    corpus = corpus_of({"x": "", "y": ""})
    run = Run.of(corpus, pa.array(["q"], pa.large_string()), np.array([[1, 0]]), np.array([[2.0, 1.0]]))
    for _ in range(2):
        fuse = retrievers.fuser("rrf", {"k": 0, "weights": [1, 3]})
        assert fuse([run, run]).scores.tolist() == [[4.0, 2.0]]


def test_a_misspelt_kind_or_setting_of_a_fusion_is_refused():
    with pytest.raises(
        UnknownName, match=r"^fusions.rrf.kind is 'rff'; known fusions: rrf, weighted. Did you mean rrf\?"
    ):
        retrievers.fuser("rff", {}, "fusions.rrf")
    with pytest.raises(UnknownName, match=r"^fusions.rrf.wieghts is not a setting.*Did you mean weights\?"):
        retrievers.fuser("rrf", {"wieghts": [1]}, "fusions.rrf")
