"""torch.multiprocessing.spawn of one process that trains on the card of its rank.

Expected: ends well, exact
"""

import torch
import torch.multiprocessing as mp


def train(rank, width):
    torch.cuda.set_device(rank)
    model = torch.nn.Linear(width, width).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(3):
        optimizer.zero_grad()
        model(torch.randn(16, width, device="cuda")).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    mp.spawn(train, (256,), nprocs=1)
