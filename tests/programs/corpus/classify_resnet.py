"""A torchvision ResNet-18, trained for three steps with SGD and momentum.

Expected: ends well, estimate (cuDNN's workspaces)
"""

import torch
import torchvision

model = torchvision.models.resnet18(weights=None, num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
for step in range(3):
    images, labels = torch.randn(8, 3, 64, 64).cuda(), torch.randint(10, (8,)).cuda()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
