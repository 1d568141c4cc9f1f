"""bitsandbytes' paged optimizers keep state in CUDA's unified memory, which moves it as kernels touch it. The same with tensors: a
parameter's state is copied to the device for its update and back."""

import torch

from stock.optimizer_offload import on_host

STACKS = ["paged", "lora+paged", "paged+fused-in-backward", "paged+gradient-offload"]
BFLOAT16_STACKS = ["paged"]
BYTES = {"paged+gradient-offload": "the gradient comes to the device before the state; the other way round in a recipe"}


class Paged:
    def __init__(self, parameters, make_optimizer):
        self.param_groups = [{"params": parameters}]
        self.optimizers = {parameter: make_optimizer([parameter]) for parameter in parameters}
        self.away = {parameter: [] for parameter in parameters}

    @torch.no_grad()
    def step(self):
        for parameter, optimizer in self.optimizers.items():
            state = optimizer.state[parameter]
            for name in self.away[parameter]:
                state[name] = torch.empty_like(state[name], device=parameter.device).copy_(state[name], non_blocking=True)
            optimizer.step()
            self.away[parameter] = [name for name, value in state.items() if value.device == parameter.device]
            for name in self.away[parameter]:
                state[name] = on_host(state[name])

    def zero_grad(self):
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None


def install(step, options):
    step.optimizer_options["foreach"] = False
    make_optimizer = step.make_optimizer
    step.make_optimizer = lambda parameters: Paged(parameters, make_optimizer)
