"""Expectation-maximisation of a Gaussian mixture on points from the host, until the likelihood stands still.

Expected: ends well, exact if (how a card rounds)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
points = torch.cat([torch.randn(150, 2) * 0.5, torch.randn(150, 2) + 4]).to(device)
means, covariances, weights = points[[0, 299]].clone(), torch.eye(2).repeat(2, 1, 1).to(device), torch.full((2,), 0.5).to(device)
before = torch.tensor(-1e9).to(device)
for round_ in range(50):
    offsets = points[:, None] - means
    solved = torch.linalg.solve(covariances, offsets.permute(1, 2, 0)).permute(2, 0, 1)
    density = -0.5 * (offsets * solved).sum(-1) - 0.5 * torch.logdet(covariances) + weights.log()
    likelihood = density.logsumexp(-1).mean()
    if (likelihood - before).abs() < 1e-4:
        break
    before = likelihood
    share = density.softmax(-1)
    weights = share.mean(0)
    means = (share.T @ points) / share.sum(0)[:, None]
    offsets = points[:, None] - means
    covariances = torch.einsum("nk,nki,nkj->kij", share, offsets, offsets) / share.sum(0)[:, None, None]
print("size rounds", round_, int((share.argmax(-1) == 0).sum()))
