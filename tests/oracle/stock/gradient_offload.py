"""The hook of torchao.optim.CPUOffloadOptimizer's offload_gradients (torchao/optim/cpu_offload.py); a gradient comes back for its
parameter's update unless that is on the host. Unlike there, micro-batches are added up on the host."""

import torch

from stock.optimizer_offload import on_host

STACKS = ["gradient-offload", "lora+gradient-offload", "checkpointing+accumulation+gradient-offload",
          "optimizer-offload+gradient-offload"]  # fmt: skip
BFLOAT16_STACKS = ["gradient-offload", "accumulation+gradient-offload"]


class OneByOne:
    def __init__(self, parameters, step, make_optimizer):
        self.param_groups = [{"params": parameters}]
        self.offloaded, self.optimizers = step.host_gradients, {}
        for parameter in parameters:
            self.optimizers[parameter] = make_optimizer([parameter])

    @torch.no_grad()
    def step(self):
        for parameter, optimizer in self.optimizers.items():
            parameter.grad = torch.empty_like(parameter).copy_(self.offloaded.pop(parameter))
            optimizer.step()
            optimizer.zero_grad()

    def zero_grad(self):
        pass


def install(step, options):
    def move(parameter):
        if not step.last_pass:  # what the step itself needs
            return
        host = on_host(parameter.grad)
        parameter.grad = None
        earlier = step.host_gradients.get(parameter)
        step.host_gradients[parameter] = host if earlier is None else earlier.add_(host)

    for parameter in step.parameters:
        parameter.register_post_accumulate_grad_hook(move)
    if step.updates_on_host:
        return
    step.optimizer_options["foreach"] = False
    make_optimizer = step.make_optimizer
    step.make_optimizer = lambda parameters: OneByOne(parameters, step, make_optimizer)
