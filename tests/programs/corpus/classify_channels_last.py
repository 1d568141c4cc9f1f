"""MobileNetV3 in channels_last and bf16 autocast, then an evaluation that counts correct answers.

Expected: ends well, estimate (cuDNN's workspaces)
"""

import torch
import torchvision

model = torchvision.models.mobilenet_v3_small(weights=None, num_classes=10).cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)
for step in range(2):
    images = torch.randn(8, 3, 96, 96).cuda().to(memory_format=torch.channels_last)
    with torch.autocast("cuda", torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images), torch.randint(10, (8,)).cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
