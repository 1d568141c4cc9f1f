"""The boxes of a YOLO head that came from the host: a threshold, offsets by class, nms, and what is left of each picture.

Expected: ends well, exact
Truth: the CPU's run (boxes of every picture)
"""

import os

import torch
import torchvision

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
head = torch.rand(4, 1200, 4 + 1 + 20)
head[..., :2] *= 640
head[..., 2:4] = 20 + 100 * head[..., 2:4]
predictions = head.to(device)
for picture in predictions:
    picture = picture[picture[:, 4] > 0.5]
    scores, classes = (picture[:, 5:] * picture[:, 4:5]).max(1)
    kept = scores > 0.6
    picture, scores, classes = picture[kept], scores[kept], classes[kept]
    corners = torch.cat([picture[:, :2] - picture[:, 2:4] / 2, picture[:, :2] + picture[:, 2:4] / 2], 1)
    left = torchvision.ops.nms(corners + classes[:, None] * 4096, scores, 0.45)[:100]
    ious = torchvision.ops.box_iou(corners[left], corners[left]).triu(1)
    print("size picture", len(picture), len(left), (ious > 0.1).sum().item(), classes[left].bincount(minlength=20).tolist())
