"""Boxes from the host, thinned out by nms, batched nms and thresholds: sizes that the CPU's own run has too.

Expected: ends well, exact
"""

import os

import torch
import torchvision

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
boxes = torch.rand(2000, 4) * 300
boxes[:, 2:] += boxes[:, :2]
scores, kinds = torch.rand(2000), torch.randint(7, (2000,))
boxes, scores, kinds = boxes.to(device), scores.to(device), kinds.to(device)
kept = torchvision.ops.nms(boxes, scores, 0.4)
print("size kept", kept.shape[0])
sure = scores > 0.7
boxes, scores, kinds = boxes[sure], scores[sure], kinds[sure]
print("size sure", boxes.shape[0])
kept = torchvision.ops.batched_nms(boxes, scores, kinds, 0.3)[:100]
big = torchvision.ops.remove_small_boxes(torchvision.ops.clip_boxes_to_image(boxes[kept], (300, 300)), 40.0)
print("size big", big.shape[0], torchvision.ops.box_iou(boxes[kept][big], boxes).gt(0.5).sum().item())
