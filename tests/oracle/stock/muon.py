"""https://docs.pytorch.org/docs/stable/generated/torch.optim.Muon.html: Muon for the 2-D weights of hidden layers, a standard method for
the rest; two optimizers side by side."""

import torch

STACKS = [
    "muon",
    "muon,lr=0.02,momentum=0.9,weight_decay=0.01,nesterov=false,ns_steps=3,adjust_lr=match_rms_adamw",
    "muon+foreach-off",
    "muon+fused-optimizer",
    "lora+muon",
    "checkpointing+fused-in-backward+muon",
]
BFLOAT16_STACKS = ["muon", "lora+fused-in-backward+muon"]


class SideBySide:
    def __init__(self, optimizers):
        self.optimizers = optimizers

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()

    def zero_grad(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad()


def install(step, options):
    rest_class, rest_options = step.optimizer_class, step.optimizer_options
    own_options = {
        "lr": float(options.get("lr", 1e-3)),
        "momentum": float(options.get("momentum", 0.95)),
        "weight_decay": float(options.get("weight_decay", 0.1)),
        "nesterov": options.get("nesterov", "true") == "true",
        "ns_steps": int(options.get("ns_steps", 5)),
        "adjust_lr_fn": options.get("adjust_lr", "original"),
    }
    blocks = step.subject.blocks(step.subject.base)
    hidden = {p for block in blocks for p in block.parameters() if p.ndim == 2}

    def make_optimizer(parameters):
        matrices = [p for p in parameters if p in hidden]
        rest = [p for p in parameters if p not in hidden]
        made = [torch.optim.Muon(matrices, **own_options)] if matrices else []
        return SideBySide(made + ([rest_class(rest, **rest_options)] if rest else []))

    step.make_optimizer = make_optimizer
