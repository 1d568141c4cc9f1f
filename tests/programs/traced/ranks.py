"""Two ranks: DistributedDataParallel, FSDP2, or the stages of a pipeline.

usage: torchrun --nproc-per-node 2 ranks.py ddp|fsdp2|pipeline
"""

import sys

import torch
import torch.distributed as dist
from torch import nn

which = sys.argv[1]
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)


def block():
    return nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512))


if which == "pipeline":
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    model = nn.Sequential(block(), block()).cuda()
    stage = PipelineStage(model, rank, 2, torch.device("cuda", rank))
    schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
else:
    model = nn.Sequential(*[block() for _ in range(4)]).cuda()
    if which == "ddp":
        model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    else:
        from torch.distributed.fsdp import fully_shard

        for part in model:
            fully_shard(part)
        fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
for _step in range(3):
    x = torch.randn(64, 512).cuda()
    if which == "pipeline":
        schedule.step(x) if rank == 0 else schedule.step(target=x)
    else:
        model(x).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"peak of rank {rank}", torch.cuda.max_memory_allocated(), flush=True)
dist.destroy_process_group()
