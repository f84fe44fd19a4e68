"""Text to vectors. Reading this page imports no torch: the tables name classes as strings.

ENCODERS: what can be loaded from a folder, by the `kind` in its encoder.json. TOWERS: the architectures among them that
are trained here, each of which `base.DualEncoder` makes an encoder of; so it does of two of them, of kind MIXED.
TRAINABLE: what training can start from.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coderet import registry

TOWERS = {
    "nbow": "coderet.encoders.nbow:NeuralBagOfWords",
    "convolution": "coderet.encoders.convolution:Convolution",
    "recurrent": "coderet.encoders.recurrent:Recurrent",
    "attention": "coderet.encoders.attention:Attention",
}
MIXED = "mixed"
BASE = "base"
TRAINED = dict.fromkeys([*TOWERS, MIXED], "coderet.encoders.base:DualEncoder")
ENCODERS = TRAINED | {
    "pretrained": "coderet.encoders.pretrained:Pretrained",
    "api": "coderet.encoders.api:Api",
    "static": "coderet.encoders.static:Static",
}
TRAINABLE = TRAINED | {"pretrained": "coderet.encoders.tuning:Tunable"}


def load(folder: Path, cache: Path | None = None) -> Any:
    """The encoder saved in folder; DataError if there is none or it is not whole.

    cache: a folder where vectors of documents are kept between calls and processes, for encoders that are slow enough
    to be worth it (their class says CACHED).
    """
    from coderet.encoders import encoding, settings

    kind = str(settings.read(folder)["kind"])
    encoder = registry.load(ENCODERS, kind, "encoders", f"{folder}: kind").load(folder)
    return encoding.Cached(encoder, cache) if cache is not None and getattr(encoder, "CACHED", False) else encoder


def trainable(settings: Mapping[str, Any], tokenizers: Path, work: Path) -> Any:
    """A new encoder to be trained, from `fit.encoder` of params.yaml.

    tokenizers: the folder of the vocabulary that own architectures read with. work: a folder, in which a base model is
    fetched to a folder of its own: whatever lies in that one is lost.
    UnknownName for a kind that is not known or cannot be trained, and for settings that it does not have.
    """
    from coderet.encoders import base, tokenizer

    given = dict(settings)
    kind = str(given.pop("kind", None))
    if kind in TRAINED:
        return base.DualEncoder.build(tokenizer.load(tokenizers / base.TOKENIZER), settings)
    made = registry.load(TRAINABLE, kind, "encoders that are trained", "fit.encoder.kind")
    return made.prepare(work / BASE, **registry.fit_arguments(made.prepare, given, "fit.encoder", *made.parts()))


def prepare(settings: Mapping[str, Any], work: Path) -> Any:
    """An encoder that learns nothing here, from `fit.encoder` of params.yaml; what it fetches goes to work.

    UnknownName for a kind that is not known or must be trained, and for settings that it does not have.
    """
    if not isinstance(settings, Mapping):
        raise registry.BadValue(f"fit.encoder is {settings!r}; wanted a mapping of settings")
    given = dict(settings)
    kind = str(given.pop("kind", None))
    ready = {name: place for name, place in ENCODERS.items() if name not in TRAINED}
    make = registry.load(ready, kind, "encoders that need no training", "fit.encoder.kind").prepare
    return make(work, **registry.fit_arguments(make, given, "fit.encoder"))
