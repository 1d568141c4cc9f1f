"""Hooks: features of a middle layer, gradients that are changed and measured, and a step as soon as a gradient is there.

Expected: ends well, exact
"""

import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)).cuda()
features, sizes = {}, []
model[1].register_forward_hook(lambda module, inputs, output: features.update(relu=output.detach()))
model[2].register_full_backward_hook(lambda module, inputs, outputs: sizes.append(outputs[0].shape))
model[0].weight.register_hook(lambda gradient: gradient.clamp(-1, 1))
optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}


def step_now(parameter):
    optimizers[parameter].step()
    parameter.grad = None


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(step_now)
for step in range(3):
    model(torch.randn(32, 64, device="cuda")).square().mean().backward()
assert features["relu"].shape == (32, 128) and len(sizes) == 3
assert all(p.grad is None for p in model.parameters())
