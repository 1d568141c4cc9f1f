"""A torchvision ResNet-18 with cuDNN switched off: PyTorch's own convolutions, whose buffers are its own.

Expected: ends well, exact
"""

import torch
import torchvision

torch.backends.cudnn.enabled = False
model = torchvision.models.resnet18(weights=None, num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(2):
    loss = torch.nn.functional.cross_entropy(model(torch.randn(4, 3, 64, 64).cuda()), torch.randint(10, (4,)).cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
