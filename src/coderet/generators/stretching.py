"""Rotary positions stretched, so that a model reads more tokens than it was trained on (RoPE scaling).

The settings are those of transformers and vLLM: `rope_type` and `factor`, and what else a type has. `linear` and `yarn`
are the same for every prompt. `dynamic` stretches by the length of what is read, so that a completion would depend on
the prompts beside it; it is refused here, and vLLM has it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coderet.records import DataError
from coderet.registry import BadValue, check_range

KINDS = ("linear", "yarn")


def checked(rope: Mapping[str, Any] | None, kinds: tuple[str, ...] = KINDS) -> dict[str, Any]:
    """The settings, empty for none; BadValue for a type that is none of kinds, or a factor that shrinks."""
    if not rope:
        return {}
    kind, factor = rope.get("rope_type"), rope.get("factor")
    if kind not in kinds:
        raise BadValue(f"rope.rope_type is {kind!r}; wanted {' or '.join(kinds)}")
    if isinstance(factor, bool) or not isinstance(factor, int | float):
        raise BadValue(f"rope.factor is {factor!r}; wanted a number from 1, of how many times the model's window is")
    check_range("rope.factor", factor, 1)
    return {**rope, "factor": float(factor)}


def stretched(place: Path | str, rope: Mapping[str, Any], revision: str | None = None) -> Any:
    """The configuration of a model, in a folder or of a hub, with these settings and its window factor times as long.

    DataError if the model has no rotary positions, or comes with ones that are stretched already.
    """
    from transformers import AutoConfig

    config: Any = AutoConfig.from_pretrained(place, revision=revision, local_files_only=revision is None)
    text = config.get_text_config()
    own = getattr(text, "rope_parameters", None)
    if not own or "rope_theta" not in own:
        raise DataError(f"{place} is a {config.model_type} model without plain rotary positions; take rope away")
    if own.get("rope_type", "default") != "default":
        raise DataError(f"{place} has positions that are stretched already, by {own['rope_type']}; take rope away")
    trained = text.max_position_embeddings
    text.rope_parameters = {**own, **rope}
    if rope["rope_type"] == "yarn":
        text.rope_parameters.setdefault("original_max_position_embeddings", trained)
    text.max_position_embeddings = int(trained * rope["factor"])
    return config
