"""The low-bit AdamW of stock/ against torchao's own: bytes of state, maps, codes, scales and parameters. What the plugin keeps and computes
is held to stock/ to the bit by tests/parity, and to the bytes below by tests/plugin.
"""

import os
import sys
import types
import unittest

# Its update is compiled otherwise, which takes a minute and rounds alike.
os.environ["TORCHDYNAMO_DISABLE"] = "1"
sys.path.append(f"{sys.prefix}/apart")
import torch  # noqa: E402
from stock import adamw_4bit, adamw_8bit  # noqa: E402
from torchao.optim import AdamW4bit, AdamW8bit  # noqa: E402

# bits -> torchao's, ours in Python, the values of a block
KINDS = {8: (AdamW8bit, adamw_8bit, 256), 4: (AdamW4bit, adamw_4bit, 128)}
DTYPES = (torch.float32, torch.bfloat16)


def parts(state):
    """The tensors that a quantised state is kept in, or itself."""
    return [state.codes, state.scale, state.qmap] if hasattr(state, "codes") else [state]


def closed_form(bits, block, values, dtype):
    """As tests/plugin/update_rules_test.cpp has it: codes, a scale a block and a map, or a plain tensor, twice; and the step."""
    if values < 4096 or values % block:
        return 2 * values * dtype.itemsize + 4
    return 2 * (values * bits // 8 + values // block * 4 + 2**bits * 4) + 4


def stock_optimizer(module, parameter):
    step = types.SimpleNamespace()
    module.install(step, {})
    return step.optimizer_class([parameter], **step.optimizer_options)


class Torchao(unittest.TestCase):
    def test_its_state_has_the_bytes_of_the_closed_form(self):
        for bits, (torchaos, _, block) in KINDS.items():
            for values in (100, 4095, 4096, 8192, 8192 + 128, 12288):
                for dtype in DTYPES:
                    with self.subTest(bits=bits, values=values, dtype=dtype):
                        parameter = torch.nn.Parameter(torch.randn(values).to(dtype))
                        parameter.grad = torch.ones_like(parameter)
                        optimizer = torchaos([parameter])
                        optimizer.step()
                        found = sum(part.nbytes for state in optimizer.state[parameter].values() for part in parts(state))
                        self.assertEqual(found, closed_form(bits, block, values, dtype))

    def test_it_trains_as_stock_does(self):
        for bits, (torchaos, module, _) in KINDS.items():
            for dtype in DTYPES:
                with self.subTest(bits=bits, dtype=dtype):
                    self.same_training(bits, torchaos, module, dtype)

    def same_training(self, bits, torchaos, module, dtype):
        torch.manual_seed(2)
        own = torch.nn.Parameter(torch.randn(64, 128).to(dtype))
        other = torch.nn.Parameter(own.detach().clone())
        stock, theirs = stock_optimizer(module, own), torchaos([other])
        for _ in range(3):
            own.grad = torch.randn(64, 128).to(dtype)
            other.grad = own.grad.clone()
            stock.step()
            theirs.step()
        # Decay and second moment are the same equations in another order of operations: the last bits of values up to 4.
        torch.testing.assert_close(own, other, rtol=0, atol=2e-6)
        for name, moment in (("exp_avg", stock.state[own]["mean"]), ("exp_avg_sq", stock.state[own]["square"])):
            codes, scale, values = parts(theirs.state[other][name])
            if bits == 4:
                codes = torch.stack([codes >> 4, codes & 15], -1)
            self.assertTrue(torch.equal(values, moment.values))
            self.assertTrue(torch.equal(codes.flatten().long(), moment.codes), name)
            torch.testing.assert_close(scale.flatten(), moment.scale.flatten(), rtol=1e-6, atol=0)
