"""A tiny real cross-encoder on disk: a two-layer BERT with random weights and a tokenizer over a few words."""

from pathlib import Path

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"sort a list of numbers binary search tree def return x".split()]


def write_cross_encoder(folder: Path, *, labels: int = 1, sides: bool = True, places: int = 40, seed: int = 0) -> Path:
    """sides: whether the tokenizer tells the model which of the two texts a token is of."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=places,
        initializer_range=0.5,
        num_labels=labels,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    fast = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    fast.normalizer = normalizers.Lowercase()
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    fast.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=fast,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=["input_ids", *(["token_type_ids"] if sides else []), "attention_mask"],
    ).save_pretrained(folder)
    return folder
