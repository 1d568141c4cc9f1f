"""Data augmented on the card: permutations, flips by coin, crops at places that the host draws, mixup and cutout.

Expected: ends well, exact
"""

import random

import torch

random.seed(0)
images = torch.rand(32, 3, 40, 40).cuda()
for epoch in range(3):
    batch = images[torch.randperm(32, device="cuda")]
    batch = torch.where(torch.rand(32, 1, 1, 1, device="cuda") < 0.5, batch.flip(-1), batch)
    top, left = random.randrange(8), random.randrange(8)
    batch = batch[..., top : top + 32, left : left + 32].contiguous()
    share = torch.distributions.Beta(0.4, 0.4).sample().item()
    batch = share * batch + (1 - share) * batch.roll(1, 0)
    batch[:, :, 8:16, 8:16] = 0
    batch = torch.nn.functional.interpolate(batch, size=48, mode="bilinear", antialias=True)
assert batch.shape == (32, 3, 48, 48)
