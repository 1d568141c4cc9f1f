"""Programs that compile kernels of their own, on the emulated card: torch.compile in its modes, Liger's Triton kernels, torchao's optimizers,
whose step is compiled. They run to their end, nothing is refused, and their memory is what the arithmetic says.
"""

import pathlib
import unittest

import pytest

import programs_test
from given import ORACLE

COMPILERS = pathlib.Path(ORACLE).parents[1] / "compilers"
pytestmark = pytest.mark.skipif(not COMPILERS.is_dir(), reason="no Triton; ci/oracle --nightly installs it beside the oracle")

# Its activations are most of its memory, and a compiled step keeps fewer of them.
TRAINED = """
import sys, torch
from torch import nn
net = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 64)).cuda()
optimizer = torch.optim.Adam(net.parameters())
def forward(x):
    return nn.functional.mse_loss(net(x), x)
step = forward if sys.argv[1] == "eager" else torch.compile(forward, mode=sys.argv[1])
for i in range(4):
    if i == 3:
        torch.cuda.reset_peak_memory_stats()
    step(torch.randn(4096, 64, device="cuda")).backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
print(torch.cuda.max_memory_allocated())
"""

# The loss of 2,048 tokens over 32,000 words: whole logits in fp32 take 262,144,000 bytes, and their gradient as much.
HEAD = """
import sys, torch
tokens, width, words = 2048, 512, 32000
head = torch.nn.Linear(width, words, bias=False).cuda()
x = torch.randn(tokens, width, device="cuda", requires_grad=True)
labels = torch.randint(words, (tokens,)).cuda()
if sys.argv[1] == "liger":
    from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss
    liger = LigerFusedLinearCrossEntropyLoss()
    loss_of = lambda: liger(head.weight, x, labels)
else:
    loss_of = lambda: torch.nn.functional.cross_entropy(head(x), labels)
for _ in range(2):
    loss_of().backward()
    head.weight.grad = x.grad = None
print(torch.cuda.max_memory_allocated())
"""

# What the first step adds: the state. Each tensor takes a multiple of 512 bytes.
LOW_BIT = """
import sys, torch
sys.path.append(sys.prefix + "/apart")
from torchao.optim import AdamW8bit, AdamW4bit
parameter = torch.nn.Parameter(torch.randn(1024, 4096, device="cuda"))
optimizer = {"8": AdamW8bit, "4": AdamW4bit}[sys.argv[1]]([parameter], lr=1e-3)
for _ in range(2):
    parameter.grad = torch.randn_like(parameter)
    before = torch.cuda.memory_allocated()
    optimizer.step()
    print(torch.cuda.memory_allocated() - before)
"""


# Two sums after a kernel: of what the kernel was not given, and of what it wrote.
KERNEL = """
import torch, triton, triton.language as tl
@triton.jit
def double(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < count), mask=at < count)
x = torch.arange(64, device="cuda")
y, mask = torch.zeros_like(x), x % 3 == 0
double[(1,)](x, y, 64, BLOCK=64)
print(int(mask.sum()))
if {}:
    print(y[:int(y.sum()) % 64].shape[0])
"""


class CompiledTest(unittest.TestCase):
    run_program = programs_test.ProgramsTest.run_program

    def printed(self, program, *arguments):
        said, _ = self.run_program(program, *arguments, PYTHONPATH=str(COMPILERS))
        return [int(line) for line in said.split()]

    def test_training_steps(self):
        eager = self.printed(TRAINED, "eager")
        for mode in ("default", "reduce-overhead", "max-autotune"):
            with self.subTest(mode=mode):
                self.assertLess(self.printed(TRAINED, mode), eager)

    def test_ligers_loss_never_has_whole_logits(self):
        whole, liger = self.printed(HEAD, "torch")[0], self.printed(HEAD, "liger")[0]
        logits = 2048 * 32000 * 4
        self.assertGreater(whole, 2 * logits)
        self.assertLess(liger, logits)

    def test_a_kernel_leaves_known_what_it_was_not_given(self):
        said, _ = self.run_program(KERNEL.format(False), PYTHONPATH=str(COMPILERS))
        self.assertEqual((said.split(), self.verdict), (["22"], "exact"))
        said, _ = self.run_program(KERNEL.format(True), PYTHONPATH=str(COMPILERS))
        self.assertEqual((said.split()[0], self.verdict), ("22", "unreliable"))

    def test_torchaos_low_bit_state(self):
        values = 1024 * 4096
        for bits, block in (("8", 256), ("4", 128)):
            with self.subTest(bits=bits):
                codes, scales = values * int(bits) // 8, values // block * 4
                maps = 2 ** int(bits) * 4
                rounded = sum(-(-size // 512) * 512 for size in (codes, scales, maps))
                self.assertEqual(self.printed(LOW_BIT, bits), [2 * rounded, 0])
