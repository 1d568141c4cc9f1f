"""A traced model, saved, loaded on the card and run with the fuser's default settings.

Expected: ends well, estimate (the engines' workspaces)
"""

import io

import torch
import torchvision

model = torchvision.models.squeezenet1_1(weights=None, num_classes=10).cuda().eval()
traced = torch.jit.trace(model, torch.rand(1, 3, 64, 64).cuda())
file = io.BytesIO()
torch.jit.save(traced, file)
file.seek(0)
loaded = torch.jit.load(file, map_location="cuda")
with torch.no_grad():
    for batch in (1, 4):
        out = loaded(torch.rand(batch, 3, 64, 64).cuda())
assert out.shape == (4, 10)
