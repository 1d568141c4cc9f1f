"""A small vision transformer of torchvision in a training loop with a learning rate schedule, label smoothing and clipping.

Expected: ends well, estimate (the patches are a convolution)
"""

import torch
from torchvision.models.vision_transformer import VisionTransformer

model = VisionTransformer(image_size=64, patch_size=8, num_layers=4, num_heads=4, hidden_dim=128, mlp_dim=256, num_classes=20).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
for step in range(3):
    images, labels = torch.randn(16, 3, 64, 64, device="cuda"), torch.randint(20, (16,), device="cuda")
    optimizer.zero_grad(set_to_none=True)
    criterion(model(images), labels).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
