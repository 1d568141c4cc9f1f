"""make_graphed_callables of a part of a network, trained between parts that run eagerly.

Expected: ends well, exact
Truth: the CPU's run (shapes), which has no graph; no number decides anything
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
head = torch.nn.Linear(256, 256).to(device)
body = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)).to(device)
tail = torch.nn.Linear(256, 10).to(device)
if device == "cuda":
    body = torch.cuda.make_graphed_callables(body, (torch.randn(64, 256, device="cuda", requires_grad=True),))
optimizer = torch.optim.SGD([*head.parameters(), *body.parameters(), *tail.parameters()], lr=0.1)
for step in range(4):
    optimizer.zero_grad(set_to_none=True)
    x, y = torch.randn(64, 256).to(device), torch.randint(10, (64,)).to(device)
    out = tail(body(head(x)))
    torch.nn.functional.cross_entropy(out, y).backward()
    optimizer.step()
print("size out", tuple(out.shape), [tuple(p.grad.shape) for p in body.parameters()])
