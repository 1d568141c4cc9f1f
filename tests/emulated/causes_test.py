"""`peakbench trace`: a mistake that fills the card is named by its line, in the first sentence of the terminal and of the page; of a program
without one nothing is said but where its peak is.

usage: causes_test.py PEAKBENCH
Exit code 77 without the oracle: ci/oracle makes stock Python PyTorch, PEAKBENCH_ORACLE names its Python.
"""

import html
import re
import unittest

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

FUNCTIONS = {"EVALUATION": "loss_of", "STATE": "step", "LONG": "batch"}


class Causes(TracedPrograms):
    def sentences(self, planted=""):
        """The terminal's and the page's, from the first on, and the peak."""
        done = self.trace(warm(), self.write(TRAINING), *[planted] * bool(planted), out=planted or "healthy", options=("--card", "a100-40gb"))
        peak = self.case(planted or "healthy")["memory"]["peak_allocated_bytes"]
        self.assertEqual(peak, int(done.stdout))
        told = done.stderr.split("none run\n")[1].split("\nBy category")[0].strip().splitlines()
        page = (self.folder / (planted or "healthy") / "report/index.html").read_text(encoding="utf-8").replace("<wbr>", "")
        shown = [html.unescape(text) for text in re.findall(r"<li[^>]*>(.*?)</li>", page.split('<ul class="sentences">')[1].split("</ul>")[0])]
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
                                r"\.item\(\) or \.detach\(\)\?$")  # fmt: skip
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


if __name__ == "__main__":
    unittest.main()
