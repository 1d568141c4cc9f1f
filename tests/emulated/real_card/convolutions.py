"""Trains a network of convolutions for two steps and prints the peaks in bytes, as JSON.

usage: convolutions.py resnet50|convnext_tiny|unet BATCH
"""

import json
import sys

import torch
import torchvision
from torch import nn


class Block(nn.Module):
    """A block of Stable Diffusion's U-Net: two convolutions with group normalisation, and a residual."""

    def __init__(self, channels, outputs, stride=1):
        super().__init__()
        self.layers = nn.Sequential(nn.GroupNorm(32, channels), nn.SiLU(), nn.Conv2d(channels, outputs, 3, stride, 1), nn.GroupNorm(32, outputs), nn.SiLU(),
                                    nn.Conv2d(outputs, outputs, 3, 1, 1))  # fmt: skip
        self.residual = nn.Conv2d(channels, outputs, 1, stride)

    def forward(self, x):
        return self.layers(x) + self.residual(x)


def unet():
    """The widths of Stable Diffusion 1.5 and its four resolutions, without attention."""
    widths = (320, 640, 1280, 1280)
    down = [Block(before, width, 2) for before, width in zip((320, *widths), widths)]
    up = [nn.Sequential(nn.Upsample(scale_factor=2), Block(width, before)) for before, width in reversed(list(zip((320, *widths), widths)))]
    return nn.Sequential(nn.Conv2d(4, 320, 3, 1, 1), *down, *up, nn.Conv2d(320, 4, 3, 1, 1))


name, batch = sys.argv[1], int(sys.argv[2])
model = (unet() if name == "unet" else getattr(torchvision.models, name)()).cuda()
x = torch.randn(batch, *((4, 64, 64) if name == "unet" else (3, 224, 224)), device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(2):
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(x).float().square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(json.dumps({f"peak_{kind}_bytes": getattr(torch.cuda, f"max_memory_{kind}")() for kind in ("allocated", "reserved")}))
