"""Weights of classes from 400,000 labels and batches by masks: integers from the host, more than a mebibyte of them.

Expected: ends well, exact
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
generator = torch.Generator().manual_seed(0)
labels = torch.randint(10, (400_000,), generator=generator).to(device)
lengths = torch.randint(1, 8192, (32,), generator=generator)
mask = (torch.arange(8192)[None, :] < lengths[:, None]).long().to(device)
counts = torch.bincount(labels, minlength=10)
rare = int(counts.argmin())
print("size rare", labels[labels == rare].shape[0], counts.tolist())
if not mask.bool().all():
    tokens = torch.zeros(int(mask.sum()), 64, device=device)
    print("size tokens", tokens.shape[0], int(mask.sum(-1).max()), mask.nonzero().shape[0])
