"""Questions with answers: one file a benchmark, each a `Benchmark` record named in this table.

To add one, write the file and its line here; its entry in params.yaml says where its files come from. A module with
several records, made from one reader by different choices, keeps them in a mapping by name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from coderet.benchmarks.answering import Answering
from coderet.corpora import pins
from coderet.corpora.released import OFFICIAL
from coderet.records import Benchmark, DataError, Problems
from coderet.registry import load, named_arguments

BENCHMARKS = {
    "beir": "coderet.benchmarks.beir:BENCHMARK",
    "codesearchnet-all": "coderet.benchmarks.codesearchnet:BENCHMARKS",
    "codesearchnet-go": "coderet.benchmarks.codesearchnet:BENCHMARKS",
    "codesearchnet-java": "coderet.benchmarks.codesearchnet:BENCHMARKS",
    "codesearchnet-javascript": "coderet.benchmarks.codesearchnet:BENCHMARKS",
    "codesearchnet-php": "coderet.benchmarks.codesearchnet:BENCHMARKS",
    "codesearchnet-python": "coderet.benchmarks.codesearchnet:BENCHMARKS",
    "codesearchnet-ruby": "coderet.benchmarks.codesearchnet:BENCHMARKS",
    "coir-apps": "coderet.benchmarks.coir:BENCHMARKS",
    "coir-cosqa": "coderet.benchmarks.coir:BENCHMARKS",
    "coir-synthetic-text2sql": "coderet.benchmarks.coir:BENCHMARKS",
    "coir-codesearchnet": "coderet.benchmarks.coir:BENCHMARKS",
    "coir-codesearchnet-ccr": "coderet.benchmarks.coir:BENCHMARKS",
    "coir-codetrans-contest": "coderet.benchmarks.coir:BENCHMARKS",
    "coir-codetrans-dl": "coderet.benchmarks.coir:BENCHMARKS",
    "coir-stackoverflow-qa": "coderet.benchmarks.coir:BENCHMARKS",
    "coir-codefeedback-st": "coderet.benchmarks.coir:BENCHMARKS",
    "coir-codefeedback-mt": "coderet.benchmarks.coir:BENCHMARKS",
    "conala": "coderet.benchmarks.conala:BENCHMARK",
    "cosqa-csn": "coderet.benchmarks.cosqa:BENCHMARKS",
    "cosqa-csn-nodoc": "coderet.benchmarks.cosqa:BENCHMARKS",
    "csn-challenge-go": "coderet.benchmarks.codesearchnet_challenge:BENCHMARKS",
    "csn-challenge-java": "coderet.benchmarks.codesearchnet_challenge:BENCHMARKS",
    "csn-challenge-javascript": "coderet.benchmarks.codesearchnet_challenge:BENCHMARKS",
    "csn-challenge-php": "coderet.benchmarks.codesearchnet_challenge:BENCHMARKS",
    "csn-challenge-python": "coderet.benchmarks.codesearchnet_challenge:BENCHMARKS",
    "csn-challenge-ruby": "coderet.benchmarks.codesearchnet_challenge:BENCHMARKS",
    "csn-judged-java": "coderet.benchmarks.codesearchnet_challenge:BENCHMARKS",
    "csn-judged-javascript": "coderet.benchmarks.codesearchnet_challenge:BENCHMARKS",
    "csn-judged-python": "coderet.benchmarks.codesearchnet_challenge:BENCHMARKS",
    "csn-judged-ruby": "coderet.benchmarks.codesearchnet_challenge:BENCHMARKS",
    "csn-pairs-go": "coderet.benchmarks.csn_pairs:BENCHMARKS",
    "csn-pairs-java": "coderet.benchmarks.csn_pairs:BENCHMARKS",
    "csn-pairs-javascript": "coderet.benchmarks.csn_pairs:BENCHMARKS",
    "csn-pairs-php": "coderet.benchmarks.csn_pairs:BENCHMARKS",
    "csn-pairs-python": "coderet.benchmarks.csn_pairs:BENCHMARKS",
    "csn-pairs-ruby": "coderet.benchmarks.csn_pairs:BENCHMARKS",
    "docprompting": "coderet.benchmarks.docprompting:BENCHMARKS",
    "docprompting-train": "coderet.benchmarks.docprompting:BENCHMARKS",
    "humaneval": "coderet.benchmarks.humaneval:BENCHMARKS",
    "humaneval-paper": "coderet.benchmarks.humaneval:BENCHMARKS",
    "mteb-apps": "coderet.benchmarks.coir:BENCHMARKS",
    "mteb-cosqa": "coderet.benchmarks.coir:BENCHMARKS",
    "mteb-synthetic-text2sql": "coderet.benchmarks.coir:BENCHMARKS",
    "mteb-codesearchnet": "coderet.benchmarks.coir:BENCHMARKS",
    "mteb-codesearchnet-ccr": "coderet.benchmarks.coir:BENCHMARKS",
    "mteb-codetrans-contest": "coderet.benchmarks.coir:BENCHMARKS",
    "mteb-codetrans-dl": "coderet.benchmarks.coir:BENCHMARKS",
    "mteb-stackoverflow-qa": "coderet.benchmarks.coir:BENCHMARKS",
    "mteb-codefeedback-st": "coderet.benchmarks.coir:BENCHMARKS",
    "mteb-codefeedback-mt": "coderet.benchmarks.coir:BENCHMARKS",
    "csn-python": "coderet.benchmarks.csn_python:BENCHMARKS",
    "csn-python-docstring": "coderet.benchmarks.csn_python:BENCHMARKS",
    "csn-python-paper": "coderet.benchmarks.csn_python:BENCHMARKS",
    "ds1000": "coderet.benchmarks.ds1000:BENCHMARKS",
    "ds1000-paper": "coderet.benchmarks.ds1000:BENCHMARKS",
    "ds1000-devdocs": "coderet.benchmarks.ds1000:BENCHMARKS",
    "ds1000-devdocs-paper": "coderet.benchmarks.ds1000:BENCHMARKS",
    "ds1000-devdocs-pages": "coderet.benchmarks.ds1000:BENCHMARKS",
    "ds1000-devdocs-pages-paper": "coderet.benchmarks.ds1000:BENCHMARKS",
    "livecodebench": "coderet.benchmarks.livecodebench:BENCHMARKS",
    "livecodebench-paper": "coderet.benchmarks.livecodebench:BENCHMARKS",
    "livecodebench-873": "coderet.benchmarks.livecodebench:BENCHMARKS",
    "mbpp": "coderet.benchmarks.mbpp:BENCHMARKS",
    "mbpp-974": "coderet.benchmarks.mbpp:BENCHMARKS",
    "mbpp-paper": "coderet.benchmarks.mbpp:BENCHMARKS",
    "mbpp-sanitized": "coderet.benchmarks.mbpp:BENCHMARKS",
    "needles-pypi": "coderet.benchmarks.needles_pypi:PYPI",
    "needles-npm": "coderet.benchmarks.needles_pypi:NPM",
    "odex": "coderet.benchmarks.odex:BENCHMARKS",
    "odex-devdocs": "coderet.benchmarks.odex:BENCHMARKS",
    "odex-devdocs-pages": "coderet.benchmarks.odex:BENCHMARKS",
    "odex-paper": "coderet.benchmarks.odex:BENCHMARKS",
    "odex-devdocs-paper": "coderet.benchmarks.odex:BENCHMARKS",
    "odex-es": "coderet.benchmarks.odex:BENCHMARKS",
    "odex-es-devdocs": "coderet.benchmarks.odex:BENCHMARKS",
    "odex-ja": "coderet.benchmarks.odex:BENCHMARKS",
    "odex-ja-devdocs": "coderet.benchmarks.odex:BENCHMARKS",
    "odex-ru": "coderet.benchmarks.odex:BENCHMARKS",
    "odex-ru-devdocs": "coderet.benchmarks.odex:BENCHMARKS",
    "open": "coderet.benchmarks.open_retrieval:BENCHMARKS",
    "open-unjudged": "coderet.benchmarks.open_retrieval:BENCHMARKS",
    "repoeval": "coderet.benchmarks.repoeval:BENCHMARKS",
    "repoeval-paper": "coderet.benchmarks.repoeval:BENCHMARKS",
    "repoeval-5": "coderet.benchmarks.repoeval:BENCHMARKS",
    "repoeval-5-paper": "coderet.benchmarks.repoeval:BENCHMARKS",
    "repoeval-line": "coderet.benchmarks.repoeval:BENCHMARKS",
    "repoeval-api": "coderet.benchmarks.repoeval:BENCHMARKS",
    "repoqa": "coderet.benchmarks.repoqa:BENCHMARKS",
    "repoqa-2024": "coderet.benchmarks.repoqa:BENCHMARKS",
    "swebench-lite": "coderet.benchmarks.swebench:BENCHMARKS",
    "swebench-lite-51": "coderet.benchmarks.swebench:BENCHMARKS",
    "pypi": "coderet.benchmarks.pypi:BENCHMARK",
    "staqc": "coderet.benchmarks.staqc:BENCHMARK",
}


def benchmark(kind: str, where: str = "") -> Benchmark:
    """The benchmark of that kind; UnknownName offers the nearest."""
    found: Benchmark | Mapping[str, Benchmark] = load(BENCHMARKS, kind, "benchmarks", where)
    return found[kind] if isinstance(found, Mapping) else found


def answering(facts: Benchmark, problems: Problems) -> Answering:
    """How the problems of a benchmark are asked, read and judged; DataError if nothing says so."""
    place = problems.answering or facts.answering
    if not place:
        raise DataError(f"{problems.name} poses problems, and neither they nor {facts.name} say how they are answered")
    found: Answering = load({facts.name: place}, facts.name, "answerings")
    return found


def packages(facts: Benchmark, source: Sequence[str]) -> list[str]:
    """The packages that a benchmark is made of, by its source in params."""
    return list(facts.packages) if tuple(source) == (OFFICIAL,) else [pins.parse(pin).name for pin in source]


def choices(facts: Benchmark, settings: Mapping[str, Any]) -> dict[str, str]:
    """What a benchmark decides and what its settings in params do, by default where they say nothing; for results."""
    given = {name: settings.get(name, each.default) for name, each in named_arguments(facts.collect).items()}
    told = {
        name: ", ".join(map(str, each)) if isinstance(each, list | tuple) else str(each) for name, each in given.items()
    }
    return {**facts.choices, **{f"setting {name}": value for name, value in told.items() if value}}
