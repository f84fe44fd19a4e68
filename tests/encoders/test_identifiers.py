"""Names split by a model folder's own tokenizer: the real one of MiniLM, and small ones."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from transformers import AutoTokenizer

from coderet import encoders
from coderet.corpora import sources
from coderet.encoders import identifiers
from coderet.encoders.pretrained import Pretrained
from coderet.records import DataError

NAMES = "public getLatitudeField(HTTPServer utf8Decoder) { parseXML_doc }"
WORDS = "public get Latitude Field(HTTP Server utf8 Decoder) { parse XML_doc }"
PROSE = "Returns the latitude: 12.5 degrees, élan of NASA."


def test_names_give_the_tokens_of_their_words_and_prose_its_own(minilm: Path, tmp_path: Path):
    folder = identifiers.split(minilm, tmp_path / "split")
    before, after = AutoTokenizer.from_pretrained(minilm), AutoTokenizer.from_pretrained(folder)
    assert after(NAMES)["input_ids"] == before(WORDS)["input_ids"] != before(NAMES)["input_ids"]
    assert after(PROSE)["input_ids"] == before(PROSE)["input_ids"]
    again = identifiers.split(folder, tmp_path / "again")
    assert AutoTokenizer.from_pretrained(again)(NAMES)["input_ids"] == after(NAMES)["input_ids"]


def test_what_is_saved_reads_alike_in_sentence_transformers(minilm: Path, tmp_path: Path):
    source = f"file:{minilm}#sha256={sources.digest(minilm)}"
    settings = {"kind": "pretrained", "source": source, "split_identifiers": True, "precision": "fp32"}
    (tmp_path / "saved").mkdir()
    encoder = encoders.prepare(settings, tmp_path / "work")
    encoder.save(tmp_path / "saved")
    expected = encoder.encode_documents(pa.array([NAMES], pa.large_string()))
    plain = Pretrained(minilm, precision="fp32").encode_documents(pa.array([NAMES, WORDS], pa.large_string()))
    assert np.abs(expected[0] - plain[1]).max() < 1e-5 < np.abs(expected[0] - plain[0]).max()
    script = (
        "import sys; from sentence_transformers import SentenceTransformer\n"
        f"print(*SentenceTransformer(sys.argv[1]).encode([{NAMES!r}])[0].tolist())"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "saved")]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert np.abs(np.array([float(each) for each in found.split()]) - expected[0]).max() < 1e-5


def test_training_starts_from_the_same_tokenizer(minilm: Path, tmp_path: Path):
    source = f"file:{minilm}#sha256={sources.digest(minilm)}"
    settings = {"kind": "pretrained", "source": source, "split_identifiers": True}
    encoder = encoders.trainable(settings, tmp_path / "no tokenizers", tmp_path / "work")
    texts = pa.array([NAMES, WORDS], pa.large_string())
    read = encoder.tokens(texts, "document").padded(np.arange(2))[0]
    assert (read[0] == read[1]).all()


def test_a_folder_without_a_fast_tokenizer_is_refused(minilm: Path, tmp_path: Path):
    folder = identifiers.split(minilm, tmp_path / "split")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=r"has no tokenizer\.json .*; leave split_identifiers out"):
        identifiers.split(folder, tmp_path / "other")
