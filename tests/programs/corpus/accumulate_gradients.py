"""Micro-batches whose gradients are added up, with a loss that is averaged on the card and read once.

Expected: ends well, exact (the loss is unknown, and printed when all is allocated)
"""

import torch

model = torch.nn.Sequential(torch.nn.Embedding(1000, 64), torch.nn.Flatten(), torch.nn.Linear(64 * 16, 1000)).cuda()
optimizer = torch.optim.NAdam(model.parameters())
mean = torch.zeros((), device="cuda")
for step in range(3):
    for micro in range(4):
        tokens = torch.randint(1000, (8, 17)).cuda()
        loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]), tokens[:, -1]) / 4
        loss.backward()
        mean += loss.detach()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
print("loss", mean.item() / 3)
