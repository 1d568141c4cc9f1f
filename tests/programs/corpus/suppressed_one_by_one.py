"""Suppression of boxes as people write it themselves: the best is taken, what overlaps is dropped, until nothing is left; and softly.

Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (boxes that are left)
"""

import os

import torch
import torchvision

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
corner = torch.rand(300, 2) * 200
boxes = torch.cat([corner, corner + 20 + torch.rand(300, 2) * 60], 1).to(device)
scores = torch.rand(300).to(device)

order, kept = scores.argsort(descending=True), []
while order.numel() > 0:
    best = order[0]
    kept.append(best)
    if order.numel() == 1:
        break
    overlap = torchvision.ops.box_iou(boxes[best][None], boxes[order[1:]])[0]
    order = order[1:][overlap <= 0.3]
kept = torch.stack(kept)
print("size kept", len(kept), kept[:5].tolist(), torch.equal(kept, torchvision.ops.nms(boxes, scores, 0.3)))

left, weights, rounds = boxes, scores.clone(), 0
while len(left):
    top = weights.argmax()
    overlap = torchvision.ops.box_iou(left[top][None], left)[0]
    weights = weights * torch.exp(-overlap.square() / 0.5)
    weights[top] = 0
    stays = weights > 0.2
    left, weights = left[stays], weights[stays]
    rounds += 1
print("size rounds", rounds)
