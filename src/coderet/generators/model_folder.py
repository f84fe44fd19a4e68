"""A plain model folder for a generator, from a pinned source: copied as it is, or made of a GGUF file.

A GGUF file holds weights in a few bits. They are computed back to numbers and written in bf16, whose steps are finer
than those of the bits, beside a tokenizer made from the file's. How such a tokenizer parts a text before it looks words
up is only named in the file: names whose rule is known here are taken, others refused, for a wrong rule is not seen.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from coderet.corpora import sources
from coderet.records import DataError

MODEL = "model"  # the model's own files, in a generator's folder
DIGITS_APART = {"smollm", "starcoder", "refact", "command-r", "codeshell"}  # and the rest as GPT-2 does
AS_TRANSFORMERS_DOES = {"default", "gpt-2", "qwen2", "llama-bpe"}


def prepare(source: str, folder: str, file: str | None, work: Path, target: Path) -> None:
    """Fetch source into work and put its model into target/model. folder: where in it; file: a GGUF file there.

    DataError if there is no such folder or file, or a GGUF file cannot be made into a model.
    """
    sources.fetch([source], work)
    place = work / sources.parse(source).name / folder
    if not place.is_dir() or not (place / (file or "config.json")).is_file():
        raise DataError(f"{source} has no {folder}/{file or 'config.json'}; wanted a model's folder, or a GGUF file")
    if file is None:
        shutil.copytree(place, target / MODEL)
    else:
        convert(place / file, target / MODEL)


def convert(file: Path, target: Path) -> None:
    """A model folder in bf16 from a GGUF file; DataError if it is not one, or of a kind that is not known."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    rule = _rule(file)
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            file.parent,
            gguf_file=file.name,
            dtype=torch.float32,
            quantization_config=GgufConfig(dequantize=True),
            local_files_only=True,
        )
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name, local_files_only=True)
    except Exception as error:  # transformers raises whatever it lacks or finds broken
        raise DataError(f"{file.name} cannot be made into a model folder: {error}") from error
    if rule in DIGITS_APART:
        _part_digits(tokenizer)
    model.to(torch.bfloat16).save_pretrained(target)
    tokenizer.save_pretrained(target)
    _forget_origin(target / "config.json")


def _rule(file: Path) -> str | None:
    """How the file says that text is parted, None for a tokenizer that does not part it."""
    try:
        from gguf import GGUFReader

        reader: Any = GGUFReader(file)
        fields = {name: reader.fields.get(f"tokenizer.ggml.{name}") for name in ("model", "pre")}
        kind, rule = (str(each.contents()) if each is not None else None for each in fields.values())
    except Exception as error:  # the reader raises whatever a broken file makes of itself
        raise DataError(f"{file.name} is not a whole GGUF file ({type(error).__name__}: {error})") from error
    if kind == "gpt2" and rule not in DIGITS_APART | AS_TRANSFORMERS_DOES:
        known = ", ".join(sorted(DIGITS_APART | AS_TRANSFORMERS_DOES))
        raise DataError(
            f"{file.name} has a tokenizer that parts text by the rule {rule!r}; known: {known}. Take the model's own "
            "folder, by a source of hub: or file:"
        )
    return rule


def _part_digits(tokenizer: Any) -> None:
    """Let every digit stand alone, which transformers leaves out of what it makes of such a file."""
    from tokenizers import pre_tokenizers

    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def _forget_origin(path: Path) -> None:
    """Leave out of config.json where it was made from, so that the folder is the same wherever it is made."""
    config = json.loads(path.read_text(encoding="utf-8"))
    config.pop("_name_or_path", None)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
