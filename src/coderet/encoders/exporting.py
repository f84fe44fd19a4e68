"""What makes the folder of a saved encoder a folder of sentence-transformers too, with no weight written twice.

Either library reads its own files: coderet `encoder.json`, sentence-transformers `modules.json`, and both the weights
and the tokenizer beside them. A transformer is told in sentence-transformers' own modules (`describe_transformer`); an
architecture of this package comes with `sentence_module.py` and with the few modules of coderet that it takes
(`ship_code`), so that it runs where coderet is not installed.
"""

import ast
import importlib.util
import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

CODE = "code"  # the copy of coderet's modules, in the folder of a saved encoder
MODULE = "sentence_module"  # the file that sentence-transformers runs, and its class
CLASS = "CoderetEncoder"
LENGTHS = "sentence_bert_config.json"  # how many tokens a transformer of sentence-transformers reads

# By the paths that every version of sentence-transformers knows; poolings likewise.
_OWN = "sentence_transformers.models."
_POOLINGS = {
    "mean": "pooling_mode_mean_tokens",
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "last": "pooling_mode_lasttoken",
    "weightedmean": "pooling_mode_weightedmean_tokens",
}


def describe(
    folder: Path, modules: Sequence[tuple[str, str]], query_prompt: str = "", document_prompt: str = ""
) -> None:
    """Write the two files that sentence-transformers begins with: modules are (folder within folder, class), in order.

    The prompts are what its `encode_query` and `encode_document` put before a text.
    """
    listed = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (path, kind) in enumerate(modules)]
    _write(folder / "modules.json", listed)
    prompts = {"query": query_prompt, "document": document_prompt}
    _write(
        folder / "config_sentence_transformers.json",
        {
            "model_type": "SentenceTransformer",
            "prompts": prompts,
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )


def describe_transformer(
    folder: Path,
    model: str,
    *,
    pooling: str,
    dimensions: int,
    kept: int,
    normalise: bool,
    max_tokens: int,
    lower_case: bool,
    query_prompt: str,
    document_prompt: str,
) -> None:
    """Describe the transformer in folder/model, pooled, its first `kept` of all `dimensions` kept, and normalised."""
    _say_lengths(folder / model, {"max_seq_length": max_tokens, "do_lower_case": lower_case})
    modules = [(model, f"{_OWN}Transformer"), ("1_Pooling", f"{_OWN}Pooling")]
    flags = {flag: name == pooling for name, flag in _POOLINGS.items()}
    _write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": dimensions, **flags})
    if kept < dimensions:
        # Its own truncation comes after all modules, and would leave vectors that are not of length 1.
        modules.append(("2_Dense", f"{_OWN}Dense"))
        shape = {"in_features": dimensions, "out_features": kept, "bias": False}
        _write(folder / "2_Dense" / "config.json", shape | {"activation_function": "torch.nn.modules.linear.Identity"})
        save_file({"linear.weight": torch.eye(kept, dimensions)}, folder / "2_Dense" / "model.safetensors")
    describe(folder, modules + _normalising(folder, len(modules), normalise), query_prompt, document_prompt)


def describe_static(folder: Path, *, normalise: bool) -> None:
    """Describe the table in folder, `model.safetensors` and `tokenizer.json`, whose rows' mean is a text's vector."""
    describe(folder, [("", f"{_OWN}StaticEmbedding"), *_normalising(folder, 1, normalise)])


def ship_code(folder: Path, modules: Iterable[str]) -> None:
    """Describe the encoder in folder as one module of its own, and write the code that it takes beside it.

    modules: the modules of this package that define it. Prefixes belong to the encoder, so there are no prompts.
    """
    own = Path(__file__).with_name(f"{MODULE}.py")
    needed = _needed([__name__, *modules]) | {f"{__name__.rpartition('.')[0]}.{MODULE}": own}  # to save it again too
    for name, path in needed.items():
        place = folder / CODE / Path(*name.split("."))  # by name: of several copies each may hold a part
        place = place / path.name if path.stem == "__init__" else place.with_suffix(".py")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    shutil.copyfile(own, folder / own.name)
    describe(folder, [("", f"{MODULE}.{CLASS}")])


def _normalising(folder: Path, place: int, normalise: bool) -> list[tuple[str, str]]:
    """The module at that place that makes vectors of length 1, if that is asked for."""
    if not normalise:
        return []
    _write(folder / f"{place}_Normalize" / "config.json", {})
    return [(f"{place}_Normalize", f"{_OWN}Normalize")]


def _needed(modules: Iterable[str]) -> dict[str, Path]:
    """The files of modules and of what they import of this package when they are imported themselves, by module."""
    package = __name__.partition(".")[0]
    files: dict[str, Path] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in files or name.partition(".")[0] != package:
            continue
        found = importlib.util.find_spec(name) if _is_module(name) else None
        if found is None or found.origin is None:
            continue
        files[name] = Path(found.origin)
        waiting.append(name.rpartition(".")[0])  # a module's package is imported before it
        for node in ast.parse(files[name].read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return files


def _is_module(name: str) -> bool:
    """Whether name is a module's, and not that of a thing in a module."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # what stands before the last dot is no package
        return False


def _say_lengths(model: Path, said: dict[str, Any]) -> None:
    """Write what is read of a text, unless the model's own file says so already: then it stays byte for byte."""
    path = model / LENGTHS
    there = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if {name: there.get(name, False) for name in said} != said:
        _write(path, there | said)


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
