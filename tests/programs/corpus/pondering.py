"""Adaptive computation time: a cell runs for each row until its halting probabilities sum up to one, while any row is still thinking.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (steps)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
cell, halt = torch.nn.GRUCell(8, 16).to(device), torch.nn.Linear(16, 1).to(device)
x, hidden = torch.randn(40, 8).to(device), torch.zeros(40, 16, device=device)
total, steps, out = torch.zeros(40, device=device), torch.zeros(40, device=device), torch.zeros(40, 16, device=device)
rounds = 0
while (total < 0.99).any():
    hidden = cell(x, hidden)
    chance = torch.sigmoid(halt(hidden)).squeeze(1) * 0.5
    running = (total < 0.99).float()
    last = ((total + chance * running) >= 0.99).float() * running
    weight = chance * running * (1 - last) + (1 - total) * last
    total = (total + weight).detach()
    out = out + weight[:, None] * hidden
    steps += running
    rounds += 1
out.square().mean().backward()
print("size rounds", rounds, int(steps.max()), int(steps.sum()))
