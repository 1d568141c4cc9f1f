"""https://docs.pytorch.org/docs/stable/generated/torch.optim.Adafactor.html"""

import torch

STACKS = [
    "adafactor",
    "adafactor,lr=0.05,beta2_decay=-0.5,eps2=0.01,d=2,weight_decay=0.1",
    "adafactor,foreach=true,weight_decay=0.1",
    "lora+fused-in-backward+adafactor,foreach=true",
    "lora+adafactor",
    "checkpointing+fused-in-backward+adafactor",
]
BFLOAT16_STACKS = ["adafactor", "adafactor,foreach=true"]


def install(step, options):
    step.optimizer_class = torch.optim.Adafactor
    step.optimizer_options = {
        "foreach": options.get("foreach", "false") == "true",
        "lr": float(options.get("lr", 1e-2)),
        "beta2_decay": float(options.get("beta2_decay", -0.8)),
        "eps": (None, float(options.get("eps2", 1e-3))),
        "d": float(options.get("d", 1)),
        "weight_decay": float(options.get("weight_decay", 0)),
    }
