"""`peakbench trace`: what memory is called. Of each program, in closed form: communication of ranks, CUDA graphs, ranges that the program names, and
what PyTorch's own tracker of memory by component takes for something else (torch/cuda/memory_component_tracker.py).
"""

import json
import subprocess

from traced_programs import MIB, PEAKBENCH, OneProgram, line_with, warm

COMMUNICATION = """
import json, torch, torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
sizes = {}

def model():
    return nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()

def train(parallel, name):
    optimizer = torch.optim.SGD(parallel.parameters())
    for _ in range(3):
        loss = parallel(torch.ones(64, 512, device="cuda")).sum()
        loss.backward()
        with record_function("moment " + name):
            torch.empty(1, device="cuda")
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()  # MEAN
        dist.all_reduce(mean)
        del loss, mean

for view in (False, True):
    name = "view" if view else "copy"
    ddp = DistributedDataParallel(model(), gradient_as_bucket_view=view)
    train(ddp, name)
    sizes[name] = [int(size) for size in ddp._get_ddp_logging_data()["rebuilt_bucket_sizes"].split(", ")]
    del ddp
sharded = model()
for layer in sharded:
    if isinstance(layer, nn.Linear):
        fully_shard(layer)
fully_shard(sharded)
with record_function("sharded"):
    train(sharded, "sharded")
sizes["peak"] = torch.cuda.max_memory_allocated()
if dist.get_rank() == 0:
    print(json.dumps(sizes))
dist.destroy_process_group()
"""


class Communication(OneProgram):
    PROGRAM = COMMUNICATION
    GRADIENTS = 4 * (512 * 1024 + 1024 + 1024 * 512 + 512)

    def run_program(self):
        self.write(self.PROGRAM)
        return self.trace(warm(), "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py", options=("--card", "h100-80gb,count=2"))

    def moment(self, name):
        (event,) = self.made(f"range = 'moment {name}'", "max(event)")[0]
        return self.alive(event)

    def printed(self):
        return json.loads(self.done.stdout.splitlines()[0])

    def test_the_peak_is_pytorchs_own(self):
        self.assertEqual(self.case()["memory"]["peak_allocated_bytes"], self.printed()["peak"])

    def test_buckets_are_as_large_as_pytorch_says(self):
        buckets = self.printed()["copy"]
        self.assertEqual((len(buckets), sum(buckets)), (2, self.GRADIENTS))
        moment = self.moment("copy")
        self.assertEqual((moment["communication"], moment["gradient"]), (sum(buckets), self.GRADIENTS))

    def test_gradients_that_are_views_into_buckets_have_no_memory_of_their_own(self):
        buckets = self.printed()["view"]
        moment = self.moment("view")
        self.assertEqual((moment["communication"], moment.get("gradient", 0)), (sum(buckets), 0))

    def test_what_the_program_reduces_itself_is_communication(self):
        line = line_with(COMMUNICATION, "# MEAN")
        made = self.made(f"line = {line} AND kind = 'alloc' GROUP BY category", "category, count(*)")
        self.assertEqual(made, [("communication", 9)])

    def test_shards_gather_and_scatter_through_buffers(self):
        moment = self.moment("sharded")
        self.assertEqual((moment["parameter"], moment["gradient"]), (self.GRADIENTS // 2, self.GRADIENTS // 2))
        # In each forward, the parameters of every layer are gathered through one buffer. What reduce-scatter leaves is the gradient.
        forward = "step >= 7 AND phase = 'forward' AND "
        steps = self.made(forward + "1", "count(DISTINCT step)")[0][0]
        self.assertGreater(steps, 0)
        self.assertEqual(self.bytes_made(forward + "category = 'communication'"), steps * self.GRADIENTS)
        self.assertEqual(self.bytes_made(forward + "name = 'FSDP gathered parameter'"), steps * self.GRADIENTS)
        backward = "step >= 7 AND phase = 'backward' AND "
        self.assertGreaterEqual(self.bytes_made(backward + "name = 'FSDP gathered parameter'"), self.GRADIENTS // 2)
        self.assertEqual(self.made(backward + "category IN ('temporary', 'kept') AND requested_bytes >= 1000000", "count(*)"), [(0,)])


RANGES = """
import threading, torch, peakbench
from torch import nn
from torch.profiler import record_function

model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)).cuda()
optimizer = torch.optim.Adam(model.parameters())
data = torch.utils.data.DataLoader(torch.ones(64, 256), batch_size=32)
MIB = 1 << 20

@peakbench.phase("score")
def score():
    return torch.empty(2 * MIB, device="cuda", dtype=torch.uint8)

def elsewhere():
    torch.empty(7 * MIB, device="cuda", dtype=torch.uint8)

for epoch in range(2):
    with peakbench.phase("rollout"):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        samples = torch.empty(64 * MIB, device="cuda", dtype=torch.uint8)
        try:
            with peakbench.phase("fails"):
                torch.empty(MIB, device="cuda", dtype=torch.uint8)
                raise ValueError
        except ValueError:
            pass
        kept = score()
    del samples
    with record_function("update"):
        for batch in data:
            torch.cuda.nvtx.range_push("pass")
            with torch.cuda.nvtx.range("loss"):
                loss = model(batch.cuda()).sum()
            loss.backward()
            torch.cuda.nvtx.range_pop()
            optimizer.step()
            optimizer.zero_grad()
    del loss, batch

graph = torch.cuda.CUDAGraph()
x = torch.ones(32, 256, device="cuda")
with torch.cuda.graph(graph):
    hidden = torch.relu(x + 1)
    out = hidden.sum(1)
    del hidden
graph.replay()
torch.empty(3 * MIB, device="cuda", dtype=torch.uint8)  # AFTER
print(torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved())
"""


class Ranges(OneProgram):
    PROGRAM = RANGES

    def test_the_peak_lies_in_a_range(self):
        self.assertRegex(self.done.stderr, r"The peak is [0-9.]+ (G|M)iB allocated, outside of forward, backward and optimizer step \(step \d\), in your range \"rollout > score\": ")
        self.assertIn("\nBy your range (its own peak;", self.done.stderr)
        self.assertEqual(self.case()["memory"]["peak_allocated_bytes"], int(self.done.stdout.split()[0]))
        page = (self.folder / "out/report/index.html").read_text(encoding="utf-8")
        self.assertIn("Peak by your ranges", page)
        self.assertIn("update &gt; pass &gt; loss", page)

    def test_three_ways_to_name_one_and_those_of_pytorch_are_none(self):
        names = {name for (name,) in self.query("""
            WITH RECURSIVE up(id, name, parent) AS (SELECT id, name, parent FROM ranges
              UNION ALL SELECT up.id, r.name || '/' || up.name, r.parent FROM up JOIN ranges r ON r.id = up.parent)
            SELECT name FROM up WHERE parent IS NULL""")}
        self.assertEqual(names, {"rollout", "rollout/fails", "rollout/score", "update", "update/pass", "update/pass/loss"})

    def test_memory_is_of_the_innermost_range_of_its_thread(self):
        by_range = dict(self.made("requested_bytes >= 1000000 AND category <> 'workspace' GROUP BY range", "range, sum(requested_bytes)"))
        self.assertEqual(by_range, {"rollout": 2 * 64 * MIB, "fails": 2 * MIB, "score": 2 * 2 * MIB, None: (2 * 7 + 3) * MIB})

    def test_backward_on_a_thread_of_autograds_is_in_the_range_that_called_it(self):
        gradients = 4 * 2 * (256 * 256 + 256)
        self.assertEqual(self.bytes_made("category = 'gradient' AND range = 'pass'"), 4 * gradients)
        self.assertEqual(self.bytes_made("category = 'gradient'"), 4 * gradients)
        threads = self.made("category = 'gradient'", "count(DISTINCT (SELECT thread FROM events WHERE id = event))")
        self.assertEqual(threads, [(1,)])
        self.assertNotEqual(self.made("category = 'gradient'", "max((SELECT thread FROM events WHERE id = event))"),
                            self.made("category = 'parameter'", "max((SELECT thread FROM events WHERE id = event))"))  # fmt: skip

    def test_what_a_graph_keeps_is_its_pools(self):
        line = line_with(RANGES, "# AFTER")
        (after,) = self.made(f"line = {line}", "max(event)")[0]
        self.assertEqual(self.alive(after)["graph_pool"], 32 * 4)
        self.assertEqual(self.made("pool IS NOT NULL AND requested_bytes = 32768 GROUP BY category", "category, count(*)"), [("temporary", 2)])
        # A private pool reserves a segment of the smallest size.
        reserved = int(self.done.stdout.split()[1])
        segments = dict(self.query("SELECT pool IS NOT NULL, sum(block_bytes) FROM events_in_words WHERE kind = 'segment_alloc' GROUP BY 1"))
        freed = self.query("SELECT coalesce(sum(block_bytes), 0) FROM events_in_words WHERE kind = 'segment_free'")[0][0]
        self.assertEqual((segments[1], segments[0] + segments[1] - freed), (2 * MIB, reserved))
        self.assertRegex(self.done.stderr, r"Private pools \(of CUDA graphs, .*\) had up to 2.0 MiB reserved, of")


COMPONENTS = """
import torch
from torch import nn
import torch.nn.functional as F

B, W, C = 64, 256, 1000

class Child(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(W, W)
    def forward(self, x):
        x.detach().repeat(16, 1)  # SCRATCH
        return self.linear(x)

class Parent(nn.Module):
    def __init__(self):
        super().__init__()
        self.child = Child()
    def forward(self, x):
        x = self.child(x)
        return x.exp()  # PARENT

body, head = Parent().cuda(), nn.Linear(W, C).cuda()
fresh, loaded, made = (torch.optim.Adam(part.parameters()) for part in (body, head, nn.Linear(1, 1).cuda()))
checkpoint = {"state": {i: {"step": torch.tensor(1.0), "exp_avg": torch.zeros(p.shape), "exp_avg_sq": torch.zeros(p.shape)}
                        for i, p in enumerate(head.parameters())}, "param_groups": loaded.state_dict()["param_groups"]}
loaded.load_state_dict(checkpoint)  # LOADED
extra = nn.Parameter(torch.zeros(W, device="cuda"))
made.add_param_group({"params": [extra]})
made.state[extra] = {"step": torch.tensor(1.0), "exp_avg": torch.zeros(W, device="cuda"), "exp_avg_sq": torch.zeros(W, device="cuda")}  # MADE
for step in range(2):
    x, y = torch.ones(B, W, device="cuda"), torch.zeros(B, dtype=torch.long, device="cuda")
    hidden = body(x)
    logits = head(hidden)
    loss = F.cross_entropy(logits.double(), y) + extra.sum()  # LOSS
    loss.backward()
    for optimizer in (fresh, loaded, made):
        optimizer.step()  # STEP
        optimizer.zero_grad()
    del hidden, logits, loss
print(torch.cuda.max_memory_allocated())
"""


class Misattributions(OneProgram):
    """What is easily taken for something else: each is a mistake of a tracker that decides while the program runs."""

    PROGRAM = COMPONENTS
    B, W, C, STEPS = 64, 256, 1000, 2
    BODY, HEAD = 4 * (W * W + W), 4 * (W * C + C)

    def at(self, mark):
        return f"line = {line_with(COMPONENTS, mark)} AND space LIKE 'cuda%' AND "

    def by_category(self, where):
        return dict(self.made(where + "1 GROUP BY category", "category, sum(requested_bytes)"))

    def test_a_temporaries_in_a_modules_forward_are_no_activations(self):
        self.assertEqual(self.by_category(self.at("# SCRATCH")), {"temporary": self.STEPS * 16 * 4 * self.B * self.W})

    def test_b_what_is_done_after_a_child_returned_is_the_parents(self):
        made = self.made(self.at("# PARENT") + "phase = 'forward' GROUP BY module", "module, sum(requested_bytes)")
        self.assertEqual(made, [("Parent", self.STEPS * 4 * self.B * self.W)])
        inside = self.made("name = 'child.linear.weight'", "count(*)")
        self.assertEqual(inside, [(self.STEPS + 1,)])  # the parameter and its gradients

    def test_c_a_loss_outside_of_modules_is_activation(self):
        forward = self.at("# LOSS") + "phase = 'forward' AND "
        doubles = 8 * self.B * self.C
        made = self.made(forward + "requested_bytes >= 100000 GROUP BY category, module", "category, module, sum(requested_bytes)")
        # The logits in double go when their softmax is there: that is kept for backward, as are the model's own.
        self.assertEqual(sorted(made), [("activation", None, self.STEPS * doubles), ("temporary", None, self.STEPS * doubles)])

    def test_d_temporaries_of_a_foreach_update_are_no_optimizer_state(self):
        step = self.at("# STEP")
        large = self.BODY + self.HEAD + 4 * self.W
        roots = self.made(step + "operator = 'aten::_foreach_sqrt' GROUP BY category", "category, sum(requested_bytes)")
        self.assertEqual(roots, [("temporary", self.STEPS * large)])
        self.assertEqual(self.by_category(step)["optimizer_state"], 2 * self.BODY)

    def test_e_gradients_and_temporaries_of_backward_are_told_apart_wherever_they_are_made(self):
        gradients = self.made("category = 'gradient' AND step = 1", "sum(requested_bytes), min(phase), max(phase)")
        self.assertEqual(gradients, [(self.BODY + self.HEAD + 4 * self.W, "backward", "backward")])
        # Of the loss, outside of every module: the gradients of softmax, of its input, and in float.
        loss = self.by_category(self.at("# LOSS") + "phase = 'backward' AND requested_bytes >= 100000 AND ")
        self.assertEqual(loss, {"temporary": self.STEPS * (8 + 8 + 4) * self.B * self.C})
        # Between the modules: the gradient of exp in the parent.
        between = self.by_category(self.at("# PARENT") + "phase = 'backward' AND ")
        self.assertEqual(between, {"temporary": self.STEPS * 4 * self.B * self.W})

    def test_f_optimizer_state_that_was_there_before_the_first_step_is_optimizer_state(self):
        self.assertEqual(self.by_category(self.at("# LOADED")), {"optimizer_state": 2 * self.HEAD})
        self.assertEqual(self.by_category(self.at("# MADE")), {"optimizer_state": 2 * 4 * self.W})

    def test_all_of_it_is_the_peak(self):
        memory = self.case()["memory"]
        self.assertEqual(memory["peak_allocated_bytes"], int(self.done.stdout))
        self.assertEqual(sum(memory["at_peak"].values()), int(self.done.stdout))


STEPS = """
import sys, torch
from torch import nn

model = nn.Linear(512, 512).cuda()
optimizer = torch.optim.AdamW(model.parameters())
peaks = []
for step in range(8):
    torch.cuda.reset_peak_memory_stats()
    x = torch.ones(1024 * (2 if step == 6 else 1), 512, device="cuda")
    model(x).relu().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    kept = torch.empty(1 << 20, device="cuda") if step == 1 else kept if step else None
    peaks.append(torch.cuda.max_memory_allocated())
print(*peaks)
"""


class Steps(OneProgram):
    """Steps 3 to 5 of 8, of which the seventh has the peak."""

    PROGRAM = STEPS

    def run_program(self):
        script = self.write(self.PROGRAM)
        self.trace(warm(), script, out="whole")
        return self.trace(warm(), script, options=("--card", "h100-80gb", "--steps", "3..5"))

    def peaks(self):
        return [int(peak) for peak in self.done.stdout.split()]

    def test_figures_are_of_the_steps_that_stay(self):
        case = self.case()
        self.assertEqual(case["memory"]["peak_allocated_bytes"], max(self.peaks()[2:5]))
        self.assertEqual(self.case("whole")["memory"]["peak_allocated_bytes"], max(self.peaks()))
        self.assertEqual(case["id"].split("/")[1], "train.py-steps-3-to-5")
        self.assertRegex(self.done.stderr, r"--steps: process \d+ had 8 steps; figures are of the kept ones. Its overall peak was [0-9.]+ MiB in \w+ of step 7")
        self.assertIn("train.py steps-3-to-5", (self.folder / "out/report/index.html").read_text(encoding="utf-8"))

    def test_what_stays_is_called_as_it_was(self):
        query = """SELECT c.name, n.name, e.step, sum(e.requested_bytes) FROM allocations a JOIN events e ON e.id = a.event
            JOIN categories c ON c.id = a.category LEFT JOIN names n ON n.id = a.name WHERE e.step BETWEEN 2 AND 4 GROUP BY 1, 2, 3"""
        self.assertEqual(self.query(query), self.query(query, out="whole"))
        count = "SELECT count(*) FROM events WHERE step NOT BETWEEN 2 AND 4"
        self.assertLess(self.query(count)[0][0], self.query(count, out="whole")[0][0] / 2)

    def test_a_part_is_not_compared_with_the_whole(self):
        done = subprocess.run([PEAKBENCH, "gate", "whole", "out"], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("train.py-steps-3-to-5", done.stdout + done.stderr)

    def test_what_is_no_range_is_refused_before_the_program_runs(self):
        for steps, why in (("5..3", "it ends before it begins"), ("0", "the first step is 1"), ("last", "no number of a step"), ("", "no step is named")):
            done = self.trace(warm(), "-c", "print('ran')", options=("--steps", steps), out="none", code=2)
            self.assertIn(f"--steps {steps}: {why}; expected steps, counted from 1: 3, 2..4, ..4 or 2..", done.stderr)
            self.assertEqual((done.stdout, (self.folder / "none").exists()), ("", False))

    def test_steps_that_never_came(self):
        script = self.write("import torch\nkept = torch.ones(1 << 20, device='cuda')\n", "short.py")
        done = self.trace(warm(), script, options=("--card", "h100-80gb", "--steps", "2.."), out="short")
        self.assertRegex(done.stderr, r"--steps: process \d+ had 0 steps and none of these: all of its trace stays\.")
        self.assertEqual(self.case("short")["memory"]["peak_allocated_bytes"], 4 * MIB)
        self.assertEqual(self.case("short")["id"].split("/")[1], "short.py")
