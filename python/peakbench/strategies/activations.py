"""What forward keeps for backward, and how a model computes."""

import functools
import importlib
from typing import Any, Callable, Dict

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

from peakbench._objects import Refused
from peakbench.strategies._offer import SAME_BITS, WITHIN, blocks_of, chosen, device_of, strategy

_aten = torch.ops.aten
_MATMULS = [_aten.mm.default, _aten.addmm.default, _aten.bmm.default, _aten.baddbmm.default]
_ATTENTION = [
    _aten._scaled_dot_product_flash_attention_for_cpu.default,
    _aten._scaled_dot_product_flash_attention.default,
    _aten._scaled_dot_product_efficient_attention.default,
    _aten._scaled_dot_product_cudnn_attention.default,
]
_KEPT = {"nothing": [], "matmuls": _MATMULS, "attention": _ATTENTION, "matmuls_and_attention": _MATMULS + _ATTENTION}
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@strategy("checkpointing", SAME_BITS, aliases=("gradient-checkpointing", "activation-checkpointing"))
def checkpointing(model: nn.Module, every: int = 1, keep: str = "nothing") -> nn.Module:
    """Computes a block's activations again in backward: of every n-th block, and but for the operators that ``keep`` names.

    By the library's own ``gradient_checkpointing_enable()`` where the model has it and every block is checkpointed
    (https://huggingface.co/docs/transformers/main_classes/model), else by https://docs.pytorch.org/docs/stable/checkpoint.html.
    """
    kept = chosen("checkpointing", "keep", keep, _KEPT)
    options: Dict[str, Any] = {"use_reentrant": False}
    if kept:
        options["context_fn"] = functools.partial(create_selective_checkpoint_contexts, kept)
    if every == 1 and getattr(model, "supports_gradient_checkpointing", False):
        if not model.training:
            raise Refused("checkpointing: the model is in evaluation, where its library checkpoints nothing: call train()")
        enable: Any = getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)  # the name since transformers 5
        enable(options)
        return model
    blocks = blocks_of(model)
    if not blocks or every < 1:
        raise Refused(f"checkpointing: {type(model).__name__} has no list of blocks" if not blocks else "checkpointing: every: expected 1 or more")
    for block in blocks[::every]:
        setattr(block, "forward", functools.partial(checkpoint, block.forward, **options))
    return model


@strategy("save-on-cpu", WITHIN)
def save_on_cpu(model: nn.Module, loss: Callable[..., Any], pin_memory: bool = True) -> Callable[..., Any]:
    """Keeps what backward needs in the host's memory. https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.save_on_cpu"""
    pinned = pin_memory and device_of(model).type == "cuda"

    def offloaded(*rows: slice) -> Any:
        with torch.autograd.graph.save_on_cpu(pin_memory=pinned):
            return loss(*rows)

    return offloaded


@strategy("autocast", aliases=("amp", "mixed-precision"))
def autocast(model: nn.Module, loss: Callable[..., Any], dtype: str = "bf16") -> Callable[..., Any]:
    """Computes products in 16 bits. https://docs.pytorch.org/docs/stable/amp.html#autocasting"""
    kind, device = chosen("autocast", "dtype", dtype, _DTYPES), device_of(model).type

    def cast(*rows: slice) -> Any:
        with torch.autocast(device, dtype=kind):
            return loss(*rows)

    return cast


@strategy("compile", WITHIN)
def compile(model: nn.Module, mode: str = "default") -> nn.Module:
    """Compiles the model's forward. https://docs.pytorch.org/docs/stable/generated/torch.compile.html"""
    # Not model.compile(): the compiler skips code of torch.nn, and so the whole forward of an nn.Sequential (PyTorch 2.11).
    setattr(model, "forward", torch.compile(model.forward, mode=mode))
    return model


@strategy("liger", WITHIN, needs=("liger_kernel", "liger-kernel", "0.5"))
def liger(model: nn.Module) -> nn.Module:
    """Liger's kernels for the model's architecture. https://linkedin.github.io/Liger-Kernel/High-Level-APIs/"""
    kind = getattr(getattr(model, "config", None), "model_type", type(model).__name__)
    apply = getattr(importlib.import_module("liger_kernel.transformers"), f"apply_liger_kernel_to_{kind}", None)
    if apply is None:
        raise Refused(f"liger: Liger has no kernels for {kind}")
    apply(model=model)
    return model
