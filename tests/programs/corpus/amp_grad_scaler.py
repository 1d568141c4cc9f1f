"""fp16 autocast with GradScaler, unscaled and clipped gradients: the scale stays where it began.

Expected: ends well, exact
"""

import torch

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cuda")
for step in range(4):
    with torch.autocast("cuda", torch.float16):
        loss = torch.nn.functional.cross_entropy(model(torch.randn(64, 256).cuda()), torch.randint(10, (64,)).cuda())
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
assert scaler.get_scale() == 65536.0, scaler.get_scale()
