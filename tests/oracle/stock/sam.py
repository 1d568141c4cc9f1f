"""https://arxiv.org/abs/2010.01412, algorithm 1, with the weights put back from a copy, as https://github.com/davda54/sam does."""

import torch

STACKS = ["sam", "lora+checkpointing+sam,rho=0.5", "sam+gradient-offload", "sam+gradient-offload+accumulation"]
BFLOAT16_STACKS = ["sam"]


def install(step, options):
    rho, copies = float(options.get("rho", 0.05)), {}

    @torch.no_grad()
    def climb():
        trained = [parameter for parameter in step.parameters if parameter.grad is not None]
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(parameter.grad) for parameter in trained]))
        scale = rho / (norm + 1e-12)
        for parameter in trained:
            copies[parameter] = parameter.detach().clone()
            parameter.add_(parameter.grad.mul_(scale))
            parameter.grad = None

    def twice(forward_backward):
        step.last_pass = False
        loss = forward_backward()
        with step.phase("optimizer_step"):
            climb()
        step.last_pass = True
        second = forward_backward()
        with step.phase("optimizer_step"):  # which begins where backward ends: its loss is there still
            del second
        return loss

    @torch.no_grad()
    def go_back():
        for parameter, copy in copies.items():
            parameter.copy_(copy)
        copies.clear()

    step.passes = twice
    step.before_update.append(go_back)
