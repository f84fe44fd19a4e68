"""Checkpoints that bring code of their own: run if asked for, pinned like their weights, with today's transformers.

Such a checkpoint says in its config.json (auto_map) which classes of which Python files make it, and often takes the
files from another repository of the hub. Here they are put beside the weights, so that all that is run is pinned,
fingerprinted and found without a network.

Much of that code was written for transformers 4. What version 5 took away and it commonly asks for is put back while
it runs; the functions do what they did.
"""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from transformers import PreTrainedModel, modeling_utils, pytorch_utils

from coderet.records import DataError

ADVICE = (
    f"Its code may not run with transformers {transformers.__version__}: then serve the model from an environment in "
    "which it does, by any server that speaks OpenAI's words, and name its address in an encoder of kind api"
)
_CONFIGS = ("config.json", "tokenizer_config.json")


def check(folder: Path, trust: bool | None) -> None:
    """DataError if the checkpoint in folder has code of its own and nothing says what to do with it, or not all of it.

    Without being told, transformers reads some of these with a class of its own that has the same name and not the same
    computation.
    """
    places = _places(folder)
    if not places or trust is False:
        return
    if trust is None:
        raise DataError(
            f"{folder.name} brings code of its own ({', '.join(sorted(places))}). Read it, then set trust_remote_code: "
            "true to run it, or false if transformers has this model"
        )
    elsewhere = sorted({place.partition("--")[0] for place in places if "--" in place})
    if elsewhere:
        raise DataError(
            f"the code of {folder.name} lies in {', '.join(elsewhere)}; wanted code_source: hub:{elsewhere[0]}@<commit>"
        )
    missing = sorted(
        {f"{place.partition('.')[0]}.py" for place in places} - {path.name for path in folder.glob("*.py")}
    )
    if missing:
        raise DataError(f"{folder.name} lacks {', '.join(missing)}; add ?include=*.py to its source, or a code_source")


def bring(code: Path, folder: Path) -> None:
    """Put the Python files in code beside the weights in folder, and let its configs name them there."""
    for path in sorted(code.glob("*.py")):
        shutil.copyfile(path, folder / path.name)
    for name in _CONFIGS:
        config = _read(folder / name)
        if "auto_map" in config:
            config["auto_map"] = {key: _bare(place) for key, place in config["auto_map"].items()}
            (folder / name).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


@contextlib.contextmanager
def runnable(trust: bool | None) -> Iterator[None]:
    """Put back for good, once code of a checkpoint is to be run, what transformers 5 took away."""
    if trust:
        for owner, name, value in _TAKEN_AWAY:
            if not hasattr(owner, name):
                setattr(owner, name, value)
    yield


def compute_buffers(model: Any) -> None:
    """Give model the buffers that its constructor computes and its files do not hold.

    transformers runs constructors on no memory, and can fill in only what it knows of.
    """
    saved = model.state_dict().keys()
    unsaved = {name: buffer for name, buffer in model.named_buffers() if name not in saved}
    if unsaved:
        computed = dict(type(model)(model.config).named_buffers())
        for name, buffer in unsaved.items():
            buffer.copy_(computed[name])


def _places(folder: Path) -> set[str]:
    """The classes that the configs name, as `<file>.<class>`, with `<repository>--` before where that is another."""
    found = set()
    for name in _CONFIGS:
        for place in _read(folder / name).get("auto_map", {}).values():
            found |= {each for each in ([place] if isinstance(place, str) else place) if each}
    return found


def _bare(place: Any) -> Any:
    if isinstance(place, str):
        return place.rpartition("--")[2]
    return [each and _bare(each) for each in place]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # transformers says what is wrong with it
        return {}
    return found if isinstance(found, dict) else {}


def _head_mask(model: Any, head_mask: Any, layers: int, is_attention_chunked: bool = False) -> list[None]:
    if head_mask is not None:
        raise NotImplementedError("heads cannot be masked")
    return [None] * layers


def _extended_attention_mask(
    model: Any, mask: Tensor, shape: Any = None, device: Any = None, dtype: Any = None
) -> Tensor:
    if mask.dim() == 2:
        mask = mask[:, None, :]
    kind = model.dtype if dtype is None else dtype
    return (1.0 - mask[:, None].to(kind)) * torch.finfo(kind).min


def _pruneable(heads: Any, *_: Any) -> Any:
    raise NotImplementedError("heads cannot be pruned")


_TAKEN_AWAY: list[tuple[Any, str, Any]] = [
    (modeling_utils, "Conv1D", pytorch_utils.Conv1D),
    (modeling_utils, "apply_chunking_to_forward", pytorch_utils.apply_chunking_to_forward),
    (modeling_utils, "prune_linear_layer", pytorch_utils.prune_linear_layer),
    (modeling_utils, "find_pruneable_heads_and_indices", _pruneable),
    (pytorch_utils, "find_pruneable_heads_and_indices", _pruneable),
    (PreTrainedModel, "get_head_mask", _head_mask),
    (PreTrainedModel, "get_extended_attention_mask", _extended_attention_mask),
    (PreTrainedModel, "all_tied_weights_keys", {}),
]
