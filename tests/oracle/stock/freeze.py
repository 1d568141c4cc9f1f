"""https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad"""

import re

import tensors

STACKS = ["freeze", "freeze,modules=*.0:*_0+checkpointing+fused-in-backward", "freeze,modules=*norm:*.ln_1:*.mlp"]
BFLOAT16_STACKS = ["freeze"]


def prepare(model, options, subject):
    patterns = options.get("modules", "*embed*:conv_proj").split(":")
    for name, parameter in tensors.named(model).items():
        if any(re.fullmatch(re.escape(pattern).replace(r"\*", ".*") + r"(\..*)?", name) for pattern in patterns):
            parameter.requires_grad_(False)
    return model
