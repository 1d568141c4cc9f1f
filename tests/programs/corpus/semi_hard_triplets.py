"""Triplets mined from embeddings of a small network: for each pair those negatives that are farther, but not by the margin.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (triplets)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
network = torch.nn.Linear(16, 8).double().to(device)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
for step in range(3):
    labels = torch.arange(32).to(device) % 4
    x = torch.randn(32, 16, dtype=torch.float64).to(device) + labels[:, None]
    embedded = torch.nn.functional.normalize(network(x), dim=1)
    distance = torch.cdist(embedded, embedded)
    same = labels[:, None] == labels[None]
    positive = same & ~torch.eye(32, dtype=torch.bool, device=device)
    gap = distance[:, None, :] - distance[:, :, None]
    semi_hard = positive[:, :, None] & ~same[:, None, :] & (gap > 0) & (gap < 0.2)
    anchor, near, far = torch.nonzero(semi_hard, as_tuple=True)
    print("size triplets", len(anchor), anchor.unique().numel())
    if len(anchor):
        loss = (distance[anchor, near] - distance[anchor, far] + 0.2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
