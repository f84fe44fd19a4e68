"""The card of an encoder that was really saved, of pairs that really lie there, with made-up scores."""

import json
import zipfile
from pathlib import Path

import imagined
import pyarrow as pa
import pytest
import torch
import yaml

from coderet import params, paths, reports
from coderet.corpora import licences, pins, store
from coderet.encoders.base import DualEncoder
from coderet.encoders.static import Static, over_code_words
from coderet.encoders.tokenizer import train_bpe, train_words
from coderet.records import PAIRS, DataError
from coderet.training.vocabulary import read_texts

ROOT = Path(__file__).parents[2]
TRAINING = {"system": "learned", "pairs": 3, "best_validation_mrr": 0.5, "epochs": 2, "seconds": 12.5, "curve": []}


def pairs(*repositories: str) -> pa.Table:
    rows = [
        {"pair_id": str(i), "repository": name, "language": "python", "query": "sort a list", "code": "sorted(a)"}
        for i, name in enumerate(repositories)
    ]
    return pa.Table.from_pylist(rows, PAIRS)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> params.Params:
    """A folder with everything that a card tells of; the current one."""
    monkeypatch.chdir(tmp_path)
    imagined.write_results(Path())
    imagined.write_params(Path(), ROOT)
    store.write_pairs(paths.PAIRS / "train.parquet", [pairs("good", "good", "other")])
    store.write_pairs(paths.PAIRS / "valid.parquet", [pairs("held")])
    store.write_json(paths.training_result("learned"), TRAINING)
    tokenizer = train_words([pa.array(["sort a list"])], 10, 1)
    DualEncoder.build(tokenizer, {"kind": "nbow", "dim": 4}).save(paths.retriever("learned") / "encoder")
    raw = yaml.safe_load(Path("params.yaml").read_text())
    folder = paths.source(raw["grid"]["sources"][0])
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "good-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("good-1.0.dist-info/METADATA", "Name: good\nLicense-Expression: MIT\n")
    return params.read()


def header(card: str) -> dict:
    return yaml.safe_load(card.split("---")[1])


def test_the_card_of_the_fit_stage_names_data_params_and_ways_to_load_and_no_clock(project: params.Params):
    card = reports.card("learned", project, paths.retriever("learned") / "encoder", TRAINING)
    digest = pins.digest(paths.PAIRS / "train.parquet")
    assert f"| train.parquet | 3 | 2 | python 3 | `{digest}` |" in card
    assert "good 2, other 1" in card and "| best validation mrr | 0.5000 |" in card
    assert 'SentenceTransformer("models/retrievers/learned/encoder", trust_remote_code=True)' in card
    assert "models:/coderet-learned@champion" in card and "encoders.load(" in card
    assert "seconds" not in card and "## How well it does" not in card
    assert header(card)["library_name"] == "sentence-transformers" and "model-index" not in header(card)
    again = reports.card("learned", project, paths.retriever("learned") / "encoder", TRAINING | {"seconds": 99.0})
    assert again == card


def test_with_scores_it_stands_beside_the_other_systems_and_states_the_packages_licences(project: params.Params):
    card = reports.scored_card(project, "learned", repository="me/learned")
    assert "| benchmark | metric | queries | **learned** | interval | plain | both |" in card
    headline = imagined.read(Path()).of("learned", "functions", "score")["headline"]
    assert f"| functions | {headline} | 20 | 90.0 | 80.0–100.0 | 25.0 | 75.0 |" in card
    assert "- MIT: good" in card and "supplied the pairs: other" in card
    assert 'SentenceTransformer("me/learned"' in card and 'Path(snapshot_download("me/learned"))' in card
    assert "| seconds | 12.5 |" in card
    result = header(card)["model-index"][0]["results"][0]
    assert (result["dataset"]["name"], result["metrics"][0]["value"]) == ("functions", 0.9)


def test_only_what_is_trained_here_has_a_card(project: params.Params):
    with pytest.raises(DataError, match=r"'learnt' is not trained here; .* Did you mean learned"):
        reports.scored_card(project, "learnt")


def test_the_licence_of_the_base_is_what_its_own_card_says(project: params.Params):
    folder = paths.retriever("learned") / "encoder"
    (folder / "model").mkdir()
    (folder / "model" / "README.md").write_text("---\nlicense: apache-2.0\nlanguage: en\n---\n# A base\n")
    card = reports.card("learned", project, folder, TRAINING)
    assert header(card)["license"] == "apache-2.0" and "Base model: apache-2.0." in card


def test_the_licence_of_what_is_distilled_is_that_of_its_teacher(project: params.Params):
    raw = yaml.safe_load(Path("params.yaml").read_text())
    raw["retrievers"]["small"] = raw["retrievers"]["learned"] | {"fit": {"epochs": 2}}
    raw["grid"] |= {"distilled": ["small"], "teacher": "learned"}
    for axis in ("retrievers", "runs"):
        raw["grid"][axis] += ["small"]
    Path("params.yaml").write_text(yaml.safe_dump(raw))
    licences.state(new_folder(paths.retriever("learned") / "encoder" / "model"), "apache-2.0")
    folder = new_folder(paths.retriever("small") / "encoder")
    table = read_texts(paths.PAIRS / "train.parquet")
    pieces = train_bpe([table["query"], table["code"]], 50, 1)
    Static(over_code_words(pieces), torch.zeros(len(pieces), 2), code_words=True).save(folder)
    card = reports.card("small", params.read(), folder, TRAINING)
    assert header(card)["license"] == "apache-2.0" and "epochs: 2" in card


def new_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def test_a_folder_without_an_encoder_is_refused(project: params.Params):
    folder = paths.retriever("learned") / "encoder"
    (folder / "encoder.json").write_text(json.dumps({"format": 1}))
    with pytest.raises(DataError, match="says nothing of an encoder"):
        reports.card("learned", project, folder, TRAINING)
