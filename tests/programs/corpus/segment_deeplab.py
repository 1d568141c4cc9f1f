"""DeepLabV3 of torchvision, trained on masks, with the intersection over union of a batch.

Expected: ends well, estimate (cuDNN's workspaces)
"""

import torch
import torchvision

model = torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(2):
    images, masks = torch.rand(2, 3, 96, 96).cuda(), torch.randint(4, (2, 96, 96)).cuda()
    out = model(images)["out"]
    loss = torch.nn.functional.cross_entropy(out, masks, ignore_index=255)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
predicted = out.argmax(1)
for kind in range(4):
    both, either = ((predicted == kind) & (masks == kind)).sum(), ((predicted == kind) | (masks == kind)).sum()
    print(f"kind {kind}: {(both.float() / either.clamp(min=1).float()).item():.2f}")
