"""Training that stops when the loss of a validation no longer falls: a float that is compared on the host.

Expected: ends well, exact if (a floating-point number that the path depends on is named as a condition)
"""

import torch

model = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
best, patience = float("inf"), 2
for epoch in range(10):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(torch.rand(64, 784).cuda()), torch.randint(10, (64,)).cuda()).backward()
    optimizer.step()
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(model(torch.rand(64, 784).cuda()), torch.randint(10, (64,)).cuda()).item()
    best, patience = (loss, 2) if loss < best else (best, patience - 1)
    if not patience:
        break
