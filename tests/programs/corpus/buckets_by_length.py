"""Batches of texts of similar length: a sampler with buckets, batches of at most so many tokens, padded to the longest.

Expected: ends well, exact
Truth: the CPU's run (shapes of all batches)
"""

import os

import torch

device = os.environ.get("PROGRAM_DEVICE", "cuda")
torch.manual_seed(0)
texts = [torch.randint(1, 1000, (length,)) for length in torch.randint(4, 120, (200,)).tolist()]


class Buckets(torch.utils.data.Sampler):
    def __init__(self, lengths, tokens):
        self.lengths, self.tokens = lengths, tokens

    def __iter__(self):
        batch = []
        for index in sorted(range(len(self.lengths)), key=self.lengths.__getitem__):
            if batch and self.lengths[index] * (len(batch) + 1) > self.tokens:
                yield batch
                batch = []
            batch.append(index)
        yield batch


def collate(batch):
    lengths = torch.tensor([len(text) for text in batch])
    return torch.nn.utils.rnn.pad_sequence(batch, batch_first=True), lengths


embed, head = torch.nn.Embedding(1000, 64, padding_idx=0).to(device), torch.nn.Linear(64, 2).to(device)
optimizer = torch.optim.Adam([*embed.parameters(), *head.parameters()])
for ids, lengths in torch.utils.data.DataLoader(texts, batch_sampler=Buckets([len(t) for t in texts], 2048), collate_fn=collate):
    ids, lengths = ids.to(device), lengths.to(device)
    mask = torch.arange(ids.shape[1], device=device) < lengths[:, None]
    mean = (embed(ids) * mask[..., None]).sum(1) / lengths[:, None]
    print("size batch", tuple(ids.shape), mask.sum().item(), (ids == 0).sum().item())
    torch.nn.functional.cross_entropy(head(mean), lengths % 2).backward()
    optimizer.step()
    optimizer.zero_grad()
