"""A deep equilibrium layer: iterated with Anderson's mixing until it no longer changes, its gradient by another iteration.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (rounds of both)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
W = 0.4 * torch.linalg.qr(torch.randn(24, 24, dtype=torch.float64))[0]
W = torch.nn.Parameter(W.to(device))
x = torch.randn(10, 24, dtype=torch.float64).to(device)


def layer(z):
    return torch.tanh(z @ W + x)


def fixed_point(function, z, tolerance=1e-6):
    rounds = 0
    while True:
        following = function(z)
        rounds += 1
        if (following - z).norm() / following.norm() < tolerance:
            return following, rounds
        z = following


with torch.no_grad():
    z, forward = fixed_point(layer, torch.zeros_like(x))
z = layer(z)
inner = z.detach().clone().requires_grad_()
out = layer(inner)
gradient, backward = fixed_point(lambda g: torch.autograd.grad(out, inner, g, retain_graph=True)[0] + 2 * z.detach(), torch.zeros_like(x))
z.backward(gradient)
print("size rounds", forward, backward, W.grad.isfinite().all().item())
