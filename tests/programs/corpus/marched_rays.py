"""Rays through a grid from the host: those that are still alive go on, until none is left; samples that see nothing are thrown away.

Expected: ends well, exact
Truth: the CPU's run (rays and samples)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
grid = (torch.rand(16, 16, 16) > 0.7).to(device)
origins = torch.cat([torch.rand(200, 2), torch.zeros(200, 1)], 1).to(device)
directions = torch.nn.functional.normalize(torch.cat([torch.rand(200, 2) - 0.5, torch.ones(200, 1)], 1), dim=1).to(device)
alive, at, light = torch.arange(200, device=device), torch.zeros(200, device=device), torch.ones(200, device=device)
samples, rounds = [], 0
while alive.numel():
    at[alive] += 0.05
    places = origins[alive] + at[alive, None] * directions[alive]
    inside = ((places >= 0) & (places < 1)).all(1)
    alive, places = alive[inside], places[inside]
    cells = (places * 16).long()
    hit = grid[cells[:, 0], cells[:, 1], cells[:, 2]]
    samples.append(places[hit])
    light[alive[hit]] *= 0.5
    alive = alive[light[alive] > 0.05]
    rounds += 1
samples = torch.cat(samples)
print("size rays", rounds, len(samples), int((light < 0.1).sum()))
density = torch.nn.Linear(3, 8).to(device)(samples)
print("size density", tuple(density.shape))
