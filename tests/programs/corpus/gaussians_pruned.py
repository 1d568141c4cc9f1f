"""Gaussian splatting's housekeeping: points are cloned and pruned by masks, and Adam's state is cut and joined with them.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (points)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
means = torch.nn.Parameter(torch.randn(300, 3).to(device))
opacity = torch.nn.Parameter(torch.randn(300).to(device))
optimizer = torch.optim.Adam([{"params": [means], "lr": 0.05}, {"params": [opacity], "lr": 0.05}])


def replaced(index, change):
    (old,) = optimizer.param_groups[index]["params"]
    state = optimizer.state.pop(old)
    fresh = torch.nn.Parameter(change(old.detach(), True))
    for name in ("exp_avg", "exp_avg_sq"):
        state[name] = change(state[name], False)
    optimizer.param_groups[index]["params"] = [fresh]
    optimizer.state[fresh] = state
    return fresh


for step in range(6):
    target = torch.rand(3).to(device)
    ((means - target).square().sum(1) * opacity.sigmoid()).mean().backward()
    moved = means.grad.norm(dim=1) * len(means)
    optimizer.step()
    optimizer.zero_grad()
    if step % 2:
        grown = torch.where(moved >= moved.quantile(0.9))[0]
        grow = lambda old, real: torch.cat([old, old[grown] if real else torch.zeros_like(old[grown])])
        means, opacity = replaced(0, grow), replaced(1, grow)
        kept = opacity.detach().sigmoid() > 0.25
        means, opacity = replaced(0, lambda old, real: old[kept]), replaced(1, lambda old, real: old[kept])
        print("size points", len(grown), len(means), tuple(optimizer.state[means]["exp_avg"].shape))
