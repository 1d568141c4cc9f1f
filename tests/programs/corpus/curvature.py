"""The largest eigenvalue of a network's Hessian by products with vectors, until it stands still; the network and its data came from the host.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (rounds)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double().to(device)
x, y = torch.randn(64, 8).double().to(device), torch.randn(64, 1).double().to(device)
parameters = list(model.parameters())
gradients = torch.autograd.grad((model(x) - y).square().mean(), parameters, create_graph=True)
vector = [torch.randn(p.shape, dtype=torch.float64).to(device) for p in parameters]
before, rounds, history = torch.zeros((), device=device), 0, []
while rounds < 100:
    norm = torch.sqrt(sum(v.square().sum() for v in vector))
    vector = [v / norm for v in vector]
    product = torch.autograd.grad(sum((g * v).sum() for g, v in zip(gradients, vector)), parameters, retain_graph=True)
    value = sum((p * v).sum() for p, v in zip(product, vector))
    vector = [p.detach() for p in product]
    history.append(value.detach())
    rounds += 1
    if (value - before).abs() < 1e-3 * value.abs():
        break
    before = value
print("size rounds", rounds, len(history), bool(value > 0))
