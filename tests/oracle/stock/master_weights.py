"""Megatron-LM's Float16OptimizerWithFloat16Params (megatron/core/optimizer/optimizer.py): a gradient is converted and freed, then the
optimizer steps on the copies. They are made in the first step here, and not with the optimizer."""

import torch

BFLOAT16_STACKS = ["master-weights", "master-weights+foreach-off", "checkpointing+master-weights+fused-in-backward",
                   "accumulation+master-weights+clip"]  # fmt: skip


class MasterWeights:
    def __init__(self, parameters, make_optimizer):
        self.param_groups = [{"params": parameters}]
        self.make_optimizer, self.optimizer, self.masters = make_optimizer, None, {}

    @torch.no_grad()
    def step(self):
        parameters = self.param_groups[0]["params"]
        for parameter in parameters:
            if parameter not in self.masters:
                self.masters[parameter] = parameter.detach().float()
                self.masters[parameter].stands_for = getattr(parameter, "stands_for", parameter)
            self.masters[parameter].grad = parameter.grad.float()
            parameter.grad = None
        if self.optimizer is None:
            self.optimizer = self.make_optimizer([self.masters[parameter] for parameter in parameters])
        self.optimizer.step()
        for parameter in parameters:
            parameter.copy_(self.masters[parameter])
            self.masters[parameter].grad = None

    def zero_grad(self):
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None


def install(step, options):
    make_optimizer = step.make_optimizer
    step.make_optimizer = lambda parameters: MasterWeights(parameters, make_optimizer)
