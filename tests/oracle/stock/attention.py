"""https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.sdpa_kernel.html"""

import functools

from torch.nn.attention import SDPBackend, sdpa_kernel

STACKS = ["attention,backend=math", "attention,backend=flash", "lora+checkpointing+attention,backend=math"]
BFLOAT16_STACKS = ["attention,backend=math"]
BACKENDS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


def install(step, options):
    step.around_step.append(functools.partial(sdpa_kernel, BACKENDS[options.get("backend", "math")]))
