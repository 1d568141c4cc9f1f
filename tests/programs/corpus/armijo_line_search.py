"""Gradient descent with a backtracking line search on the host's numbers: how far it goes back, and when it ends, is read each time.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (steps and trials)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
A = torch.randn(20, 12, dtype=torch.float64).to(device)
b = torch.randn(20, dtype=torch.float64).to(device)


def objective(x):
    return torch.log1p((A @ x - b).square()).sum() + 0.01 * x.square().sum()


x = torch.zeros(12, dtype=torch.float64, device=device, requires_grad=True)
trials, path = 0, []
for step in range(200):
    value = objective(x)
    (gradient,) = torch.autograd.grad(value, x)
    slope = gradient.square().sum()
    if slope < 1e-4:
        break
    length = 1.0
    while objective((x - length * gradient).detach()) > value - 1e-4 * length * slope:
        length /= 2
        trials += 1
    x = (x - length * gradient).detach().requires_grad_()
    path.append(x.detach())
print("size steps", step, trials, len(path))
