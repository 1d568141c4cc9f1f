"""torch.compile of a training step, by its default backend.

Expected: ends well, exact (skipped where triton is missing)
"""

import importlib.util
import sys

if not importlib.util.find_spec("triton"):
    print("SKIP: no triton")
    sys.exit(77)

import torch  # noqa: E402  what it needs is asked first

model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 8)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
compiled = torch.compile(model)
for step in range(3):
    optimizer.zero_grad()
    compiled(torch.randn(32, 64, device="cuda")).square().mean().backward()
    optimizer.step()
