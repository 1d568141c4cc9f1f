"""Principal components of the host's points by eigh and by svd: as many as explain 90% of the variance, and the points in them.

Expected: ends well, lower bound (cuSOLVER's workspaces)
Truth: the CPU's run (number of components)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
mixing = torch.randn(6, 30) + 0.2 * torch.randn(6, 30)
points = (torch.randn(500, 6) @ mixing + 0.3 * torch.randn(500, 30)).to(device)
centred = points - points.mean(0)
values, vectors = torch.linalg.eigh(centred.T @ centred / 499)
share = values.flip(0).cumsum(0) / values.sum()
count = int((share < 0.9).sum()) + 1
projected = centred @ vectors.flip(1)[:, :count]
print("size eigh", count, tuple(projected.shape))
singular = torch.linalg.svdvals(centred)
rank = (singular > singular[0] * 0.05).sum().item()
print("size rank", rank, torch.linalg.matrix_rank(points[:, :3]).item())
basis, _ = torch.linalg.qr(projected)
print("size basis", tuple(basis.shape))
