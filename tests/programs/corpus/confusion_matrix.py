"""Metrics of labels and predictions from the host: a confusion matrix, per-class scores, thresholds of a curve.

Expected: ends well, exact
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
labels, predicted, scores = (x.to(device) for x in (torch.randint(6, (500,)), torch.randint(6, (500,)), torch.rand(500)))
matrix = torch.bincount(labels * 6 + predicted, minlength=36).view(6, 6)
print("size right", matrix.diagonal().sum().item(), (matrix.diagonal() / matrix.sum(0)).argmax().item())
order = scores.argsort(descending=True)
hits = (labels[order] == 2).cumsum(0)
print("size curve", int((hits.diff() > 0).sum()), torch.unique(hits).numel(), torch.searchsorted(hits, torch.tensor(40).to(device)).item())
print("size bins", torch.histc(scores, 8, 0, 1).int().tolist(), torch.bucketize(scores, torch.linspace(0, 1, 5).to(device)).max().item())
