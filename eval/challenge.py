"""Score a file of predictions for the CodeSearchNet Challenge, as its script did and soundly.

reads   a CSV of annotations (the Challenge's annotationStore.csv) and one of predictions, plain or packed
writes  nothing but what it prints: a metric and language a line, with the bootstrap interval of its mean
"""

from pathlib import Path

from coderet import stage
from coderet.corpora import challenge as files
from coderet.metrics import challenge, scorecards


def main(annotations: str, predictions: str) -> None:
    with stage.open(annotations=annotations, predictions=predictions) as job:
        cards = challenge.score(files.read_annotations(Path(annotations)), files.read_predictions(Path(predictions)))
        scoring = job.params.scoring
        summary = scorecards.summary(cards, "datasets", scoring.resamples, scoring.confidence, job.params.seed)
        languages = {name: each["metrics"] for name, each in summary["datasets"].items()}
        for metric, mean in summary["all"].items():
            for language, figures in [*languages.items(), ("mean", {metric: mean})]:
                if metric in figures:
                    found = figures[metric]
                    print(f"{metric:18} {language:12} {found['value']:.6f}  {found['low']:.4f}-{found['high']:.4f}")


if __name__ == "__main__":
    stage.run(main)
