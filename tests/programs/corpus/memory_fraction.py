"""A process that allows itself a part of the card, and runs into its own limit.

Expected: ends well, exact if
"""

import torch

torch.cuda.set_per_process_memory_fraction(0.1)
total = torch.cuda.get_device_properties(0).total_memory
kept = torch.empty(int(total * 0.06), dtype=torch.uint8, device="cuda")
try:
    torch.empty(int(total * 0.06), dtype=torch.uint8, device="cuda")
except torch.OutOfMemoryError as error:
    print("refused", "allowed" in str(error))
else:
    raise SystemExit("the limit did not hold")
