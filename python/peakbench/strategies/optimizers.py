"""Optimizers, and when they update."""

import importlib
from typing import Any, Callable, cast

import torch
from torch import nn
from torch.optim import Optimizer

from peakbench._objects import Refused, Unsupported
from peakbench.strategies._offer import SAME_BITS, WITHIN, another, strategy, trained


@strategy("baseline", SAME_BITS, aliases=("adamw",))
def baseline(model: nn.Module, lr: float = 0.001) -> Optimizer:
    """AdamW with PyTorch's defaults. https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html"""
    return torch.optim.AdamW(trained(model), lr=lr)


@strategy("foreach-off", SAME_BITS)
def foreach_off(model: nn.Module, lr: float = 0.001) -> Optimizer:
    """AdamW, one parameter at a time. https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html"""
    return torch.optim.AdamW(trained(model), lr=lr, foreach=False)


@strategy("fused-optimizer", WITHIN, aliases=("fused-adamw",))
def fused_optimizer(model: nn.Module, lr: float = 0.001) -> Optimizer:
    """AdamW in one fused kernel. https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html"""
    return torch.optim.AdamW(trained(model), lr=lr, fused=True)


@strategy("adamw-8bit", aliases=("adam-8bit", "8bit-adamw", "8bit-adam"), needs=("torchao", "torchao", "0.10"))
def adamw_8bit(model: nn.Module, lr: float = 0.001) -> Optimizer:
    """AdamW with moments of 8 bits. https://github.com/pytorch/ao/tree/main/torchao/optim"""
    return cast(Optimizer, importlib.import_module("torchao.optim").AdamW8bit(trained(model), lr=lr))


@strategy("adamw-4bit", aliases=("adam-4bit", "4bit-adamw"), needs=("torchao", "torchao", "0.10"))
def adamw_4bit(model: nn.Module, lr: float = 0.001) -> Optimizer:
    """AdamW with moments of 4 bits. https://github.com/pytorch/ao/tree/main/torchao/optim"""
    return cast(Optimizer, importlib.import_module("torchao.optim").AdamW4bit(trained(model), lr=lr))


@strategy("paged", needs=("bitsandbytes", "bitsandbytes", "0.43"))
def paged(model: nn.Module, lr: float = 0.001, bits: int = 32) -> Optimizer:
    """AdamW whose state is in paged memory, of ``bits`` 32 or 8. https://huggingface.co/docs/bitsandbytes/reference/optim/adamw"""
    if bits not in (8, 32):
        raise Refused(f"paged: bits: expected 8 or 32, got {bits}")
    optimizers = importlib.import_module("bitsandbytes").optim
    return cast(Optimizer, (optimizers.PagedAdamW32bit if bits == 32 else optimizers.PagedAdamW8bit)(trained(model), lr=lr))


@strategy("fused-in-backward", SAME_BITS, aliases=("optimizer-in-backward",))
def fused_in_backward(model: nn.Module, optimizer: Optimizer) -> None:
    """Updates each parameter as soon as it has its gradient, by an optimizer of its own.

    https://docs.pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html
    """
    alone = {"foreach": False} if "foreach" in optimizer.defaults else {}  # as in the tutorial
    optimizers = {one: another(optimizer, [one], **alone) for group in optimizer.param_groups for one in group["params"]}

    def update(parameter: torch.Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for one in optimizers:
        one.register_post_accumulate_grad_hook(update)


@strategy("accumulation", WITHIN, aliases=("gradient-accumulation", "grad-accumulation"))
def accumulation(model: nn.Module, optimizer: Optimizer, batch: int, steps: int = 2) -> Callable[[Callable[..., Any]], Any]:
    """Trains a batch in ``steps`` parts, whose gradients add up.

    https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation
    """
    if not 2 <= steps <= batch:
        raise Unsupported(f"accumulation: steps: expected 2 to {batch}, the samples of a batch, got {steps}")
    ends = [part * batch // steps for part in range(steps + 1)]

    def step(loss: Callable[..., Any]) -> Any:
        optimizer.zero_grad()
        total = None
        for begin, end in zip(ends, ends[1:]):
            value = loss(slice(begin, end)) * ((end - begin) / batch)
            value.backward()
            total = value.detach() if total is None else total + value.detach()
            del value
        optimizer.step()
        return total

    return step
