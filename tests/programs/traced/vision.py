"""torchvision's ResNet-50 with automatic mixed precision and channels last, Faster R-CNN, and a ViT of timm's.

usage: vision.py resnet|detector|timm
"""

import sys

import torch
import torchvision

which = sys.argv[1]
if which == "timm":
    import timm
    import timm.optim

    model = timm.create_model("vit_tiny_patch16_224", num_classes=10).cuda()
    optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3)
elif which == "detector":
    model = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=5).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
else:
    model = torchvision.models.resnet50(num_classes=10).to("cuda", memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler(enabled=which == "resnet")

for _step in range(3):
    if which == "detector":
        images = [torch.rand(3, 256, 320).cuda() for _ in range(2)]
        targets = [{"boxes": torch.tensor([[10.0, 10.0, 100.0, 120.0]]).cuda(), "labels": torch.tensor([1]).cuda()} for _ in images]
        loss = sum(model(images, targets).values())
    else:
        images = torch.randn(8, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
        labels = torch.randint(10, (8,)).cuda()
        with torch.autocast("cuda", torch.float16, enabled=which == "resnet"):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
model.eval()
with torch.no_grad():
    model([torch.rand(3, 256, 320).cuda()] if which == "detector" else images)
print("peak", torch.cuda.max_memory_allocated())
