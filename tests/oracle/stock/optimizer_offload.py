"""torchao.optim.CPUOffloadOptimizer (torchao/optim/cpu_offload.py), one parameter after the other: every parameter has an optimizer of
its own on a copy in pinned memory. Unlike there, small parameters go too, and the host holds the gradient that it works on."""

import torch

STACKS = ["optimizer-offload", "lora+optimizer-offload", "checkpointing+optimizer-offload+fused-in-backward",
          "accumulation+optimizer-offload+clip"]  # fmt: skip
BFLOAT16_STACKS = ["optimizer-offload", "master-weights+optimizer-offload"]


def on_host(tensor):
    return torch.empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda).copy_(tensor)


class OnHost:
    def __init__(self, parameters, step, make_optimizer):
        self.param_groups = [{"params": parameters}]
        self.offloaded = step.host_gradients
        self.make_optimizer, self.copies, self.optimizers = make_optimizer, {}, {}

    @torch.no_grad()
    def step(self):
        for parameter in self.param_groups[0]["params"]:
            if parameter not in self.copies:
                self.copies[parameter] = on_host(parameter.detach())
                self.copies[parameter].stands_for = parameter
                self.optimizers[parameter] = self.make_optimizer([self.copies[parameter]])
            copy, gradient = self.copies[parameter], self.offloaded.pop(parameter, parameter.grad)
            copy.grad = gradient if gradient.is_cpu else on_host(gradient)
            parameter.grad = gradient = None
            self.optimizers[parameter].step()
            parameter.copy_(copy, non_blocking=True)
            copy.grad = None

    def zero_grad(self):
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None


def install(step, options):
    step.optimizer_options["foreach"] = False
    make_optimizer = step.make_optimizer
    step.make_optimizer = lambda parameters: OnHost(parameters, step, make_optimizer)
    step.updates_on_host = True
