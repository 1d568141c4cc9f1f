"""A weight compressed by a singular value decomposition to the rank that keeps 90% of its energy.

Expected: ends well, lower bound (cuSOLVER's workspaces)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
weight = (torch.randn(96, 12) @ torch.randn(12, 64) + 0.05 * torch.randn(96, 64)).to(device)
u, s, v = torch.linalg.svd(weight, full_matrices=False)
energy = s.square().cumsum(0) / s.square().sum()
rank = int((energy < 0.9).sum()) + 1
print("size rank", rank)
small = u[:, :rank] * s[:rank], v[:rank]
print("size weights", sum(part.numel() for part in small), int(torch.linalg.matrix_rank(small[0] @ small[1])))
