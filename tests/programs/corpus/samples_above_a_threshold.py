"""Scores that are copied to the host, where those above a threshold are chosen: a size that rests on the network.

Expected: ends well, unreliable (a size on the host of numbers that nobody knows)
"""

import torch

model = torch.nn.Linear(784, 1).cuda()
samples = torch.rand(4096, 784).cuda()
with torch.no_grad():
    scores = model(samples).squeeze(1).cpu()
chosen = torch.nonzero(scores > 0).squeeze(1)
kept = samples[chosen.cuda()]
print(len(kept) > 0)
