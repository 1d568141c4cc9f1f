"""A mixture of experts with a capacity: small tokens from the host go to experts by a router that came from the host, as on the CPU.

Expected: ends well, exact if (how a card rounds)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
router = torch.nn.Linear(32, 8)
experts = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)) for _ in range(8))
router, experts = router.to(device), experts.to(device)
tokens = torch.randn(512, 32).to(device)
weights, chosen = torch.topk(torch.softmax(router(tokens), -1), 2)
out = torch.zeros_like(tokens)
for index, expert in enumerate(experts):
    rows, which = torch.where(chosen == index)
    rows, which = rows[:128], which[:128]
    print("size expert", index, rows.numel())
    out.index_add_(0, rows, expert(tokens[rows]) * weights[rows, which, None])
out.square().mean().backward()
