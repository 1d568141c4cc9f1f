"""torch.autograd.graph.saved_tensors_hooks with the simplest form of https://arxiv.org/abs/2104.14129: 8-bit integers, one scale a tensor;
composed by hand with what takes them to the host (strategies.chained)."""

import torch

from stock.activation_offload import weights

STACKS = [
    "int8-activations+activation-offload",
    "int8-activations",
    "int8-activations+save-on-cpu",
    "int8-activations,min_bytes=4096+activation-offload,min_bytes=0",
    "checkpointing,every=2+int8-activations+activation-offload+accumulation",
]
BFLOAT16_STACKS = ["int8-activations+activation-offload"]


def install(step, options):
    min_bytes, storages = int(options.get("min_bytes", 1024)), weights(step.model)

    def pack(tensor):
        if not tensor.is_floating_point() or tensor.nbytes < min_bytes or tensor.untyped_storage().data_ptr() in storages:
            return None
        scale = torch.linalg.vector_norm(tensor, float("inf"))
        scale.div_(127)
        scale.clamp_min_(1e-30)
        values = tensor / scale
        values.round_()
        return [values.to(torch.int8), scale]

    def unpack(values, scale):
        return values.to(scale.dtype).mul_(scale)

    step.saved_tensors["compress"] = (pack, unpack)
