"""Choose a fusion's settings on validation pairs, which its members are fitted without.

reads   data/pairs/valid.parquet  models/retrievers/<member>...  params: seed, efficiency, fusions.<fusion>,
        retrievers.<member>
writes  models/fusions/<fusion>.json
"""

from coderet import paths, retrievers, stage
from coderet.corpora import store
from coderet.retrievers import tuning


def main(fusion: str) -> None:
    with stage.open(fusion=fusion) as job:
        spec, params = job.params.fusions[fusion], job.params
        members = {name: retrievers.load(paths.retriever(name), params.retrievers[name].spec) for name in spec.members}
        found = tuning.tune(
            spec.kind,
            spec.settings,
            members,
            paths.PAIRS / "valid.parquet",
            paths.WORK,
            params.seed,
            params.efficiency.batch_queries,
            f"params.yaml: fusions.{fusion}",
        )
        store.write_json(paths.fusion(fusion), {"fusion": fusion, **found})


if __name__ == "__main__":
    stage.run(main)
