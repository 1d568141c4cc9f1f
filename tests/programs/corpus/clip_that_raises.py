"""Gradients are clipped with an error where their norm is not finite, and the norm is logged: what is taken for finite is a condition.

Expected: ends well, exact if
Truth: a twin that clips without looking
"""

import os

import torch

looks = "PROGRAM_TWIN" not in os.environ
model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.NAdam(model.parameters())
norms = []
for step in range(3):
    model(torch.randn(32, 512).cuda()).square().mean().backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1, error_if_nonfinite=looks)
    norms.append(norm if not looks else norm.detach())
    optimizer.step()
    optimizer.zero_grad()
if looks:
    print("norms", [round(float(norm), 3) for norm in norms])
