"""An ensemble of networks by torch.func: stacked parameters, vmap over all, gradients of each, Jacobians and a Hessian.

Expected: ends well, exact
Truth: the CPU's run (shapes); no number decides anything
"""

import os

import torch
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, stack_module_state, vmap

device = os.environ.get("PROGRAM_DEVICE", "cuda")
models = [torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4)).to(device) for _ in range(5)]
parameters, buffers = stack_module_state(models)
x = torch.randn(32, 16, device=device)


def outputs(own, x):
    return functional_call(models[0], own, (x,))


def loss(own, x):
    return outputs(own, x).square().mean()


print("size outputs", tuple(vmap(outputs, (0, None))(parameters, x).shape))
gradients = vmap(grad(loss), (0, None))(parameters, x)
for name, value in parameters.items():
    parameters[name] = value.detach() - 0.1 * gradients[name]
own = {name: value[0] for name, value in parameters.items()}
backward = vmap(jacrev(lambda row: outputs(own, row)))(x)
forward = vmap(jacfwd(lambda row: outputs(own, row)))(x)
second = hessian(lambda row: loss(own, row))(x[0])
print("size jacobians", tuple(backward.shape), tuple(forward.shape), tuple(second.shape))
assert torch.allclose(torch.ones(3, device=device), torch.ones(3, device=device))
