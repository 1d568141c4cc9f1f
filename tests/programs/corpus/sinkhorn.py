"""Optimal transport between two clouds from the host by Sinkhorn's rounds until the marginals fit, and the pairs that carry most.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (rounds and pairs)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
left, right = torch.randn(60, 2, dtype=torch.float64).to(device), torch.randn(50, 2, dtype=torch.float64).to(device) + 1
cost = torch.cdist(left, right).square()
f, g = torch.zeros(60, dtype=torch.float64, device=device), torch.zeros(50, dtype=torch.float64, device=device)
a, b = torch.full_like(f, 1 / 60).log(), torch.full_like(g, 1 / 50).log()
for rounds in range(1000):
    f = 0.5 * (a - torch.logsumexp((g - cost) / 0.5, 1))
    g = 0.5 * b - 0.5 * torch.logsumexp((f[:, None] / 0.5 - cost / 0.5), 0)
    f = 0.5 * a - 0.5 * torch.logsumexp((g[None] - cost) / 0.5, 1)
    plan = ((f[:, None] + g[None] - cost) / 0.5).exp()
    if (plan.sum(0) - b.exp()).abs().sum() < 1e-4:
        break
pairs = (plan > 0.2 * plan.amax(1, keepdim=True)).nonzero()
print("size rounds", rounds, len(pairs), pairs[:, 1].unique().numel())
