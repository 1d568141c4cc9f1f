"""Programs of two ranks on emulated cards, with stock PyTorch: what the ranks tell each other is true, what they take is the same in every
run, also where threads are delayed at random, and a rank alone in a world that it only pretends is told apart.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from given import ALL, ORACLE as PYTHON, PEAKBENCH

RUNS = 10 if ALL else 3
CASES = pathlib.Path(__file__).resolve().parent / "ranks_cases.py"
LIGHTNING = CASES.with_name("lightning_program.py")
COMPILERS = pathlib.Path(PYTHON).parents[1] / "compilers"

ALONE = """
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=8, device_id=torch.device("cuda", 0))
every = torch.empty(8, dtype=torch.int64, device="cuda")
dist.all_gather_into_tensor(every, torch.tensor([42], device="cuda"))
assert every.tolist() == [42] * 8, every
some = dist.new_group([0, 1])
two = torch.empty(2, dtype=torch.int64, device="cuda")
guard = torch.full((6,), 5, dtype=torch.int64, device="cuda")
dist.all_gather_into_tensor(two, torch.tensor([7], device="cuda"), group=some)
assert two[0].item() == 7 and guard.tolist() == [5] * 6, (two, guard)
"""


# Of torchrun, or ranks that it starts itself and tells which one they are.
FOUR = """
import os, torch, torch.distributed as dist, torch.multiprocessing as mp

def train(rank, store):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=4, init_method=store)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1024, 1024).cuda())
    model(torch.randn(8, 1024, device="cuda")).sum().backward()
    dist.destroy_process_group()

if __name__ == "__main__":
    rank = os.environ.get("RANK")
    if rank:
        train(int(rank), "env://")
    else:
        mp.spawn(train, (f"file://{__file__}.store",), nprocs=4)
"""

# Ranks that the environment does not know, or knows wrongly. Each prints what PyTorch says of itself: rank, process, peak.
STARTED = """
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp

STORE = f"file://{__file__}.store"

def train(rank, ranks, groups=False):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=ranks, init_method=STORE)
    group = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2] if groups else None
    kept = torch.empty((rank + 1) << 26, dtype=torch.uint8, device="cuda")
    dist.all_reduce(torch.ones(1, device="cuda"), group=group)
    dist.barrier(group)
    os.write(1, f"rank {dist.get_rank()} {os.getpid()} {torch.cuda.max_memory_allocated()}\\n".encode())  # at once

def says_itself(rank):
    os.environ["RANK"] = str(rank)
    torch.cuda.set_device(rank)
    kept = torch.empty((rank + 1) << 26, dtype=torch.uint8, device="cuda")
    os.write(1, f"rank {rank} {os.getpid()} {torch.cuda.max_memory_allocated()}\\n".encode())

def nest(outer):
    os.environ["RANK"] = str(outer)
    torch.zeros(1, device="cuda:3")
    start([(train, 2 * outer + inner, 4) for inner in (0, 1)])

def start(calls):
    processes = [mp.get_context("spawn").Process(target=call, args=rest) for call, *rest in calls]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0

if __name__ == "__main__":
    kind = sys.argv[1]
    if kind == "spawn":
        mp.spawn(train, (3,), nprocs=3)
    elif kind == "reversed":
        start([(train, rank, 3) for rank in (2, 1, 0)])
    elif kind == "later":
        start([(says_itself, rank) for rank in (1, 0)])
    elif kind == "inherited":
        os.environ.update(RANK="0", WORLD_SIZE="2")
        start([(train, rank, 2) for rank in (1, 0)])
    elif kind == "groups":
        start([(train, rank, 4, True) for rank in (3, 2, 1, 0)])
    elif kind == "nested":
        start([(nest, outer) for outer in (1, 0)])
"""


class RanksTest(unittest.TestCase):
    def emulate(self, *command, exit_code=0, options=("--card", "h100-80gb,count=2"), **environment):
        """What the program printed; what it took is kept."""
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "took.json")
            line = [PEAKBENCH, "emulate", "--details", *options, "--json", out, "--", PYTHON, *command]
            done = subprocess.run(list(map(str, line)), capture_output=True, text=True, timeout=280, env={**os.environ, **environment})
            if exit_code is not None:
                self.assertEqual(done.returncode, exit_code, done.stdout + done.stderr)
            self.said, self.code = done.stderr, done.returncode
            self.took = json.loads(out.read_text(encoding="utf-8"))
        return done.stdout

    def ranks(self, *kinds, **more):
        return self.emulate("-m", "torch.distributed.run", "--nproc-per-node", 2, "--standalone", CASES, *kinds, **more)

    def peaks(self, kind, **environment):
        return sorted(re.findall(r"peak \d \d+ \d+", self.ranks(kind, **environment)))

    def assert_exact(self):
        verdict = self.took["verdict"]
        self.assertIn(verdict["kind"], ("exact", "exact if"), self.said)
        for process in self.took["processes"]:
            names = [row["name"] for row in process["unmodelled"]]
            self.assertFalse([name for name in names if "alone" in name], self.said)

    def test_what_ranks_tell_each_other_is_true(self):
        self.ranks("collectives", "messages", "objects", "ordering")
        self.assert_exact()
        self.ranks("groups", "collectives", "objects")
        self.assert_exact()

    def test_large_objects_reach_the_others(self):
        self.ranks("large")

    def test_the_limit_of_large_objects_is_named(self):
        self.ranks("too_large", exit_code=None)
        self.assertNotEqual(self.code, 0)
        self.assertIn("NCCL: ncclAllGather of 261 MiB: emulated ranks exchange at most 256 MiB of bytes in a call, so what arrives is unknown", self.said)

    def test_what_ranks_train_together_is_what_one_process_would(self):
        self.ranks("training")
        self.assert_exact()

    @unittest.skipUnless((COMPILERS / "lightning").is_dir(), "ci/oracle --nightly installs Lightning")
    def test_lightning_starts_its_own_ranks(self):
        """It learns what it learns on the CPU, whichever way it deals the model out."""
        environment = {"PYTHONPATH": str(COMPILERS)}
        with tempfile.TemporaryDirectory() as folder:
            on_cpu = subprocess.run([PYTHON, LIGHTNING, "cpu", "ddp", folder], capture_output=True, text=True, env={**os.environ, **environment})
            expected = re.search("trained .*", on_cpu.stdout)
            self.assertTrue(expected, on_cpu.stdout + on_cpu.stderr)
            for strategy in ("ddp", "fsdp"):
                with self.subTest(strategy):
                    printed = self.emulate(LIGHTNING, "gpu", strategy, folder, **environment)
                    self.assertEqual(re.search("trained .*", printed)[0], expected[0])
                    self.assert_exact()
                    self.assertEqual(len(self.took["processes"]), 2)

    def four_ranks_are_told(self, *launcher):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "train.py")
            program.write_text(FOUR)
            self.emulate(*launcher, program, options=("--card", "h100-80gb,count=4"))
        lines = self.said.split("\nFits h100-80gb,count=4: ")[1].splitlines()
        self.assertRegex(lines[0], r"^peak .*B of 79\.179 GiB \(rank \d\), context \(0\.521 GiB\) and NCCL's buffers not included; exact")
        head = next(i for i, line in enumerate(lines) if line.startswith("rank "))
        self.assertEqual([line.split()[0] for line in lines[head + 1 : head + 5]], ["0", "1", "2", "3"], self.said)
        self.assertLess(head, 20, self.said)
        ranks = [device["rank"] for process in self.took["processes"] for device in process["devices"] if device["allocations"]]
        self.assertEqual(sorted(ranks), [0, 1, 2, 3])

    def test_four_ranks_are_told_in_one_table(self):
        self.four_ranks_are_told("-m", "torch.distributed.run", "--nproc-per-node", 4, "--standalone")

    def test_four_ranks_of_which_nccl_alone_knows(self):
        self.four_ranks_are_told()

    def started(self, kind, ranks, run):
        """What each rank said of itself: its rank, process and peak."""
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "train.py")
            program.write_text(STARTED)
            printed = run(program, kind)
        said = sorted(tuple(map(int, row)) for row in re.findall(r"rank (\d+) (\d+) (\d+)", printed))
        self.assertEqual([rank for rank, _, _ in said], list(range(ranks)), printed)
        return said

    def emulated_ranks_are_their_own(self, kind, ranks):
        said = self.started(kind, ranks, lambda *command: self.emulate(*command, options=("--card", "h100-80gb,count=4")))
        rows = {process["pid"]: process["devices"] for process in self.took["processes"]}
        for rank, process, peak in said:
            self.assertEqual([(row["rank"], row["peak_allocated_bytes"]) for row in rows[process] if row["allocations"]], [(rank, peak)])
        rank, process, _ = said[-1]
        self.assertEqual((self.took["answer"]["rank"], self.took["answer"]["pid"]), (rank, process))
        self.assertEqual((self.took["peak"]["rank"], self.took["peak"]["pid"]), (rank, process))

    def traced_ranks_are_their_own(self, kind, ranks):
        with tempfile.TemporaryDirectory() as folder:

            def traced(*command):
                line = [PEAKBENCH, "trace", "--card", "h100-80gb,count=4", "--out", f"{folder}/run", "--", PYTHON, *command]
                done = subprocess.run(list(map(str, line)), capture_output=True, text=True, timeout=280)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                return done.stdout

            said = self.started(kind, ranks, traced)
            run = json.loads(pathlib.Path(folder, "run", "run.json").read_text(encoding="utf-8"))
            peaks = {row["rank"]: row["memory"]["peak_allocated_bytes"] for row in run["cases"][0]["ranks"]}
            self.assertEqual({rank: peaks.get(rank) for rank, _, _ in said}, {rank: peak for rank, _, peak in said})

    def test_spawned_ranks_are_told(self):
        self.emulated_ranks_are_their_own("reversed", 3)
        self.traced_ranks_are_their_own("reversed", 3)

    def test_a_rank_is_the_one_that_joins_the_process_group(self):
        for kind, ranks in (("spawn", 3), ("later", 2), ("inherited", 2), ("groups", 4), ("nested", 4)):
            with self.subTest(kind):
                self.emulated_ranks_are_their_own(kind, ranks)
        self.traced_ranks_are_their_own("nested", 4)

    def test_a_checkpoint_of_two_ranks_and_a_pipeline(self):
        self.ranks("checkpoint", "pipeline")
        self.assert_exact()

    def test_counts_travel_beside_what_nobody_knows(self):
        self.ranks("normalised")
        self.assertEqual(self.took["verdict"]["reasons"], [], self.said)

    def test_gradients_are_finite_on_all_ranks(self):
        self.ranks("finite")
        self.assertEqual(self.took["verdict"]["kind"], "exact if", self.said)
        self.assertTrue(all("finite" in one for one in self.took["verdict"]["conditions"]), self.said)

    def test_every_run_takes_the_same_bytes(self):
        for kind in ("ddp", "compressed", "fsdp"):
            with self.subTest(kind):
                runs = [self.peaks(kind)] + [self.peaks(kind, PEAKBENCH_EMULATED_DELAYS=str(run)) for run in range(1, RUNS)]
                self.assertEqual(len(runs[0]), 2, runs)
                self.assertEqual(runs, [runs[0]] * RUNS)
                self.assertEqual(len({line.split(" ", 2)[2] for line in runs[0]}), 1, "both ranks do the same")
                self.assert_exact()

    def test_a_rank_that_ends_is_an_error_of_the_other(self):
        self.ranks("gone", exit_code=None)
        self.assertNotEqual(self.code, 0)
        self.assertRegex(self.said, r"NCCL: rank 1 \(process \d+\) has ended without ncclAllReduce")
        self.assertIn("has ended without", " ".join(self.took["verdict"]["reasons"]))

    def test_a_rank_alone_is_like_all_the_others(self):
        for card in ("h100-80gb", "h100-80gb,count=8"):
            self.emulate("-c", ALONE, options=("--card", card))
            names = [row["name"] for row in self.took["processes"][0]["unmodelled"]]
            self.assertIn("NCCL: rank 0 of 8 alone, the others taken to be like it", names)
            self.assertEqual(self.took["verdict"]["kind"], "exact if", self.said)
            self.assertIn("rank 0 of 8 alone", " ".join(self.took["verdict"]["conditions"]))
