"""What a sentence-transformers folder says about how its model is to be used: read and written.

Reads the JSON files beside the weights (modules.json and those it names), so that sentence_transformers itself, which
is slow to import, is not needed. Modules other than Transformer, Pooling and Normalize are refused: leaving one out
would give other vectors than the model's own.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coderet.records import DataError

_POOLINGS = {"cls": "cls", "mean": "mean", "max": "max", "lasttoken": "last", "weightedmean": "weightedmean"}
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}


@dataclass(frozen=True)
class Usage:
    """model: the folder of the transformer, seen from the folder. max_tokens: None where nothing is said."""

    model: str = "."
    pooling: str = "mean"
    normalise: bool = False
    max_tokens: int | None = None
    lower_case: bool = False
    query_prefix: str = ""
    document_prefix: str = ""


def usage(folder: Path) -> Usage:
    """How the model in folder is used; a folder without modules.json is a plain transformers model: mean pooling.

    DataError for modules and poolings that are not known here.
    """
    modules = _read(folder / "modules.json")
    if modules is None:
        return Usage()
    kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise DataError(
            f"{folder} is made of {', '.join(kinds)}; wanted Transformer, Pooling and at most Normalize after them"
        )
    model, pooling = modules[0]["path"], _read(folder / modules[1]["path"] / "config.json") or {}
    if not pooling.get("include_prompt", True):
        raise DataError(f"{folder} leaves the prompt out of its pooling, which is not supported")
    transformer = _read(folder / model / "sentence_bert_config.json") or {}
    prompts = (_read(folder / "config_sentence_transformers.json") or {}).get("prompts", {})
    return Usage(
        model=model or ".",
        pooling=_pooling(pooling, folder),
        normalise="Normalize" in kinds,
        max_tokens=transformer.get("max_seq_length"),
        lower_case=bool(transformer.get("do_lower_case", False)),
        query_prefix=prompts.get("query", ""),
        document_prefix=next((prompts[name] for name in ("document", "passage", "corpus") if name in prompts), ""),
    )


def write(folder: Path, usage: Usage, dim: int) -> None:
    """Say in folder, which holds a transformers model of dim dimensions, how it is used; what was said before is gone.

    The rest of config_sentence_transformers.json stays, and with it the prompts of other names than these two.
    """
    kinds = ["Transformer", "Pooling"] + ["Normalize"] * usage.normalise
    paths = ["" if usage.model == "." else usage.model, "1_Pooling", "2_Normalize"]
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (kind, path) in enumerate(zip(kinds, paths, strict=False))
    ]
    for path in paths[1 : len(kinds)]:
        (folder / path).mkdir(exist_ok=True)
    mode = next(theirs for theirs, ours in _POOLINGS.items() if ours == usage.pooling)
    own = _read(folder / "config_sentence_transformers.json") or {}
    prompts = {name: text for name, text in own.get("prompts", {}).items() if name not in ("passage", "corpus")}
    own["prompts"] = prompts | {"query": usage.query_prefix, "document": usage.document_prefix}
    _write(folder / "modules.json", modules)
    _write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": dim, "pooling_mode": mode})
    _write(
        folder / usage.model / "sentence_bert_config.json",
        {"max_seq_length": usage.max_tokens, "do_lower_case": usage.lower_case},
    )
    _write(folder / "config_sentence_transformers.json", own)


def _pooling(config: dict[str, Any], folder: Path) -> str:
    modes = config.get("pooling_mode") or [mode for flag, mode in _FLAGS.items() if config.get(flag)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else list(modes)
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        raise DataError(f"{folder} pools by {' and '.join(modes)}; known: {', '.join(_POOLINGS)}")
    return _POOLINGS[modes[0]]


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}); fetch the model again") from error


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
