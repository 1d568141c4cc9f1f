"""https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html"""

import torch

STACKS = [
    "sgd",
    "sgd,momentum=0.9,weight_decay=0.01",
    "sgd,momentum=0.9,nesterov=true+foreach-off",
    "lora+sgd,momentum=0.9,weight_decay=0.01,nesterov=true",
    "checkpointing+fused-in-backward+sgd,momentum=0.9,weight_decay=0.01,nesterov=true",
]
BFLOAT16_STACKS = ["sgd,momentum=0.9", "fused-in-backward+sgd"]


def install(step, options):
    step.optimizer_class = torch.optim.SGD
    step.optimizer_options = {
        "foreach": step.optimizer_options["foreach"],
        "lr": float(options.get("lr", 1e-3)),
        "momentum": float(options.get("momentum", 0)),
        "weight_decay": float(options.get("weight_decay", 0)),
        "nesterov": options.get("nesterov", "false") == "true",
    }
