"""One process makes batches on the card and sends them to another by a queue (CUDA IPC), which trains on them.

Expected: ends well, exact if (two processes share memory of one card)
Truth: the CPU's run (rows of every batch)
"""

import os

import torch
import torch.multiprocessing as mp

device = os.environ.get("PROGRAM_DEVICE", "cuda")


def produce(queue, done):
    torch.manual_seed(0)
    for step in range(3):
        queue.put((torch.randn(32, 128).to(device), torch.randint(10, (32,)).to(device)))
    queue.put(None)
    done.wait()


if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue, done = context.Queue(), context.Event()
    other = context.Process(target=produce, args=(queue, done))
    other.start()
    model = torch.nn.Linear(128, 10).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    while (batch := queue.get()) is not None:
        x, y = batch
        print("size batch", tuple(x.shape), tuple(y.shape))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        del x, y, batch
    done.set()
    other.join()
    assert other.exitcode == 0
