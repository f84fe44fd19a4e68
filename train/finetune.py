"""A user's own pairs and a base model to a tuned, scored and registered model, in a folder of its own.

reads   params.yaml  train/finetune.yaml  <pairs>  the base model: a folder, a hub's, or a retriever's of params.yaml
writes  runs/<name>: params.yaml, the pairs divided, the models, the report, the card  MLflow's store

Where no name is given it is the base's with `-tuned`.
"""

import sys
from pathlib import Path

from coderet import params, paths, stage
from coderet.training import finetuning


def main(base: str, pairs: str, name: str) -> None:
    with stage.open(base=base, pairs=pairs) as job:
        name = name or f"{Path(base.partition('@')[0]).name}-tuned"
        encoder = finetuning.base_encoder(base, job.params)
        run = finetuning.write_run(params.FILE.absolute(), encoder, Path(pairs), name, job.params.seed)
        finetuning.carry_out(run, params.FILE.absolute().parent, f"sqlite:///{Path('mlflow.db').absolute()}")
        print(f"{run.folder / paths.REPORT_MARKDOWN}  {run.folder / paths.card(run.name)}", file=sys.stderr)


if __name__ == "__main__":
    stage.run(main)
