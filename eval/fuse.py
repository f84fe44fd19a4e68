"""Fuse the runs of a fusion's members into one; the run of a mixture is put together from the fused ones before.

reads   data/benchmarks/<benchmark>/{corpora,queries}  data/runs/<benchmark>/<member>...
        models/fusions/<fusion>.json if it was tuned  params: fusions.<fusion>, benchmarks.<benchmark>.depth
writes  data/runs/<benchmark>/<fusion>
"""

from coderet import paths, retrievers, stage
from coderet.corpora import store
from coderet.retrievers import mixing, tuning


def main(benchmark: str, fusion: str) -> None:
    with stage.open(benchmark=benchmark, fusion=fusion) as job:
        spec, folder = job.params.fusions[fusion], paths.benchmark(benchmark)
        chosen = tuning.settled(spec.settings, paths.fusion(fusion))
        fuse = retrievers.fuser(spec.kind, chosen, f"params.yaml: fusions.{fusion}")
        with store.new_folder(paths.runs(benchmark, fusion)) as runs:
            for name in store.datasets(folder):
                dataset = store.read_dataset(folder, name, judged=False)
                settings = {"kind": spec.kind, "members": list(spec.members), **chosen}
                if dataset.mixed_of:
                    depth = dataset.depth or job.params.benchmarks[benchmark].depth
                    run = mixing.mixed(dataset, store.read_parts(folder, runs, dataset), depth)
                    store.write_run(runs / f"{name}.arrow", run, mixing.settings(settings, dataset))
                    continue
                members = [
                    store.read_run(paths.runs(benchmark, each) / f"{name}.arrow", dataset.corpus)
                    for each in spec.members
                ]
                store.write_run(runs / f"{name}.arrow", fuse(members), settings)


if __name__ == "__main__":
    stage.run(main)
