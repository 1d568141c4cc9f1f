"""https://arxiv.org/abs/2110.02861, as torchao.optim.AdamW8bit lays its state out. torchao is not among the oracle's packages: the
equations with torch's operators, on whole parameters."""

import math

import torch

STACKS = ["adamw-8bit", "adamw-8bit,lr=0.01,weight_decay=0.1,block_size=64", "checkpointing+fused-in-backward+adamw-8bit", "lora+adamw-8bit"]
BFLOAT16_STACKS = ["adamw-8bit", "fused-in-backward+adamw-8bit"]
BYTES = "updates whole parameters, Peakbench's at most 2^20 values at a time: tests/plugin/update_rules_test.cpp has the bytes"


def dynamic_map(signed, bits):
    values = [0.0, 1.0]
    for exponent in range(1 - (bits - 1), 1):
        count = 2 ** (exponent + bits - 2) * (1 if signed else 2)
        bounds = torch.linspace(0.1, 1, count + 1)
        scaled = (10.0**exponent * ((bounds[:-1] + bounds[1:]) / 2)).tolist()
        values += scaled + ([-value for value in scaled] if signed else [])
    return torch.tensor(sorted(values))


class Quantised:
    def __init__(self, parameter, block, values):
        self.block, self.values, self.shape = block, values, parameter.shape
        self.codes = torch.zeros(parameter.numel(), dtype=torch.long)
        self.scale = torch.zeros(parameter.numel() // block, 1)

    def get(self):
        return (self.values[self.codes].view(-1, self.block) * self.scale).view(self.shape)

    def set(self, tensor):
        blocks = tensor.view(-1, self.block)
        self.scale = blocks.abs().amax(1, keepdim=True).clamp(min=1e-12)
        scaled = (blocks / self.scale).view(-1)
        below = (torch.searchsorted(self.values, scaled, right=True) - 1).clamp(min=0)
        above = (below + 1).clamp(max=len(self.values) - 1)
        half = (self.values[above] - self.values[below]) * 0.5
        self.codes = torch.where(scaled - self.values[below] >= half, above, below)


class Plain:
    def __init__(self, parameter):
        self.tensor = torch.zeros_like(parameter)

    def get(self):
        return self.tensor.float()

    def set(self, tensor):
        self.tensor = tensor.to(self.tensor.dtype)


class LowBitAdamW(torch.optim.Optimizer):
    def __init__(self, params, lr, weight_decay, block_size, maps):
        super().__init__(params, dict(lr=lr, weight_decay=weight_decay))
        self.block_size, self.maps = block_size, maps

    def moment(self, parameter, values):
        small = parameter.numel() < 4096 or parameter.numel() % self.block_size
        return Plain(parameter) if small else Quantised(parameter, self.block_size, values)

    @torch.no_grad()
    def step(self, beta1=0.9, beta2=0.999, eps=1e-8):
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                state = self.state[p]
                if not state:
                    state.update(step=0, mean=self.moment(p, self.maps[0]), square=self.moment(p, self.maps[1]))
                state["step"] += 1
                gradient = p.grad.float()
                mean = state["mean"].get().lerp(gradient, 1 - beta1)
                square = state["square"].get().mul(beta2).addcmul(gradient, gradient, value=1 - beta2)
                state["mean"].set(mean)
                state["square"].set(square)
                corrections = [1 - beta ** state["step"] for beta in (beta1, beta2)]
                denominator = square.sqrt().div(math.sqrt(corrections[1])).add(eps)
                decayed = p.float() * (1 - group["lr"] * group["weight_decay"])
                p.copy_(decayed.addcdiv(mean, denominator, value=-group["lr"] / corrections[0]))


def install(step, options, block_size=256, maps=(dynamic_map(True, 8), dynamic_map(False, 8))):
    step.optimizer_class = LowBitAdamW
    step.optimizer_options = {
        "lr": float(options.get("lr", 1e-3)),
        "weight_decay": float(options.get("weight_decay", 1e-2)),
        "block_size": int(options.get("block_size", block_size)),
        "maps": maps,
    }
