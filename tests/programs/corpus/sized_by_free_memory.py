"""A batch as large as what is free of the card: three quarters of it.

Expected: ends well, exact if
"""

import torch

free, total = torch.cuda.mem_get_info()
batch = torch.empty(free // 4 * 3, dtype=torch.uint8, device="cuda")
print("bytes", batch.numel())
