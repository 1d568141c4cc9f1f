"""Weights from the host pruned by magnitude: a quantile gives the threshold, the rows that are left are gathered.

Expected: ends well, exact if (which of equal values topk takes is not specified)
"""

import os

import torch
from torch.nn.utils import prune

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
layer = torch.nn.Linear(128, 64).to(device)
threshold = torch.quantile(layer.weight.detach().abs(), 0.8)
kept = layer.weight.detach().abs() > threshold
print("size kept", int(kept.sum()), torch.nonzero(kept).shape[0])
strong = kept.sum(1) > kept.sum(1).float().median()
print("size rows", layer.weight[strong].shape[0])
prune.l1_unstructured(layer, "weight", amount=0.5)
prune.remove(layer, "weight")
sparse = layer.weight.detach().to_sparse()
print("size nonzero", sparse._nnz())
