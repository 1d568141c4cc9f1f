"""`peakbench trace`: what is said first of programs that use functions of PyTorch in a way that costs memory, and that nothing is said of those
that look like them. Where the advice is a line, the program with that line allocates or reserves as much less.
"""

import re
import subprocess

from causes_test import BEGINNING
from given import PEAKBENCH
from traced_programs import MIB, TracedPrograms, warm

LANGUAGE = """
class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.hidden, self.head = nn.Embedding(8192, 256), nn.Linear(256, 256), nn.Linear(256, 8192, bias=False)
    def forward(self, x):
        return self.head(F.gelu(self.hidden(self.words(x))))
net = Language().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    ids = torch.randint(0, 8192, (4, 512), device="cuda")
    logits = net(ids)
    loss = F.cross_entropy({logits}.view(-1, 8192), ids.view(-1))
    {then}
    loss.backward()
    {behind}
    optimizer.step()
    optimizer.zero_grad()
"""
CHECKPOINTED = """
from torch.utils.checkpoint import checkpoint
net, head = nn.ModuleList({blocks} for _ in range(4)).cuda(), nn.Linear(1024, 8).cuda()
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.1)
for step in range(3):
    x = torch.randn(4096, 1024, device="cuda", requires_grad={requires_grad})
    for block in net:
        x = checkpoint(block, x, use_reentrant={reentrant})
    step_of(head(x).square().mean())
"""
MLP = "nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024))"
LOADED = """
net = nn.Sequential(nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 2048)).cuda()
torch.save({saved}, "saved.pt")
loaded = torch.load("saved.pt", map_location={where})
{then}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    step_of(net(torch.randn(64, 2048, device="cuda")).square().mean())
"""
ATTENTION = """
net = nn.Linear(512, 1536).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    q, k, v = (one.view(2, 1024, 8, 64).transpose(1, 2) for one in net(torch.randn(2, 1024, 512, device="cuda")).chunk(3, -1))
    step_of({call}.square().mean())  # CALL
"""
BOXES = """
net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 8192)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step, boxes in enumerate({boxes}):
    found = net(torch.randn(8, 3, 16, 16, device="cuda")).view(-1, 4)
    labels = torch.rand(boxes, 4, device="cuda")
    overlap = torch.min(found[:, None, 2:], labels[None, :, 2:])  # BOXES
    loss = overlap.clamp(min=0).mean() + found.mean()
    {also}
    step_of(loss)
"""
GRAPHS = """
net, graphs = nn.Sequential(nn.Linear(1024, 1024), nn.Linear(1024, 1024)).cuda(), []
with torch.no_grad():
    for rows in {rows}:
        x = torch.randn(rows, 1024, device="cuda")
        net(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph{pool}):
            y = net(x)
        graphs.append((graph, x, y))
"""
GATHERED = """
net = nn.Linear(64, 8192).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    step_of(net(torch.randn(32, 64, device="cuda")).square().mean())
gathered = None
with torch.no_grad():
    for batch in range(8):
        out = net(torch.randn(256, 64, device="cuda"))
        {call}
"""

NEEDLESS = r"^64.0 MiB of the peak's .* is logits that a variable holds during backward, .*: made at train.py:\d+ \(forward\), called at .* before loss"
USELESS = r"^Checkpointing at train.py:\d+ saves nothing: "
UNTRAINED = r"^No backward reaches what is checkpointed at train.py:\d+: .* use_reentrant=False"
LOADS = r"^32.0 MiB of the peak's .* is a checkpoint that torch.load read, .*: made at train.py:\d+; .*map_location=\"cpu\""
# By name: the program, what is to be said of it (None: only where its peak is).
PROGRAMS = {
    "logits are held during backward": (LANGUAGE.format(logits="logits", then="pass", behind="pass"), NEEDLESS),
    "logits are held, a copy of them is used": (LANGUAGE.format(logits="logits.bfloat16().float()", then="pass", behind="pass"), NEEDLESS),
    "logits are let go before backward": (LANGUAGE.format(logits="logits", then="del logits", behind="pass"), None),
    "logits are read by backward": (LANGUAGE.format(logits="logits", then="loss = loss + logits.square().mean(); del logits", behind="pass"), None),
    "logits are held for the next forward": (
        LANGUAGE.format(logits="logits", then="pass", behind="a = torch.zeros(64 << 20, device='cuda'); del a"),
        r"^64.0 MiB of the peak's .* is outputs of a forward whose backward is over, .* after loss.backward\(\)",
    ),
    "a state is handed to the next step": (
        """
net = nn.RNNCell(1024, 1024).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
state = None
for step in range(5):
    state = net(torch.randn(8192, 1024, device="cuda"), state)
    step_of(state.square().mean())
    state = state.detach()
""",
        None,
    ),
    "outputs are gathered": (
        GATHERED.format(call="gathered = out if gathered is None else torch.cat((gathered, out))"),
        r"^.* of the peak's .* is outputs of an evaluation, joined on the card batch by batch: made at train.py:\d+; .*preprocess_logits_for_metrics",
    ),
    "outputs are gathered on the host": (
        GATHERED.format(call="out = out.cpu(); gathered = out if gathered is None else torch.cat((gathered, out))"),
        None,
    ),
    "outputs are joined to the last ones": (GATHERED.format(call="gathered = torch.cat((out, out * 2))"), None),
    "blocks that get no gradient": (CHECKPOINTED.format(blocks=MLP, requires_grad=False, reentrant=True), UNTRAINED),
    "blocks that get a gradient": (CHECKPOINTED.format(blocks=MLP, requires_grad=True, reentrant=True), None),
    "blocks without reentrance": (CHECKPOINTED.format(blocks=MLP, requires_grad=False, reentrant=False), None),
    "blocks that are evaluated": (
        CHECKPOINTED.format(blocks=MLP, requires_grad=False, reentrant=False) + "    with torch.no_grad(): checkpoint(net[0], x, use_reentrant=True)\n",
        None,
    ),
    "linear layers are checkpointed": (CHECKPOINTED.format(blocks="nn.Linear(1024, 1024)", requires_grad=False, reentrant=False), USELESS),
    "a checkpoint is on the card": (LOADED.format(saved="net.state_dict()", where="None", then="net.load_state_dict(loaded)"), LOADS),
    "a checkpoint is on the host": (LOADED.format(saved="net.state_dict()", where="'cpu'", then="net.load_state_dict(loaded)"), None),
    "a checkpoint is let go": (LOADED.format(saved="net.state_dict()", where="None", then="net.load_state_dict(loaded); del loaded"), None),
    "a checkpoint is assigned": (LOADED.format(saved="net.state_dict()", where="None", then="net.load_state_dict(loaded, assign=True)"), None),
    "data are on the card": (LOADED.format(saved="torch.zeros(3 << 20)", where="'cuda'", then=""), None),
    "attention of groups in fp32": (
        ATTENTION.format(call="F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)"),
        r"^.* of the peak's .* is memory of attention's math kernel, .*: made at train.py:\d+; .*sdpa_kernel\(",
    ),
    "attention by a fused kernel": (ATTENTION.format(call="F.scaled_dot_product_attention(q, k, v, is_causal=True)"), None),
    "attention that a program writes": (ATTENTION.format(call="((q @ k.mT).softmax(-1) @ v)"), None),
    "one step has many boxes": (
        BOXES.format(boxes=[10, 12, 9, 900, 11, 10], also="pass"),
        r"^Step 4 needs .*, and no other step more than .*: .* of the difference is made at train.py:\d+, whose tensors are larger in that step",
    ),
    "steps have many boxes": (BOXES.format(boxes=[10, 900, 9, 900, 11, 10], also="pass"), None),
    "one step runs more code": (
        BOXES.format(boxes=[10] * 6, also="loss = loss + (torch.randn(64 << 20, device='cuda').square().mean() if step == 3 else 0)"),
        None,
    ),
    "graphs have a pool each": (
        GRAPHS.format(rows=[4096, 8192, 16384], pool=""),
        r"^3 CUDA graphs have pools of their own, which reserve .*; the largest reserves .*pool=first.pool\(\)",
    ),
    "graphs have one pool": (GRAPHS.format(rows=[16384, 8192, 4096], pool=", pool=graphs[0][0].pool() if graphs else None"), None),
    "one graph": (GRAPHS.format(rows=[4096], pool=""), None),
    "a GAN needs its picture in a second backward": (
        """
G, D = nn.Linear(64, 256).cuda(), nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 1)).cuda()
of_g, of_d = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
for step in range(4):
    of_d.zero_grad()
    fake = G(torch.randn(131072, 64, device="cuda"))
    D(fake.detach()).mean().backward()
    of_d.step()
    of_g.zero_grad()
    loss = -D(fake).mean()
    loss.backward()
    of_g.step()
""",
        None,
    ),
    "a model joins its cache": (
        """
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.keys = nn.Linear(256, 256)
    def forward(self, x, cache):
        keys = self.keys(x)
        return keys, keys if cache is None else torch.cat([cache, keys], 1)
net, cache = Layer().cuda().eval(), None
with torch.no_grad():
    x = torch.randn(64, 64, 256, device="cuda")
    for i in range(12):
        x, cache = net(x, cache)
""",
        None,
    ),
    "small blocks beside a large table are checkpointed": (
        """
from torch.utils.checkpoint import checkpoint
table, optimizer = nn.Embedding(600000, 64).cuda(), None
blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), *[nn.Tanh() for _ in range(20)]) for _ in range(10)).cuda()
optimizer = torch.optim.SGD([*table.parameters(), *blocks.parameters()], lr=0.1)
for step in range(2):
    x = table(torch.randint(0, 1000, (1024,), device="cuda"))
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    step_of(x.sum())
""",
        None,
    ),
    "graphs come one after another": (
        """
for rows in (64, 65, 66):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = torch.ones(rows << 18, device="cuda") * 2
    graph.replay()
    del graph, kept
    torch.cuda.empty_cache()
""",
        None,
    ),
    "one step has more rounds": (
        """
net = nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 64)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    x, loss = torch.randn(4096, 64, device="cuda"), 0
    for _ in range(4 if step == 4 else 1):
        loss = loss + net(x).square().mean()
    step_of(loss)
""",
        None,
    ),
}
# What is said of the first costs as many bytes at the peak, which the second does not have.
SAVED = {
    ("logits are held during backward", "logits are let go before backward"): 64 * MIB,
    ("a checkpoint is on the card", "a checkpoint is on the host"): 2 * (2048 * 2048 + 2048) * 4,
    ("linear layers are checkpointed", "linear layers without checkpoints"): 0,
}
PROGRAMS["linear layers without checkpoints"] = (PROGRAMS["linear layers are checkpointed"][0].replace("checkpoint(block, x, use_reentrant=False)", "block(x)"), None)


RANKS = """
import os, torch, torch.distributed as dist
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
net = torch.nn.Linear(1024, 1024).cuda()
if rank == 0:
    torch.save(net.state_dict(), "saved.pt")
dist.barrier()
{then}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    net(torch.randn(8, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""
# Of two ranks: what is to be said of their memory on the other's GPU.
OF_RANKS = {
    'loaded = torch.load("saved.pt")': r"^Rank 1 has up to 4.0 MiB on cuda:0, another rank's GPU, made at train.py:10; pass map_location=\"cpu\" to torch.load\.",
    'loaded = torch.load("saved.pt", map_location="cuda")': None,
    'dist.all_gather_object([None] * 2, net.state_dict())': r"^Ranks 0 and 1 have .* on cuda:0 and cuda:1, GPUs of other ranks, .*makes 4 CUDA contexts in place of 2",
    'dist.all_gather_object([None] * 2, {name: value.cpu() for name, value in net.state_dict().items()})': None,
}


class PytorchCauses(TracedPrograms):
    def test_ranks_on_other_ranks_gpus(self):
        for then, expected in OF_RANKS.items():
            with self.subTest(then):
                self.write(RANKS.replace("{then}", then))
                done = self.trace(warm(), "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py", options=("--card", "h100-80gb,count=2", "--overwrite"))
                told = done.stderr.split("none run\n")[-1]
                if expected is None:
                    self.assertNotIn("another rank", told)
                    self.assertNotIn("other ranks", told)
                else:
                    self.assertRegex(told, re.compile(expected, re.MULTILINE))

    def test_a_comparison_begins_with_what_one_program_has(self):
        for name, program in (("held", "logits are held during backward"), ("freed", "logits are let go before backward")):
            self.trace(warm(), self.write(BEGINNING + PROGRAMS[program][0], f"{name}.py"), out=name, options=("--card", "a100-40gb"))
        for base, now, label in (("freed", "held", "NEW"), ("held", "freed", "BASE alone")):
            done = subprocess.run([PEAKBENCH, "compare", base, now], cwd=self.folder, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            details = done.stdout.split(f"program/{now}.py/emulated:a100-40gb (emulated)\n")[1]
            self.assertRegex(details, rf"^  {label}: 64.0 MiB of the peak's .* is logits that a variable\n? *holds during")

    def test_what_is_said_first(self):
        peaks = {}
        for name, (text, expected) in PROGRAMS.items():
            with self.subTest(name):
                out = name.replace(" ", "-").replace(",", "")
                done = self.trace(warm(), self.write(BEGINNING + text), out=out, options=("--card", "a100-40gb"))
                told = done.stderr.split("none run\n")[1].split("\nBy category")[0].strip().splitlines()
                if expected is None:
                    self.assertEqual([line[:12] for line in told], ["The peak is "], told)
                else:
                    self.assertRegex("\n".join(told), re.compile(expected, re.MULTILINE))
                peaks[name] = self.case(out)["memory"]["peak_allocated_bytes"]
        for (first, second), saved in SAVED.items():
            self.assertEqual(peaks[first] - peaks[second], saved, first)
