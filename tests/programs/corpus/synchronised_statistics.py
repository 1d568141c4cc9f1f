"""SyncBatchNorm under DDP on two ranks with batches of different sizes: the counts of all ranks weigh the statistics.

Card: h100-80gb,count=2
Expected: ends well, exact if (how a card rounds)
Truth: the CPU's run (the elements that both ranks counted), which has no ranks and adds up itself
"""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

ROWS = 12, 20


def train(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("nccl", rank=rank, world_size=2)
    torch.cuda.set_device(rank)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.BatchNorm1d(128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model).cuda()
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        x, y = torch.randn(ROWS[rank], 64).cuda(), torch.randint(10, (ROWS[rank],)).cuda()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    counted = torch.tensor([ROWS[rank], 1], device="cuda")
    dist.all_reduce(counted)
    if rank == 0:
        print("size counted", counted.tolist(), model.module[1].num_batches_tracked.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    if os.environ.get("PROGRAM_DEVICE") == "cpu":
        print("size counted", [sum(ROWS), len(ROWS)], 3)
    else:
        mp.spawn(train, (29613,), nprocs=2)
