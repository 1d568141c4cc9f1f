"""torch.compile with the backends that need no code generator: eager and aot_eager.

Expected: ends well, exact
"""

import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128), torch.nn.Linear(128, 8)).cuda()
for backend in ("eager", "aot_eager"):
    torch._dynamo.reset()
    step = torch.compile(lambda x: model(x).square().mean(), backend=backend)
    for _ in range(2):
        step(torch.randn(32, 64, device="cuda")).backward()
