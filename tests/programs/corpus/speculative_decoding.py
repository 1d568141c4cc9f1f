"""Speculative decoding: a draft proposes four tokens, the larger model takes as many as it agrees with, and both caches are cut to that.

Expected: ends well, exact
Truth: the CPU's run (accepted tokens of each round)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
words = 20
table = 2 * torch.randn(words, words)
large = table.to(device)
draft = (table + 1.2 * torch.randn(words, words)).to(device)
tokens = torch.tensor([3], device=device)
cache, accepted = torch.zeros(1, 16, device=device), []
while tokens.numel() < 60:
    proposed = tokens[-1:]
    for _ in range(4):
        proposed = torch.cat([proposed, draft[proposed[-1]].argmax()[None]])
    wanted = large[proposed].argmax(-1)
    agrees = (proposed[1:] == wanted[:-1]).long().cumprod(0)
    count = int(agrees.sum())
    accepted.append(count)
    tokens = torch.cat([tokens, proposed[1 : count + 1], wanted[count : count + 1]])
    cache = torch.cat([cache, torch.ones(5, 16, device=device)])[: tokens.numel()]
print("size accepted", accepted, tokens.numel(), tuple(cache.shape), tokens.unique().numel())
