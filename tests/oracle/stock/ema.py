"""https://docs.pytorch.org/docs/stable/optim.html#weight-averaging-swa-and-ema, of what is trained."""

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

STACKS = ["ema", "lora+ema", "ema+fused-in-backward"]
BFLOAT16_STACKS = ["ema", "master-weights+ema"]
BYTES = "AveragedModel keeps its count in a tensor on the CPU: 8 bytes, and a bool for each look at it"


class Averaged:
    def __init__(self, parameters, optimizer, decay):
        self.weights, self.optimizer, self.average, self.decay = torch.nn.ParameterList(parameters), optimizer, None, decay
        self.param_groups = [{"params": parameters}]

    def step(self):
        self.optimizer.step()
        if self.average is None:
            self.average = AveragedModel(self.weights, multi_avg_fn=get_ema_multi_avg_fn(self.decay))
        self.average.update_parameters(self.weights)

    def zero_grad(self):
        self.optimizer.zero_grad()


def install(step, options):
    make_optimizer, decay = step.make_optimizer, float(options.get("decay", 0.999))
    step.make_optimizer = lambda parameters: Averaged(parameters, make_optimizer(parameters), decay)
