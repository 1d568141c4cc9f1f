"""torchrun with a restart: a rank fails in the first attempt, and both go on from the checkpoint that rank 0 wrote.

Card: h100-80gb,count=2
Expected: ends well, exact if (a checkpoint is written: whole storages are read)
Truth: the CPU's run with gloo (steps of every attempt)
"""

import os
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist


def train(folder):
    rank, restarts = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    on_cpu = os.environ.get("PROGRAM_DEVICE") == "cpu"
    device = "cpu" if on_cpu else f"cuda:{rank}"
    dist.init_process_group("gloo" if on_cpu else "nccl", device_id=None if on_cpu else torch.device(device))
    model = torch.nn.Linear(256, 256).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    path, first = os.path.join(folder, "checkpoint.pt"), 0
    if os.path.exists(path):
        kept = torch.load(path, map_location=device)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first = kept["step"] + 1
    model = torch.nn.parallel.DistributedDataParallel(model)
    for step in range(first, 6):
        optimizer.zero_grad()
        model(torch.randn(32, 256, device=device)).square().mean().backward()
        optimizer.step()
        if rank == 0 and step == 2:
            torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path)
        dist.barrier()
        if rank == 1 and step == 3 and not restarts:
            sys.exit(3)
    if rank == 0:
        print("size attempt", restarts, first, step, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1"]
            # With the store that attempts share, ranks may read what the last attempt left there.
            own = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
            done = subprocess.run([*command, __file__, folder], stderr=subprocess.PIPE, text=True, env=own)
        if done.returncode:
            sys.exit(done.stderr)
