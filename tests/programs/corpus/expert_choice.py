"""Experts that choose their tokens (topk over tokens), and a router with a capacity that drops what does not fit: sizes that no number decides.

Expected: ends well, exact
Truth: a twin in which each expert takes the first tokens
"""

import os

import torch

in_order = "PROGRAM_TWIN" in os.environ
tokens, width, experts, capacity = 4096, 256, 8, 640
router = torch.nn.Linear(width, experts).cuda()
first = torch.nn.Parameter(torch.randn(experts, width, 4 * width, device="cuda") * 0.02)
second = torch.nn.Parameter(torch.randn(experts, 4 * width, width, device="cuda") * 0.02)
optimizer = torch.optim.AdamW([*router.parameters(), first, second])
for step in range(2):
    x = torch.randn(tokens, width, device="cuda")
    scores = router(x).softmax(-1)
    gates, chosen = scores.T.topk(capacity, dim=-1)
    chosen = torch.arange(capacity, device="cuda").repeat(experts, 1) if in_order else chosen.clone()
    hidden = torch.nn.functional.gelu(torch.bmm(x[chosen], first))
    out = torch.zeros_like(x).index_add(0, chosen.flatten(), (torch.bmm(hidden, second) * gates[..., None]).flatten(0, 1))
    optimizer.zero_grad()
    (out - x).square().mean().backward()
    optimizer.step()
