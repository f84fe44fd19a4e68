"""Mine (query, code) pairs from the source packages, copies taken out, cut against every benchmark.

reads   data/raw/<source>...  data/benchmarks  params: mining, grid
writes  data/pairs/{train,valid}.parquet  train/results/mine.json
"""

import numpy as np
import pyarrow as pa

from coderet import paths, stage
from coderet.corpora import cutting, mining, store
from coderet.corpora.fingerprints import Threshold, fingerprint, first_copies
from coderet.records import PAIRS, DataError


def main() -> None:
    with stage.open() as job:
        params, settings, report = job.params, job.params.mining, mining.Report()
        repositories = {k: v for each in params.grid.sources for k, v in mining.repositories(paths.raw(each)).items()}
        filters = mining.Filters(
            min_doc_tokens=settings.min_doc_tokens,
            min_code_lines=settings.min_code_lines,
            max_code_lines=settings.max_code_lines,
            drop_tests=settings.drop_tests,
            drop_special_methods=settings.drop_special_methods,
        )
        with job.clock() as clock:
            batches = mining.mine(repositories, settings.languages, filters, settings.processes, report)
            pairs = pa.Table.from_batches(batches, PAIRS)
        threshold = Threshold(settings.set_jaccard, settings.multiset_jaccard, settings.min_fingerprint_tokens)
        prints = fingerprint(pairs["code"], pairs["language"])
        copies, copy_counts = first_copies(prints, threshold)
        benchmarks = [paths.benchmark(each) for each in params.grid.benchmarks]
        held_out = [package for each in benchmarks for package in store.packages(each)]
        clean, leaks = cutting.cut(pairs, prints, benchmarks, held_out, threshold, settings.leak_query_words)
        stays = clean & (copies == np.arange(len(copies)))
        fractions = {"train": 1 - settings.valid_fraction, "valid": settings.valid_fraction}
        side = np.array([mining.split_of(each, params.seed, fractions) for each in pairs["repository"].to_pylist()])
        counts = {}
        with store.new_folder(paths.PAIRS) as folder:
            for name in fractions:
                chosen = pairs.filter(pa.array(stays & (side == name)))
                counts[name] = store.write_pairs(folder / f"{name}.parquet", [chosen])
            if not all(counts.values()):  # inside, so that data/pairs stays as it was
                raise DataError(f"pairs by side are {counts}; wanted some on each: give more packages or another seed")
        store.write_json(
            paths.MINING_REPORT,
            {
                **report.as_dict(),
                "copies": copy_counts,
                "cut": leaks,
                "pairs": counts,
                "seconds": clock.seconds,
                **job.machine,
            },
        )


if __name__ == "__main__":
    stage.run(main)
