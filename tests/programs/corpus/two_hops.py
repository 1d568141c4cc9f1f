"""Neighbours of neighbours: the product of a sparse matrix with itself, whose number of entries only the product tells.

Expected: ends well, lower bound (cuSPARSE's workspaces)
Truth: the CPU's run (entries)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
edges = torch.randint(0, 100, (2, 200)).to(device)
adjacency = torch.sparse_coo_tensor(edges, torch.ones(200, device=device), (100, 100)).coalesce()
squared = torch.sparse.mm(adjacency, adjacency).coalesce()
print("size entries", squared._nnz())
rows, columns = squared.indices()
far = rows != columns
print("size pairs", far.sum().item(), int(squared.values().sum()))
