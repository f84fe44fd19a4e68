"""Where each artifact lies, seen from the folder of params.yaml. dvc.yaml is tested against this page."""

from pathlib import Path

DATA = Path("data")
MODELS = Path("models")
RESULTS = Path("eval/results")
EXPORTS = Path("eval/exports")
CARDS = Path("eval/cards")
TRAIN_RESULTS = Path("train/results")
WORK = Path(".work")
RUNS = Path("runs")
DEPTH_PAGE = WORK / "log" / "needles-by-depth.html"

REPORT_MARKDOWN = Path("eval/report.md")
REPORT_HTML = Path("eval/report.html")
SUMMARY = Path("eval/summary.json")
MINING_REPORT = TRAIN_RESULTS / "mine.json"
PAIRS = DATA / "pairs"
EXAMPLES = PAIRS / "examples.parquet"
TOKENIZERS = MODELS / "tokenizers"
BENCHMARKS = DATA / "benchmarks"


def source(name: str) -> Path:
    """The pinned packages of a source, as they were fetched; apart from benchmarks, so that `mine` depends on all."""
    return DATA / "raw" / "sources" / name


def raw(benchmark: str) -> Path:
    """The files of a benchmark, as they were fetched or put there."""
    return DATA / "raw" / benchmark


def published(code: str) -> Path:
    """The papers' figures, which lie with the code."""
    return Path(code) / "data" / "published"


def benchmark(name: str) -> Path:
    """corpora/, queries/, qrels/ and problems/ of a benchmark."""
    return BENCHMARKS / name


def retriever(name: str) -> Path:
    """A fitted retriever."""
    return MODELS / "retrievers" / name


def reranker(name: str) -> Path:
    """A prepared reranker."""
    return MODELS / "rerankers" / name


def generator(name: str) -> Path:
    """A prepared generator."""
    return MODELS / "generators" / name


def negatives(name: str) -> Path:
    """The hard negatives of the training pairs that a retriever mined, by its name."""
    return DATA / "negatives" / f"{name}.parquet"


def fusion(name: str) -> Path:
    """The settings of a fusion that were chosen on validation pairs, and what they were chosen from."""
    return MODELS / "fusions" / f"{name}.json"


def index(benchmark: str, retriever: str) -> Path:
    """The indexes of a benchmark's corpora, a folder each."""
    return DATA / "indexes" / benchmark / retriever


def runs(benchmark: str, run: str) -> Path:
    """The runs of a benchmark's datasets, a file each."""
    return DATA / "runs" / benchmark / run


def completions(benchmark: str, answerer: str) -> Path:
    """The prompts and completions of a benchmark's problems, two files a set."""
    return DATA / "completions" / benchmark / answerer


def scores(benchmark: str, run: str) -> Path:
    """The scorecards of a benchmark's datasets, a file each; of what answers its problems, the judged samples too."""
    return DATA / "scores" / benchmark / run


def result(benchmark: str, name: str, stage: str | None = None) -> Path:
    """A small metrics file: of a system's stage on a benchmark, or of the benchmark itself."""
    return RESULTS / benchmark / f"{name}.json" if stage is None else RESULTS / benchmark / name / f"{stage}.json"


def exported(form: str, *parts: str) -> Path:
    """What is written in another tool's form."""
    return Path(EXPORTS, form, *parts)


def run(name: str) -> Path:
    """The folder of a training of a user's own, which is like a preset's."""
    return RUNS / name


def card(retriever: str) -> Path:
    """The model card of a trained retriever, scores included."""
    return CARDS / f"{retriever}.md"


def training_result(retriever: str) -> Path:
    """What training cost and how it went."""
    return TRAIN_RESULTS / f"{retriever}.json"


def negatives_result(name: str) -> Path:
    """What mining hard negatives cost and what it cut."""
    return TRAIN_RESULTS / "negatives" / f"{name}.json"
