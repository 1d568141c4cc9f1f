"""https://arxiv.org/abs/2306.09782, with the hooks of
https://docs.pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html"""

import torch

STACKS = ["lomo", "lora+checkpointing+lomo,lr=0.1"]
BFLOAT16_STACKS = ["lomo", "checkpointing+lomo"]


def install(step, options):
    lr = float(options.get("lr", 1e-3))

    @torch.no_grad()
    def update_one(parameter):
        parameter.add_(parameter.grad, alpha=-lr)
        parameter.grad = None

    def in_backward(step):
        for parameter in step.parameters:
            parameter.register_post_accumulate_grad_hook(update_one)
        return lambda: None

    step.make_update = in_backward
