"""Questions that programs ask of a card: its name, its memory, its limits, capabilities and versions.

Expected: ends well, exact if
"""

import torch

properties = torch.cuda.get_device_properties(0)
assert "H100" in properties.name and properties.major == 9 and properties.multi_processor_count > 100
free, total = torch.cuda.mem_get_info()
assert free <= total and total == properties.total_memory
assert torch.cuda.get_device_capability() == (9, 0) and torch.cuda.is_bf16_supported()
assert torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
torch.empty(1000, device="cuda")
print(torch.cuda.memory_summary()[:20], torch.backends.cudnn.version() > 90000)
