import json

import pytest

from coderet.records import DataError
from coderet.retrievers import manifest


def test_an_index_of_its_corpus_and_settings_is_accepted(corpus_of, tmp_path):
    corpus = corpus_of({"x": "a"})
    manifest.write(tmp_path, corpus, {"text_fields": ["text"]})
    manifest.check(tmp_path, corpus_of({"x": "a"}), {"text_fields": ["text"]})


def test_an_index_of_another_number_of_documents_says_both_numbers_and_what_to_run(corpus_of, tmp_path):
    folder = tmp_path / "pypi" / "nbow" / "pool"
    folder.mkdir(parents=True)
    manifest.write(folder, corpus_of({"x": "a"}), {})
    wanted = "pool has 1 vectors but its corpus 2 documents; run: dvc repro index@pypi-nbow$"
    with pytest.raises(DataError, match=wanted):
        manifest.check(folder, corpus_of({"x": "a", "y": "b"}), {}, holds="vectors")


def test_an_index_of_as_many_other_documents_is_refused(corpus_of, tmp_path):
    manifest.write(tmp_path, corpus_of({"x": "a"}), {})
    with pytest.raises(DataError, match="was made from other documents than those of corpus corpus"):
        manifest.check(tmp_path, corpus_of({"x": "b"}), {})


def test_an_index_made_with_other_settings_is_refused(corpus_of, tmp_path):
    corpus = corpus_of({"x": "a"})
    manifest.write(tmp_path, corpus, {"analyzer": "whitespace", "text_fields": ["text"]})
    with pytest.raises(DataError, match="was made with analyzer 'whitespace', wanted 'code-words'; run: dvc repro"):
        manifest.check(tmp_path, corpus, {"analyzer": "code-words", "text_fields": ["text"]})
    with pytest.raises(DataError, match="was made with dim None, wanted 8"):
        manifest.check(tmp_path, corpus, {"analyzer": "whitespace", "text_fields": ["text"], "dim": 8})


def test_a_folder_without_a_whole_index_is_refused(corpus_of, tmp_path):
    corpus = corpus_of({"x": "a"})
    with pytest.raises(DataError, match="holds no index"):
        manifest.check(tmp_path, corpus, {})
    manifest.write(tmp_path, corpus, {})
    file = tmp_path / "index.json"
    whole = file.read_text()
    file.write_text(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="holds no index"):
        manifest.check(tmp_path, corpus, {})
    file.write_text(json.dumps({**json.loads(whole), "format": 99}))
    with pytest.raises(DataError, match="is of format 99, wanted 2"):
        manifest.check(tmp_path, corpus, {})


def test_a_file_that_is_missing_or_of_another_length_is_named(corpus_of, tmp_path):
    corpus = corpus_of({"x": "a"})
    (tmp_path / "vectors.npy").write_bytes(b"1234")
    manifest.write(tmp_path, corpus, {})
    (tmp_path / "vectors.npy").write_bytes(b"12")
    with pytest.raises(DataError, match=r"vectors.npy: found 2 bytes, wanted 4 bytes; run: dvc repro"):
        manifest.check(tmp_path, corpus, {})
    (tmp_path / "vectors.npy").unlink()
    with pytest.raises(DataError, match=r"vectors.npy: found no such file, wanted 4 bytes"):
        manifest.check(tmp_path, corpus, {})


def test_a_manifest_that_is_no_mapping_is_refused(corpus_of, tmp_path):
    (tmp_path / "index.json").write_text("[]")
    with pytest.raises(DataError, match="is of format None"):
        manifest.check(tmp_path, corpus_of({"x": "a"}), {})
