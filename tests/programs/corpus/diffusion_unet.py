"""A diffusion model: a small U-Net learns the noise, then a picture is drawn in ten steps, with an average of its weights.

Expected: ends well, estimate (cuDNN's workspaces)
"""

import torch
from torch import nn


class Unet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, width), nn.SiLU(), nn.Linear(width, width))
        self.down = nn.ModuleList([nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, width, 3, 2, 1), nn.Conv2d(width, width, 3, 2, 1)])
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.up = nn.ModuleList([nn.Conv2d(2 * width, width, 3, padding=1), nn.Conv2d(2 * width, 3, 3, padding=1)])

    def forward(self, x, t):
        kept = []
        for layer in self.down:
            x = nn.functional.silu(nn.functional.group_norm(layer(x), 8))
            kept.append(x)
        x = x + self.time(t[:, None])[:, :, None, None]
        flat = x.flatten(2).mT
        x = x + self.attention(flat, flat, flat)[0].mT.reshape(x.shape)
        for layer, skip in zip(self.up, reversed(kept[:2]), strict=True):
            x = layer(torch.cat([nn.functional.interpolate(x, scale_factor=2), skip], 1))
        return x


model = Unet().cuda()
average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    images, t = torch.randn(4, 3, 32, 32, device="cuda"), torch.rand(4, device="cuda")
    noise = torch.randn_like(images)
    loss = nn.functional.mse_loss(model(images * (1 - t[:, None, None, None]) + noise * t[:, None, None, None], t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update_parameters(model)
with torch.no_grad():
    x = torch.randn(1, 3, 32, 32, device="cuda")
    for t in torch.linspace(1, 0.1, 10):
        x = x - 0.1 * average(x, t.expand(1).cuda())
