"""Imported by ranks on the CPU: PyTorch's ring attention over the CPU's kernel. PyTorch has it for kernels of CUDA alone."""

import torch
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.experimental._context_parallel import _attention as ring

aten = torch.ops.aten
FORWARD = aten._scaled_dot_product_flash_attention_for_cpu
BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward


def local(arguments):
    return [one.to_local() if isinstance(one, DTensor) else one for one in arguments]


def forward(_, arguments, more):
    query = arguments[0]
    q, k, v, *rest = local(arguments)
    named = dict(zip(("dropout_p", "is_causal"), rest)) | more
    made = ring._templated_ring_attention(query.device_mesh.get_group(), 2, FORWARD, query=q, key=k, value=v, **named)
    return tuple(DTensor.from_local(one, query.device_mesh, query.placements, run_check=False) for one in made)


def backward(_, arguments, more):
    query = arguments[1]
    names = ("grad_out", "query", "key", "value", "out", "logsumexp", "dropout_p", "is_causal")
    named = dict(zip(names, local(arguments))) | more
    made = ring._templated_ring_attention_backward(query.device_mesh.get_group(), 2, BACKWARD, grad_out_name="grad_out", **named)
    return tuple(DTensor.from_local(one, query.device_mesh, query.placements, run_check=False) for one in made)


ring.custom_ops[FORWARD.default] = forward
ring.custom_ops[BACKWARD.default] = backward
