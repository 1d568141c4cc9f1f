"""https://arxiv.org/abs/2302.06675, algorithm 2. PyTorch has none: the paper's equations with torch's operators."""

import torch

STACKS = [
    "lion",
    "lion,lr=0.001,beta1=0.8,beta2=0.95,weight_decay=0.1+foreach-off",
    "lora+lion",
    "checkpointing+fused-in-backward+lion",
]
BFLOAT16_STACKS = ["lion,weight_decay=0.1", "lion+foreach-off"]


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr, beta1, beta2, weight_decay, foreach):
        super().__init__(params, dict(lr=lr, beta1=beta1, beta2=beta2, weight_decay=weight_decay, foreach=foreach))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            for p in parameters:
                if p not in self.state:
                    self.state[p]["exp_avg"] = torch.zeros_like(p)
            if not parameters:
                continue
            exp_avgs = [self.state[p]["exp_avg"] for p in parameters]
            (self.foreach if group["foreach"] else self.single)(parameters, [p.grad for p in parameters], exp_avgs, **group)

    @staticmethod
    def single(parameters, gradients, exp_avgs, lr, beta1, beta2, weight_decay, **_):
        for p, gradient, exp_avg in zip(parameters, gradients, exp_avgs):
            if weight_decay:
                p.mul_(1 - lr * weight_decay)
            p.add_(exp_avg.lerp(gradient, 1 - beta1).sign_(), alpha=-lr)
            exp_avg.lerp_(gradient, 1 - beta2)

    @staticmethod
    def foreach(parameters, gradients, exp_avgs, lr, beta1, beta2, weight_decay, **_):
        if weight_decay:
            torch._foreach_mul_(parameters, 1 - lr * weight_decay)
        updates = torch._foreach_lerp(exp_avgs, gradients, 1 - beta1)
        torch._foreach_sign_(updates)
        torch._foreach_add_(parameters, updates, alpha=-lr)
        del updates
        torch._foreach_lerp_(exp_avgs, gradients, 1 - beta2)


def install(step, options):
    defaults = {"lr": 1e-4, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0}
    step.optimizer_class = Lion
    step.optimizer_options = {
        "foreach": step.optimizer_options["foreach"],
        **{name: float(options.get(name, value)) for name, value in defaults.items()},
    }
