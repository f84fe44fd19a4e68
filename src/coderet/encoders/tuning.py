"""A model folder of transformers or sentence-transformers in training: all of its weights, the upper layers, or LoRA.

It reads texts exactly as `pretrained.Pretrained` does and makes the same vectors of them; what `save` writes is an
encoder of that kind, and a sentence-transformers folder inside. Weights are kept in float32 and computed with in bf16
where the processor is fast in it, except what adds up along the layers and the pooling.

Dropout is off unless asked for, whatever the checkpoint says: on a processor it costs more than the model, and
contrastive training does without.
"""

import copy
import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from coderet import registry
from coderet.corpora import licences
from coderet.encoders import packing, sentence_folder
from coderet.encoders import settings as settings_file
from coderet.encoders.encoding import Role
from coderet.encoders.packing import PACKED
from coderet.encoders.pretrained import (
    HEADS,
    MODEL,
    Pretrained,
    fetched_model,
    open_model,
    usage,
)
from coderet.encoders.tokenizer import Tokens
from coderet.precision import computing_type
from coderet.records import DataError
from coderet.registry import check_range, nearest

WHERE = "fit.encoder"
# What of the base does not describe the tuned model: weights in any form, and its model card but for the licence.
LEFT_BEHIND = (
    *("*.safetensors", "*.bin", "*.index.json", "*.h5", "*.msgpack", "*.ot", "*.pt", "*.onnx", "*.gguf"),
    *("onnx", "openvino", "coreml", "README.md", ".git*"),
)


class Tunable(nn.Module):
    """An encoder that starts from a model folder and learns.

    max_tokens: what the encoder reads once it is trained; max_query_tokens, max_document_tokens: what it reads in
    training, the same unless they are less. normalise: vectors of length 1. dropout: the rate of all dropout layers.
    gradient_checkpointing: keep one state a layer and compute the rest again, for a third more time. attention: how it
    is computed: transformers' eager or sdpa, packed (see `packing`), or auto for what is fastest on this machine.
    frozen_embeddings, frozen_layers: what of the bottom is not trained; with layers the embeddings are frozen too.
    lora: the settings of `add_lora`, in the place of training the weights themselves. of_reader: those of `Pretrained`.
    """

    def __init__(
        self,
        model_folder: Path,
        *,
        max_query_tokens: int | None = None,
        max_document_tokens: int | None = None,
        normalise: bool = True,
        dropout: float = 0.0,
        gradient_checkpointing: bool = False,
        attention: Literal["auto", "eager", "sdpa", "packed"] = "auto",
        frozen_embeddings: bool = False,
        frozen_layers: int = 0,
        lora: Mapping[str, Any] | None = None,
        **of_reader: Any,
    ) -> None:
        super().__init__()
        check_range(f"{WHERE}.dropout", dropout, 0.0, 1.0)
        check_range(f"{WHERE}.frozen_layers", frozen_layers, 0)
        self._trust = of_reader.get("trust_remote_code")
        self._attention = _attention(attention, model_folder)
        tokenizer, model = self._open(model_folder)
        self.reader = Pretrained(model_folder, (tokenizer, model), normalise=normalise, **of_reader)
        self.dim, self.fill, self.settings = self.reader.dim, self.reader.fill, self.reader.settings
        self._limits = {
            "query": self._limit("max_query_tokens", max_query_tokens),
            "document": self._limit("max_document_tokens", max_document_tokens),
        }
        _set_dropout(model, dropout)
        if getattr(model.config, "use_cache", False):
            model.config.use_cache = False  # of the states of earlier tokens: it is for generating, and costs memory
        frozen = _bottom(model, frozen_embeddings, frozen_layers)
        for part in frozen:
            part.requires_grad_(False)
        for name, weights in model.named_parameters():
            if name.startswith(HEADS):  # no vector is made of it, so no gradient ever reaches it
                weights.requires_grad_(False)
        if gradient_checkpointing:
            _checkpoint_gradients(model, model_folder)
        if lora is not None:
            if not isinstance(lora, Mapping):
                raise registry.BadValue(f"{WHERE}.lora is {lora!r}; wanted a mapping of settings")
            self.model = add_lora(model, frozen, **registry.fit_arguments(add_lora, lora, f"{WHERE}.lora"))
        else:
            self.model = model
        if not any(weights.requires_grad for weights in self.model.parameters()):
            raise DataError(f"{WHERE} freezes all of {model_folder.name}; leave something to train")

    @classmethod
    def prepare(
        cls,
        work: Path,
        *,
        source: str,
        folder: str = ".",
        code_source: str | None = None,
        split_identifiers: bool = False,
        **settings: Any,
    ) -> "Tunable":
        """The encoder that starts from a pinned source, as `Pretrained.prepare` fetches it.

        settings: those of the constructor; whoever holds params against them asks `parts`.
        """
        return cls(fetched_model(source, folder, work, code_source, split_identifiers), **settings)

    @classmethod
    def parts(cls) -> tuple[Callable[..., Any], ...]:
        """What has settings besides `prepare`."""
        return cls, Pretrained

    @property
    def marks(self) -> list[int]:
        """Token ids that say nothing of a text, that of what is not known among them."""
        return list(self.reader.tokenizer.all_special_ids)

    def tokens(self, texts: pa.Array | pa.ChunkedArray, role: Role) -> Tokens:
        """What is read of texts in training, and how many of them were cut."""
        return self.reader.tokens(texts, role, self._limits[role])

    def forward(self, role: Role, ids: Tensor, mask: Tensor) -> Tensor:
        """Vectors (B, dim) float32 of token ids (B, T) under a bool mask (B, T); both roles go through one model."""
        half = computing_type(self.settings["precision"], ids.device.type)
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=half == torch.bfloat16):
            if self._attention == PACKED:
                states = packing.states(self.model, ids, mask)
            else:
                states = self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        return self.reader.pooled(states, mask)

    def average_with_base(self, share: float) -> None:
        """Make every weight (1 - share) of itself and share of what it was at first (Wortsman et al., 2022).

        For the end of training: adapters are merged, and are gone.
        """
        check_range("fit.after.average_with_base", share, 0.0, 1.0)
        self.model = self._merged()
        base = dict(self._open(self.reader.model_folder)[1].named_parameters())
        with torch.no_grad():
            for name, weights in self.model.named_parameters():
                weights.lerp_(base[name].to(weights.device), share)

    def save(self, folder: Path) -> None:
        """Write an encoder of kind pretrained into folder, which is one of sentence-transformers, as is `model`."""
        settings_file.write(folder, self.settings)
        base, place = self.reader.model_folder, folder / MODEL
        said = usage(base)
        shutil.copytree(base, place, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
        if licence := licences.of_model(base):
            licences.state(place, licence)
        self._merged().save_pretrained(place / said.model)
        sentence_folder.write(
            place,
            sentence_folder.Usage(
                model=said.model,
                pooling=self.settings["pooling"],
                normalise=self.settings["normalise"],
                max_tokens=self.settings["max_tokens"],
                lower_case=said.lower_case,
                query_prefix=self.settings["query_prefix"],
                document_prefix=self.settings["document_prefix"],
            ),
            int(self.model.config.hidden_size),
        )
        self.reader.describe(folder)

    @property
    def parameters_count(self) -> int:
        """Numbers in the model that `save` writes."""
        return sum(weights.numel() for name, weights in self.model.named_parameters() if "lora_" not in name)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of settings and weights. Ask for it once training is over: it is computed once."""
        digest = hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode())
        for name, weights in self._merged().state_dict().items():
            digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
            digest.update(weights.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
        return digest.hexdigest()

    def _open(self, model_folder: Path) -> tuple[Any, Any]:
        said = usage(model_folder)
        return open_model(model_folder / said.model, torch.float32, self._trust, attn_implementation=self._attention)

    def _merged(self) -> Any:
        """The model with its adapters added into its weights: itself if it has none, else a copy."""
        return copy.deepcopy(self.model).merge_and_unload() if hasattr(self.model, "merge_and_unload") else self.model

    def _limit(self, name: str, asked: int | None) -> int:
        most = int(self.settings["max_tokens"])
        if asked is None:
            return most
        if asked > most:
            raise registry.BadValue(f"{WHERE}.{name} is {asked}; the encoder itself reads {most}: raise max_tokens too")
        check_range(f"{WHERE}.{name}", asked, 1)
        return asked


def add_lora(
    model: Any,
    frozen: Sequence[nn.Module] = (),
    *,
    rank: int = 16,
    alpha: float = 32.0,
    dropout: float = 0.0,
    targets: Sequence[str] | None = None,
) -> Any:
    """model with a product of two matrices of this rank, times alpha / rank, beside linear layers (Hu et al., 2021).

    The first product is zero. targets: the layers by the last parts of their names, all without any. Only the matrices
    learn, and none are put into what is frozen. DataError for a name that no layer has.
    """
    from peft import LoraConfig, get_peft_model
    from transformers.pytorch_utils import Conv1D

    check_range(f"{WHERE}.lora.rank", rank, 1)
    check_range(f"{WHERE}.lora.alpha", alpha, 1e-6)
    check_range(f"{WHERE}.lora.dropout", dropout, 0.0, 1.0)
    below = {id(module) for part in frozen for module in part.modules()}
    layers = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | Conv1D) and not name.startswith(HEADS) and id(module) not in below
    ]
    known = sorted({name.rpartition(".")[2] for name in layers})
    for target in targets or ():
        if not any(_ends_with(name, target) for name in layers):
            raise DataError(
                f"{WHERE}.lora.targets has {target!r}, which is no linear layer that is trained; "
                f"known: {', '.join(known)}.{nearest(target, known)}"
            )
    chosen = [name for name in layers if targets is None or any(_ends_with(name, target) for target in targets)]
    if not chosen:
        raise DataError(f"{WHERE}.lora finds no layer to stand beside; name some of {', '.join(known)} as targets")
    transposed = all(isinstance(model.get_submodule(name), Conv1D) for name in chosen)
    config = LoraConfig(
        r=rank,
        lora_alpha=alpha,  # type: ignore[arg-type]  # it is only ever divided by the rank
        lora_dropout=dropout,
        target_modules=chosen,
        fan_in_fan_out=transposed,
    )
    return get_peft_model(model, config)


def _ends_with(name: str, target: str) -> bool:
    return name == target or name.endswith(f".{target}")


def _attention(asked: str, model_folder: Path) -> str:
    """The attention that is asked for, or what bench/finetuning.py found fastest; DataError if it cannot be packed."""
    config, _ = PretrainedConfig.get_config_dict(model_folder / usage(model_folder).model)
    able = config.get("model_type") in packing.KINDS and not config.get("is_decoder") and "auto_map" not in config
    if asked == PACKED and not able:
        raise DataError(
            f"{WHERE}.attention is packed, but {model_folder.name} is a {config.get('model_type')}; it can be for "
            f"{', '.join(packing.KINDS)}. Leave it to auto"
        )
    if asked != "auto":
        return asked
    if torch.cuda.is_available():
        return "sdpa"
    return PACKED if able else "eager"


def _set_dropout(model: nn.Module, rate: float) -> None:
    """Give every dropout of model this rate: those that are layers and those that are numbers of their layer."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate
        for name in ("attention_dropout", "hidden_dropout", "activation_dropout", "dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, rate)


def _bottom(model: Any, embeddings: bool, layers: int) -> list[nn.Module]:
    """The embeddings, if asked for or if layers are, and so many lowest layers of model."""
    if not embeddings and not layers:
        return []
    held = [getattr(model, "embeddings", None) or model.get_input_embeddings()]
    if not layers:
        return held
    count = getattr(model.config, "num_hidden_layers", None)
    stack = next((each for each in model.modules() if isinstance(each, nn.ModuleList) and len(each) == count), None)
    if stack is None:
        raise DataError(f"a {type(model).__name__} has no list of layers to freeze; leave frozen_layers at 0")
    check_range(f"{WHERE}.frozen_layers", layers, 0, len(stack))
    return [*held, *stack[:layers]]


def _checkpoint_gradients(model: Any, model_folder: Path) -> None:
    try:
        model.activation_checkpointing_enable({"use_reentrant": False})
    except ValueError as error:
        raise DataError(
            f"a {type(model).__name__} ({model_folder.name}) has no gradient checkpointing: {error}. "
            f"Leave {WHERE}.gradient_checkpointing false and lower the tokens a step instead"
        ) from error
