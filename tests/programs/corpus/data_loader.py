"""A DataLoader with worker processes, pinned memory and a collate function, whose last batch is smaller.

Expected: ends well, exact
"""

import torch


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 50

    def __getitem__(self, index):
        return torch.full((32,), float(index)), index % 4


if __name__ == "__main__":
    model = torch.nn.Linear(32, 4).cuda()
    optimizer = torch.optim.Adagrad(model.parameters())
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=16, shuffle=True, num_workers=2, pin_memory=True, persistent_workers=True)
    for epoch in range(2):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
