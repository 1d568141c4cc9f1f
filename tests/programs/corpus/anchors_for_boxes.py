"""Anchors are matched to boxes from the host by their overlap, and positive and negative ones sampled, as an RPN's training does.

Expected: ends well, exact
Truth: the CPU's run (matches and samples)
"""

import os

import torch
import torchvision

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
places = torch.cartesian_prod(torch.arange(0, 160, 16), torch.arange(0, 160, 16)).float()
anchors = torch.cat([torch.cat([places - s / 2, places + s / 2], 1) for s in (16, 32, 64)]).to(device)
corner = torch.rand(6, 2) * 100
boxes = torch.cat([corner, corner + 15 + torch.rand(6, 2) * 50], 1).to(device)
overlap = torchvision.ops.box_iou(boxes, anchors)
best, matched = overlap.max(0)
matched[best < 0.3] = -1
matched[(best >= 0.3) & (best < 0.5)] = -2
highest = overlap.max(1).values
_, forced = torch.where(overlap == highest[:, None])
matched[forced] = overlap[:, forced].argmax(0)
positive, negative = torch.where(matched >= 0)[0], torch.where(matched == -1)[0]
wanted = min(positive.numel(), 16)
positive = positive[torch.randperm(positive.numel())[:wanted].to(device)]
negative = negative[torch.randperm(negative.numel())[: 64 - wanted].to(device)]
offsets = (boxes[matched[positive]][:, :2] - anchors[positive][:, :2]) / 16
print("size anchors", positive.numel(), negative.numel(), forced.numel(), tuple(offsets.shape), matched.unique().tolist())
