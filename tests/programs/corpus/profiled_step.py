"""torch.profiler around training steps, with memory and shapes, and its table printed.

Expected: ends well, exact if (an emulated card has no times)
"""

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256)).cuda()
optimizer = torch.optim.Adam(model.parameters())
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True, record_shapes=True,
             schedule=schedule(wait=1, warmup=1, active=2)) as profiler:  # fmt: skip
    for step in range(4):
        with record_function("step"):
            optimizer.zero_grad()
            model(torch.randn(32, 256, device="cuda")).square().mean().backward()
            optimizer.step()
        profiler.step()
names = {event.key for event in profiler.key_averages()}
assert "aten::addmm" in names and "step" in names
