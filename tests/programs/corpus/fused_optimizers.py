"""Fused Adam, AdamW, SGD and Adagrad, and the forms with foreach and without it.

Expected: ends well, exact
"""

import torch

for name, options in (("Adam", {"fused": True}), ("AdamW", {"fused": True, "amsgrad": True}), ("SGD", {"fused": True, "momentum": 0.9}),
                      ("Adam", {"foreach": True}), ("Adam", {"foreach": False}), ("SGD", {"foreach": True, "momentum": 0.9}),
                      ("Adam", {"foreach": False, "capturable": True}), ("RMSprop", {"foreach": True, "centered": True})):  # fmt: skip
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Linear(256, 256)).cuda()
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=1e-3, **options)
    torch.cuda.reset_peak_memory_stats()
    for step in range(2):
        optimizer.zero_grad()
        model(torch.randn(8, 256, device="cuda")).square().mean().backward()
        optimizer.step()
    print(name, options, torch.cuda.max_memory_allocated())
