"""The next token: the likeliest, or one drawn by a random number that belongs to its row alone."""

import numpy as np
import torch
from torch import Tensor

from coderet.sampling import Sampling

FEW = 128  # tokens that are looked at first: nearly always they hold the share that top_p asks for


def likeliest(logits: Tensor) -> Tensor:
    """(B,) of logits (B, V)."""
    return logits.argmax(dim=-1)


def drawn(logits: Tensor, sampling: Sampling, numbers: np.ndarray) -> Tensor:
    """(B,) tokens of logits (B, V), row i by the number (B,) in [0, 1) of its place.

    The logits are divided by the temperature, top_k keeps the largest, and of these top_p the fewest whose share
    reaches it (Holtzman et al., 2020). A row's token depends on nothing but that row and its number.
    """
    scaled = logits.float() / sampling.temperature
    few = FEW if not sampling.top_k else sampling.top_k
    while True:
        few = min(few, scaled.shape[1])
        values, tokens = scaled.topk(few, dim=1)  # largest first
        all_of_them = values if sampling.top_k else scaled
        shares = (values.double() - all_of_them.double().logsumexp(dim=1, keepdim=True)).exp()
        reached = shares.cumsum(dim=1)
        if sampling.top_k or few == scaled.shape[1] or bool((reached[:, -1] >= sampling.top_p).all()):
            break
        few = scaled.shape[1]
    kept = shares * (reached - shares < sampling.top_p)
    reached = kept.cumsum(dim=1)
    wanted = torch.from_numpy(numbers).to(reached.device)[:, None] * reached[:, -1:]
    places = (reached <= wanted).sum(dim=1, keepdim=True).clamp_(max=few - 1)
    return tokens.gather(1, places)[:, 0]
