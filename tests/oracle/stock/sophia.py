"""https://arxiv.org/abs/2305.14342, algorithm 3, with the optimizer of https://github.com/Liuhong99/Sophia (sophia.py: SophiaG): a pass of its own
every second step, whose labels are drawn from the model's own logits, tells the curvature (the estimator of section 2.3)."""

import torch

FAMILIES = ("decoder", "gpt2")
STACKS = ["sophia", "checkpointing+sophia"]
BFLOAT16_STACKS = ["sophia"]
EVERY = 2


class SophiaG(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.965, 0.99), rho=0.04, weight_decay=1e-1):
        super().__init__(params, dict(lr=lr, betas=betas, rho=rho, weight_decay=weight_decay))

    def state_of(self, p):
        state = self.state[p]
        if len(state) == 0:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(p)
            state["hessian"] = torch.zeros_like(p)
        return state

    @torch.no_grad()
    def update_hessian(self):
        for group in self.param_groups:
            _, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is not None:
                    self.state_of(p)["hessian"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)

    @torch.no_grad()
    def step(self, bs=1):
        for group in self.param_groups:
            beta1, _ = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state_of(p)
                state["step"] += 1
                p.mul_(1 - group["lr"] * group["weight_decay"])
                state["exp_avg"].mul_(beta1).add_(p.grad, alpha=1 - beta1)
                ratio = (state["exp_avg"].abs() / (group["rho"] * bs * state["hessian"] + 1e-15)).clamp(None, 1)
                p.addcmul_(state["exp_avg"].sign(), ratio, value=-group["lr"])


def sampled(model, batch):
    """What torch.distributions.Categorical draws, without its arguments' checks."""
    logits = model(batch["input_ids"], use_cache=False).logits
    flat = logits.flatten(0, -2).float()
    labels = torch.multinomial(flat.detach().softmax(-1), 1).squeeze(-1)
    return logits, torch.nn.functional.cross_entropy(flat, labels)


def install(step, options):
    step.optimizer_class, step.optimizer_options = SophiaG, {}
    now = {}

    def passes(forward_backward):
        if now["step"] % EVERY == 0:
            ordinary, step.forward = step.forward, sampled
            forward_backward()
            step.forward = ordinary
            with step.phase("optimizer_step"):
                step.optimizers[0].update_hessian()
                step.optimizers[0].zero_grad()
        return forward_backward()

    step.before_step.append(lambda number: now.update(step=number))
    step.passes = passes
