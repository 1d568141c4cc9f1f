"""SSDlite of torchvision, one step of training and one detection.

Expected: ends well, unreliable (how many boxes are left rests on the network's output)
"""

import torch
import torchvision

model = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4).cuda()
optimizer = torch.optim.Adam(model.parameters())
images = [torch.rand(3, 320, 320).cuda() for _ in range(2)]
targets = [{"boxes": torch.tensor([[30.0, 30.0, 120.0, 140.0]]).cuda(), "labels": torch.tensor([2]).cuda()} for _ in images]
loss = sum(model(images, targets).values())
loss.backward()
optimizer.step()
with torch.no_grad():
    print(len(model.eval()(images)))
