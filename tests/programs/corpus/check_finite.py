"""A guard that ends the training when a loss is not finite: a truth that rests on the network.

Expected: ends well, exact if (that the loss is finite is a condition)
"""

import math

import torch

model = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(3):
    loss = torch.nn.functional.cross_entropy(model(torch.rand(64, 784).cuda()), torch.randint(10, (64,)).cuda())
    if not torch.isfinite(loss):
        raise SystemExit("the loss is not finite")
    assert math.isfinite(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
