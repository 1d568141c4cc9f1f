"""Stochastic weight averaging with its learning rate, and the update of batch normalisation's statistics.

Expected: ends well, exact
"""

import torch
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(), torch.nn.Linear(64, 2)).cuda()
data = [(torch.randn(16, 32).cuda(), torch.randint(2, (16,)).cuda()) for _ in range(4)]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
average, schedule = AveragedModel(model), SWALR(optimizer, swa_lr=0.05)
for epoch in range(2):
    for x, y in data:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    average.update_parameters(model)
    schedule.step()
update_bn([x for x, _ in data], average, device="cuda")
