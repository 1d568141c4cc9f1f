"""A point cloud from the host: the farthest points, their neighbours within a ball, and voxels by unique rows.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (points, neighbours and voxels)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
points = torch.rand(1000, 3).to(device)
chosen, distance = [torch.zeros((), dtype=torch.long, device=device)], torch.full((1000,), torch.inf, device=device)
for _ in range(31):
    distance = torch.minimum(distance, (points - points[chosen[-1]]).square().sum(1))
    chosen.append(distance.argmax())
centres = points[torch.stack(chosen)]
near = torch.cdist(centres, points) < 0.15
print("size ball", int(near.sum()), near.sum(1).tolist())
group = torch.where(near, torch.arange(1000, device=device), 1000).sort(1).values[:, :16]
print("size group", int((group < 1000).sum()), group.min().item())
voxels, inverse, counts = torch.unique((points * 8).long(), dim=0, return_inverse=True, return_counts=True)
means = torch.zeros(len(voxels), 3, device=device).scatter_add_(0, inverse[:, None].expand(-1, 3), points) / counts[:, None]
print("size voxels", len(voxels), int(counts.max()), tuple(means.shape), (counts > 4).nonzero().numel())
