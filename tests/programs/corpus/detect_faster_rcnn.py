"""Faster R-CNN of torchvision: two steps of training on two images, then the detection of objects.

Expected: ends well, unreliable (how many boxes are left rests on the network's output)
"""

import torch
import torchvision

model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=5).cuda()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.005, momentum=0.9)
boxes = torch.tensor([[10.0, 20.0, 110.0, 130.0], [50.0, 60.0, 200.0, 220.0]])
for step in range(2):
    images = [torch.rand(3, 240, 320).cuda() for _ in range(2)]
    targets = [{"boxes": boxes.cuda(), "labels": torch.tensor([1, 3]).cuda()} for _ in images]
    loss = sum(model(images, targets).values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    detections = model([torch.rand(3, 240, 320).cuda()])
print(sorted(detections[0]))
