"""ZeRO's flat buffers by hand: half-precision parameters are views of one buffer, of which this rank keeps a quarter in fp32 with Adam's state.

Expected: ends well, exact
Truth: a closed form of the buffers (asserted)
"""

import torch

WORLD = 4
model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4))).half().cuda()
parameters = list(model.parameters())
count = sum(p.numel() for p in parameters)
padded = -(-count // WORLD) * WORLD
before = torch.cuda.memory_allocated()
flat = torch._utils._flatten_dense_tensors([p.data for p in parameters])
flat = torch.nn.functional.pad(flat, (0, padded - count))
for p, view in zip(parameters, torch._utils._unflatten_dense_tensors(flat, parameters)):
    p.data = view
own = flat.narrow(0, 0, padded // WORLD)
master = own.float().requires_grad_()
optimizer = torch.optim.Adam([master], fused=True)
for step in range(3):
    model(torch.randn(16, 512).half().cuda()).float().square().mean().backward()
    gradients = torch._utils._flatten_dense_tensors([p.grad for p in parameters])
    for p in parameters:
        p.grad = None
    master.grad = gradients.narrow(0, 0, padded // WORLD).float()
    del gradients
    optimizer.step()
    own.copy_(master.detach())
    master.grad = None
kept = torch.cuda.memory_allocated() - before
workspaces = 32 << 20, 1 << 20
fixed = 3 * (padded // WORLD) * 4 + 512
assert (kept - fixed) % (1 << 20) == 0 and kept - fixed <= 2 * sum(workspaces), (kept, fixed)
