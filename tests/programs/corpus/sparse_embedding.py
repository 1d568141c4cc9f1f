"""Matrix factorisation for recommendations: embeddings with sparse gradients and SparseAdam.

Expected: ends well, exact
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
users, items = (torch.nn.Embedding(5000, 16, sparse=True).to(device) for _ in range(2))
optimizer = torch.optim.SparseAdam([*users.parameters(), *items.parameters()])
for step in range(3):
    who, what = torch.randint(100, (256,)).to(device), torch.randint(5000, (256,)).to(device)
    loss = ((users(who) * items(what)).sum(-1) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    print("size rows", users.weight.grad.coalesce().indices().shape[1], items.weight.grad.coalesce().indices().shape[1])
    optimizer.step()
