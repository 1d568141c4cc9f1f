"""Programs of several ranks, for ranks_test.py: each checks the values that it gets against what they must be, and prints what it took.

usage: ranks_cases.py KIND, under torch.distributed.run
"""

import os
import random
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def equal(got, want):
    assert got == want, f"rank {RANK}: {got} instead of {want}"


def dawdle():
    time.sleep(random.random() * 0.02)


def of(*numbers):
    return torch.tensor(numbers, device="cuda")


def collectives():
    """What ranks tell each other in numbers, and a size that depends on it."""
    dawdle()
    total = of(RANK + 1, 10 * (RANK + 1))
    dist.all_reduce(total)
    equal(total.tolist(), [3, 30])
    mean = torch.tensor([float(RANK)], device="cuda")
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    equal(mean.item(), 0.5)
    dawdle()
    every = torch.empty(2 * WORLD, dtype=torch.int64, device="cuda")
    dist.all_gather_into_tensor(every, of(RANK, RANK * RANK + 7))
    equal(every.tolist(), [0, 7, 1, 8])
    part = torch.empty(1, dtype=torch.int64, device="cuda")
    dist.reduce_scatter_tensor(part, of(RANK + 1, RANK + 5))
    equal(part.item(), [3, 11][RANK])
    swapped = torch.empty(WORLD, dtype=torch.int64, device="cuda")
    dist.all_to_all_single(swapped, of(10 * RANK, 10 * RANK + 1))
    equal(swapped.tolist(), [RANK, 10 + RANK])
    rows = of(RANK + 2)
    dist.all_reduce(rows, op=dist.ReduceOp.MAX)
    equal(torch.zeros(int(rows.item()), 4, device="cuda").shape[0], 3)


def messages():
    """From rank to rank, in a group and around a ring that receives before it sends."""
    number = of(3 + RANK)
    if RANK == 0:
        dist.send(number, 1)
        dist.recv(number, 1)
        equal(number.item(), 12)
    else:
        other = torch.empty_like(number)
        dist.recv(other, 0)
        dist.send(other * number, 0)
    got = of(-1)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, of(RANK), 1 - RANK), dist.P2POp(dist.irecv, got, 1 - RANK)]):
        work.wait()
    equal(got.item(), 1 - RANK)
    late = of(-1)
    ring = dist.irecv(late, 1 - RANK)
    dawdle()
    dist.isend(of(50 + RANK), 1 - RANK).wait()
    ring.wait()
    equal(late.item(), 51 - RANK)


def objects():
    every = [None] * WORLD
    dawdle()
    dist.all_gather_object(every, {"rank": RANK, "text": "x" * (1000 * RANK)})
    equal(every, [{"rank": rank, "text": "x" * (1000 * rank)} for rank in range(WORLD)])
    box = [["from", RANK]] if RANK == 0 else [None]
    dist.broadcast_object_list(box, src=0)
    equal(box, [["from", 0]])
    root = [None] * WORLD if RANK == 1 else None
    dist.gather_object("o" * (5 + RANK), root, dst=1)
    equal(root, ["ooooo", "oooooo"] if RANK == 1 else None)
    own = [None]
    dist.scatter_object_list(own, ["a", "bb"] if RANK == 0 else None, src=0)
    equal(own, [["a", "bb"][RANK]])


def too_large():
    """Together more than the limit."""
    dist.all_gather_object([None] * WORLD, bytes(130 << 20))


def large():
    """What the host knows reaches the others whatever its size: objects of 3 and 40 MiB, integers, the states of an optimizer."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    for size in (3 << 20, 40 << 20):
        own = {"rank": RANK, "bytes": random.Random(RANK).randbytes(size + RANK)}
        theirs = [{"rank": rank, "bytes": random.Random(rank).randbytes(size + rank)} for rank in range(WORLD)]
        every = [None] * WORLD
        dist.all_gather_object(every, own)
        assert every == theirs, f"rank {RANK}: all_gather_object of {size}"
        box = [own] if RANK == 1 else [None]
        dist.broadcast_object_list(box, src=1)
        assert box == [theirs[1]], f"rank {RANK}: broadcast_object_list of {size}"
        root = [None] * WORLD if RANK == 1 else None
        dist.gather_object(own, root, dst=1)
        assert root == (theirs if RANK == 1 else None), f"rank {RANK}: gather_object of {size}"
    count = 1 << 20
    numbers = torch.arange(count) if RANK == 0 else torch.zeros(count, dtype=torch.int64)
    numbers = numbers.cuda()
    dist.broadcast(numbers, src=0)
    equal(int(numbers.cpu().sum()), count * (count - 1) // 2)
    net = nn.parallel.DistributedDataParallel(nn.Sequential(*[nn.Linear(1024, 1024, bias=False) for _ in range(8)]).cuda())
    optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.Adam, lr=1e-3)
    for _ in range(2):
        net(torch.randn(4, 1024, device="cuda")).sum().backward()
        optimizer.step()
    optimizer.consolidate_state_dict(to=0)
    if RANK == 0:
        states = optimizer.state_dict()["state"]
        equal(sorted(states), list(range(8)))
        for state in states.values():
            equal((float(state["step"]), state["exp_avg"].shape, state["exp_avg_sq"].shape), (2.0, (1024, 1024), (1024, 1024)))


def groups():
    """Groups of some of the ranks, by new communicators and by splitting one."""
    for members in ([1], [0, 1]):
        group = dist.new_group(members)
        if RANK in members:
            count = of(1)
            dist.all_reduce(count, group=group)
            equal(count.item(), len(members))
    half = dist.split_group(split_ranks=[[0], [1]])
    if half is not None:
        mine, all_of_half = of(7 + RANK), of(-1)
        dist.all_gather_into_tensor(all_of_half, mine, group=half)
        equal(all_of_half.item(), 7 + RANK)


def ordering():
    """A barrier is one: what a rank wrote before it, the others find after it."""
    folder = [tempfile.mkdtemp()] if RANK == 0 else [None]
    dist.broadcast_object_list(folder, src=0)
    for turn in range(5):
        path = os.path.join(folder[0], str(turn))
        if RANK == turn % WORLD:
            time.sleep(0.05)
            open(path, "w").close()
        dist.barrier()
        assert os.path.exists(path), f"rank {RANK} came too early to turn {turn}"


def blocks(width=1024):
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(4)]).cuda()


def train(net, steps=3):
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(steps):
        dawdle()
        net(torch.randn(64, 1024, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"peak {RANK} {torch.cuda.max_memory_allocated()} {torch.cuda.max_memory_reserved()}", flush=True)
    return optimizer


def training():
    """Small models learn what one process would on the batches of both ranks: losses, and so parameters, gradients and what carries them."""
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

    def net():
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10))

    def losses(model, batches, **options):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **options)
        for batch in batches:
            loss = nn.functional.mse_loss(model(batch), batch[:, :10])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                yield nn.functional.mse_loss(model(batch), batch[:, :10]).item()

    steps = torch.randn(4, WORLD, 8, 64, generator=torch.Generator().manual_seed(2))
    mean = list(losses(net(), steps.flatten(1, 2)))
    wrappings = {
        "DDP": nn.parallel.DistributedDataParallel,
        "FSDP": lambda net: FullyShardedDataParallel(net, use_orig_params=True),
        "FSDP, flat parameters": lambda net: FullyShardedDataParallel(net),
        "FSDP2": fully_shard,
    }
    for name, wrap in wrappings.items():
        for options in ({}, {"foreach": False}, {"fused": True}):
            own = torch.tensor(list(losses(wrap(net().cuda()), steps[:, RANK].cuda(), **options)), device="cuda")
            dist.all_reduce(own, op=dist.ReduceOp.AVG)
            worst = (own.cpu() - torch.tensor(mean)).abs().max().item()
            assert worst < 1e-5, f"rank {RANK}, {name}, {options}: {own.tolist()} instead of {mean}"


def ddp():
    train(nn.parallel.DistributedDataParallel(blocks()))


def compressed():
    """DDP with a hook that makes new tensors, which PyTorch keeps until its watchdog has looked."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

    net = nn.parallel.DistributedDataParallel(blocks())
    net.register_comm_hook(None, fp16_compress_hook)
    train(net)


def fsdp():
    from torch.distributed.fsdp import fully_shard

    net = blocks()
    for block in net:
        fully_shard(block)
    train(fully_shard(net))


def checkpoint():
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict
    from torch.distributed.fsdp import fully_shard

    net = fully_shard(blocks())
    model, optimizer = get_state_dict(net, train(net, steps=1))
    folder = [tempfile.mkdtemp()] if RANK == 0 else [None]
    dist.broadcast_object_list(folder, src=0)
    dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=folder[0])
    equal(sorted(os.listdir(folder[0])), [".metadata", "__0_0.distcp", "__1_0.distcp"])
    dcp.load({"model": model, "optimizer": optimizer}, checkpoint_id=folder[0])


def pipeline():
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    stage = PipelineStage(nn.Sequential(nn.Linear(512, 512), nn.GELU()).cuda(), RANK, WORLD, torch.device("cuda", RANK))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=lambda out, target: (out - target).square().mean())
    for _ in range(2):
        batch = torch.randn(16, 512, device="cuda")
        schedule.step(batch) if RANK == 0 else schedule.step(target=batch, losses=[])
    print(f"peak {RANK} {torch.cuda.max_memory_allocated()} {torch.cuda.max_memory_reserved()}", flush=True)


def normalised():
    """Statistics over all ranks: counts that everybody knows travel beside means that nobody does, and a mask of them is a size."""
    layer = nn.SyncBatchNorm(256).cuda()
    images = torch.randn(4, 256, 64, 64, device="cuda", requires_grad=True)
    layer(images).sum().backward()
    equal(images.grad.shape, images.shape)


def finite():
    """Whether a gradient is finite, asked of all ranks."""
    gradient = torch.randn(1 << 20, device="cuda")
    invalid = torch.zeros(1, device="cuda")
    invalid += gradient.isnan().logical_or(gradient.isinf()).float().max()
    dist.all_reduce(invalid, op=dist.ReduceOp.MAX)
    equal(bool(invalid.bool().item()), False)


def gone():
    """A rank that ends before the others have heard of it."""
    if RANK == 1:
        dist.all_reduce(of(1))
        os._exit(0)
    total = of(1)
    dist.all_reduce(total)
    equal(total.item(), 2)
    dist.all_reduce(total)
    total.item()
    time.sleep(30)


if __name__ == "__main__":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # With its device, a group is split from the first one instead of made anew.
    dist.init_process_group("nccl", device_id=torch.device("cuda", RANK) if "groups" in sys.argv[1:] else None)
    for kind in sys.argv[1:]:
        globals()[kind]()
    dist.destroy_process_group()
