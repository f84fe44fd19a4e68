"""docs/benchmarks.md: every benchmark with its source, counts, choices and known defects, from the records.

`make docs` writes it; a test holds the page that lies in git against this.
"""

from collections.abc import Mapping

from coderet.records import Benchmark
from coderet.registry import named_arguments

_HEAD = """# Benchmarks

Written by `make docs` from the records in `src/coderet/benchmarks`: edit those, not this page. A benchmark is run by
naming it in `grid.benchmarks` of `params.yaml`, which has an entry for each. Its files are looked for in
`data/raw/<benchmark>/`, then in the folder that `CODERET_DATA` names, then in their official place;
`make data BENCHMARK=<name>` says what was found where and what is missing. Files are held against the SHA-256 of their
unpacked content; one that has another number of queries or documents than its line of the table says is refused.
"""


def catalogue(benchmarks: Mapping[str, Benchmark]) -> str:
    """The page, benchmarks in their order."""
    table = ["| benchmark | queries | documents | headline | mean over | licence |", "|---|---|---|---|---|---|"]
    table += [
        f"| [{name}](#{name}) | {each.queries or 'yours'} | {each.documents or 'yours'} | {each.headline or 'none'} "
        f"| {each.mean} | {each.licence or 'unknown'} |"
        for name, each in benchmarks.items()
    ]
    parts = [_HEAD, "\n".join(table) + "\n", *(_entry(name, each) for name, each in benchmarks.items())]
    return "\n".join(parts)


def _entry(name: str, benchmark: Benchmark) -> str:
    lines = [f"## {name}\n"]
    if benchmark.source:
        lines.append(f"{_capital(benchmark.source)}.\n")
    lines.append(f"- Metrics: {', '.join(benchmark.metrics) or 'none: questions only'}.")
    lines += [f"- {_capital(what)}: {choice}." for what, choice in benchmark.choices.items()]
    lines += [f"- Known defect: {_sentence(defect)}" for defect in benchmark.defects]
    published = benchmark.published
    if published:
        differs = f" {_sentence(published.differs)}" if published.differs else ""
        lines.append(f"- Published figures: `{published.page}`, column {published.column}.{differs}")
    lines += [_file(each.name, each.place, each.how) for each in benchmark.files]
    if benchmark.chosen_files:
        chosen = list(named_arguments(benchmark.chosen_files))
        lines.append(f"- Files by {' and '.join(f'`{each}`' for each in chosen)}: `make data` names them.")
    return "\n".join(lines) + "\n"


def _file(name: str, place: str, how: str) -> str:
    where = f"<{place.removeprefix('url:').partition('#')[0]}>" if place.startswith("url:") else f"`{place}`"
    return f"- File `{name}`: {where if place else _sentence(how).removesuffix('.')}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:].removesuffix(".")


def _sentence(text: str) -> str:
    return f"{text.removesuffix('.')}."
