"""accelerate's find_executable_batch_size around a training loop: each failure makes the batch smaller.

Expected: ends well, exact if
Truth: a closed form (asserted) of what the last try takes
"""

import torch
from accelerate.utils import find_executable_batch_size

tried = []


@find_executable_batch_size(starting_batch_size=110000)
def train(batch_size):
    tried.append(batch_size)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    model = torch.nn.Sequential(torch.nn.Linear(1024, 65536, bias=False), torch.nn.ReLU(), torch.nn.Linear(65536, 16, bias=False)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(2):
        model(torch.randn(batch_size, 1024, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return batch_size, torch.cuda.max_memory_allocated() - before


found, peak = train()
print("batch", found, "tried", tried)
# The peak lies before the first layer's gradient: Adam's state and the second one's are there, of activations three and the input.
weights = 4 * (1024 + 16) * 65536 - 1024 * 65536
rest = peak - 4 * (weights + found * (3 * 65536 + 1024))
assert 0 <= rest <= 128 << 20, (peak, rest)
