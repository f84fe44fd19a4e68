"""Checkpoints of real architectures, tiny and with random weights, and a tokenizer over a few words."""

from pathlib import Path
from typing import Any

import pyarrow as pa

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<encoder-only>"]
WORDS = [*SPECIAL, *"instruct given code find : query passage sort a list of numbers in place def return tree".split()]
TEXTS = pa.array(
    ["sort a list", "", "def sort : return a list of numbers", "tree", "sort " * 25, "passage tree"], pa.large_string()
)
CHAT = (
    "{% for each in messages %}{{ each['role'] }} : {{ each['content'] }} </s>{% endfor %}"
    "{% if add_generation_prompt %} return : {% endif %}"
)
SIZES = {"vocab_size": len(WORDS), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 64, "initializer_range": 0.5, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}


def tokenizer(folder: Path, marks: str = "<s> $A </s>", **settings: Any) -> None:
    """A tokenizer over WORDS in folder."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    fast = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    fast.normalizer = normalizers.Lowercase()
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    fast.post_processor = processors.TemplateProcessing(single=marks, special_tokens=[("<s>", 0), ("</s>", 2)])
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=fast, **special, **settings).save_pretrained(folder)


def checkpoint(folder: Path, architecture: str, **settings: Any) -> Path:
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{architecture}Config")(**SIZES | settings)
    getattr(transformers, f"{architecture}Model")(config).save_pretrained(folder)
    return folder


def causal(folder: Path, architecture: str = "Llama", **settings: Any) -> Path:
    """A causal model in folder with a tokenizer over WORDS, whose chat template is a few of them."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{architecture}Config")(**SIZES | settings)
    getattr(transformers, f"{architecture}ForCausalLM")(config).save_pretrained(folder)
    tokenizer(folder, marks="<s> $A", chat_template=CHAT)
    return folder
