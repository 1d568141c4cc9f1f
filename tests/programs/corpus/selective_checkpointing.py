"""Checkpointing that keeps the matrix products and computes the rest again, by a policy for operators, and checkpoint_sequential.

Expected: ends well, exact
Truth: a closed form of what is kept between forward and backward (asserted)
"""

import functools

import torch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts

KEPT = [torch.ops.aten.mm.default, torch.ops.aten.addmm.default]


def policy(context, operator, *arguments, **named):
    return CheckpointPolicy.MUST_SAVE if operator in KEPT else CheckpointPolicy.PREFER_RECOMPUTE


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(512, 2048, bias=False), torch.nn.Linear(2048, 512, bias=False)

    def forward(self, x):
        return x + self.two(torch.nn.functional.gelu(self.one(x)))


blocks = torch.nn.ModuleList(Block() for _ in range(4)).cuda()
x = torch.randn(1024, 512, device="cuda", requires_grad=True)
(x @ x.T).sum().backward()
before = torch.cuda.memory_allocated()
contexts = functools.partial(create_selective_checkpoint_contexts, policy)
hidden = x
for block in blocks:
    hidden = checkpoint(block, hidden, use_reentrant=False, context_fn=contexts)
kept = torch.cuda.memory_allocated() - before
rows = 1024 * 4
assert kept == 4 * rows * (2048 + 512 + 512), kept
hidden.sum().backward()
del hidden
out = checkpoint_sequential(torch.nn.Sequential(*blocks), 2, x, use_reentrant=False)
out.sum().backward()
