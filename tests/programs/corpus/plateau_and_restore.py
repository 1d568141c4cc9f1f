"""ReduceLROnPlateau with a smallest rate that ends the training, the best weights kept and put back: floats decide on the host.

Expected: ends well, exact if
Truth: a twin of as many epochs, none of which looks at the loss
"""

import copy
import os

import torch

blind = "PROGRAM_TWIN" in os.environ
model = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=1)
best, kept = float("inf"), copy.deepcopy(model.state_dict())
for epoch in range(8):
    total = 0.0
    for batch in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(torch.rand(64, 784).cuda()), torch.randint(10, (64,)).cuda())
        loss.backward()
        optimizer.step()
        total += 1.0 if blind else loss.item()
    schedule.step(total)
    if total < best:
        best, kept = total, copy.deepcopy(model.state_dict())
    if optimizer.param_groups[0]["lr"] < 1e-6:
        break
model.load_state_dict(kept)
