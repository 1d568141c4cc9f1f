"""`peakbench trace`: a mistake that fills the card is named by its line, in the first sentence of the terminal and of the page; of a program
without one nothing is said but where its peak is.
"""

import html
import re

from traced_programs import MIB, TracedPrograms, line_with, warm

# A training with an evaluation, an average of its weights and checkpoints. Each planted cause is at one line, marked with a comment.
TRAINING = """
import copy, sys, torch
from torch import nn
import torch.nn.functional as F
planted = sys.argv[1] if len(sys.argv) > 1 else ""
WORDS, WIDTH, LENGTH, STEPS = 1 << 15, 128, 512 if planted == "upcast" else 128, 12

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
    def forward(self, x):
        x = self.words(x.to(self.words.weight.device)).to(self.head.weight.device)
        return self.head(self.blocks(x))

class Momentum(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})
    @torch.no_grad()
    def step(self):
        for parameter in self.param_groups[0]["params"]:
            state = self.state[parameter]
            if not state:
                for name in ("mean", "fast", "slow"):
                    state[name] = torch.zeros_like(parameter, device="cuda")  # STATE
            state["mean"].add_(parameter.grad.to("cuda"))
            parameter.sub_(state["mean"].to(parameter.device))

def batch(length):
    return torch.randint(0, WORDS, (1, length)).cuda()

def loss_of(logits, ids):
    return F.cross_entropy(logits.flatten(0, 1), ids.flatten())

def evaluate():
    model.eval()
    total, outputs = 0, []
    for _ in range(8):
        ids = batch(LENGTH)
        logits = model(ids)  # EVALUATED
        total += loss_of(logits, ids)  # EVALUATION
        outputs.append(logits[:, :8].argmax(-1))
    model.train()
    return total.item()

model = Model().to("cuda", torch.bfloat16 if planted == "upcast" else torch.float32)
optimizers = [torch.optim.AdamW(model.parameters())]
if planted == "state":
    model.words.cpu()
    optimizers = [torch.optim.SGD([*model.blocks.parameters(), *model.head.parameters()]), Momentum(model.words.parameters())]
averages = {name: value.clone() for name, value in model.state_dict().items() if "blocks" in name}
total, losses, outputs, saved, best = 0, [], [], [], None
for step in range(STEPS):
    ids = batch(LENGTH * 6 if planted == "long" and step == 6 else LENGTH)  # LONG
    logits = model(ids)  # CALL
    if planted == "upcast":
        logits = logits.float()  # UPCAST
    loss = loss_of(logits, ids)  # LOSS
    loss.backward(retain_graph=planted == "graph")
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    if planted == "graph":
        total += loss
    losses.append(loss.detach())
    if planted == "list":
        outputs.append(logits.softmax(-1).detach())  # LIST
    for name, value in averages.items():
        value.mul_(0.9).add_(model.state_dict()[name], alpha=0.1)
    if step % 2 == 1:
        state = model.state_dict()
        if planted == "save":
            saved.append({name: value.clone() for name, value in state.items()})  # SAVE
        torch.save(state, "/dev/null")
        best = copy.deepcopy(model.blocks.state_dict())
    if step == 3:
        if planted == "evaluation":
            evaluate()
        else:
            with torch.no_grad():
                evaluate()
print(torch.cuda.max_memory_allocated())
"""
PARAMETERS = 4 * (2 * (1 << 15) * 128 + 2 * (2 * 4 * 128 * 128 + 5 * 128))
LOGITS = 4 * 128 * (1 << 15)

# Small trainings, by what is to be said first of each; None: nothing but where the peak is. Those look like one that has the mistake.
BEGINNING = """
import torch
from torch import nn
import torch.nn.functional as F
def mlp(n, width=1024, **more):
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.GELU()) for _ in range(n)]).cuda()
def step_of(loss):
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
PROMPT = """
net = nn.Sequential(*[nn.Linear(2048, 2048, bias=False) for _ in range(6)]).cuda().requires_grad_({trained})
prompt = nn.Parameter(torch.zeros(512, 2048, device="cuda"))
optimizer = torch.optim.SGD([prompt], lr=0.1)
for step in range(3):
    x = torch.randn(512, 2048, device="cuda")
    with torch.autocast("cuda", torch.bfloat16, enabled={autocast}):
        out = net(prompt + x)  # CALL
    out.backward(torch.ones_like(out))
    optimizer.step()
    optimizer.zero_grad()
"""
PLAIN = """
net, kept = mlp(3), []
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(9):
    x = torch.randn({rows}, 1024, device="cuda")
    out = net(x){then}
    step_of(out.square().mean())
"""
TEACHER = """
student, teacher = mlp(2), mlp(6).eval()
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(4096, 1024, device="cuda")
    out = student(x)
    {call}  # TEACHER
    step_of(F.mse_loss(out, told))
"""
EVALUATION = """
net = {net}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    step_of(net(torch.randn(1024, 1024, device="cuda")).square().mean())
    if step == 2:
        net.eval()
        outputs = []
        for _ in range(6):
            {call}
        net.train()
"""
FOLDS = """
done = []
for fold in range(4):
    {model}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        step_of(net(torch.randn(64, 1024, device="cuda")).square().mean())
"""
LENGTHS = """
net = mlp(6)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn({rows}, 1024, device="cuda")
    step_of(net(x).square().mean())
"""
# A buffer of features, each 8 MiB.
BANK = """
net = mlp(2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
bank = {first}
for step in range(12):
    {before}
    feats = net(torch.randn(2048, 1024, device="cuda"))
    {within}
    step_of(feats.square().mean())
    {after}
"""


def bank(first="torch.empty(0, 1024, device='cuda')", **where):
    return BANK.format(**{"first": first, "before": "pass", "within": "pass", "after": "pass", **where})


GROWS = r"^A buffer grows by 8.0 MiB {often}, to .* of the peak's .*: torch.cat makes it anew at train.py:\d+.*; is it meant to have no limit\? .*\[-limit:\]\.$"
GATHERED = """
net = nn.Linear(64, 32768).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    step_of(net(torch.randn(32, 64, device="cuda")).square().mean())
gathered = None
with torch.no_grad():
    for batch in range(8):
        {call}
"""
LOOK_ALIKES = {
    "models of earlier folds are kept": (
        FOLDS.format(model="net = mlp(2); done.append(net)"),
        r"^Parameters made 4 times at train.py:\d+ .*, with steps between, are all alive: the 3 earlier sets hold .* of the peak's .*; are they still needed, or ",
    ),
    "models of unlike sizes are kept": (
        FOLDS.format(model="net = mlp(2, (fold + 1) * 512); done.append(net)").replace("torch.randn(64, 1024", "torch.randn(64, (fold + 1) * 512"),
        r"^Parameters made 4 times at train.py:\d+ .*, with steps between, are all alive: the 3 earlier sets hold 28.0 MiB of the peak's .*; are they still needed, or ",
    ),
    "models of unlike depths are kept": (
        FOLDS.format(model="net = mlp(1 + fold); done.append(net)"),
        r"^Parameters made 4 times at train.py:\d+ .*, with steps between, are all alive: the 3 earlier sets hold 24.0 MiB of the peak's .*; are they still needed, or ",
    ),
    "models of earlier folds are kept with their optimizers": (
        FOLDS.format(model="net = mlp(2); done.append(net)").replace("torch.optim.SGD(net.parameters(), lr=0.1)", "torch.optim.Adam(net.parameters()); done.append(optimizer)"),
        r"the 3 earlier sets hold 24.0 MiB of the peak's .*, and 48.1 MiB is optimizer state of theirs; are they still needed, or ",
    ),
    "models of earlier folds are kept with the optimizers of others": (
        FOLDS.format(model="net, other = mlp(2), mlp(2); done.append(net); done.append(torch.optim.Adam(other.parameters()))").replace(
            "        step_of", "        other(torch.randn(64, 1024, device='cuda')).mean().backward(); done[-1].step()\n        step_of"
        ),
        r"the 3 earlier sets hold 48.1 MiB of the peak's [^,]*; are they still needed, or ",
    ),
    "models of earlier folds are kept without their optimizers": (
        FOLDS.format(model="optimizer = None; net = mlp(2); done.append(net)").replace("torch.optim.SGD(net.parameters(), lr=0.1)", "torch.optim.Adam(net.parameters())"),
        r"the 3 earlier sets hold 24.0 MiB of the peak's [^,]*; are they still needed, or ",
    ),
    "a network that gets blocks, and its optimizer": (
        FOLDS.format(model="done = done or mlp(1); done.append(mlp(1)[0]); net = done").replace("torch.optim.SGD(net.parameters(), lr=0.1)", "torch.optim.Adam(net.parameters())"),
        None,
    ),
    "models of unlike sizes are let go": (
        FOLDS.format(model="net = mlp(2, (fold + 1) * 512)").replace("torch.randn(64, 1024", "torch.randn(64, (fold + 1) * 512"),
        None,
    ),
    "models of earlier folds are let go": (FOLDS.format(model="net = mlp(2)"), None),
    "a network that grows": (
        FOLDS.format(model="done.append(nn.Linear(1024, 1024).cuda()); net = nn.Sequential(*done)"),
        None,
    ),
    "models that are made together": (
        FOLDS.format(model="done = done or [mlp(2) for _ in range(4)]; net = done[fold]"),
        None,
    ),
    "every step has another length": (
        LENGTHS.format(rows="(step * 7919 + 3571) % 9000 + 200"),
        r"GiB is reserved, and at most .* is allocated\. The inputs of the steps have 20 sizes .* Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    ),
    "another stream keeps what was freed": (
        LENGTHS.format(rows="4 + step % 3").replace(
            "    step_of(net(x).square().mean())",
            "    step_of(net(x).square().mean())\n    a = torch.zeros(1 << 27, device='cuda'); del a\n"
            "    with torch.cuda.stream(torch.cuda.Stream()): b = torch.zeros(1 << 27, device='cuda'); del b",
        ),
        None,
    ),
    "steps of two lengths": (LENGTHS.format(rows="4096 if step % 2 else 2048"), "inputs are larger|^The peak is "),
    "a buffer that grows from an empty one": (bank(after="bank = torch.cat([bank, feats.detach()])"), GROWS.format(often="a step")),
    "a buffer that grows from a full one without gradients": (
        bank("torch.randn(4096, 1024, device='cuda')", after="with torch.no_grad(): bank = torch.cat([feats, bank])"),
        GROWS.format(often="a step"),
    ),
    "a buffer that grows before backward": (bank(within="bank = torch.cat([bank, feats.detach()])"), GROWS.format(often="a step")),
    "a buffer that grows by batches": (
        bank(before="x = torch.randn(2048, 1024, device='cuda'); bank = torch.cat([bank, x])"),
        GROWS.format(often="a step"),
    ),
    "a buffer of a function that grows in every other step": (
        "def push(rows, bank): return torch.vstack((F.normalize(rows.detach(), dim=1), bank))\n"
        + bank(after="if step % 2 == 0: bank = push(feats, bank)"),
        GROWS.format(often="now and then"),
    ),
    "a buffer that has a limit": (bank(after="bank = torch.cat([bank, feats.detach()])[-8192:]"), None),
    "a buffer that is emptied now and then": (
        bank(after="bank = torch.cat([bank[:0] if step % 4 == 0 else bank, feats.detach()])"),
        None,
    ),
    "a buffer that another one follows": (
        bank(after="bank = torch.cat([bank, feats.detach()])\n    if step == 5: bank = torch.empty(0, 1024, device='cuda')"),
        None,
    ),
    "lengths that grow, joined on the host": (
        LENGTHS.format(rows="8").replace("x = torch.randn(8, 1024, device=\"cuda\")", "x = torch.cat([torch.randn(512 * (step + 1), 1024)] * 2).to('cuda')"),
        "inputs are larger than other steps'",
    ),
    "lengths that grow, joined on the card": (
        LENGTHS.format(rows="8").replace("x = torch.randn(8, 1024, device=\"cuda\")", "x = torch.cat([torch.randn(512 * (step + 1), 1024, device='cuda')] * 2)"),
        "inputs are larger than other steps'",
    ),
    "a batch that is joined row by row": (
        LENGTHS.format(rows="0").replace("\n    step_of", "\n    for _ in range(step + 1): x = torch.cat([x, torch.randn(512, 1024, device='cuda')])\n    step_of"),
        "inputs are larger than other steps'",
    ),
    "outputs of an evaluation are gathered": (
        GATHERED.format(call='out = net(torch.randn(256, 64, device="cuda")); gathered = out if gathered is None else torch.cat((gathered, out))'),
        r"^The peak is .* allocated, in evaluation \(step 2\): .* is activations made at train.py:\d+\.$",
    ),
    "batches of an evaluation are gathered": (
        GATHERED.format(call='x = torch.cat([torch.randn(2048, 32768, device="cuda")] * 2); net(x[:256, :64])'),
        r"^The peak is .* allocated, outside of forward, backward and optimizer step \(step 2\): ",
    ),
    "frozen weights are copied": (
        PROMPT.format(trained=False, autocast=True),
        r"^48.0 MiB of the peak's .* is copies of frozen parameters in a smaller dtype: made at train.py:\d+; load these parameters in that dtype",
    ),
    "trained weights are copied once": (PROMPT.format(trained=True, autocast=True), None),
    "frozen weights are used as they are": (PROMPT.format(trained=False, autocast=False), None),
    "a copy to channels_last": (
        """
net = nn.Conv2d(3, 32, 3).cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    step_of(net(torch.randn(32, 3, 128, 128, device="cuda").to(memory_format=torch.channels_last)).square().mean())
""",
        None,
    ),
    "pictures become numbers": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
    def forward(self, x):
        return self.conv(x.float() / 255)
net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    step_of(net(torch.zeros(64, 3, 256, 256, dtype=torch.uint8, device="cuda")).square().mean())
""",
        None,
    ),
    "an expanded view becomes smaller and larger": (
        """
net = nn.Linear(512, 512, dtype=torch.bfloat16).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
row = torch.randn(1, 512, device="cuda")
for step in range(3):
    step_of(net(row.expand(65536, 512).to(torch.bfloat16)).square().mean())
""",
        None,
    ),
    "a backbone in eval() is trained": (
        """
backbone, head = mlp(4).eval(), nn.Linear(1024, 10).cuda()
optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1)
for step in range(3):
    step_of(head(backbone(torch.randn(8192, 1024, device="cuda"))).square().mean())
""",
        None,
    ),
    "a teacher's graph that no backward runs": (
        TEACHER.format(call="told = teacher(x).detach()"),
        r"is activations of an evaluation, kept for a backward that never comes: .* was torch.no_grad\(\) forgotten\?$",
    ),
    "a teacher without a graph": (TEACHER.format(call="told = teacher.requires_grad_(False)(x)"), None),
    "a teacher without gradients": (TEACHER.format(call="told = torch.no_grad()(teacher)(x)"), None),
    "outputs of an evaluation whose graph holds nothing": (
        EVALUATION.format(net="nn.Linear(1024, 1024).cuda()", call='outputs.append(net(torch.randn(4096, 1024, device="cuda")).detach())'),
        None,
    ),
    "outputs of an evaluation that are detached, and what is made of them": (
        EVALUATION.format(net="nn.Linear(1024, 1024).cuda()", call='out = net(torch.randn(4096, 1024, device="cuda")).detach(); outputs += [out, out.softmax(-1)]; del out'),
        None,
    ),
    "outputs of an evaluation, with their graphs until they are detached": (
        EVALUATION.format(net="mlp(4)", call='outputs.append(net(torch.randn(4096, 1024, device="cuda")).detach())'),
        r"^.* is activations of an evaluation, kept for a backward that never comes: ",
    ),
    "outputs of an evaluation, with their graphs": (
        EVALUATION.format(net="mlp(4)", call='outputs.append(net(torch.randn(4096, 1024, device="cuda")))'),
        r"^.* is activations of an evaluation, kept for a backward that never comes: ",
    ),
    "an evaluation without eval() that records gradients": (
        EVALUATION.format(net="mlp(4)", call='outputs.append(net(torch.randn(4096, 1024, device="cuda")))').replace("net.eval()", "pass"),
        r"^.* is activations of an evaluation, kept for a backward that never comes: .*made at train.py:\d+.*; was torch.no_grad\(\) forgotten\?",
    ),
    "an evaluation without eval() whose loss is added up": (
        EVALUATION.format(net="mlp(4)", call='outputs.append(net(torch.randn(4096, 1024, device="cuda")).square().mean())').replace("net.eval()", "pass"),
        r"^.* is activations of an evaluation, kept for a backward that never comes: ",
    ),
    "an evaluation without eval() and without gradients": (
        EVALUATION.format(net="mlp(4)", call='outputs.append(torch.no_grad()(net)(torch.randn(4096, 1024, device="cuda")))').replace("net.eval()", "pass"),
        None,
    ),
    "outputs of one line without eval(), detached": (
        EVALUATION.format(net="nn.Linear(1024, 1024).cuda()", call='outputs.append(net(torch.randn(4096, 1024, device="cuda")).detach())').replace("net.eval()", "pass"),
        None,
    ),
    "two calls of a step with one backward": (
        PLAIN.format(rows=4096, then="; out = out + net(x.flip(0))").replace("range(9)", "range(3)"),
        None,
    ),
    "micro-batches": (
        PLAIN.format(rows=4096, then="; out.square().mean().backward(); out = net(x)").replace("range(9)", "range(3)"),
        None,
    ),
    "a generator and a discriminator": (
        """
made, judge = mlp(2), mlp(2)
optimizer, other = torch.optim.SGD(judge.parameters(), lr=0.1), torch.optim.SGD(made.parameters(), lr=0.1)
for step in range(4):
    z = torch.randn(4096, 1024, device="cuda")
    with torch.no_grad():
        fake = made(z)
    step_of(judge(fake).square().mean())
    loss = judge(made(z)).square().mean()
    loss.backward()
    other.step()
    other.zero_grad()
    optimizer.zero_grad()
""",
        None,
    ),
    "checkpoints that run again": (
        """
from torch.utils.checkpoint import checkpoint
net = mlp(4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(4096, 1024, device="cuda", requires_grad=True)
    for block in net:
        x = checkpoint(block, x, use_reentrant=step == 1)
    step_of(x.square().mean())
""",
        None,
    ),
    "inputs are kept": (
        PLAIN.format(rows=2048, then="; kept.append(x)"),
        r"^Memory grows by 8.0 MiB a step, to .* of the peak's .*: made at train.py:\d+; something keeps it: a list that grows\? .*\.cpu\(\)",
    ),
    "two outputs of a step are kept": (
        PLAIN.format(rows=2048, then="; kept.append((out.detach() * 1, out.detach() * 2))"),
        r"^Memory grows by 16.0 MiB a step, .*; something keeps it: a list that grows\? .*\.cpu\(\)",
    ),
    "graphs are kept": (
        PLAIN.format(rows=2048, then="").replace(
            "step_of(out.square().mean())",
            "kept.append(out.square().mean())\n    kept[-1].backward(retain_graph=True)\n    optimizer.step()\n    optimizer.zero_grad()",
        ),
        r"^Memory grows by .* a step, .*; the graph of every step is kept",
    ),
    "sorted by length": (PLAIN.format(rows="(step + 1) * 512", then=""), "inputs are larger than other steps'"),
    "sorted by length, the last outputs kept": (
        PLAIN.format(rows="(step + 1) * 512", then="; kept = [*kept[-1:], out.detach()]"),
        "inputs are larger than other steps'",
    ),
    "a mask that is made once": (
        PLAIN.format(rows=2048, then="\n    if step == 2: mask = torch.ones(4096, 4096, device='cuda')"),
        None,
    ),
    "plain DistributedDataParallel": (
        """
import torch.distributed as dist
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
net = nn.parallel.DistributedDataParallel(mlp(4), device_ids=[0])
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    step_of(net(torch.randn(64, 1024, device="cuda")).square().mean())
dist.destroy_process_group()
""",
        None,
    ),
    "equal inputs in unequal blocks": (
        """
net = nn.Linear(1, 1).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(2):
    x = torch.randn(9 * 2**18 + 2**16, 1, device="cuda")
    step_of(net(x).square().mean())
    del x
    torch.cuda.empty_cache()
    torch.randn(10 * 2**18, device="cuda")
""",
        None,
    ),
    "state of what is moved to the host afterwards": (
        """
net = mlp(4)
optimizer = torch.optim.AdamW(net.parameters())
for step in range(3):
    step_of(net(torch.randn(64, 1024, device="cuda")).square().mean())
net.cpu()
""",
        None,
    ),
}


class Causes(TracedPrograms):
    def sentences(self, planted=""):
        """The terminal's and the page's, from the first on, and the peak."""
        done = self.trace(warm(), self.write(TRAINING), *[planted] * bool(planted), out=planted or "healthy", options=("--card", "a100-40gb"))
        peak = self.case(planted or "healthy")["memory"]["peak_allocated_bytes"]
        self.assertEqual(peak, int(done.stdout))
        told = done.stderr.split("none run\n")[1].split("\nBy category")[0].strip().splitlines()
        page = (self.folder / (planted or "healthy") / "report/index.html").read_text(encoding="utf-8").replace("<wbr>", "")
        shown = [html.unescape(text) for text in re.findall(r"<li[^>]*>(.*?)(?: <a [^>]*>\w+</a>)?</li>", page.split('<ul class="sentences">')[1].split("</ul>")[0])]
        self.assertEqual(told, shown)
        return told, peak

    def bytes_in(self, sentence):
        """The first size in a sentence; sizes are rounded to three digits."""
        number, unit = re.search(r"([0-9.]+) (GiB|MiB|KiB)", sentence).groups()
        return float(number) * {"GiB": 1 << 30, "MiB": MIB, "KiB": 1 << 10}[unit]

    def at(self, mark):
        return f"train.py:{line_with(TRAINING, mark)}"

    def test_a_program_without_a_mistake(self):
        told, _ = self.sentences()
        self.assertEqual(len(told), 1, told)
        self.assertRegex(told[0], "^The peak is ")

    def test_a_graph_that_is_kept(self):
        first = self.sentences("graph")[0][0]
        self.assertRegex(first, r"^Memory grows by .* a step, to .* of the peak's .*; the graph of every step is kept: is a loss .* without "
                                r"loss\.item\(\) or output\.detach\(\)\?$")  # fmt: skip
        self.assertIn(f"made at {self.at('return F.cross_entropy')} (loss_of), called at {self.at('# LOSS')};", first)
        self.assertGreater(self.bytes_in(first), LOGITS)

    def test_an_evaluation_that_records_gradients(self):
        first = self.sentences("evaluation")[0][0]
        self.assertRegex(first, "is activations of an evaluation, kept for a backward that never comes: .* was torch.no_grad.. forgotten.$")
        self.assertRegex(first, rf"made at {self.at('self.head(self.blocks')} \(forward\), called at {self.at('# EVALUATED')} \(evaluate\)|"
                                rf"made at {self.at('return F.cross_entropy')} \(loss_of\), called at {self.at('# EVALUATION')} \(evaluate\)")  # fmt: skip
        self.assertGreater(self.bytes_in(first), 7 * LOGITS)  # the last loss is let go as it is added

    def test_a_list_of_outputs(self):
        first = self.sentences("list")[0][0]
        self.assertRegex(first, rf"^Memory grows by 16.0 MiB a step, to 0.172 GiB of the peak's [^:]*: made at {self.at('# LIST')}; something keeps it: a list")

    def test_logits_in_a_larger_dtype(self):
        first = self.sentences("upcast")[0][0]
        self.assertRegex(first, rf"^64.0 MiB of the peak's .* is copies in a larger dtype: made at {self.at('# UPCAST')};")

    def test_a_longer_batch(self):
        first = self.sentences("long")[0][0]
        self.assertRegex(first, r"is in step 7, whose inputs are larger than other steps': 6.0 times those of step 6 \(")
        self.assertIn(f"made at {self.at('return torch.randint')} (batch), called at {self.at('# LONG')}", first)

    def test_state_on_another_device_than_its_parameters(self):
        first = self.sentences("state")[0][0]
        self.assertRegex(first, "^48.0 MiB of the peak's .* is optimizer state of parameters that are on another device: made at "
                                rf"{self.at('# STATE')} \(step\), called at ")  # fmt: skip

    def test_copies_at_each_checkpoint(self):
        first = self.sentences("save")[0][0]
        self.assertRegex(first, rf"^Memory grows by {PARAMETERS / MIB:.1f} MiB with each checkpoint, to .* of the peak's .*, made at {self.at('# SAVE')}")


    def test_what_looks_alike(self):
        for name, (text, expected) in LOOK_ALIKES.items():
            with self.subTest(name):
                out = name.replace(" ", "-").replace("()", "").replace(",", "").replace("'", "")
                done = self.trace(warm(), self.write(BEGINNING + text), out=out, options=("--card", "a100-40gb"))
                told = done.stderr.split("none run\n")[1].split("\nBy category")[0].strip().splitlines()
                if expected is None:
                    self.assertEqual([line[:12] for line in told], ["The peak is "], told)
                else:
                    self.assertRegex("\n".join(told), re.compile(expected, re.MULTILINE))
                if name.startswith("a buffer"):
                    self.assertNotIn("inputs are larger", "\n".join(told))
