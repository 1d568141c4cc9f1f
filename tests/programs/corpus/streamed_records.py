"""An IterableDataset that streams records of different lengths to workers that stay, with samples by weight beside it.

Expected: ends well, exact
Truth: the CPU's run (shapes of all batches)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")


class Records(torch.utils.data.IterableDataset):
    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        for number in range(worker.id, 60, worker.num_workers):
            yield torch.arange(number % 13 + 3)


def collate(records):
    return torch.nested.nested_tensor(records).to_padded_tensor(-1)


loader = torch.utils.data.DataLoader(Records(), batch_size=8, num_workers=2, collate_fn=collate, persistent_workers=True, pin_memory=True)
for epoch in range(2):
    for batch in loader:
        batch = batch.to(device, non_blocking=True)
        print("size records", tuple(batch.shape), (batch >= 0).sum().item())
torch.manual_seed(0)
weights = torch.tensor([0.1, 0.7, 0.2]).repeat(20)
sampler = torch.utils.data.WeightedRandomSampler(weights, 64, generator=torch.Generator().manual_seed(0))
labels = torch.tensor([index % 3 for index in sampler]).to(device)
print("size labels", torch.bincount(labels).tolist(), (labels == 1).nonzero().shape[0])
