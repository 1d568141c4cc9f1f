"""Mask R-CNN of torchvision with a small backbone: two steps of training, then an evaluation whose masks are pasted into the picture.

Expected: ends well, unreliable (how many boxes are left rests on the network's output)
Truth: none; how many boxes a network finds is not known beforehand
"""

import torch
from torchvision.models.detection import MaskRCNN, anchor_utils
from torchvision.models.detection.backbone_utils import mobilenet_backbone

backbone = mobilenet_backbone(backbone_name="mobilenet_v3_small", weights=None, fpn=True, trainable_layers=6, returned_layers=[2, 3])
anchors = anchor_utils.AnchorGenerator(tuple((32, 64, 128) for _ in range(3)), tuple((0.5, 1.0, 2.0) for _ in range(3)))
model = MaskRCNN(backbone, num_classes=5, rpn_anchor_generator=anchors, min_size=240, max_size=320).cuda()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.005, momentum=0.9)
boxes = torch.tensor([[10.0, 20.0, 110.0, 130.0], [50.0, 60.0, 200.0, 220.0]])
masks = torch.zeros(2, 240, 320, dtype=torch.uint8)
masks[0, 20:130, 10:110], masks[1, 60:220, 50:200] = 1, 1
for step in range(2):
    images = [torch.rand(3, 240, 320).cuda() for _ in range(2)]
    targets = [{"boxes": boxes.cuda(), "labels": torch.tensor([1, 3]).cuda(), "masks": masks.cuda()} for _ in images]
    loss = sum(model(images, targets).values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    found = model([torch.rand(3, 240, 320).cuda()])[0]
print(sorted(found), tuple(found["masks"].shape[1:]))
