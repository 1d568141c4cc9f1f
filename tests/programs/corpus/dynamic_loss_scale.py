"""DeepSpeed's dynamic loss scale by hand: gradients that overflow are found on the card, the step is skipped and the scale halved.

Expected: ends well, exact
Truth: the CPU's run (which steps are skipped)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
weight = torch.nn.Parameter(torch.randn(64, 64).half().to(device))
master = weight.detach().float().clone()
moments = None
scale, skipped, kept = 2.0**24, 0, []
for step in range(16):
    x = torch.randn(32, 64).half().to(device)
    ((x @ weight).float().mean() * scale).backward()
    gradient = weight.grad.float()
    overflow = gradient.isinf().any().logical_or(gradient.isnan().any())
    if overflow.item():
        skipped += 1
        scale /= 2
    else:
        moments = torch.zeros_like(master) if moments is None else moments
        moments.mul_(0.9).add_(gradient / scale)
        master.sub_(moments, alpha=1e-3)
        weight.data.copy_(master)
        kept.append(torch.zeros(1 << 18, device=device))
    weight.grad = None
print("size skipped", skipped, scale, len(kept))
