"""Online mining of hard examples: those with the largest losses are kept, by topk, sort and a cumulated sum from the host's numbers.

Expected: ends well, exact if (how a card rounds)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
losses = torch.rand(400).to(device)
hardest = losses.topk(40)
print("size over", int((losses >= hardest.values[-1]).sum()), int(hardest.indices.max()))
ordered, index = losses.sort(descending=True)
share = ordered.cumsum(0) / ordered.sum()
count = int((share < 0.5).sum()) + 1
print("size half", count, losses[index[:count]].numel())
pairs = torch.triu((torch.cdist(losses[:, None], losses[:, None]) < 0.01).int(), 1).nonzero()
print("size pairs", pairs.shape[0])
