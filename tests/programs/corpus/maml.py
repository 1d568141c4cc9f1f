"""MAML: a few steps on each task with gradients that are kept, and the second-order gradient through them; then its first-order form.

Expected: ends well, exact if
Truth: the CPU's run (tasks and steps); no number decides anything
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
weights = [torch.nn.Parameter(0.1 * torch.randn(*shape, device=device)) for shape in ((1, 512), (512,), (512, 512), (512,), (512, 1), (1,))]
outer = torch.optim.Adam(weights, lr=1e-3)


def predict(x, own):
    for at in (0, 2):
        x = torch.relu(x @ own[at] + own[at + 1])
    return x @ own[4] + own[5]


losses = []
for step, first_order in enumerate((False, False, True)):
    total = 0
    for task in range(4):
        phase = torch.rand(1, device=device)
        own = list(weights)
        for inner in range(3):
            x = 4 * torch.rand(32, 1, device=device)
            loss = (predict(x, own) - torch.sin(x + phase)).square().mean()
            gradients = torch.autograd.grad(loss, own, create_graph=not first_order)
            own = [w - 0.01 * g for w, g in zip(own, gradients)]
        x = 4 * torch.rand(32, 1, device=device)
        total = total + (predict(x, own) - torch.sin(x + phase)).square().mean()
    outer.zero_grad()
    total.backward()
    outer.step()
    losses.append(total.item() / 4)
print("size steps", len(losses))
