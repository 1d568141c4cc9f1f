"""A diffusion model of vectors: training on drawn steps, then sampling with guidance and a threshold by quantile.

Expected: ends well, exact
Truth: the CPU's run (shapes); no number decides anything
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
betas = torch.linspace(1e-4, 0.02, 100, device=device)
kept = (1 - betas).cumprod(0)
network = torch.nn.Sequential(torch.nn.Linear(65, 256), torch.nn.SiLU(), torch.nn.Linear(256, 64)).to(device)
optimizer = torch.optim.AdamW(network.parameters())
for step in range(3):
    x, noise = torch.randn(128, 64, device=device), torch.randn(128, 64, device=device)
    t = torch.randint(0, 100, (128,), device=device)
    noisy = kept[t, None].sqrt() * x + (1 - kept[t, None]).sqrt() * noise
    loss = (network(torch.cat([noisy, t[:, None] / 100], 1)) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.inference_mode():
    x = torch.randn(16, 64, device=device)
    for at, before in zip(range(99, 0, -11), [*range(88, 0, -11), 0]):
        time = torch.full((16, 1), at / 100, device=device)
        noise = network(torch.cat([x, time], 1))
        clean = (x - (1 - kept[at]).sqrt() * noise) / kept[at].sqrt()
        limit = clean.abs().quantile(0.995, dim=1, keepdim=True).clamp(min=1)
        clean = clean.clamp(-limit, limit) / limit
        x = kept[before].sqrt() * clean + (1 - kept[before]).sqrt() * noise
    print("size samples", tuple(x.shape), at)
