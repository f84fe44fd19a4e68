"""CoIR's ten tasks through the stages, held against mteb's own evaluation and against the tool's rules written out."""

import contextlib
import dataclasses
import io
import runpy
from pathlib import Path

import coir_folders
import numpy as np
import pytest
import yaml

from coderet import paths
from coderet.benchmarks import coir
from coderet.corpora import sources, store
from coderet.records import DataError

ROOT = Path(__file__).parents[2]
TASKS = coir_folders.tasks()
DEPTH, CUTOFFS = 1000, [1, 3, 5, 10, 20, 100, 1000]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A sentence-transformers folder: a two-layer BERT with random weights that knows the imagined words."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordLevel
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *dict.fromkeys(coir_folders.WORDS)]
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.2,
    )
    BertModel(config).save_pretrained(folder / "bert")
    fast = Tokenizer(WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    fast.normalizer = normalizers.Lowercase()
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=fast, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder / "bert")
    parts = [modules.Transformer(str(folder / "bert"), max_seq_length=64), modules.Pooling(32, "mean")]
    whole = SentenceTransformer(modules=[*parts, modules.Normalize()], device="cpu")
    whole.save(str(folder / "whole"))
    return folder / "whole"


@pytest.fixture(scope="module")
def encoder(model):
    """The same model as sentence-transformers computes it."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(model), device="cpu")


@pytest.fixture(scope="module")
def scored(model, tmp_path_factory):
    """The folder in which every stage has run for each task by each protocol, with the model in fp32."""
    root = tmp_path_factory.mktemp("scored")
    hub = root / "hub"
    names = {}
    for choices in coir.PROTOCOLS.values():
        for name, task in TASKS.items():
            coir_folders.write(hub, task, choices)
            names[f"{choices.family}-{name}"] = {"depth": DEPTH, "cutoffs": CUTOFFS}
    write_params(root, model, names)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()):
        patch.chdir(root)
        patch.setattr(coir, "BENCHMARKS", coir.benchmarks(TASKS))
        stage("train/prepare", "tiny")
        for name in names:
            paths.raw(name).parent.mkdir(parents=True, exist_ok=True)
            paths.raw(name).symlink_to(hub)
            stage("eval/gather", name)
            stage("eval/collect", name)
            for each in ("index", "search", "score"):
                stage(f"eval/{each}", name, "tiny")
    return root


def write_params(root, model, names):
    raw = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    raw["benchmarks"] = {name: {"kind": name, "source": ["official"], **settings} for name, settings in names.items()}
    encoder = {"kind": "pretrained", "precision": "fp32", "source": f"file:{model}#sha256={sources.digest(model)}"}
    raw["retrievers"] = {
        "tiny": {
            "kind": "dense",
            "fit": {"encoder": encoder},
            "index": {"kind": "flat", "similarity": "cosine", "text_fields": ["title", "text"]},
        }
    }
    raw["retrievers"]["tiny"]["batch"] = 256
    raw["fusions"], raw["compare"]["baseline"] = {}, "tiny"
    raw["efficiency"] |= {"single_queries": 1, "warm_up": 0}
    raw["scoring"]["resamples"] = 10
    raw["grid"] |= {"benchmarks": list(names), "answered": [], "read": [], "trained": []}
    raw["grid"] |= {"untrained": ["tiny"], "retrievers": ["tiny"]}
    raw["grid"] |= {"distilled": [], "teacher": "", "fusions": [], "tuned": [], "runs": ["tiny"]}
    (root / "params.yaml").write_text(yaml.safe_dump(raw), encoding="utf-8")


def stage(script, *arguments):
    runpy.run_path(str(ROOT / f"{script}.py"))["main"](*arguments)


def score(root, name):
    return store.read_json(root / paths.result(name, "tiny", "score"))


@pytest.mark.parametrize("name", TASKS)
def test_mtebs_choices_give_the_scores_of_mteb(scored, encoder, name, tmp_path, monkeypatch):
    pytest.importorskip("mteb", reason="the extra mteb is not installed")
    theirs = evaluated_by_mteb(TASKS[name], scored / "hub", encoder, tmp_path, monkeypatch)
    ours = score(scored, f"mteb-{name}")
    means = {}
    for dataset, part in ours["datasets"].items():
        subset = dataset if TASKS[name].languages else "default"
        for metric, figure in part["metrics"].items():
            if not metric.endswith(("-folded", *coir.TIES)):  # mteb has no name for these
                assert figure["value"] == pytest.approx(theirs[subset][in_mteb(metric)], abs=1e-4), (dataset, metric)
                means.setdefault(metric, []).append(theirs[subset][in_mteb(metric)])
    assert len(means) == 6 * len(CUTOFFS)
    for metric, values in means.items():
        assert ours["all"][metric]["value"] == pytest.approx(np.mean(values), abs=1e-4)
    assert 0.3 < ours["all"]["ndcg@10"]["value"] < 0.95  # neither chance nor perfection would tell much


def evaluated_by_mteb(task, hub, encoder, tmp_path, monkeypatch):
    """mteb's scores by subset: its own task class, pointed at the local data, with the same model."""
    import datasets
    import mteb
    from mteb.models import SentenceTransformerEncoderWrapper

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    subsets = {"hf_subsets": list(task.languages)} if task.languages else {}
    theirs = mteb.get_task(task.mteb_name, **subsets)
    place = {"path": str(hub / task.mteb_place), "revision": task.revision}
    theirs.metadata = theirs.metadata.model_copy(update={"dataset": place})
    wrapped = SentenceTransformerEncoderWrapper(encoder)
    return theirs.evaluate(wrapped, "test", encode_kwargs={"batch_size": 64, "show_progress_bar": False})


def in_mteb(metric):
    kind, _, cutoff = metric.partition("@")
    return f"{'hit_rate' if kind == 'hit' else kind}_at_{cutoff}"


@pytest.mark.parametrize("name", TASKS)
def test_coir_2024_gives_the_scores_of_the_tools_rules(scored, encoder, name):
    ours = score(scored, f"coir-{name}")
    task = TASKS[name]
    means = {}
    for place, dataset in enumerate(task.sizes):
        theirs = scored_slowly(*coir_folders.rows(len(name) + 5 * place), encoder)
        for metric, value in theirs.items():
            assert ours["datasets"][dataset]["metrics"][metric]["value"] == pytest.approx(value, abs=1e-5), metric
            means.setdefault(metric, []).append(value)
    for metric, values in means.items():
        assert ours["all"][metric]["value"] == pytest.approx(np.mean(values), abs=1e-5)


def scored_slowly(queries, documents, judged, encoder):
    """The tool's search and metrics, one pair at a time: text alone, cosine, own ids out, 1,000 hits, trec_eval."""
    import pytrec_eval

    qrels = {query: {document: 1} for query, document in judged["test"]}
    rows = [*(each for each in queries if each["_id"] in qrels), *documents]
    vectors = list(zip((each["_id"] for each in rows), encoder.encode([each["text"] for each in rows]), strict=True))
    run = {}
    for query, vector in vectors[: len(qrels)]:
        cosines = {
            document: float(np.dot(vector, other) / np.linalg.norm(vector) / np.linalg.norm(other))
            for document, other in vectors[len(qrels) :]
            if document != query
        }
        run[query] = dict(sorted(cosines.items(), key=lambda each: -each[1])[:1000])
    cutoffs = [each for each in CUTOFFS if each != 20]
    measures = {"ndcg": "ndcg_cut", "map": "map_cut", "recall": "recall", "precision": "P"}
    wanted = {f"{theirs}.{','.join(map(str, cutoffs))}" for theirs in measures.values()}
    values = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run).values()
    return {
        f"{ours}@{cutoff}": round(sum(each[f"{theirs}_{cutoff}"] for each in values) / len(values), 5)
        for ours, theirs in measures.items()
        for cutoff in cutoffs
    }


def test_the_protocols_differ_where_titles_and_own_ids_are(scored):
    values = {family: score(scored, f"{family}-apps")["all"]["ndcg@10"]["value"] for family in ("coir", "mteb")}
    assert values["coir"] != values["mteb"]


def test_a_document_with_the_querys_id_is_searched_past_and_the_others_stay_hits(scored):
    """Case D5."""
    first = {}
    for family in ("coir", "mteb"):
        corpus = store.read_corpus(scored / paths.benchmark(f"{family}-apps"), "apps")
        run = store.read_run(scored / paths.runs(f"{family}-apps", "tiny") / "apps.arrow", corpus)
        row = run.rows[run.query_ids.to_pylist().index("q14")]
        first[family] = [corpus.ids[int(each)].as_py() for each in row if each >= 0]
    assert first["mteb"][0] == "q14" and len(first["mteb"]) == 21
    assert sorted(first["coir"]) == sorted(first["mteb"][1:])


def test_equal_documents_are_scored_strictly_and_as_one_item(scored):
    """Case D3: the copy in the train part has the greater id and takes the answer's place."""
    for family in ("coir", "mteb"):
        ids, values = store.read_scorecard(scored / paths.scores(f"{family}-apps", "tiny") / "apps.arrow")
        place = ids.to_pylist().index("q15")
        assert values["mrr@10" if family == "mteb" else "map@10"][place] < values["map@10-folded"][place]


def test_a_task_by_language_has_a_figure_a_language_and_their_plain_mean(scored):
    told = score(scored, "coir-codesearchnet")
    by_language = [told["datasets"][each]["metrics"]["ndcg@10"]["value"] for each in coir_folders.LANGUAGES]
    assert told["mean"] == "datasets" and len(set(by_language)) == 2
    assert told["all"]["ndcg@10"]["value"] == pytest.approx(sum(by_language) / 2)


def test_every_result_says_by_which_choices_it_was_made(scored):
    for choices in coir.PROTOCOLS.values():
        for name in TASKS:
            told = score(scored, f"{choices.family}-{name}")["choices"]
            assert told["task"] == name and told["protocol"] == choices.name
            assert dataclasses.asdict(choices)["name"] in told.values()
            assert told["setting cutoffs"] == ", ".join(map(str, CUTOFFS))  # what params set


def test_mteb_reads_back_what_is_exported_of_its_protocol(scored, monkeypatch, capsys):
    mteb = pytest.importorskip("mteb", reason="the extra mteb is not installed")
    monkeypatch.chdir(scored)
    monkeypatch.setattr(coir, "BENCHMARKS", coir.benchmarks(TASKS))
    for name in ("apps", "codesearchnet"):
        stage("eval/export_mteb", f"mteb-{name}", "tiny")
        path = Path(capsys.readouterr().out.strip())
        assert path == Path("eval/exports/mteb/tiny", f"{TASKS[name].mteb_name}.json")
        result = mteb.TaskResult.from_disk(path)
        assert result.dataset_revision == TASKS[name].revision and result.evaluation_time > 0
        assert result.get_score() == pytest.approx(score(scored, f"mteb-{name}")["all"]["ndcg@10"]["value"], abs=1e-6)
    with pytest.raises(DataError, match="the result of tiny on coir-apps is by coir-2024; only benchmarks of mteb's"):
        stage("eval/export_mteb", "coir-apps", "tiny")


def test_two_results_are_contrasted_choice_by_choice(scored, monkeypatch, capsys):
    monkeypatch.chdir(scored)
    stage("eval/contrast", *(str(paths.result(f"{family}-apps", "tiny", "score")) for family in ("coir", "mteb")))
    told = capsys.readouterr()
    assert "own-id documents: removed | kept" in told.out.splitlines()
    assert told.out.splitlines()[-1].startswith("ndcg@10: 0.")
    assert told.err.startswith("warning: their protocols differ")
