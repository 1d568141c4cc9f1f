"""Loops whose ends are decided on the card by numbers that came from the host: power iteration, Newton's method, bisection.

Expected: ends well, exact if (how a card rounds)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
matrix = torch.rand(16, 16).to(device)
matrix = matrix @ matrix.T
vector, steps = torch.ones(16).to(device), 0
while True:
    following = matrix @ vector
    following = following / following.norm()
    steps += 1
    if torch.allclose(following, vector, atol=1e-4) or steps > 200:
        break
    vector = following
print("size power", steps)
x, steps = torch.tensor(3.0).to(device), 0
while abs(x * x - 2) > 1e-3:
    x, steps = x - (x * x - 2) / (2 * x), steps + 1
print("size newton", steps)
low, high, steps = torch.tensor(0.0).to(device), torch.tensor(4.0).to(device), 0
while (high - low).item() > 1e-3:
    middle = (low + high) / 2
    low, high = (middle, high) if middle**3 < 10 else (low, middle)
    steps += 1
print("size bisection", steps, round(low.item(), 2))
