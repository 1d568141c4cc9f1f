"""As many buffers as a scale says that is kept above one: what a clamp makes of it depends on the scale.

Expected: ends well, unreliable (an integer that rests on a matrix product)
"""

import torch

x = torch.full((1024, 1024), 1 / 16, device="cuda")
scale = (x @ x).mean()  # 4
scale.clamp_(min=torch.tensor(1.0, device="cuda"))
buffers = [torch.empty(1 << 20, device="cuda") for _ in range(int(scale.int()))]
