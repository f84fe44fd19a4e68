"""Train the tokenizer of the encoders that are trained here.

reads   data/pairs/train.parquet  params: vocabulary
writes  models/tokenizers
"""

from coderet import paths, stage, training
from coderet.corpora import store


def main() -> None:
    with stage.open() as job, store.new_folder(paths.TOKENIZERS) as folder:
        settings = job.params.vocabulary
        training.train_vocabulary(
            paths.PAIRS, folder, kind=settings.kind, size=settings.size, min_count=settings.min_count
        )


if __name__ == "__main__":
    stage.run(main)
