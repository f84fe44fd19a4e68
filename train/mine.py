"""Mine (query, code) pairs from the source packages, copies taken out, cut against every benchmark.

reads   data/raw/sources/<source>...  data/benchmarks  params: mining, grid
writes  data/pairs/{train,valid}.parquet  data/pairs/examples.parquet if asked for  train/results/mine.json
"""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from coderet import paths, stage
from coderet.corpora import cutting, mining, snippets, store
from coderet.corpora.fingerprints import Threshold
from coderet.records import PAIRS, DataError


def main() -> None:
    with stage.open() as job:
        params, settings, report = job.params, job.params.mining, mining.Report()
        repositories = mining.repositories(*map(paths.source, params.grid.sources))
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
            blocks: Counter[str] = Counter()
            if settings.examples:
                examples = snippets.mine(repositories, processes=settings.processes, counts=blocks)
        threshold = Threshold(settings.set_jaccard, settings.multiset_jaccard, settings.min_fingerprint_tokens)
        benchmarks = [paths.benchmark(each) for each in params.grid.benchmarks]

        def clean(pairs: pa.Table) -> tuple[np.ndarray, dict[str, Any]]:
            return cutting.clean(pairs, benchmarks, threshold, settings.leak_query_words)

        stays, cuts = clean(pairs)
        fractions = {"train": 1 - settings.valid_fraction, "valid": settings.valid_fraction}
        side_of = {each: mining.split_of(each, params.seed, fractions) for each in repositories}
        side = np.array([side_of[each] for each in pairs["repository"].to_pylist()])
        counts = {}
        with store.new_folder(paths.PAIRS) as folder:
            for name in fractions:
                chosen = pairs.filter(pa.array(stays & (side == name)))
                counts[name] = store.write_pairs(folder / f"{name}.parquet", [chosen])
            if settings.examples:  # from packages that do not validate
                examples = examples.filter(
                    pa.array([side_of[x] == "train" for x in examples["repository"].to_pylist()])
                )
                stays, of_examples = clean(examples)
                cuts["examples"] = {"blocks": dict(sorted(blocks.items())), **of_examples}
                chosen = examples.filter(pa.array(stays))
                counts["examples"] = store.write_pairs(folder / paths.EXAMPLES.name, [chosen])
            if not all(counts.values()):  # inside, so that data/pairs stays as it was
                raise DataError(f"pairs by side are {counts}; wanted some on each: give more packages or another seed")
        store.write_json(
            paths.MINING_REPORT,
            {
                **report.as_dict(),
                **cuts,
                "pairs": counts,
                "seconds": clock.seconds,
                **job.machine,
            },
        )


if __name__ == "__main__":
    stage.run(main)
