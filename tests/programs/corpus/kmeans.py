"""k-means of points from the host until nothing changes: the number of rounds is the CPU's.

Expected: ends well, exact
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
points = torch.cat([torch.randn(100, 2) + 6 * torch.tensor([x, y]) for x in (0, 1) for y in (0, 1)]).to(device)
centres = points[::100].clone()
before = torch.full((400,), -1, device=device)
for round_ in range(50):
    nearest = torch.cdist(points, centres).argmin(1)
    if torch.equal(nearest, before):
        break
    before = nearest
    for k in range(4):
        if (nearest == k).any():
            centres[k] = points[nearest == k].mean(0)
print("size rounds", round_, torch.bincount(nearest, minlength=4).tolist())
