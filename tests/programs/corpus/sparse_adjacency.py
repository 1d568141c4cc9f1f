"""A graph's adjacency from the host as a sparse matrix: edges that stand twice are added up, normalised, and features spread over it.

Expected: ends well, unreliable (the indices of a transposed sparse matrix are not known)
Truth: the CPU's run (edges)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
edges = torch.randint(0, 60, (2, 400)).to(device)
adjacency = torch.sparse_coo_tensor(edges, torch.ones(400, device=device), (60, 60)).coalesce()
print("size edges", adjacency._nnz(), adjacency.values().max().item())
degree = torch.sparse.sum(adjacency, 1).to_dense().clamp(min=1)
rows, _ = adjacency.indices()
normal = torch.sparse_coo_tensor(adjacency.indices(), adjacency.values() / degree[rows], (60, 60)).coalesce()
features = torch.randn(60, 16).to(device)
weight = torch.randn(16, 16).to(device).requires_grad_()
out = torch.sparse.mm(normal, torch.relu(torch.sparse.mm(normal, features @ weight)))
out.square().mean().backward()
heavy = adjacency.values() > 1
print("size heavy", heavy.sum().item(), adjacency.indices()[:, heavy].shape[1], (degree > 8).sum().item())
