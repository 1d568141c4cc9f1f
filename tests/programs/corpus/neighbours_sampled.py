"""Neighbours of a batch of nodes are sampled on the card as graph loaders do, and their ids made small again by unique.

Expected: ends well, exact
Truth: the CPU's run (nodes and edges of every hop)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
nodes = 500
source, target = torch.randint(nodes, (2, 3000))
order = target.argsort(stable=True)
source = source[order].to(device)
starts = torch.nn.functional.pad(torch.bincount(target, minlength=nodes).cumsum(0), (1, 0)).to(device)
features = torch.randn(nodes, 32).to(device)
layers = [torch.nn.Linear(32, 32).to(device) for _ in range(2)]
seeds = torch.randperm(nodes)[:32].to(device)
hops, frontier = [], seeds
for hop in range(2):
    degree = starts[frontier + 1] - starts[frontier]
    taken = degree.clamp(max=5)
    owner = torch.repeat_interleave(torch.arange(len(frontier), device=device), taken)
    nth = torch.arange(len(owner), device=device) - (taken.cumsum(0) - taken)[owner]
    edge = starts[frontier[owner]] + nth
    everyone, small = torch.unique(torch.cat([frontier, source[edge]]), return_inverse=True)
    hops.append((owner, small[len(frontier) :], small[: len(frontier)], len(everyone)))
    print("size hop", hop, len(owner), len(everyone), int(degree.max()))
    frontier = everyone
hidden = features[frontier]
for layer, (owner, neighbour, itself, count) in zip(layers, reversed(hops)):
    message = torch.zeros(len(itself), 32, device=device).index_add(0, owner, hidden[neighbour])
    hidden = torch.relu(layer(hidden[itself] + message))
print("size out", tuple(hidden.shape))
hidden.square().mean().backward()
