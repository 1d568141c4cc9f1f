"""Ranks of a world that does not exist (`emulate --world N --rank R`), of programs that meet by env:// as torchrun's do.

What a rank takes is what the same rank takes in a world of which every rank runs, and what PyTorch's own ways to share parameters come to.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from given import ORACLE as PYTHON, PEAKBENCH

# Each kind prints its rank, its peak, and how many elements of parameters and of the optimizer's state are this rank's own.
TRAINING = """
import json, os, sys, torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer

def local(one):
    return one.to_local() if hasattr(one, "to_local") else one

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group()
for kind in sys.argv[1:]:
    torch.cuda.reset_peak_memory_stats()
    model = nn.Sequential(*[nn.Linear(1030, 1030) for _ in range(12)]).cuda()
    if kind == "fsdp":
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
    else:
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=9)
    parameters = list(model.parameters())
    optimizer = ZeroRedundancyOptimizer(parameters, torch.optim.Adam) if kind == "zero" else torch.optim.Adam(parameters)
    for _ in range(2):
        model(torch.randn(16, 1030, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    own = [local(one) for one in parameters]
    state = [value for per in getattr(optimizer, "optim", optimizer).state.values() for name, value in per.items() if name != "step"]
    row = {"kind": kind, "rank": dist.get_rank(), "ranks": dist.get_world_size(), "peak": torch.cuda.max_memory_allocated(),
           "parameters": sum(one.numel() for one in own), "state": sum(local(one).numel() for one in state)}
    os.write(1, f"{json.dumps(row)}\\n".encode())  # at once: other ranks print, too
    del model, parameters, optimizer, own, state
dist.barrier()
dist.destroy_process_group()
"""

OBJECTS = """
import os, sys, torch, torch.distributed as dist
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group(*sys.argv[1:])
rank, ranks = dist.get_rank(), dist.get_world_size()
assert (rank, ranks, dist.get_node_local_rank()) == (int(os.environ["RANK"]), 64, rank % 8)
kept = torch.zeros(1024, device="cuda")
every = [None] * ranks
dist.all_gather_object(every, {"rank": rank})
assert every == [{"rank": rank}] * ranks, every
if dist.get_backend() != "gloo":  # by broadcasts in a group: of one size, and of another
    uneven = [torch.zeros(1 + (one == 5), dtype=torch.int64, device="cuda") for one in range(ranks)]
    dist.all_gather(uneven, torch.tensor([7], device="cuda"))
    assert [one.item() for one in uneven if len(one) == 1] == [7] * (ranks - 1), uneven
box = ["own" if rank else "first"]
dist.broadcast_object_list(box, src=0)
assert box == ["own" if rank else "first"], box
root = [None] * ranks if rank == 0 else None
dist.gather_object({"rank": rank}, root, dst=0)
assert root == ([{"rank": 0}] * ranks if rank == 0 else None), root
out = [None]
dist.scatter_object_list(out, list(range(5, 5 + ranks)) if rank == 0 else None, src=0)
assert out == ([None] if rank else [5]), out
dist.barrier()
side = dist.new_group([0, rank] if rank else [0, 1], backend="gloo")
dist.barrier(side)
print("rank", rank, "of", ranks, "node", os.environ["GROUP_RANK"])
"""


class SingleRank(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="peakbench-single-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def emulate(self, program, *options, words=(), before=(PYTHON,), exit_code=0):
        """What the program printed; what Peakbench printed and wrote is kept."""
        (self.folder / "train.py").write_text(program, encoding="utf-8")
        command = [PEAKBENCH, "emulate", "--no-lines", *options, "--json", "took.json", "--", *before, "train.py", *words]
        done = subprocess.run(list(map(str, command)), cwd=self.folder, capture_output=True, text=True, timeout=200, env={**os.environ, "OMP_NUM_THREADS": "1"})
        self.said = done.stderr
        self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
        if exit_code == 0:
            self.took = json.loads((self.folder / "took.json").read_text(encoding="utf-8"))
        return done.stdout

    def rows(self, *arguments, **more):
        printed = [json.loads(line) for line in self.emulate(TRAINING, *arguments, words=("ddp", "zero", "fsdp"), **more).splitlines()]
        return {(row["kind"], row["rank"]): row for row in printed}

    def test_a_rank_takes_what_it_takes_among_all_ranks(self):
        torchrun = (PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", 4, "--standalone")
        real = self.rows("--card", "h100-80gb,count=4", before=torchrun)
        alone = self.rows("--card", "h100-80gb,count=4", "--world", 4, "--rank", "0,3")
        self.assertEqual(alone, {key: row for key, row in real.items() if key[1] in (0, 3)})
        self.assertNotEqual(alone["fsdp", 0]["peak"], alone["fsdp", 3]["peak"])

    def test_shares_of_64_ranks(self):
        rows = self.rows("--card", "h100-80gb", "--world", 64, "--rank", "0,63")
        layer = 1030 * 1030 + 1030
        for rank in (0, 63):
            self.assertEqual((rows["ddp", rank]["parameters"], rows["ddp", rank]["state"]), (12 * layer, 2 * 12 * layer))
            # 1,030 rows in pieces of ceil(1030 / 64) = 17: the first 60 ranks have 17, the next one 10, the last three none.
            share = 17 * 1031 if rank == 0 else 0
            self.assertEqual((rows["fsdp", rank]["parameters"], rows["fsdp", rank]["state"]), (12 * share, 2 * 12 * share))
        # The 24 tensors go to the 24 first ranks, the largest first.
        self.assertEqual((rows["zero", 0]["state"], rows["zero", 63]["state"]), (2 * 1030 * 1030, 0))
        self.assertEqual(rows["ddp", 0]["peak"], rows["ddp", 63]["peak"])
        self.assertEqual(self.took["verdict"]["kind"], "exact if", self.said)
        for rank in (0, 63):
            self.assertIn(f"NCCL: rank {rank} of 64 alone, the others taken to be like it", " ".join(self.took["verdict"]["conditions"]))
        ranks = [device["rank"] for process in self.took["processes"] for device in process["devices"] if device["allocations"]]
        self.assertEqual(sorted(ranks), [0, 63])

    def test_objects_of_a_rank_without_others(self):
        for backend in ((), ("nccl",), ("gloo",)):
            with self.subTest(backend):
                printed = self.emulate(OBJECTS, "--card", "h100-80gb,count=8", "--world", 64, "--rank", "0,63", words=backend)
                self.assertEqual(printed.split("\n")[:2], ["rank 0 of 64 node 0", "rank 63 of 64 node 7"])
                self.assertIn("rank 63 keeps its own objects in broadcast_object_list", self.said)
                self.assertEqual(self.took["verdict"]["kind"], "exact if", self.said)
                self.assertIn("rank 63 of 64 alone", " ".join(self.took["verdict"]["conditions"]))

    def test_what_cannot_be_a_rank(self):
        self.emulate("", "--world", 4, "--rank", "0,4", exit_code=2)
        self.assertIn("--rank 4: a world of 4 has the ranks 0 to 3", self.said)
        self.emulate("", "--rank", "1", exit_code=2)
        self.assertIn("--rank requires --world", self.said)
        self.emulate("raise SystemExit(7)", "--world", 4, "--rank", "0,3", exit_code=7)

    def test_a_rank_that_torchrun_makes_another(self):
        torchrun = (PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", 1, "--standalone")
        self.emulate(OBJECTS, "--world", 64, "--rank", 0, words=("nccl",), before=torchrun, exit_code=1)
        self.assertIn("this is rank 0 of 1, and `peakbench emulate --world` makes it rank 0 of 64: start the script without torchrun", self.said)
