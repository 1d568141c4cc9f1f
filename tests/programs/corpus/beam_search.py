"""Beam search of one's own over a table of transitions from the host, until all beams have ended.

Expected: ends well, exact
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
words, beams, end = 50, 4, 0
table = torch.randn(words, words).log_softmax(-1).to(device)
tokens = torch.full((beams, 1), 7, device=device)
scores = torch.tensor([0.0] + [-1e9] * (beams - 1)).to(device)
ended = torch.zeros(beams, dtype=torch.bool, device=device)
while not ended.all() and tokens.shape[1] < 30:
    following = table[tokens[:, -1]].masked_fill(ended[:, None], -1e9)
    following[:, end] = torch.where(ended, torch.zeros_like(scores), following[:, end])
    scores, flat = (scores[:, None] + following).flatten().topk(beams)
    beam, word = flat // words, flat % words
    tokens = torch.cat([tokens[beam], word[:, None]], 1)
    ended = ended[beam] | (word == end)
print("size tokens", tuple(tokens.shape), ended.tolist(), tokens[0].tolist())
