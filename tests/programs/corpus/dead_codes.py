"""A vector quantiser: the nearest code by distance, codes that nobody uses are set to inputs again, averages by counts.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (used and dead codes)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
codes = torch.randn(64, 8).to(device)
counts, sums = torch.ones(64, device=device), codes.clone()
for step in range(4):
    x = torch.randn(256, 8).to(device)
    nearest = torch.cdist(x, codes).argmin(1)
    used = torch.nn.functional.one_hot(nearest, 64).float()
    counts.mul_(0.9).add_(used.sum(0), alpha=0.1)
    sums.mul_(0.9).add_(used.T @ x, alpha=0.1)
    codes = sums / counts[:, None]
    dead = (counts < 0.8).nonzero().squeeze(1)
    fresh = x[torch.randperm(256)[: len(dead)].to(device)]
    codes[dead], sums[dead], counts[dead] = fresh, fresh, 1.0
    print("size codes", len(dead), nearest.unique().numel(), int(used.sum(0).max()))
