"""encoder.json: what every saved encoder says about itself, its `kind` first of all."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coderet.records import DataError

FORMAT = 1
FILE = "encoder.json"


def read(folder: Path) -> dict[str, Any]:
    """The settings of the encoder in folder, `kind` among them; DataError if there is no whole file of this format."""
    path = folder / FILE
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        found = settings.pop("format")
        settings["kind"]
    except FileNotFoundError as error:
        raise DataError(f"{folder} holds no encoder: there is no {FILE}; fit or prepare it") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not a whole {FILE} ({type(error).__name__}: {error}); make it again") from error
    if found != FORMAT:
        raise DataError(f"{path} has format {found}, wanted {FORMAT}; make it again with this version")
    return settings


def write(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write settings, which are plain JSON, into folder; the folder is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": FORMAT, **settings}, indent=2, ensure_ascii=False)
    (folder / FILE).write_text(text + "\n", encoding="utf-8")
