"""The words that servers of embeddings speak: what a request says, and where its answer holds vectors and tokens."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coderet.encoders.encoding import Role

Inputs = Sequence[str] | Sequence[Sequence[int]]


@dataclass(frozen=True)
class Dialect:
    """address and key_variable: the usual ones. path is put behind the address.

    texts and tokens: what one request may hold at most by the provider's documentation. payload(model, inputs, role,
    dim, truncate): the request; dim is None where the model's own is wanted; truncate lets the server cut texts.
    vectors(answer): the rows of the answer, each with its place in the request, None where the dialect has no places.
    billed(answer): the tokens that are charged for, None if it does not say. takes_ids: token ids may be sent as texts.
    """

    address: str
    key_variable: str
    path: str
    texts: int
    tokens: int
    payload: Callable[[str, Inputs, Role, int | None, bool], dict[str, Any]]
    vectors: Callable[[Any], list[tuple[int | None, Any]]]
    billed: Callable[[Any], int | None]
    takes_ids: bool = False


def _openai(model: str, inputs: Inputs, role: Role, dim: int | None, truncate: bool) -> dict[str, Any]:
    said: dict[str, Any] = {"model": model, "input": inputs, "encoding_format": "float"}
    return said if dim is None else said | {"dimensions": dim}


def _voyage(model: str, inputs: Inputs, role: Role, dim: int | None, truncate: bool) -> dict[str, Any]:
    said: dict[str, Any] = {"model": model, "input": inputs, "input_type": role, "truncation": truncate}
    return said if dim is None else said | {"output_dimension": dim}


def _cohere(model: str, inputs: Inputs, role: Role, dim: int | None, truncate: bool) -> dict[str, Any]:
    said: dict[str, Any] = {
        "model": model,
        "texts": inputs,
        "input_type": f"search_{role}",
        "embedding_types": ["float"],
        "truncate": "END" if truncate else "NONE",
    }
    return said if dim is None else said | {"output_dimension": dim}


def _places(answer: Any) -> list[tuple[int | None, Any]]:
    return [(each.get("index"), each["embedding"]) for each in answer["data"]]


def _in_order(answer: Any) -> list[tuple[int | None, Any]]:
    return [(None, each) for each in answer["embeddings"]["float"]]


def _total_tokens(answer: Any) -> int | None:
    return _number(answer.get("usage"), "total_tokens")


def _billed_units(answer: Any) -> int | None:
    return _number((answer.get("meta") or {}).get("billed_units"), "input_tokens")


def _number(said: Mapping[str, Any] | None, name: str) -> int | None:
    found = (said or {}).get(name)
    if not isinstance(found, int | float) or isinstance(found, bool) or not math.isfinite(found):
        return None
    return int(found) if found >= 0 else None


DIALECTS = {
    "openai": Dialect(
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "/embeddings",
        2048,
        300_000,
        _openai,
        _places,
        _total_tokens,
        takes_ids=True,
    ),
    "voyage": Dialect(
        "https://api.voyageai.com/v1", "VOYAGE_API_KEY", "/embeddings", 128, 120_000, _voyage, _places, _total_tokens
    ),
    "cohere": Dialect(
        "https://api.cohere.com/v2", "COHERE_API_KEY", "/embed", 96, 128_000, _cohere, _in_order, _billed_units
    ),
}
