"""Try how large a mini-batch of a retriever's longest pairs this machine takes, and say which is the best.

reads   data/pairs  models/tokenizers  params: seed, retrievers.<retriever>.fit
writes  nothing; .work/batch-size keeps the tokens
"""

from coderet import paths, stage, training


def main(retriever: str) -> None:
    with stage.open(retriever=retriever) as job:
        settings = job.params.retrievers[retriever].fit
        tried = training.mini_batches(
            paths.PAIRS, paths.TOKENIZERS, settings, paths.WORK / "batch-size" / retriever, job.params.seed
        )
        print(training.told(tried))


if __name__ == "__main__":
    stage.run(main)
