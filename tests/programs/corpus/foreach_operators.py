"""torch._foreach_* on lists of tensors from the host, with norms that decide how much is clipped.

Expected: ends well, exact if (how a card rounds)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
weights = [torch.full((n, n), float(n)).to(device) for n in (2, 3, 4)]
gradients = [torch.ones(n, n).to(device) for n in (2, 3, 4)]
norms = torch._foreach_norm(gradients)
total = torch.linalg.vector_norm(torch.stack(norms))
torch._foreach_mul_(gradients, torch.clamp(1.0 / total, max=1.0))
torch._foreach_add_(weights, gradients, alpha=-0.5)
torch._foreach_lerp_(weights, [torch.zeros_like(w) for w in weights], 0.1)
large = [int((w > 2.0).sum()) for w in weights]
print("size large", large, torch.cat([w[w > 2.0] for w in weights]).numel())
print("size norms", [round(n.item(), 3) for n in norms], round(total.item(), 3))
