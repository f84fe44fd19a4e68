"""Say in which choices two results differ, and by how much their headline figures.

reads   two score.json, as they lie in eval/results/<benchmark>/<run>
writes  nothing but what it prints
"""

import sys
from pathlib import Path

from coderet import reports, stage


def main(one: str, other: str) -> None:
    scores = [reports.read_score(Path(each)) for each in (one, other)]
    found = reports.contrasts(*scores)
    for each in found:
        print(each)
    print(reports.headlines(*scores))
    if any(each.name in score["choices"] for each in found for score in scores):
        print("warning: their protocols differ, so the figures do not compare the systems alone", file=sys.stderr)


if __name__ == "__main__":
    stage.run(main)
