"""A graph network: messages along edges by index_add and scatter, a pool over graphs, edges without loops.

Expected: ends well, exact
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
nodes, edges = torch.randn(60, 16).to(device), torch.randint(60, (2, 300)).to(device)
edges = edges[:, edges[0] != edges[1]]
print("size edges", edges.shape[1], torch.unique(edges, dim=1).shape[1])
graph_of = torch.repeat_interleave(torch.arange(3).to(device), torch.tensor([10, 20, 30]).to(device))
print("size nodes", graph_of.numel(), int(graph_of.max()) + 1)
layers = torch.nn.ModuleList(torch.nn.Linear(32, 16) for _ in range(3)).to(device)
head = torch.nn.Linear(16, 2).to(device)
optimizer = torch.optim.Adam([*layers.parameters(), *head.parameters()])
for step in range(2):
    x = nodes
    degree = torch.zeros(60, device=device).index_add_(0, edges[1], torch.ones(edges.shape[1], device=device)).clamp(min=1)
    for layer in layers:
        message = torch.zeros_like(x).index_add(0, edges[1], x[edges[0]]) / degree[:, None]
        strongest = torch.full_like(x, -1e9).scatter_reduce(0, edges[1, :, None].expand(-1, 16), x[edges[0]], "amax")
        x = torch.relu(layer(torch.cat([x, message + strongest.clamp(min=-1)], -1)))
    pooled = torch.zeros(3, 16, device=device).index_add(0, graph_of, x)
    loss = torch.nn.functional.cross_entropy(head(pooled), torch.tensor([0, 1, 1]).to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
