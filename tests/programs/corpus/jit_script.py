"""A scripted function with a loop and a branch that the card's numbers decide, and a scripted module that is trained.

Expected: ends well, exact
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")


@torch.jit.script
def halve_until(x: torch.Tensor, limit: float) -> int:
    steps = 0
    while bool(x.max() > limit):
        x = x / 2 if bool(x.sum() > 0) else x / 4
        steps += 1
    return steps


print("size steps", halve_until(torch.arange(100.0).to(device), 0.5))
model = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(8, 16).to(device)).square().mean().backward()
    optimizer.step()
