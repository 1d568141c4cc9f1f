"""Cases of many ranks (`--ranks`): closed forms and a stock script on the emulated card, two ranks on the CPU against one process with the whole
batch, and what is said of ranks that cannot be.
"""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import warm_python
from given import ORACLE as PYTHON, PEAKBENCH

PACKAGE = Path(__file__).resolve().parents[2] / "python"
ENVIRONMENT = os.environ | {"PYTHONPATH": ":".join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH")])),
                            "PATH": f"{PEAKBENCH.parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}  # fmt: skip
CARD = "h100-80gb"
WIDTH, LAYERS = 2048, 8
PARAMETERS = LAYERS * WIDTH * WIDTH

BENCH = """
import os
import time

import peakbench
import torch
from transformers import LlamaConfig, LlamaForCausalLM

@peakbench.model
def mlp(batch=4, width=2048, layers=8):
    block = lambda: torch.nn.Sequential(torch.nn.Linear(width, width, bias=False), torch.nn.ReLU())
    net = torch.nn.Sequential(torch.nn.Sequential(*[block() for _ in range(layers)]), torch.nn.Identity())
    inputs = torch.randn(batch, width)
    return net, lambda rows=slice(None): net(inputs[rows]).square().mean()

@peakbench.model
def llama(batch=4):
    config = LlamaConfig(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, use_cache=False)
    net = LlamaForCausalLM(config).double()
    ids = torch.randint(0, 128, (batch, 16))
    return net, lambda rows=slice(None): net(input_ids=ids[rows], labels=ids[rows]).loss

@peakbench.model
def without_rows(batch=4):
    net = torch.nn.Linear(8, 8)
    inputs = torch.randn(batch, 8)
    return net, lambda: net(inputs).square().mean()

PROMISE = {"promise": "within_tolerance", "tolerance": 0.006, "relative_tolerance": 0.001, "reference": "baseline"}

@peakbench.strategy(**PROMISE)
def unreduced(model, loss):
    def own(*rows):
        with loss.no_sync():
            return loss(*rows)
    return own

@peakbench.strategy(**PROMISE)
def another_batch(model, loss):
    loss.module.loss = lambda *rows: model(torch.ones(4, 64)).square().mean()
    return loss

@peakbench.model
def killed(batch=4):
    if os.environ.get("RANK") == "1":
        os.kill(os.getpid(), 9)
    return mlp(batch)

@peakbench.model
def asleep(batch=4):
    os.write(1, f"{os.getpid()}\\n".encode())  # in one piece, as the other rank writes there, too
    time.sleep(60)
"""

SUITE = """
devices = ["cpu"]

[[programs]]
python = "bench.py:llama"
strategies = ["ddp", "zero-1", "fsdp"]
batch_sizes = [2]
ranks = [2]

[[programs]]
python = "./bench.py:llama"
strategies = ["tensor-parallel", "baseline"]
batch_sizes = [4]
ranks = [2]
"""

# What somebody would write without Peakbench, for rank 0 of 8.
BY_HAND = """
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=8)
torch.manual_seed(0)
inputs = torch.randn(4, 2048, device="cuda")
with torch.device("meta"):
    blocks = [torch.nn.Sequential(torch.nn.Linear(2048, 2048, bias=False), torch.nn.ReLU()) for _ in range(8)]
    net = torch.nn.Sequential(torch.nn.Sequential(*blocks), torch.nn.Identity())
for block in blocks:
    fully_shard(block)
fully_shard(net)
net.to_empty(device="cuda")
for one in net.parameters():
    torch.nn.init.normal_(one.to_local(), std=0.02)
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(3):
    optimizer.zero_grad()
    loss = net(inputs).square().mean()
    loss.backward()
    optimizer.step()
    del loss
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
dist.destroy_process_group()
"""


def setUpModule():
    global WARM
    WARM = warm_python.served(PYTHON, [[PEAKBENCH, "emulate", "--no-lines", "--"], []], ENVIRONMENT, [*warm_python.TRAINING, "transformers"])


class Ranks(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="peakbench-ranks-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "bench.py").write_text(BENCH, encoding="utf-8")
        self.environment = ENVIRONMENT | {"PEAKBENCH_PYTHON": str(WARM)}

    def call(self, *words, code=0, **more):
        done = subprocess.run(list(map(str, words)), cwd=self.folder, env=self.environment | more, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr

    def run_it(self, model, *words, **more):
        return self.record("--program", f"bench.py:{model}", *words, **more)

    def record(self, *words, code=0, **more):
        """What was printed, and the cases by what their ids end with."""
        said = self.call(PEAKBENCH, "run", *words, "--out", "out", "--overwrite", code=code, **more)
        record = json.loads((self.folder / "out/run.json").read_text())
        return said, {case["id"].split("/", 2)[2]: case for case in record["cases"]}

    # ---- the emulated card ----

    def before_the_update(self, trace):
        """Bytes by category when the last step's update begins."""
        with sqlite3.connect(self.folder / "out" / trace) as read:
            (begin,) = read.execute("SELECT min(id) FROM events_in_words WHERE phase = 'optimizer_step' AND step = 2").fetchone()
            alive = read.execute("SELECT c.name, sum(e.block_bytes) FROM allocations a JOIN events e ON e.id = a.event JOIN categories c ON c.id = a.category"
                                 " WHERE a.event < ? AND a.last_event >= ? GROUP BY 1", (begin, begin))  # fmt: skip
            return dict(alive)

    def test_the_closed_forms_of_each_strategy(self):
        (said, _), cases = self.run_it("mlp", "--strategy", "ddp,zero-1,fsdp", "--ranks", "4,8", "--card", CARD)
        self.assertEqual(list(cases), [f"{s}/emulated:{CARD}/b4/ranks-{n}" for s in ("ddp", "zero-1", "fsdp") for n in (4, 8)])
        forms = {"ddp": lambda n: 16 * PARAMETERS, "zero-1": lambda n: 8 * PARAMETERS + 8 * PARAMETERS // n, "fsdp": lambda n: 16 * PARAMETERS // n}
        # Bytes in three steps: DDP averages gradients; FSDP2 gathers each block for forward and for backward, and scatters its gradients.
        gradients = 3 * 4 * PARAMETERS
        exchanged = {"ddp": {"ncclAllReduce": gradients}, "zero-1": {"ncclAllReduce": gradients},
                     "fsdp": {"ncclAllGather": 2 * gradients, "ncclReduceScatter": gradients}}  # fmt: skip
        for name, case in cases.items():
            with self.subTest(name):
                self.assertEqual((case["status"], case["world_size"], case["batch_size"]), ("ok", int(name.rsplit("-", 1)[1]), 4), case["reason"])
                self.assertEqual([rank["rank"] for rank in case["ranks"]], [0])  # the others are like it
                alive = self.before_the_update(case["ranks"][0]["trace"])
                kept = sum(alive.get(category, 0) for category in ("parameter", "gradient", "optimizer_state"))
                self.assertEqual(kept, forms[name.split("/")[0]](case["world_size"]), alive)
                self.assertEqual(case["global_batch_size"], 4 * case["world_size"])
                calls = {one["call"]: one["bytes"] for one in case["ranks"][0]["nccl_calls"]}
                self.assertEqual({call: calls.get(call) for call in exchanged[name.split("/")[0]]}, exchanged[name.split("/")[0]])
                if name.startswith("fsdp"):
                    self.assertEqual([one["calls"] for one in case["ranks"][0]["nccl_calls"]], [3 * 2 * LAYERS, 3 * LAYERS])
        self.assertRegex(said, r"fsdp \(8 ranks\)")
        self.assertRegex(said.replace("\n", " "), r"ddp: \d.* GiB of the \d.* GiB on 8 ranks do not shrink with more ranks \(")

    def test_ranks_whose_memory_differs_run_by_themselves(self):
        _, cases = self.run_it("mlp,width=100,layers=3", "--strategy", "fsdp", "--strategy", "zero-1", "--ranks", "8,200", "--card", CARD)
        found = {name: [rank["rank"] for rank in case["ranks"]] for name, case in cases.items()}
        # 100 rows on 8 ranks: 13 for the first, 9 for the last. Three layers on 8 ranks: some have none.
        self.assertEqual(found, {f"fsdp/emulated:{CARD}/b4/ranks-8": [0, 7], f"fsdp/emulated:{CARD}/b4/ranks-200": [0, 199],
                                 f"zero-1/emulated:{CARD}/b4/ranks-8": [0, 3], f"zero-1/emulated:{CARD}/b4/ranks-200": [0, 3]})  # fmt: skip
        for case in cases.values():
            peaks = [rank["memory"]["peak_allocated_bytes"] for rank in case["ranks"]]
            self.assertEqual(case["memory"]["peak_allocated_bytes"], max(peaks))
            self.assertGreater(peaks[0], peaks[1])

    def test_with_a_card_for_each_rank_all_run(self):
        words = ["mlp,width=100,layers=3", "--strategy", "fsdp,zero-1", "--ranks", "3", "--card"]
        _, cases = self.run_it(*words, f"{CARD},count=3")
        _, single = self.run_it(*words, CARD)
        for (name, case), of_distinct in zip(cases.items(), single.values()):
            with self.subTest(name):
                peaks = {rank["rank"]: rank["memory"]["peak_allocated_bytes"] for rank in case["ranks"]}
                self.assertEqual((case["status"], list(peaks), case["world_size"]), ("ok", [0, 1, 2], 3), case["reason"])
                self.assertNotIn("alone", json.dumps(case["emulation"]["verdict"]))
                expected = {rank["rank"]: rank["memory"]["peak_allocated_bytes"] for rank in of_distinct["ranks"]}
                self.assertEqual({rank: peaks[rank] for rank in expected}, expected)
                self.assertEqual(max(peaks.values()), max(expected.values()))

    def test_fsdp_takes_what_a_stock_script_takes(self):
        (self.folder / "hand.py").write_text(BY_HAND, encoding="utf-8")
        by_hand = self.call(PEAKBENCH, "emulate", "--no-lines", "--card", CARD, "--", WARM, "hand.py", PEAKBENCH_EMULATED_RANKS="alone")[0].split()
        _, cases = self.run_it("mlp", "--strategy", "fsdp", "--ranks", "8", "--card", CARD)
        (memory,) = [case["memory"] for case in cases.values()]
        self.assertEqual([memory["peak_allocated_bytes"], memory["peak_reserved_bytes"]], [int(word) for word in by_hand])

    # ---- the CPU ----

    def test_two_ranks_train_what_one_process_does_with_the_whole_batch(self):
        (self.folder / "ranks.toml").write_text(SUITE, encoding="utf-8")
        _, cases = self.record("ranks.toml")
        ranks = {name: case for name, case in cases.items() if "world_size" in case}
        self.assertEqual(list(ranks), ["ddp/cpu/b2/ranks-2", "zero-1/cpu/b2/ranks-2", "fsdp/cpu/b2/ranks-2", "tensor-parallel/cpu/b4/ranks-2"])
        for name, case in ranks.items():
            with self.subTest(name):
                self.assertEqual((case["status"], case["equivalence"]["verdict"]), ("ok", "held"), case["equivalence"])
                self.assertEqual(case["equivalence"]["reference_case"], "python/llama/baseline/cpu/b4")
                # In fp64. AdamW moves a parameter by 1e-3 a step: ranks that train by themselves would be off by as much.
                self.assertLess(case["equivalence"]["max_abs_difference"], 1e-5)

    def test_ranks_that_train_otherwise_break_the_promise(self):
        # Within the tolerance of each value, which is as much as AdamW moves one.
        words = ["mlp,width=64,layers=2", "--strategy", "baseline,ddp,ddp+unreduced,ddp+another_batch", "--ranks", "2"]
        _, cases = self.run_it(*words, "--batch", "4,8", "--device", "cpu")
        found = {name: cases[f"{name}/cpu/b4/ranks-2"]["equivalence"] for name in ("ddp", "ddp+unreduced", "ddp+another_batch")}
        self.assertEqual({name: one["verdict"] for name, one in found.items()}, {name: "held" if name == "ddp" else "broken" for name in found}, found)
        self.assertRegex(found["ddp+unreduced"]["reason"], "^ranks have different values of .*weight$")
        self.assertRegex(found["ddp+another_batch"]["reason"], r"^its parameters are off the reference's by \d+% of what training moved them$")

    # ---- what cannot be ----

    def test_what_is_said_before_anything_runs(self):
        def refused(*words, program="bench.py:mlp", **more):
            return self.call(PEAKBENCH, "run", *(["--program", program] if program else []), *words, "--dry-run", code=2, **more)[1]

        self.assertIn('--ranks: "0" is not a whole number from 1 to 1000000', refused("--strategy", "fsdp", "--ranks", "0"))
        self.assertIn("fsdp trains on several ranks: say on how many with --ranks N", refused("--strategy", "fsdp"))
        self.assertIn("--ranks is for strategies that train on several ranks; name one, like --strategy fsdp", refused("--strategy", "baseline", "--ranks", "2"))
        self.assertIn("1024 ranks on the CPU: each is a process that computes", refused("--strategy", "fsdp", "--ranks", "1024", "--device", "cpu"))
        self.assertIn("WORLD_SIZE is 3, as in a rank of torchrun, and --ranks starts ranks: unset it",
                      refused("--strategy", "fsdp", "--ranks", "2", "--device", "cpu", WORLD_SIZE="3"))  # fmt: skip
        self.assertIn("ranks 2: models of Peakbench run in one process", refused("--model", "gpt2", "--ranks", "2", program=""))

    def bench(self, *words, code=2, **more):
        return self.call(WARM, "-m", "peakbench.bench", "bench.py", "--model", "mlp", "--strategy", "fsdp", "--device", "cpu", *words, code=code, **more)[1]

    def test_ranks_that_do_not_meet(self):
        self.assertEqual(self.bench("--ranks", "2", WORLD_SIZE="3"), "peakbench: WORLD_SIZE is 3, and --ranks 2: unset WORLD_SIZE, or leave --ranks out\n")
        self.assertIn("peakbench: RANK is 4, and WORLD_SIZE 2: expected a rank from 0 to 1\n", self.bench(WORLD_SIZE="2", RANK="4"))
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            one.listen()
            port = str(one.getsockname()[1])
            self.assertEqual(self.bench("--ranks", "2", MASTER_PORT=port),
                             f"peakbench: the ranks cannot meet at port {port}, which is in use or no port: set MASTER_PORT to a free one\n")  # fmt: skip
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = str(one.getsockname()[1])
        self.assertIn("peakbench: rank 1 of 2 has not come within 1 s\n",
                      self.bench(WORLD_SIZE="2", RANK="0", MASTER_PORT=port, PEAKBENCH_EMULATED_RANKS="1"))  # fmt: skip

    def test_a_rank_that_cannot_train_says_why_once(self):
        _, cases = self.run_it("without_rows", "--strategy", "ddp", "--ranks", "2", "--device", "cpu", code=3)
        (case,) = cases.values()
        self.assertEqual((case["status"], case["reason"]), ("unsupported", "bench.py: ranks on the CPU train parts of one batch: give the loss of without_rows a "
                                                                       "parameter `rows`, a slice of it"))  # fmt: skip

    def test_a_killed_rank_is_one_outcome(self):
        _, cases = self.run_it("killed", "--strategy", "ddp", "--ranks", "2", "--device", "cpu", code=3)
        (case,) = cases.values()
        self.assertEqual((case["status"], case["reason"]), ("crashed", "rank 1 of 2 was killed by SIGKILL"))

    def test_ranks_end_with_the_process_that_started_them(self):
        words = [str(PYTHON), "-m", "peakbench.bench", "bench.py", "--model", "asleep", "--strategy", "ddp", "--device", "cpu", "--ranks", "2"]
        with subprocess.Popen(words, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True) as parent:
            try:
                ranks = [int(parent.stdout.readline()) for _ in range(2)]
            finally:
                os.kill(parent.pid, signal.SIGKILL)
        end = time.monotonic() + 20
        while any(Path(f"/proc/{rank}").exists() for rank in ranks) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual([rank for rank in ranks if Path(f"/proc/{rank}").exists()], [])


if __name__ == "__main__":
    unittest.main()
