"""What PyTorch's operators take of the card that is there, real or emulated: those of its own table of samples
(torch.testing._internal.common_methods_invocations.op_db), on at most six samples each, in the first dtype that they have on a card, forward
and, where there is one, backward.

usage: operators_memory.py OUT.jsonl [PART PARTS]     a line of JSON a sample; PART of PARTS: every PARTS-th operator from the PART-th on

Of a sample's forward (`fwd`) and backward (`bwd`): the peak of requested bytes above what was there before, the sum of the requested bytes of
all allocations, and their number. Inputs are made on the host from a fixed seed, so they are the same on every card.
"""

import json
import pathlib
import sys
import types
import unittest
import warnings

try:
    import expecttest  # noqa: F401
except ImportError:  # PyTorch's table is in the wheel, and this package, which its import wants and its samples do not, is not
    sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase, assert_expected_inline=None)

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from operators_child import DTYPES, name_of  # noqa: E402

SAMPLES = 6


class Took:
    """requested bytes between two moments"""

    def __init__(self):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        self.before = torch.cuda.memory_stats()

    def so_far(self):
        torch.cuda.synchronize()
        now = torch.cuda.memory_stats()
        return [now["requested_bytes.all.peak"] - self.before["requested_bytes.all.current"],
                now["requested_bytes.all.allocated"] - self.before["requested_bytes.all.allocated"],
                now["allocation.all.allocated"] - self.before["allocation.all.allocated"]]  # fmt: skip


def samples_of(op):
    """-> (whether it has a backward, samples on the host)"""
    supported = op.supported_dtypes("cuda")
    dtype = next(one for one in DTYPES if one in supported)
    has_backward = op.supports_autograd and dtype in op.supported_backward_dtypes("cuda")
    torch.manual_seed(0)
    samples = op.sample_inputs("cpu", dtype, requires_grad=has_backward)
    return has_backward, [sample for _, sample in zip(range(SAMPLES), samples)]


def to_card(value):
    return value.detach().to("cuda").requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def run(op, sample, has_backward):
    sample = sample.transform(to_card)
    torch.manual_seed(1)
    took = Took()
    result = op(sample.input, *sample.args, **sample.kwargs)
    figures = {"fwd": took.so_far()}
    if has_backward:
        took = Took()
        result = sample.output_process_fn_grad(result) if sample.output_process_fn_grad else result
        leaves = [one for one in pytree.tree_leaves(result) if isinstance(one, torch.Tensor) and one.requires_grad]
        if leaves:
            torch.autograd.backward([one.abs().sum() if one.is_complex() else one.sum() for one in leaves])
            figures["bwd"] = took.so_far()
    return figures


def main():
    part, parts = map(int, sys.argv[2:4] or (0, 1))
    warnings.simplefilter("ignore")
    square = torch.randn(64, 64, device="cuda", requires_grad=True)
    (square @ square).sum().backward()  # cuBLAS's workspace is there before the first sample
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        for op in op_db[part::parts]:
            try:
                has_backward, samples = samples_of(op)
            except Exception as error:
                out.write(json.dumps({"op": name_of(op), "error": f"samples: {error}"[:200]}) + "\n")
                continue
            for number, sample in enumerate(samples):
                try:
                    figures = run(op, sample, has_backward)
                except Exception as error:
                    figures = {"error": str(error)[:200]}
                out.write(json.dumps({"op": name_of(op), "sample": number} | figures) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
