"""A neural differential equation by an adaptive method: steps are taken or refused by their error, and memory grows with those that were taken.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (steps taken and refused)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
field = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2)).double().to(device)
for parameter in field.parameters():
    parameter.data.mul_(3)
state = torch.randn(16, 2, dtype=torch.float64).to(device)
time, step = torch.zeros((), dtype=torch.float64, device=device), torch.tensor(0.5, dtype=torch.float64, device=device)
path, refused = [state], 0
while time < 2.0:
    step = torch.minimum(step, 2.0 - time)
    one = field(state)
    two = field(state + step * one)
    error = (step * (two - one) / 2).abs().max()
    if error <= 0.02:
        state, time = state + step * (one + two) / 2, time + step
        path.append(state)
    else:
        refused += 1
    step = step * (0.9 * (0.02 / error).sqrt()).clamp(0.2, 3.0)
torch.stack(path).square().mean().backward()
print("size path", len(path), refused)
