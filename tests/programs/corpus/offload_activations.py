"""Activations kept in pinned host memory between forward and backward, and a state dict that visits the host.

Expected: ends well, exact if (numbers that nobody knows are read)
"""

import torch

model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU()) for _ in range(6)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(2):
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = model(torch.randn(128, 256, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
kept = {name: value.to("cpu") for name, value in model.state_dict().items()}
model.to("cpu")
torch.cuda.empty_cache()
model.cuda().load_state_dict(kept)
