"""A linear-chain CRF: the forward algorithm over padded sentences from the host, and the best path back by pointers.

Expected: ends well, exact
Truth: the CPU's run (paths)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
tags, lengths = 5, torch.tensor([9, 7, 12, 4]).to(device)
scores = torch.randn(4, 12, tags).to(device).requires_grad_()
transitions = torch.nn.Parameter(torch.randn(tags, tags).to(device))
mask = torch.arange(12, device=device) < lengths[:, None]
alpha, best, back = scores[:, 0], scores[:, 0], []
for at in range(1, 12):
    alpha = torch.where(mask[:, at, None], torch.logsumexp(alpha[:, :, None] + transitions, 1) + scores[:, at], alpha)
    value, pointer = (best[:, :, None] + transitions).max(1)
    best = torch.where(mask[:, at, None], value + scores[:, at], best)
    back.append(pointer)
alpha.logsumexp(1).mean().backward()
paths = []
for sentence, length in enumerate(lengths.tolist()):
    tag = best[sentence].argmax().item()
    path = [tag]
    for pointer in reversed(back[: length - 1]):
        tag = pointer[sentence, tag].item()
        path.insert(0, tag)
    paths.append(path)
print("size paths", paths)
