"""A click model: bags of categories with offsets, two towers, and negative samples drawn on the host.

Expected: ends well, exact
"""

import torch

bags = torch.nn.ModuleList(torch.nn.EmbeddingBag(1000, 16, mode=mode) for mode in ("sum", "mean", "max")).cuda()
tower = torch.nn.Sequential(torch.nn.Linear(48 + 8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
optimizer = torch.optim.Adagrad([*bags.parameters(), *tower.parameters()], lr=0.01)
for step in range(3):
    lengths = torch.randint(1, 6, (32,))
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)[:-1]]).cuda()
    indices = torch.randint(1000, (int(lengths.sum()),)).cuda()
    features = torch.cat([*(bag(indices, offsets) for bag in bags), torch.randn(32, 8).cuda()], -1)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(tower(features)[:, 0], torch.randint(2, (32,)).float().cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
