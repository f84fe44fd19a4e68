"""Results of a generator on eight problems, written with the library's own writers, and tables read off a page."""

import pyarrow as pa

from coderet import paths, reports
from coderet.corpora import answered, store
from coderet.params import answerer

SHOWN = {
    "run": "plain",
    "documents": 5,
    "budget": 4096,
    "withheld": "out",
    "chunking": {},
    "chunk": "first",
    "window": 0,
}


def write(root, context, solved, ids=tuple(f"p{n}" for n in range(8)), **settings):
    name = answerer(context, "small")
    values = [float(n in solved) for n in range(len(ids))]
    share = sum(values) / len(values)
    figure = {"value": share, "low": share / 2, "high": min(1.0, share * 1.5)}
    tallies = {"verdicts": {"passed": len(solved), "failed": 8 - len(solved)}, "forms": {"fence": 8}}
    store.write_json(
        root / paths.result("solutions", name, "judge"),
        {
            "datasets": {"solutions-8": {"metrics": {"pass@1": figure}, "queries": 8, "counts": {"samples": 8}}},
            "told": {"solutions-8": tallies},
            "wall": "bubblewrap",
            "seconds": 2.0,
            "inputs": context,
        },
    )
    spent = {"prompts": 8, "truncated": 2, "tokens_lost": 50, "documents_cut": 2, "documents_dropped": 1, "made": 8}
    spent |= {"prompt_tokens": 800, "completion_tokens": 400, "made_tokens": 400, "seconds": 4.0}
    store.write_json(
        root / paths.result("solutions", name, "generate"),
        {
            "datasets": {"solutions-8": spent},
            "settings": {"context": SHOWN | settings},
        },
    )
    rows = [
        {
            "problem_id": own,
            "sample": 0,
            "verdict": "passed" if n in solved else "failed",
            "detail": "",
            "form": "fence",
            "code": f"def f{n}():\n    pass",
            "leak": 1.0 if context == "oracle" else 0.0,
            "question": f"write f{n}",
            "context": "" if context == "none" else f"def g{n}(): 0",
        }
        for n, own in enumerate(ids)
    ]
    folder = root / paths.scores("solutions", name)
    answered.write(answered.samples_path(folder, "solutions-8"), rows, answered.SAMPLES)
    column = pa.chunked_array([pa.array(ids, pa.large_string())])
    store.write_scorecard(folder / "solutions-8.arrow", column, {"pass@1": pa.array(values).to_numpy()})


def table(markdown, title):
    section = markdown.split(f"## {title}\n")[1].split("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]


def read(root, *contexts):
    return reports.read_answers([("solutions", each, "small") for each in contexts], root=root)
