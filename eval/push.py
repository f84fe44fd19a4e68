"""Push a trained retriever's encoder, with the card of its scores, to a repository of a hub; private if it is new.

reads   models/retrievers/<retriever>  train/results/<retriever>.json  eval/results  data/pairs  data/raw  params
writes  <repository> of huggingface.co, or of the hub that HF_ENDPOINT names, with the token HF_TOKEN
"""

import sys

from coderet import paths, reports, stage, tracking


def main(retriever: str, repository: str) -> None:
    with stage.open(retriever=retriever) as job:
        card = reports.scored_card(job.params, retriever, repository=repository)
        print(tracking.push(paths.retriever(retriever) / "encoder", card, repository), file=sys.stderr)


if __name__ == "__main__":
    stage.run(main)
