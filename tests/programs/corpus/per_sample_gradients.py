"""Gradients of every sample by torch.func (vmap over grad), clipped and with noise: differentially private training.

Expected: ends well, exact
"""

import torch
from torch.func import functional_call, grad, vmap

model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4)).cuda()
parameters = {name: value.detach() for name, value in model.named_parameters()}


def loss_of(parameters, x, y):
    return torch.nn.functional.cross_entropy(functional_call(model, parameters, x[None]), y[None])


for step in range(2):
    x, y = torch.randn(16, 64).cuda(), torch.randint(4, (16,)).cuda()
    gradients = vmap(grad(loss_of), in_dims=(None, 0, 0))(parameters, x, y)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)
    scale = (1.0 / norms).clamp(max=1.0)
    for name, gradient in gradients.items():
        mean = torch.einsum("b,b...->...", scale, gradient) / 16
        parameters[name] = parameters[name] - 0.1 * (mean + 0.01 * torch.randn_like(mean))
