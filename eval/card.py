"""The card of a trained retriever with its scores: what it learned from, how well it does, how to load it.

reads   models/retrievers/<retriever>  train/results/<retriever>.json  eval/results  data/pairs  data/raw  params
writes  eval/cards/<retriever>.md
"""

import sys

from coderet import paths, reports, stage
from coderet.corpora import store


def main(retriever: str) -> None:
    with stage.open(retriever=retriever) as job:
        text = reports.scored_card(job.params, retriever)
        with store.new_file(paths.card(retriever)) as draft:
            draft.write_text(text, encoding="utf-8")
        print(paths.card(retriever), file=sys.stderr)


if __name__ == "__main__":
    stage.run(main)
