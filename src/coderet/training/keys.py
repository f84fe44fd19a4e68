"""What tells whether two texts are the same: a number each, equal but for line ends and outer white space."""

import hashlib

import numpy as np
import pyarrow as pa

TEXTS_AT_A_TIME = 4096


def text_keys(texts: pa.ChunkedArray) -> np.ndarray:
    """(N,) int64 `text_key` of each; a null text is the empty text."""
    keys = (
        text_key(text or "")
        for chunk in texts.chunks
        for start in range(0, len(chunk), TEXTS_AT_A_TIME)
        for text in chunk.slice(start, TEXTS_AT_A_TIME).to_pylist()
    )
    return np.fromiter(keys, np.int64, len(texts))


def text_key(text: str) -> int:
    """An int64, equal for texts that are equal but for their kind of line ends and outer white space."""
    digest = hashlib.blake2b(text.replace("\r\n", "\n").strip().encode("utf-8"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
