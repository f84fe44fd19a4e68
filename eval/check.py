"""Say what params.yaml cannot mean before DVC reads it, whose words for it tell less.

reads   params.yaml  dvc.yaml
writes  nothing
"""

import re
from pathlib import Path

import yaml

from coderet import params, stage

LISTS = re.compile(r"\$\{grid\.(\w+)")


def main() -> None:
    params.read()
    grid = yaml.safe_load(params.FILE.read_text(encoding="utf-8"))["grid"]
    for name in dict.fromkeys(LISTS.findall(Path("dvc.yaml").read_text(encoding="utf-8"))):
        if name not in grid:
            raise params.ParamsError(
                f"{params.FILE}: grid lacks {name}, which dvc.yaml names; wanted a list, [] for none"
            )


if __name__ == "__main__":
    stage.run(main)
