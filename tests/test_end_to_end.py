"""The real pipeline on small params: every stage of dvc.yaml, run by DVC, on source code that is installed here.

Sources are made from installed packages, so nothing is fetched. The tests go on from each other's state, in order.
"""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
import yaml

from coderet.corpora.pins import digest

ROOT = Path(__file__).parents[1]
TRAINED_ON = ("networkx", "sqlalchemy", "jinja2", "pydantic")
HELD_OUT = ("fsspec", "werkzeug", "requests", "click")
RUNNING = re.compile(r"^Running stage '([^']+)'", re.MULTILINE)


def wheel_of_installed(package: str, folder: Path) -> str:
    """The pinned spec of a wheel of the sources of an installed package."""
    place = Path(importlib.util.find_spec(package).submodule_search_locations[0])
    path = folder / f"{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in sorted(place.rglob("*.py")):
            info = zipfile.ZipInfo(f"{package}/{file.relative_to(place).as_posix()}", (2020, 1, 1, 0, 0, 0))
            wheel.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return f"file:{path}#sha256={digest(path)}"


def tiny_transformer(folder: Path) -> str:
    """The pinned spec of a transformer of random weights, two layers of 32."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnop")]
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    marks = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **marks).save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(words), max_position_embeddings=64, **shape)).save_pretrained(folder)
    return f"file:{folder}#sha256={digest(folder)}"


def beir_folder(folder: Path) -> str:
    (folder / "qrels").mkdir(parents=True)
    documents = {
        "7": "def add(a, b): return a + b",
        "8": "def sub(a, b): return a - b",
        "9": "def add(a, b): return a + b",
    }
    rows = [json.dumps({"_id": each, "title": "", "text": text}) for each, text in documents.items()]
    (folder / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    rows = [json.dumps({"_id": each, "text": text}) for each, text in {"q1": "add a and b", "7": "sub a b"}.items()]
    (folder / "queries.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\t7\t1\n7\t8\t1\n")
    return f"file:{folder}#sha256={digest(folder)}"


def small_params(sources: Path) -> dict:
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    raw["sources"] = {"packages": [wheel_of_installed(each, sources) for each in TRAINED_ON]}
    held_out = [wheel_of_installed(each, sources) for each in HELD_OUT]
    pypi = {"kind": "pypi", "depth": 100, "functions_a_package": 60, "block": 50, "functions": 0, "source": held_out}
    raw["benchmarks"] = {
        "pypi": pypi,
        "mine": {"kind": "beir", "depth": 100, "source": [beir_folder(sources / "beir")]},
    }
    raw["grid"] |= {"benchmarks": ["pypi", "mine"], "answered": [], "read": []}
    raw["mining"] |= {"valid_fraction": 0.3}
    raw["retrievers"]["minilm"]["fit"]["encoder"] = {
        "kind": "pretrained",
        "source": tiny_transformer(sources / "tiny"),
        "folder": ".",
    }
    raw["retrievers"]["minilm-code"]["fit"]["encoder"] |= raw["retrievers"]["minilm"]["fit"]["encoder"]
    raw["retrievers"]["minilm-code"]["fit"]["encoder"]["max_document_tokens"] = 64
    raw["retrievers"]["minilm-code"]["fit"]["batches"] |= {"size": 32, "clusters": 8}
    raw["retrievers"]["minilm-code"]["fit"]["training"] |= {"max_steps": 3}
    raw["retrievers"]["static-code"]["fit"] |= {"vocabulary": 500, "taught": 50, "epochs": 1, "batch": 64}
    raw["fusions"]["hybrid"]["tune"] |= {"pairs": 50, "grid": {"weight": [0.05, 0.1], "saturation": [12]}}
    raw["retrievers"]["nbow"]["fit"]["encoder"] |= {"dim": 32}
    raw["retrievers"]["nbow"]["fit"]["batches"]["size"] = 64
    raw["retrievers"]["nbow"]["fit"]["training"] |= {"epochs": 2}
    raw["efficiency"] = {"batch_queries": 64, "single_queries": 5, "warm_up": 1}
    raw["scoring"]["resamples"] = 200
    raw["compare"]["permutations"] = 200
    return raw


class Project:
    """A copy of this project with params of its own."""

    def __init__(self, folder: Path, params: dict) -> None:
        self.folder = folder
        for name in ("src", "train", "eval", "data/published"):
            made = () if name == "src" else ("results", "report.*", "summary.json")
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", *made)
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        shutil.copy(ROOT / "dvc.yaml", folder)
        self.params = params
        self.seconds: dict[str, float] = {}
        self.write()
        self.call("dvc", "init", "--no-scm", "-q")
        self.call("dvc", "config", "core.analytics", "false")

    def write(self) -> None:
        (self.folder / "params.yaml").write_text(yaml.safe_dump(self.params), encoding="utf-8")

    @property
    def surroundings(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "CODERET_"))}
        places = [str(self.folder / "src"), os.environ.get("PYTHONPATH", "")]
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        quiet = {"DVC_NO_ANALYTICS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        return {**kept, **quiet, "PYTHONPATH": os.pathsep.join(places), "PATH": path}

    def call(self, *command: str, fails: bool = False) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.surroundings, capture_output=True, text=True, timeout=1200
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def repro(self, *targets: str) -> set[str]:
        """The stages that ran; how long each took is kept in `seconds`."""
        ran, last, since = [], "", 0.0
        said = []
        with self.started("dvc", "repro", *targets) as process:
            for line in process.stdout:
                said.append(line)
                if found := RUNNING.match(line):
                    ran.append(found[1])
                    last, since = found[1], time.monotonic()
                elif line.startswith(("Updating lock file", "Generating lock file")):
                    self.seconds[last] = time.monotonic() - since
        assert process.returncode == 0, "".join(said)
        return set(ran)

    def started(self, *command: str) -> subprocess.Popen:
        """A process in a group of its own, its output line by line."""
        surroundings = {**self.surroundings, "PYTHONUNBUFFERED": "1"}
        pipe, words = subprocess.PIPE, subprocess.STDOUT
        return subprocess.Popen(
            command, cwd=self.folder, env=surroundings, stdout=pipe, stderr=words, text=True, start_new_session=True
        )

    def outputs(self) -> dict[str, str]:
        """Hash of every output that is not a metrics file, by path."""
        lock = yaml.safe_load((self.folder / "dvc.lock").read_text(encoding="utf-8"))
        outs = [each for stage in lock["stages"].values() for each in stage.get("outs", [])]
        return {each["path"]: each["md5"] for each in outs if not each["path"].startswith(("eval/", "train/"))}

    def result(self, *parts: str) -> dict:
        return json.loads(self.folder.joinpath(*parts).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def params(tmp_path_factory):
    return small_params(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def project(tmp_path_factory, params):
    return Project(tmp_path_factory.mktemp("project") / "coderet", params)


def test_a_benchmark_of_another_size_than_expected_stops_the_pipeline(project):
    said = project.call("dvc", "repro", "collect@pypi", fails=True)
    found = re.search(r"set `functions: (\d+)`", said)
    assert found, said
    project.params["benchmarks"]["pypi"]["functions"] = int(found[1])
    project.write()


def test_a_misspelt_key_stops_the_stage_with_the_nearest_name(project):
    project.params["retrievers"]["bm25"]["kl"] = project.params["retrievers"]["bm25"].pop("k1")
    project.write()
    said = project.call(sys.executable, "eval/search.py", "mine", "bm25", fails=True)
    assert "retrievers.bm25.kl" in said and "Did you mean k1?" in said and "Traceback" not in said
    project.params["retrievers"]["bm25"]["k1"] = project.params["retrievers"]["bm25"].pop("kl")
    project.write()


def test_the_whole_pipeline_runs_from_nothing_to_a_report(project):
    stages = project.repro()
    grid = project.params["grid"]
    assert {f"score@{b}-{r}" for b in grid["benchmarks"] for r in grid["runs"]} | {
        "mine",
        "fit@nbow",
        "compare",
    } <= stages
    rows = project.result("eval/summary.json")["rows"]
    measured = {(row["system"], row["benchmark"], row["metric"]) for row in rows if row["source"] == "measured"}
    assert {(r, "pypi", m) for r in grid["runs"] for m in ("ndcg@10", "mrr-1000", "mrr-1000-paper")} <= measured
    assert all(0 <= row["value"] <= 1 for row in rows if row["unit"] == "fraction")
    assert (project.folder / "eval/report.html").stat().st_size > 100_000


def test_equal_documents_get_a_second_score_in_which_they_are_one(project):
    scores = project.result("eval/results/mine/bm25-code/score.json")["all"]
    assert scores["hit@1-folded"]["value"] == 1.0
    assert scores["hit@1"]["value"] == 0.5  # of the two equal functions the one with the higher id comes first


def test_a_query_is_not_dropped_because_a_document_has_its_id(project):
    census = project.result("eval/results/mine/collect.json")["datasets"]["test"]
    assert (census["queries"], census["duplicate_groups"], census["duplicate_documents"]) == (2, 1, 2)


def test_with_nothing_changed_no_stage_runs(project):
    assert project.repro() == set()


def test_logging_twice_adds_nothing(project):
    assert re.search(r"logged [1-9]\d* runs, 0 were there", project.call(sys.executable, "eval/log.py"))
    assert "logged 0 runs" in project.call(sys.executable, "eval/log.py")


def test_another_k1_reruns_the_search_of_bm25_and_what_hangs_on_it_and_nothing_else(project):
    before = project.outputs()
    project.params["retrievers"]["bm25"]["k1"] = 0.4
    project.write()
    stages = project.repro()
    searched = {"search@pypi-bm25", "search@mine-bm25"}
    assert searched <= stages <= searched | {"score@pypi-bm25", "score@mine-bm25", "compare"}
    after = project.outputs()
    assert {path for path in after if after[path] != before[path]} >= {"data/runs/pypi/bm25"}
    assert {path.split("/")[-1] for path in after if after[path] != before[path]} == {"bm25"}
    project.params["retrievers"]["bm25"]["k1"] = 1.2
    project.write()
    project.repro()
    assert project.outputs() == before


STAGES_TO_KILL = (
    "fetch@packages",
    "collect@pypi",
    "mine",
    "vocabulary",
    "fit@nbow",
    "prepare@minilm",
    "index@pypi-minilm",
    "search@pypi-nbow",
    "fuse-rrf@pypi",
    "score@pypi-nbow",
    "compare",
)


def test_stages_killed_in_the_middle_give_the_same_results_when_run_again(project, tmp_path_factory, params):
    killed = Project(tmp_path_factory.mktemp("killed") / "coderet", params)
    for stage in STAGES_TO_KILL:
        kill_in_the_middle(killed, stage, 0.25 * project.seconds[stage])  # DVC counts its own work too
        assert stage in killed.repro(stage)
    killed.repro()
    expected, found = project.outputs(), killed.outputs()
    differing = {path for path in expected if expected[path] != found.get(path)}
    lucene = {path for path in expected if path.startswith("data/indexes") and "bm25" in path and "bm25s" not in path}
    assert differing <= lucene  # Lucene names its segments anew each time
    assert not list(killed.folder.rglob("*.partial"))


def kill_in_the_middle(project: Project, stage: str, seconds: float) -> None:
    """Start a stage and kill it, all its processes, once it has been at work for so many seconds."""
    with project.started("dvc", "repro", stage) as process:
        for line in process.stdout:
            if line.startswith(f"Running stage '{stage}'"):
                time.sleep(seconds)
                break
        os.killpg(process.pid, signal.SIGKILL)
