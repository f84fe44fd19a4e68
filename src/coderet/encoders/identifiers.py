"""Identifiers as words, for a tokenizer that does not know code: `getLatitudeField` is read as `get Latitude Field`.

A tokenizer of prose lowers the case before it cuts, and with it goes what tells the words of a name apart. The split is
written into the model folder's own tokenizer, before all that it does, so that coderet, transformers and
sentence-transformers read texts alike and nothing has to be said beside the folder. A text without such names gives
the same tokens as before.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, normalizers

from coderet.encoders import sentence_folder
from coderet.records import DataError

# Before a capital that follows a small letter or a digit, and before the last of several if a small letter follows it.
BOUNDARY = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
ANY = "PreTrainedTokenizerFast"  # the class that takes tokenizer.json as it is; others put a normalizer of their own


def split(model_folder: Path, into: Path) -> Path:
    """A copy of a model folder whose tokenizer splits identifiers; into: where to, replaced if it is there.

    DataError for a folder without tokenizer.json, whose tokenizer is not a fast one.
    """
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(model_folder, into)
    place = into / sentence_folder.usage(into).model
    file, config = place / "tokenizer.json", place / "tokenizer_config.json"
    if not file.is_file():
        raise DataError(f"{model_folder.name} has no tokenizer.json to split names in; leave split_identifiers out")
    tokenizer: Any = Tokenizer.from_file(str(file))
    own = [] if tokenizer.normalizer is None else [tokenizer.normalizer]
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace(Regex(BOUNDARY), " "), *own])
    tokenizer.save(str(file))
    said = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
    config.write_text(json.dumps(said | {"tokenizer_class": ANY}, indent=2) + "\n", encoding="utf-8")
    return into
